//! ImagePolicy: chooses one of the tags that an ImageRepository found.

use std::time::Duration;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{self, Condition};
use crate::duration::{DurationError, GoDuration};
use crate::null;
use crate::open_enum::open_enum;
use crate::reference::{ImageRef, NamespacedObjectReference};

/// The default interval between two lookups of a digest.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(600);

/// Desired state of an image policy: repository, filter and rule.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "image.toolkit.fluxcd.io",
    version = "v1",
    kind = "ImagePolicy",
    plural = "imagepolicies",
    namespaced,
    status = "ImagePolicyStatus",
    derive = "PartialEq",
    doc = "Chooses one of the tags that an image repository found.",
    shortname = "imgpol",
    shortname = "imagepol",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-images",
    printcolumn(name = "Image", type_ = "string", json_path = ".status.latestRef.name"),
    printcolumn(name = "Tag", type_ = "string", json_path = ".status.latestRef.tag"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.interval) || (has(self.digestReflectionPolicy) && self.digestReflectionPolicy == 'Always')",
        "message": "spec.interval is only accepted when spec.digestReflectionPolicy is set to 'Always'",
    },
    {
        "rule": "has(self.interval) || !has(self.digestReflectionPolicy) || self.digestReflectionPolicy != 'Always'",
        "message": "spec.interval must be set when spec.digestReflectionPolicy is set to 'Always'",
    },
]))]
pub struct ImagePolicySpec {
    /// Reference to the image repository of the tags.
    pub image_repository_ref: NamespacedObjectReference,
    /// Rule that chooses the tag.
    pub policy: PolicyChoice,
    /// Filter of the tags, and extraction of the part that the rule compares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_tags: Option<TagFilter>,
    /// Reporting of the chosen tag's digest.
    #[serde(default, deserialize_with = "null::as_default")]
    pub digest_reflection_policy: DigestReflectionPolicy,
    /// Interval between two lookups of the digest; only with `digestReflectionPolicy: Always`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<GoDuration>,
    /// Suspends the policy.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

impl ImagePolicySpec {
    /// Returns the interval between two lookups of the digest.
    ///
    /// Returns `None` unless the policy is `Always`. Flux treats an absent interval and zero as ten minutes.
    pub fn effective_interval(&self) -> Result<Option<Duration>, DurationError> {
        if self.digest_reflection_policy != DigestReflectionPolicy::Always {
            return Ok(None);
        }
        let given = self.interval.as_ref().map(GoDuration::to_duration).transpose()?;
        Ok(Some(given.filter(|interval| !interval.is_zero()).unwrap_or(DEFAULT_INTERVAL)))
    }
}

/// Rules of choice, one of which should be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyChoice {
    /// Chooses the highest semantic version of a range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semver: Option<SemVerPolicy>,
    /// Chooses the last tag in alphabetical order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alphabetical: Option<AlphabeticalPolicy>,
    /// Chooses the last tag in numerical order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numerical: Option<NumericalPolicy>,
}

/// The effective rule of a [`PolicyChoice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyRule<'a> {
    /// The highest semantic version of a range.
    SemVer(&'a SemVerPolicy),
    /// The last tag in alphabetical order.
    Alphabetical(&'a AlphabeticalPolicy),
    /// The last tag in numerical order.
    Numerical(&'a NumericalPolicy),
}

impl PolicyChoice {
    /// Returns the effective rule.
    ///
    /// If several are set, the first one in the order of the fields wins.
    #[must_use]
    pub fn effective_rule(&self) -> Option<PolicyRule<'_>> {
        let semver = self.semver.as_ref().map(PolicyRule::SemVer);
        let alphabetical = self.alphabetical.as_ref().map(PolicyRule::Alphabetical);
        let numerical = self.numerical.as_ref().map(PolicyRule::Numerical);
        semver.or(alphabetical).or(numerical)
    }
}

/// Chooses by semantic version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SemVerPolicy {
    /// Version range, such as `1.x` or `>=1.0.0 <2.0.0`.
    pub range: String,
}

open_enum! {
    /// Sort order; the last tag is chosen.
    SortOrder {
        /// From the lowest to the highest: the highest is chosen.
        #[default]
        Ascending = "asc",
        /// From the highest to the lowest: the lowest is chosen.
        Descending = "desc",
    }
}

/// Chooses by alphabetical order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlphabeticalPolicy {
    /// Sort order, whose last tag is chosen: `asc` means A to Z and chooses Z.
    #[serde(default, deserialize_with = "null::as_default")]
    pub order: SortOrder,
}

/// Chooses by numerical order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NumericalPolicy {
    /// Sort order, whose last tag is chosen: `asc` means 0 to 9 and chooses 9.
    #[serde(default, deserialize_with = "null::as_default")]
    pub order: SortOrder,
}

/// Filter of the tags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TagFilter {
    /// Regular expression that a tag must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Replacement from the pattern's groups, such as `$version`, that is compared instead of the tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extract: Option<String>,
}

open_enum! {
    /// Reporting of the chosen tag's digest.
    DigestReflectionPolicy {
        /// Reports the digest, and looks it up again at the policy's interval.
        Always = "Always",
        /// Reports the digest of the time when the tag was first chosen.
        IfNotPresent = "IfNotPresent",
        /// Does not report the digest.
        #[default]
        Never = "Never",
    }
}

/// Observed state of an image policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImagePolicyStatus {
    /// Image that is chosen now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_ref: Option<ImageRef>,
    /// Image that was chosen before the present one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_previous_ref: Option<ImageRef>,
    /// Generation of the object to which the status applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the policy.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
    /// Last handled request for an immediate reconcile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}
