//! Checks that a policy may use the repository that it names (`docs/flux-behaviour.md`, Policies).

use std::collections::BTreeMap;

use kube::ResourceExt;
use tagboat_api::{ImageRepository, Reason};

use crate::error::ReconcileError;
use crate::objects::ObjectName;
use crate::reconcile::cross_namespace::CrossNamespace;

/// The error of a policy that may not use its repository. The sentences are Flux's.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// References to other namespaces are forbidden.
    #[error("cannot access 'ImageRepository/{repository}', cross-namespace references have been blocked")]
    Blocked {
        /// The repository.
        repository: ObjectName,
    },
    /// The repository does not exist.
    #[error(
        "referenced ImageRepository does not exist: ImageRepository.image.toolkit.fluxcd.io {name:?} not found"
    )]
    Missing {
        /// The name.
        name: String,
    },
    /// The repository allows its own namespace only.
    #[error("access denied: '{repository}' can't be accessed due to missing ACL labels on 'accessFrom'")]
    NotShared {
        /// The repository.
        repository: ObjectName,
    },
    /// The repository allows other namespaces.
    #[error(
        "access denied: '{repository}' can't be accessed due to ACL labels mismatch on namespace '{namespace}'"
    )]
    NamespaceNotAllowed {
        /// The repository.
        repository: ObjectName,
        /// The policy's namespace.
        namespace: String,
    },
    /// The labels of the policy's namespace cannot be read.
    #[error("access denied: {message}")]
    NoLabels {
        /// The cause.
        message: String,
    },
}

/// Always retryable: access may be granted, and a repository created, at any time.
impl ReconcileError for AccessError {
    fn reason(&self) -> Reason {
        match self {
            Self::Missing { .. } => Reason::DependencyNotReady,
            _ => Reason::AccessDenied,
        }
    }
}

/// Checks that the namespace of a repository may be named.
///
/// # Errors
///
/// If the repository is in another namespace and that is forbidden.
pub fn check_namespace(
    own: &str,
    repository: &ObjectName,
    cross_namespace: CrossNamespace,
) -> Result<(), AccessError> {
    if cross_namespace == CrossNamespace::Forbidden && repository.namespace != own {
        return Err(AccessError::Blocked { repository: repository.clone() });
    }
    Ok(())
}

/// Returns whether the labels of the policy's namespace decide about its access.
pub fn needs_labels(own: &str, repository: &ImageRepository) -> bool {
    repository.namespace().as_deref() != Some(own) && repository.spec.access_from.is_some()
}

/// Checks that a policy of the namespace `own` may use a repository.
///
/// `labels` are those of the namespace.
///
/// # Errors
///
/// If it may not.
pub fn check(
    own: &str,
    repository: &ImageRepository,
    labels: &BTreeMap<String, String>,
) -> Result<(), AccessError> {
    let name = ObjectName::of(repository);
    if name.namespace == own {
        return Ok(());
    }
    let Some(access) = &repository.spec.access_from else {
        return Err(AccessError::NotShared { repository: name });
    };
    let is_met = access
        .namespace_selectors
        .iter()
        .any(|selector| selector.match_labels.iter().all(|(label, value)| labels.get(label) == Some(value)));
    if is_met {
        Ok(())
    } else {
        Err(AccessError::NamespaceNotAllowed { repository: name, namespace: own.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::error::chain;
    use crate::reconcile::repository::request::tests::repository;

    /// The rules of `docs/flux-behaviour.md`, Policies.
    #[test]
    fn each_selector_against_the_labels_of_the_namespace() {
        let tenant = json!({"tenant": "b", "env": "test"});
        let foo = json!({"foo1": "bar1", "foo2": "bar2"});
        let denied = "access denied: 'n/r' can't be accessed due to ACL labels mismatch on namespace 'other'";
        let missing = "access denied: 'n/r' can't be accessed due to missing ACL labels on 'accessFrom'";
        for (own, selectors, labels, expected) in [
            ("n", Value::Null, json!({}), None),
            ("n", json!([]), json!({}), None),
            ("other", Value::Null, json!({}), Some(missing)),
            ("other", json!([]), foo.clone(), Some(denied)),
            ("other", json!([{"matchLabels": {}}]), json!({}), None),
            ("other", json!([{}]), json!({}), None),
            ("other", json!([{"matchLabels": tenant}]), tenant.clone(), None),
            ("other", json!([{"matchLabels": {"tenant": "a", "env": "test"}}]), tenant, Some(denied)),
            ("other", json!([{"matchLabels": {"foo1": "bar1"}}]), foo.clone(), None),
            (
                "other",
                json!([{"matchLabels": {"aaa": "bbb"}}, {"matchLabels": {"foo2": "bar2"}}, {"matchLabels": {"xxx": "yyy"}}]),
                foo.clone(),
                None,
            ),
            (
                "other",
                json!([{"matchLabels": {"aaa": "bbb"}}, {"matchLabels": {"mmm": "nnn"}}, {"matchLabels": {"xxx": "yyy"}}]),
                foo,
                Some(denied),
            ),
        ] {
            let spec = match &selectors {
                Value::Null => json!({}),
                selectors => json!({"accessFrom": {"namespaceSelectors": selectors}}),
            };
            let repository = repository(&spec, &json!({}));
            let labels = serde_json::from_value(labels).unwrap();
            let found = check(own, &repository, &labels);
            let message = found.as_ref().err().map(|error| chain(error));
            assert_eq!(message.as_deref(), expected, "{own} {selectors}");
            assert!(found.is_ok() || found.is_err_and(|error| error.reason() == Reason::AccessDenied));
        }
    }

    #[test]
    fn another_namespace_may_be_forbidden_altogether() {
        let name = ObjectName { namespace: "n".to_owned(), name: "r".to_owned() };
        assert!(check_namespace("n", &name, CrossNamespace::Forbidden).is_ok());
        assert!(check_namespace("other", &name, CrossNamespace::Allowed).is_ok());
        let error = check_namespace("other", &name, CrossNamespace::Forbidden).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot access 'ImageRepository/n/r', cross-namespace references have been blocked"
        );
        let missing = AccessError::Missing { name: "r".to_owned() };
        assert_eq!(
            missing.to_string(),
            "referenced ImageRepository does not exist: ImageRepository.image.toolkit.fluxcd.io \"r\" not found"
        );
        assert_eq!(missing.reason(), Reason::DependencyNotReady);
    }
}
