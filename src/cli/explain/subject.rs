//! The policy that is explained, and what stands around it.

use std::collections::BTreeMap;

use tagboat_api::{ImagePolicy, ImageRepository};

use crate::cli::Failure;
use crate::cli::given::split_name;
use crate::objects::ObjectName;

/// Which policy is meant.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    pub(super) namespace: Option<&'a str>,
    /// Whether the tags are given, so that its repository does not matter.
    pub(super) has_tags: bool,
}

/// A policy, and what stands around it.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) policy: ImagePolicy,
    pub(super) repository: Neighbour,
    /// The labels of the policy's namespace, where they decide about its access.
    pub(super) labels: BTreeMap<String, String>,
}

/// The ImageRepository of a policy.
#[derive(Debug)]
pub(super) enum Neighbour {
    /// It is there.
    Found(Box<ImageRepository>),
    /// The cluster has none of that name.
    Missing,
    /// The manifests have none of that name; a cluster may.
    NotGiven,
    /// It is among the manifests and cannot be read: why, a sentence each.
    Invalid(Vec<String>),
    /// The tags are given.
    NotNeeded,
}

impl<'a> Wanted<'a> {
    /// Understands `[NAMESPACE/]NAME` and `--namespace`.
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

    /// Whether a policy of that name may be meant.
    pub(super) fn is(&self, name: &ObjectName) -> bool {
        name.name == self.name && self.namespace.is_none_or(|namespace| namespace == name.namespace)
    }

    /// The one policy of several that is meant, `Ok(None)` where there is none.
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

    /// A part of a sentence that says where it was looked for.
    pub(super) fn place(&self) -> String {
        self.namespace.map(|namespace| format!(" in the namespace {namespace}")).unwrap_or_default()
    }
}
