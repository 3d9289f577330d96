//! The request of an ImageRepository, parsed once (`docs/flux-behaviour.md`, Images and scans of a repository).

use std::time::Duration;

use kube::ResourceExt;
use tagboat_api::duration::DurationError;
use tagboat_api::repository::{ImageProvider, ImageRepositorySpec};
use tagboat_api::settings::{RepositorySettings, SettingErrors};
use tagboat_api::{ImageRepository, Reason};

use crate::error::ReconcileError;
use crate::reconcile::times::{self, TimeBounds};
use crate::reference::{AddressError, RepositoryAddress};

/// Allows or forbids cloud logins of objects as service accounts of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ObjectIdentity {
    /// Forbidden: Flux's feature gate is off.
    #[default]
    Off,
    /// Allowed, if the source of the logins supports it.
    On,
}

/// The request of an ImageRepository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The address that is scanned.
    pub address: RepositoryAddress,
    /// The time between two scans; zero if only events start one.
    pub interval: Duration,
    /// The time that a scan may take, within the bounds of the process.
    pub timeout: Duration,
    /// The regular expressions of tags that are left out.
    pub exclusions: Vec<String>,
}

/// The error of an ImageRepository that cannot be scanned as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It names a service account, and that is disabled.
    #[error(
        "to use spec.serviceAccountName for provider authentication please enable the ObjectLevelWorkloadIdentity \
         feature gate in the controller"
    )]
    IdentityIsOff,
    /// An annotation of ours is invalid.
    #[error(transparent)]
    Settings(#[from] SettingErrors),
    /// The address is invalid.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A duration is invalid.
    #[error("spec.{field} cannot be used")]
    Duration {
        /// The field.
        field: &'static str,
        /// The defect.
        #[source]
        cause: DurationError,
    },
}

/// Only a changed object helps.
impl ReconcileError for RequestError {
    fn reason(&self) -> Reason {
        match self {
            Self::IdentityIsOff => Reason::FeatureGateDisabled,
            Self::Settings(error) => error.reason(),
            Self::Address(error) => error.reason(),
            Self::Duration { .. } => Reason::Failed,
        }
    }

    fn is_retryable(&self) -> bool {
        false
    }
}

impl Request {
    /// Parses an ImageRepository.
    ///
    /// # Errors
    ///
    /// If it cannot be scanned as it is.
    pub fn of(
        repository: &ImageRepository,
        identity: ObjectIdentity,
        times: TimeBounds,
    ) -> Result<Self, RequestError> {
        let spec = &repository.spec;
        if identity == ObjectIdentity::Off && wants_identity(spec) {
            return Err(RequestError::IdentityIsOff);
        }
        let RepositorySettings {} = RepositorySettings::from_annotations(repository.annotations())?;
        let field = |field| move |cause| RequestError::Duration { field, cause };
        Ok(Self {
            address: RepositoryAddress::parse(&spec.image, spec.insecure)?,
            interval: times::interval(spec.interval.to_duration().map_err(field("interval"))?),
            timeout: times.timeout(spec.effective_timeout().map_err(field("timeout"))?),
            exclusions: spec.effective_exclusion_list(),
        })
    }
}

/// Returns whether a repository is accessed as its own service account at a cloud provider.
pub fn wants_identity(spec: &ImageRepositorySpec) -> bool {
    let names_account = spec.service_account_name.as_deref().is_some_and(|name| !name.is_empty());
    spec.provider != ImageProvider::Generic && names_account
}

#[cfg(test)]
pub(in crate::reconcile) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns a repository of the image `example.com/foo/bar`, scanned every minute.
    ///
    /// `spec` and `metadata` are its other members.
    pub(in crate::reconcile) fn repository(spec: &Value, metadata: &Value) -> ImageRepository {
        let mut whole = json!({
            "metadata": {"namespace": "n", "name": "r", "generation": 1},
            "spec": {"image": "example.com/foo/bar", "interval": "1m"},
        });
        for (place, members) in [("metadata", metadata), ("spec", spec)] {
            whole[place].as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        }
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn omitted_fields_have_the_defaults_of_flux() {
        let request =
            Request::of(&repository(&json!({}), &json!({})), ObjectIdentity::Off, TimeBounds::default())
                .unwrap();
        assert_eq!(request.address.canonical(), "example.com/foo/bar");
        assert_eq!((request.interval.as_secs(), request.timeout.as_secs()), (60, 60));
        assert_eq!(request.exclusions, [r"^.*\.sig$"]);
        for (spec, timeout) in
            [(json!({"timeout": "30s"}), 30), (json!({"interval": "0s"}), 1), (json!({"timeout": "1ms"}), 1)]
        {
            let request =
                Request::of(&repository(&spec, &json!({})), ObjectIdentity::Off, TimeBounds::default())
                    .unwrap();
            assert_eq!(request.timeout.as_secs(), timeout, "{spec}");
        }
    }

    #[test]
    fn long_timeouts_and_short_intervals_count_as_the_bounds() {
        let times = TimeBounds { longest_timeout: Duration::from_secs(600) };
        for (spec, interval, timeout) in [
            (json!({"timeout": "100000m"}), 60, 600),
            (json!({"interval": "24h"}), 86_400, 600),
            (json!({"interval": "1ms"}), 1, 1),
            (json!({"interval": "999ms", "timeout": "30s"}), 1, 30),
        ] {
            let request = Request::of(&repository(&spec, &json!({})), ObjectIdentity::Off, times).unwrap();
            assert_eq!(
                (request.interval.as_secs(), request.timeout.as_secs()),
                (interval, timeout),
                "{spec}"
            );
        }
    }

    #[test]
    fn errors_that_only_a_changed_repository_can_resolve_stall() {
        let provider = json!({"provider": "aws", "serviceAccountName": "sa"});
        for (spec, metadata, reason, message) in [
            (
                provider.clone(),
                json!({}),
                Reason::FeatureGateDisabled,
                "to use spec.serviceAccountName for provider authentication please enable the \
                 ObjectLevelWorkloadIdentity feature gate in the controller",
            ),
            (
                json!({"image": "https://example.com/foo/bar"}),
                json!({}),
                Reason::ImageURLInvalid,
                "image 'https://example.com/foo/bar' should not include URL scheme; remove 'https://'",
            ),
            (
                json!({"image": "example.com/foo/bar:baz"}),
                json!({}),
                Reason::ImageURLInvalid,
                "image 'example.com/foo/bar:baz' should not include a tag; remove ':baz'",
            ),
            (
                json!({}),
                json!({"annotations": {"tagboat.dev/x": "y"}}),
                Reason::InvalidSettings,
                "annotation tagboat.dev/x (value `y`) is not a setting of ImageRepository: this kind has no settings",
            ),
            (
                json!({"interval": "x"}),
                json!({}),
                Reason::Failed,
                "spec.interval cannot be used: `x` is not a duration: expected numbers, each with a unit of ms, s, m \
                 or h, such as 1m30s",
            ),
        ] {
            let error =
                Request::of(&repository(&spec, &metadata), ObjectIdentity::Off, TimeBounds::default())
                    .unwrap_err();
            assert_eq!((error.reason(), crate::error::chain(&error).as_str()), (reason, message));
            assert!(!error.is_retryable());
        }
        assert!(
            Request::of(&repository(&provider, &json!({})), ObjectIdentity::On, TimeBounds::default())
                .is_ok()
        );
        let account = json!({"serviceAccountName": "sa"});
        assert!(
            Request::of(&repository(&account, &json!({})), ObjectIdentity::Off, TimeBounds::default())
                .is_ok()
        );
    }
}
