//! References to images, and to other objects by name.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An image with a tag, and a digest if the policy reports it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageRef {
    /// Name of the image without tag and digest, as in the ImageRepository.
    pub name: String,
    /// Tag of the image.
    pub tag: String,
    /// Digest of the tag, such as `sha256:…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl ImageRef {
    /// Returns the digest; an empty one is treated as absent.
    #[must_use]
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref().filter(|digest| !digest.is_empty())
    }
}

impl fmt::Display for ImageRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.name, self.tag)?;
        self.digest().map_or(Ok(()), |digest| write!(formatter, "@{digest}"))
    }
}

/// The error of an image without a tag.
///
/// The text has no colon, or only that of the registry's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has no tag")]
pub struct NoTag;

impl FromStr for ImageRef {
    type Err = NoTag;

    /// Splits `name:tag[@digest]`; the colon of a registry's port is part of the name.
    ///
    /// The parts are not validated: the parts of a status are not, either.
    fn from_str(text: &str) -> Result<Self, NoTag> {
        let (tagged, digest) = match text.split_once('@') {
            Some((tagged, digest)) => (tagged, Some(digest.to_owned())),
            None => (text, None),
        };
        let (name, tag) = tagged.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')).ok_or(NoTag)?;
        Ok(Self { name: name.to_owned(), tag: tag.to_owned(), digest })
    }
}

/// Reference to an object in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalObjectReference {
    /// Name of the object.
    pub name: String,
}

/// Reference to an object, optionally in another namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespacedObjectReference {
    /// Name of the object.
    pub name: String,
    /// Namespace of the object; defaults to that of the referring object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl NamespacedObjectReference {
    /// Returns the namespace of the reference for an object in the namespace `own`.
    #[must_use]
    pub fn effective_namespace<'a>(&'a self, own: &'a str) -> &'a str {
        effective_namespace(self.namespace.as_deref(), own)
    }
}

/// Returns the given namespace, or `own` if it is absent or empty.
pub(crate) fn effective_namespace<'a>(given: Option<&'a str>, own: &'a str) -> &'a str {
    given.filter(|namespace| !namespace.is_empty()).unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::{ImageRef, NoTag};

    #[test]
    fn references_are_split_and_joined() {
        for (text, name, tag, digest) in [
            ("alpine:3.20", "alpine", "3.20", None),
            ("ghcr.io/org/app:v1.2.3", "ghcr.io/org/app", "v1.2.3", None),
            ("localhost:5000/app:1", "localhost:5000/app", "1", None),
            ("[::1]:5000/app:1", "[::1]:5000/app", "1", None),
            ("registry:5000", "registry", "5000", None),
            ("r.io:443/a/b:_x@sha256:0a1B", "r.io:443/a/b", "_x", Some("sha256:0a1B")),
        ] {
            let image: ImageRef = text.parse().unwrap();
            assert_eq!(
                (image.name.as_str(), image.tag.as_str(), image.digest()),
                (name, tag, digest),
                "{text}"
            );
            assert_eq!(image.to_string(), text);
        }
    }

    #[test]
    fn a_text_without_a_tag_cannot_be_split() {
        for text in ["", "alpine", "localhost:5000/app", "alpine@sha256:00", "[::1]:5000/app"] {
            assert_eq!(text.parse::<ImageRef>(), Err(NoTag), "{text}");
        }
    }

    #[test]
    fn an_empty_digest_is_not_written() {
        let image = ImageRef { name: "a".into(), tag: "1".into(), digest: Some(String::new()) };
        assert_eq!(image.to_string(), "a:1");
    }
}
