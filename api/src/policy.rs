//! ImagePolicy: chooses the wanted tag out of those that an ImageRepository found.

use std::time::Duration;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{self, Condition};
use crate::duration::{DurationError, GoDuration};
use crate::null;
use crate::open_enum::open_enum;
use crate::reference::{ImageRef, NamespacedObjectReference};

/// How often a digest is looked up again when the policy does not say.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(600);

/// What a policy chooses from, and by which rule.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "image.toolkit.fluxcd.io",
    version = "v1",
    kind = "ImagePolicy",
    plural = "imagepolicies",
    namespaced,
    status = "ImagePolicyStatus",
    derive = "PartialEq",
    doc = "Chooses the wanted tag out of those that an image repository found.",
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
    /// Image repository whose tags are chosen from.
    pub image_repository_ref: NamespacedObjectReference,
    /// Rule by which the tag is chosen.
    pub policy: PolicyChoice,
    /// Which tags take part, and which part of them the rule looks at; without it, all of them as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_tags: Option<TagFilter>,
    /// Whether the digest of the chosen tag is reported too.
    #[serde(default, deserialize_with = "null::as_default")]
    pub digest_reflection_policy: DigestReflectionPolicy,
    /// Time between two looks at the digest; goes with `digestReflectionPolicy: Always` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<GoDuration>,
    /// Whether the policy rests.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

impl ImagePolicySpec {
    /// The time between two looks at the digest: none unless the digest is always to be reported.
    ///
    /// Flux takes an absent interval and one of zero for ten minutes.
    pub fn effective_interval(&self) -> Result<Option<Duration>, DurationError> {
        if self.digest_reflection_policy != DigestReflectionPolicy::Always {
            return Ok(None);
        }
        let given = self.interval.as_ref().map(GoDuration::to_duration).transpose()?;
        Ok(Some(given.filter(|interval| !interval.is_zero()).unwrap_or(DEFAULT_INTERVAL)))
    }
}

/// The rules of choice, of which one is meant to be given.
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

/// The one rule of a [`PolicyChoice`] that counts.
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
    /// The rule that counts: of several the first in the order of the fields, of none nothing.
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
    /// Range that the version has to be in, such as `1.x` or `>=1.0.0 <2.0.0`.
    pub range: String,
}

open_enum! {
    /// The direction of an order; the last tag in it is chosen.
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
    /// Direction of the order, whose last tag is chosen: with `asc` that is Z of A to Z.
    #[serde(default, deserialize_with = "null::as_default")]
    pub order: SortOrder,
}

/// Chooses by numerical order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NumericalPolicy {
    /// Direction of the order, whose last tag is chosen: with `asc` that is 9 of 0 to 9.
    #[serde(default, deserialize_with = "null::as_default")]
    pub order: SortOrder,
}

/// Which tags take part in the choice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TagFilter {
    /// Regular expression that a tag has to match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Replacement made of the pattern's groups, such as `$version`, that the rule looks at instead of the tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extract: Option<String>,
}

open_enum! {
    /// Whether a policy reports the digest of the chosen tag.
    DigestReflectionPolicy {
        /// The digest is reported, and looked up again at the policy's interval.
        Always = "Always",
        /// The digest is reported, as it was when the tag was first chosen.
        IfNotPresent = "IfNotPresent",
        /// The digest is not reported.
        #[default]
        Never = "Never",
    }
}

/// What a policy chose.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImagePolicyStatus {
    /// Image that is chosen now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_ref: Option<ImageRef>,
    /// Image that was chosen before the present one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_previous_ref: Option<ImageRef>,
    /// Generation of the object that the status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How the policy is doing.
    #[serde(default, deserialize_with = "null::as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition::list_schema")]
    pub conditions: Vec<Condition>,
    /// Last request for a reconcile at once that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}
