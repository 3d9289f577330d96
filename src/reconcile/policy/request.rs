//! The request of an ImagePolicy, parsed once (`docs/flux-behaviour.md`, Policies).

use std::time::Duration;

use kube::ResourceExt;
use tagboat_api::duration::DurationError;
use tagboat_api::policy::{DigestReflectionPolicy, ImagePolicySpec};
use tagboat_api::settings::{PolicySettings, PollInterval, SettingErrors};
use tagboat_api::{ImagePolicy, Reason};

use crate::error::ReconcileError;
use crate::objects::ObjectName;
use crate::policy::{Policy, PolicyError};

/// The request of an ImagePolicy, as far as it depends on no other object.
#[derive(Debug)]
pub struct Request {
    /// The repository.
    pub repository: ObjectName,
    /// The rule and the filter, before they are compiled.
    pub policy: PolicySource,
    /// The digest reflection.
    pub digests: DigestReflectionPolicy,
    /// The interval of digest lookups, with `Always`.
    pub polling: PollInterval,
    /// The interval of digest lookups in the spec, with `Always`.
    pub interval: Option<Duration>,
    /// The group whose members get their digests together, with `Always`.
    pub group: Option<String>,
}

/// The rule and the filter of a policy as they are written.
///
/// As in Flux, an invalid rule does not matter before there is a repository.
#[derive(Clone, Debug)]
pub struct PolicySource {
    spec: ImagePolicySpec,
    settings: PolicySettings,
}

impl PolicySource {
    /// Compiles them. The cost is up to their author, since a regular expression is compiled.
    ///
    /// # Errors
    ///
    /// If they are invalid, independent of the tags.
    pub fn compile(&self) -> Result<Policy, PolicyError> {
        Policy::new(&self.spec, self.settings.clone())
    }
}

/// The error of an ImagePolicy that cannot be reconciled as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// An annotation of ours is invalid.
    #[error(transparent)]
    Settings(#[from] SettingErrors),
    /// The policy is invalid, independent of the tags.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The interval is invalid.
    #[error("spec.interval cannot be used")]
    Interval(#[source] DurationError),
    /// The repository names a service account, and that is disabled.
    #[error(
        "to use spec.serviceAccountName in the ImageRepository for provider authentication please enable the \
         ObjectLevelWorkloadIdentity feature gate in the controller"
    )]
    IdentityIsOff,
}

/// Only a changed object helps.
impl ReconcileError for RequestError {
    fn reason(&self) -> Reason {
        match self {
            Self::Settings(error) => error.reason(),
            Self::Policy(error) => error.reason(),
            Self::Interval(_) => Reason::Failed,
            Self::IdentityIsOff => Reason::FeatureGateDisabled,
        }
    }

    fn is_retryable(&self) -> bool {
        false
    }
}

impl Request {
    /// Parses an ImagePolicy.
    ///
    /// # Errors
    ///
    /// If it cannot be reconciled, independent of its repository.
    pub fn of(policy: &ImagePolicy) -> Result<Self, RequestError> {
        let settings = PolicySettings::from_annotations(policy.annotations())?;
        let spec = &policy.spec;
        let is_followed = spec.digest_reflection_policy == DigestReflectionPolicy::Always;
        let (polling, group) = (settings.poll_interval, settings.poll_group.clone());
        Policy::check_interval(spec)?;
        Ok(Self {
            repository: repository_of(policy),
            policy: PolicySource { spec: spec.clone(), settings },
            digests: spec.digest_reflection_policy.clone(),
            polling,
            interval: spec.effective_interval().map_err(RequestError::Interval)?,
            group: group.name().filter(|_| is_followed).map(str::to_owned),
        })
    }
}

/// Returns the repository that a policy names.
pub fn repository_of(policy: &ImagePolicy) -> ObjectName {
    let own = policy.namespace().unwrap_or_default();
    let reference = &policy.spec.image_repository_ref;
    ObjectName { namespace: reference.effective_namespace(&own).to_owned(), name: reference.name.clone() }
}

#[cfg(test)]
pub(in crate::reconcile) mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::error::chain;

    /// Returns a policy `n/p` of the repository `n/r` that wants versions.
    ///
    /// `spec` and `metadata` are its other members.
    pub(in crate::reconcile) fn policy(spec: &Value, metadata: &Value) -> ImagePolicy {
        let mut whole = json!({
            "metadata": {"namespace": "n", "name": "p", "generation": 1},
            "spec": {"imageRepositoryRef": {"name": "r"}, "policy": {"semver": {"range": ">=0"}}},
        });
        for (place, members) in [("metadata", metadata), ("spec", spec)] {
            whole[place].as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        }
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn a_policy_is_understood_with_its_annotations() {
        let request = Request::of(&policy(&json!({}), &json!({}))).unwrap();
        assert_eq!(request.repository.to_string(), "n/r");
        assert_eq!((request.interval, request.group), (None, None));
        let spec = json!({
            "imageRepositoryRef": {"name": "x", "namespace": "m"},
            "digestReflectionPolicy": "Always",
            "interval": "0s",
        });
        let metadata =
            json!({"annotations": {"tagboat.dev/poll-group": "web", "tagboat.dev/poll-interval": "6h"}});
        let request = Request::of(&policy(&spec, &metadata)).unwrap();
        assert_eq!(request.repository.to_string(), "m/x");
        assert_eq!(request.interval, Some(Duration::from_secs(600)));
        assert_eq!(request.polling, PollInterval::Every(Duration::from_secs(21_600)));
        assert_eq!(request.group.as_deref(), Some("web"));
        // Only who follows digests has a use for a group.
        assert_eq!(Request::of(&policy(&json!({}), &metadata)).unwrap().group, None);
    }

    #[test]
    fn errors_that_only_a_changed_policy_can_resolve_stall() {
        for (spec, metadata, reason, message) in [
            (
                json!({"digestReflectionPolicy": "Always"}),
                json!({}),
                Reason::IntervalNotConfigured,
                "spec.interval must be set when spec.digestReflectionPolicy is set to 'Always'",
            ),
            (
                json!({}),
                json!({"annotations": {"tagboat.dev/minimum-age": "soon"}}),
                Reason::InvalidSettings,
                "annotation tagboat.dev/minimum-age has the value `soon`: allowed is a duration in w, d, h, m, s and \
                 ms, such as 3d or 36h",
            ),
            (
                json!({"digestReflectionPolicy": "Always", "interval": "x"}),
                json!({}),
                Reason::Failed,
                "spec.interval cannot be used: `x` is not a duration: expected numbers, each with a unit of ms, s, m \
                 or h, such as 1m30s",
            ),
        ] {
            let error = Request::of(&policy(&spec, &metadata)).unwrap_err();
            assert_eq!((error.reason(), chain(&error).as_str()), (reason, message));
        }
        let bad = Request::of(&policy(&json!({"policy": {"semver": {"range": "*-*"}}}), &json!({}))).unwrap();
        let error = bad.policy.compile().unwrap_err();
        assert_eq!(error.reason(), Reason::InvalidPolicy);
        assert!(chain(&error).starts_with("invalid policy: "), "{}", chain(&error));
    }
}
