//! Differences between the versions v1beta2 and v1 of the kinds.
//!
//! ImageRepository, ImageUpdateAutomation and GitRepository of v1beta2 are parsed with the types of v1, which have
//! all of their fields. An ImagePolicy of v1beta2 may have a status from before v1, in which an image was one string;
//! [`ImagePolicy`] parses it, and [`ImagePolicy::into_v1`] splits the string.

use kube::core::ObjectMeta;
use serde::Deserialize;

use crate::policy::{self, ImagePolicySpec};
use crate::reference::{ImageRef, NoTag};

/// An ImagePolicy of the version v1beta2, with the status that old versions of Flux wrote.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ImagePolicy {
    /// Name, namespace, labels and annotations of the object.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Desired state of the policy, as in v1.
    pub spec: ImagePolicySpec,
    /// Observed state of the policy.
    #[serde(default)]
    pub status: Option<ImagePolicyStatus>,
}

/// The status of v1 with the fields that it replaced.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImagePolicyStatus {
    /// Image that is chosen now, as one string; replaced by `latestRef`.
    #[serde(default)]
    pub latest_image: Option<String>,
    /// Image that was chosen before, as one string; replaced by `observedPreviousRef`.
    #[serde(default)]
    pub observed_previous_image: Option<String>,
    /// The fields of v1.
    #[serde(flatten)]
    pub current: policy::ImagePolicyStatus,
}

/// The error of an image that cannot be split into name, tag and digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("status.{field} of the image policy {policy} is `{text}`, which is not an image with a tag")]
pub struct UnreadableImage {
    /// Name of the policy.
    pub policy: String,
    /// Field of the status.
    pub field: &'static str,
    /// The text.
    pub text: String,
    /// The cause.
    #[source]
    pub cause: NoTag,
}

impl ImagePolicy {
    /// Converts the policy to v1 and splits an image that is one string.
    ///
    /// The string is ignored if the field that replaced it is set.
    pub fn into_v1(self) -> Result<policy::ImagePolicy, UnreadableImage> {
        let name = self.metadata.name.clone().unwrap_or_default();
        let status = self.status.map(|status| status.into_v1(&name)).transpose()?;
        Ok(policy::ImagePolicy { metadata: self.metadata, spec: self.spec, status })
    }
}

impl TryFrom<ImagePolicy> for policy::ImagePolicy {
    type Error = UnreadableImage;

    fn try_from(policy: ImagePolicy) -> Result<Self, UnreadableImage> {
        policy.into_v1()
    }
}

impl ImagePolicyStatus {
    fn into_v1(self, policy: &str) -> Result<policy::ImagePolicyStatus, UnreadableImage> {
        let Self { latest_image, observed_previous_image, mut current } = self;
        if current.latest_ref.is_none() {
            current.latest_ref = split(policy, "latestImage", latest_image)?;
        }
        if current.observed_previous_ref.is_none() {
            current.observed_previous_ref = split(policy, "observedPreviousImage", observed_previous_image)?;
        }
        Ok(current)
    }
}

/// Splits the text of a field; an empty text is treated as absent.
fn split(
    policy: &str,
    field: &'static str,
    text: Option<String>,
) -> Result<Option<ImageRef>, UnreadableImage> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    match text.parse() {
        Ok(image) => Ok(Some(image)),
        Err(cause) => Err(UnreadableImage { policy: policy.to_owned(), field, text, cause }),
    }
}

/// Returns the paths of the fields that a kind lacks in v1beta2.
pub(crate) fn missing_fields(kind: &str) -> &'static [&'static [&'static str]] {
    const SIGNING_KEY_TYPE: &[&str] = &["spec", "git", "commit", "signingKey", "type"];
    match kind {
        "ImageUpdateAutomation" => &[SIGNING_KEY_TYPE],
        _ => &[],
    }
}

/// Returns whether a field of v1beta2 is still parsed though no schema has it.
pub(crate) fn is_still_read(kind: &str, path: &str) -> bool {
    kind == "ImagePolicy" && ["status.latestImage", "status.observedPreviousImage"].contains(&path)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::ImagePolicy;
    use crate::reference::NoTag;

    fn policy(status: &Value) -> ImagePolicy {
        serde_json::from_value(json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1beta2",
            "kind": "ImagePolicy",
            "metadata": { "name": "app", "namespace": "flux-system" },
            "spec": { "imageRepositoryRef": { "name": "app" }, "policy": { "semver": { "range": "1.x" } } },
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn an_image_as_text_becomes_a_reference() {
        let status = json!({
            "latestImage": "localhost:5000/org/app:1.2.3@sha256:00ff",
            "observedPreviousImage": "localhost:5000/org/app:1.2.2",
            "observedGeneration": 3,
        });
        let policy = policy(&status).into_v1().unwrap();
        assert_eq!(policy.metadata.namespace.as_deref(), Some("flux-system"));
        let status = policy.status.unwrap();
        let latest = status.latest_ref.unwrap();
        assert_eq!(latest.name, "localhost:5000/org/app");
        assert_eq!(latest.tag, "1.2.3");
        assert_eq!(latest.digest(), Some("sha256:00ff"));
        assert_eq!(status.observed_previous_ref.unwrap().tag, "1.2.2");
        assert_eq!(status.observed_generation, Some(3));
    }

    #[test]
    fn the_newer_field_wins_over_the_text() {
        let status = json!({ "latestImage": "no tag", "latestRef": { "name": "app", "tag": "2" } });
        let status = policy(&status).into_v1().unwrap().status.unwrap();
        assert_eq!(status.latest_ref.unwrap().to_string(), "app:2");
    }

    #[test]
    fn an_absent_or_empty_text_is_not_an_image() {
        for status in [json!({}), json!({ "latestImage": "" }), json!({ "latestImage": null })] {
            assert_eq!(policy(&status).into_v1().unwrap().status.unwrap().latest_ref, None);
        }
        assert_eq!(policy(&Value::Null).into_v1().unwrap().status, None);
    }

    #[test]
    fn a_text_that_cannot_be_split_is_an_error() {
        let error = policy(&json!({ "latestImage": "localhost:5000/app" })).into_v1().unwrap_err();
        assert_eq!(error.cause, NoTag);
        assert_eq!(
            error.to_string(),
            "status.latestImage of the image policy app is `localhost:5000/app`, which is not an image with a \
             tag"
        );
        let previous = json!({ "latestImage": "app:1", "observedPreviousImage": "app" });
        assert_eq!(policy(&previous).into_v1().unwrap_err().field, "observedPreviousImage");
    }
}
