//! The name of the object that is explained.

use crate::cli::Failure;
use crate::cli::overrides::split_name;
use crate::objects::ObjectName;

/// A query for an object, by name and namespace.
#[derive(Debug)]
pub(super) struct ObjectQuery<'a> {
    pub(super) name: &'a str,
    pub(super) namespace: Option<&'a str>,
}

impl<'a> ObjectQuery<'a> {
    /// Parses `[NAMESPACE/]NAME` and `--namespace`.
    pub(super) fn new(name: &'a str, namespace: Option<&'a str>) -> Result<Self, Failure> {
        let (own_namespace, plain_name) = split_name(name);
        if plain_name.is_empty() || [own_namespace, namespace].contains(&Some("")) {
            return Err(Failure::Usage(format!(
                "the name {name:?} is not of the form [NAMESPACE/]NAME, or --namespace is empty"
            )));
        }
        if let (Some(one), Some(other)) = (own_namespace, namespace)
            && one != other
        {
            return Err(Failure::Usage(format!("{name} is not in the namespace {other} of --namespace")));
        }
        Ok(Self { name: plain_name, namespace: namespace.or(own_namespace) })
    }

    /// Returns true if the query matches a name.
    pub(super) fn matches(&self, name: &ObjectName) -> bool {
        name.name == self.name && self.namespace.is_none_or(|namespace| namespace == name.namespace)
    }

    /// Returns the only match, `Ok(None)` if there is none.
    ///
    /// # Errors
    ///
    /// If there are several.
    pub(super) fn only<K>(
        &self,
        found: Vec<K>,
        name: impl Fn(&K) -> ObjectName,
    ) -> Result<Option<K>, Failure> {
        let mut found = found.into_iter();
        match (found.next(), found.as_slice()) {
            (first, []) => Ok(first),
            (first, others) => {
                let all = first.iter().chain(others);
                let names: Vec<String> = all.map(|object| name(object).to_string()).collect();
                Err(Failure::Usage(format!(
                    "{} have that name; choose one with --namespace",
                    names.join(" and ")
                )))
            }
        }
    }

    /// Returns the namespace as the end of a sentence.
    pub(super) fn in_namespace(&self) -> String {
        self.namespace.map(|namespace| format!(" in the namespace {namespace}")).unwrap_or_default()
    }
}
