//! The policies that markers can name.

use std::collections::HashSet;

use tagboat_api::ObjectName;
use tagboat_api::nearest::nearest;

use super::kustomize::{Renaming, can_become};

/// The policies among the files.
///
/// A marker names a policy by its name in the cluster; a manifest may leave the namespace to a kustomization, and part
/// of a name to a substitution. So a name counts as known if it may become that of a policy.
#[derive(Debug, Default)]
pub(super) struct PolicyNames {
    known: Vec<DeclaredName>,
    /// The completely given names, since most markers name one of them.
    complete_names: HashSet<ObjectName>,
}

/// A policy's name in its manifest, with possible changes to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeclaredName {
    /// The namespace, if given.
    pub(super) namespace: Option<String>,
    /// The name.
    pub(super) name: String,
    /// The changes that kustomizations may make to both.
    pub(super) renaming: Renaming,
}

impl DeclaredName {
    /// The name as given, if complete.
    pub(super) fn complete_name(&self) -> Option<ObjectName> {
        let namespace = self.namespace.clone()?;
        Some(ObjectName { namespace, name: self.name.clone() })
    }

    /// Returns true if the policy may be the one named `wanted`.
    pub(super) fn can_be(&self, wanted: &ObjectName) -> bool {
        self.can_be_in(&wanted.namespace)
            && self.renaming.names(&self.name).iter().any(|name| can_become(name, &wanted.name))
    }

    /// Returns true if the policy may be in a namespace.
    pub(super) fn can_be_in(&self, namespace: &str) -> bool {
        let is_own = self.namespace.as_deref().is_none_or(|own| can_become(own, namespace));
        is_own || self.renaming.can_set_namespace(namespace)
    }
}

impl PolicyNames {
    pub(super) fn add(&mut self, name: DeclaredName) {
        self.complete_names.extend(name.complete_name());
        self.known.push(name);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns true if a policy of this name may be among the files.
    pub(super) fn contains(&self, wanted: &ObjectName) -> bool {
        self.complete_names.contains(wanted) || self.known.iter().any(|known| known.can_be(wanted))
    }

    /// Returns the policy that was probably meant, as a marker names it.
    ///
    /// It has the same name in another namespace, or a similar name in the same one.
    pub(super) fn nearest(&self, wanted: &ObjectName) -> Option<String> {
        let setter = |known: &DeclaredName| {
            let namespace = known.namespace.as_deref().unwrap_or(&wanted.namespace);
            format!("{namespace}:{}", known.name)
        };
        let namesake = self.known.iter().find(|known| known.name == wanted.name).map(setter);
        let near = || {
            let neighbours = self.known.iter().filter(|known| known.can_be_in(&wanted.namespace));
            let names: Vec<String> = neighbours.flat_map(|known| known.renaming.names(&known.name)).collect();
            let name = nearest(&wanted.name, names.iter().map(String::as_str))?;
            Some(format!("{}:{name}", wanted.namespace))
        };
        let whole = || {
            let setters: Vec<String> = self.known.iter().map(setter).collect();
            let wanted = format!("{}:{}", wanted.namespace, wanted.name);
            nearest(&wanted, setters.iter().map(String::as_str)).map(str::to_owned)
        };
        namesake.or_else(near).or_else(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        let mut names = PolicyNames::default();
        for (namespace, name) in
            [(Some("flux-system"), "podinfo"), (Some("apps"), "web"), (None, "worker"), (None, "${env}-api")]
        {
            let (namespace, name) = (namespace.map(str::to_owned), name.to_owned());
            names.add(DeclaredName { namespace, name, renaming: Renaming::default() });
        }
        for (wanted, is_known, near) in [
            ("flux-system:podinfo", true, Some("flux-system:podinfo")),
            ("flux-system:podinof", false, Some("flux-system:podinfo")),
            ("default:podinfo", false, Some("flux-system:podinfo")),
            ("flux-sytem:podinof", false, Some("flux-system:podinfo")),
            ("any:worker", true, Some("any:worker")),
            ("any:wroker", false, Some("any:worker")),
            ("any:prod-api", true, None),
            ("apps:nothing", false, None),
        ] {
            let (namespace, name) = wanted.split_once(':').unwrap();
            let wanted = ObjectName { namespace: namespace.to_owned(), name: name.to_owned() };
            assert_eq!(names.contains(&wanted), is_known, "{wanted}");
            assert_eq!(names.nearest(&wanted).as_deref(), near, "{wanted}");
        }
    }
}
