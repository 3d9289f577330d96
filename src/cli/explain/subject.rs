//! The policy that is explained, and its repository.

use std::collections::BTreeMap;

use tagboat_api::{ImagePolicy, ImageRepository};

use crate::cli::Failure;
use crate::cli::overrides::split_name;
use crate::objects::ObjectName;

/// The query for a policy, by name and namespace.
#[derive(Debug)]
pub(super) struct PolicyQuery<'a> {
    pub(super) name: &'a str,
    pub(super) namespace: Option<&'a str>,
    /// True if `--tags` gives the tags, so that the repository is not needed.
    pub(super) has_tags: bool,
}

/// A policy with its repository.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) policy: ImagePolicy,
    pub(super) repository: RepositoryLookup,
    /// The labels of the policy's namespace, if its access depends on them.
    pub(super) labels: BTreeMap<String, String>,
}

/// The result of the lookup of a policy's ImageRepository.
#[derive(Debug)]
pub(super) enum RepositoryLookup {
    /// It exists.
    Found(Box<ImageRepository>),
    /// The cluster has none of this name.
    Missing,
    /// The manifests have none of this name; a cluster may have one.
    NotGiven,
    /// It is among the manifests and invalid: the errors, one sentence each.
    Invalid(Vec<String>),
    /// `--tags` gives the tags.
    NotNeeded,
}

impl<'a> PolicyQuery<'a> {
    /// Parses `[NAMESPACE/]NAME` and `--namespace`.
    pub(super) fn new(name: &'a str, namespace: Option<&'a str>, has_tags: bool) -> Result<Self, Failure> {
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
        Ok(Self { name: plain_name, namespace: namespace.or(own_namespace), has_tags })
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
    pub(super) fn only<P>(
        &self,
        found: Vec<P>,
        name: impl Fn(&P) -> ObjectName,
    ) -> Result<Option<P>, Failure> {
        let mut found = found.into_iter();
        match (found.next(), found.as_slice()) {
            (first, []) => Ok(first),
            (first, others) => {
                let all = first.iter().chain(others);
                let names: Vec<String> = all.map(|policy| name(policy).to_string()).collect();
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
