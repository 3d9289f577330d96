//! References: to an image, and to other objects by name.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An image at one tag, with the digest where the policy asks for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageRef {
    /// Address of the image without tag and digest, as the ImageRepository writes it.
    pub name: String,
    /// Tag of the image.
    pub tag: String,
    /// Digest that the tag pointed at, such as `sha256:…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl ImageRef {
    /// The digest, where there is one; an empty one counts as none.
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

/// Why a text cannot be split into the parts of an [`ImageRef`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageRefError {
    /// There is nothing before the tag.
    #[error("it has no name before the tag")]
    NoName,
    /// There is no tag: no colon, or only the one of the registry's port.
    #[error("it has no tag")]
    NoTag,
    /// The tag has characters that a tag cannot have, or is too long.
    #[error("its tag is not a valid tag")]
    BadTag,
    /// What follows the `@` is not `algorithm:hexadecimal`.
    #[error("its digest is not of the form algorithm:hexadecimal")]
    BadDigest,
}

impl FromStr for ImageRef {
    type Err = ImageRefError;

    /// Splits `name:tag[@digest]`; the colon of a registry's port is part of the name.
    fn from_str(text: &str) -> Result<Self, ImageRefError> {
        let (tagged, digest) = match text.split_once('@') {
            Some((tagged, digest)) if is_digest(digest) => (tagged, Some(digest.to_owned())),
            Some(_) => return Err(ImageRefError::BadDigest),
            None => (text, None),
        };
        let (name, tag) = tagged.rsplit_once(':').ok_or(ImageRefError::NoTag)?;
        if tag.contains('/') {
            return Err(ImageRefError::NoTag);
        }
        if name.is_empty() || name.ends_with('/') {
            return Err(ImageRefError::NoName);
        }
        if !is_tag(tag) {
            return Err(ImageRefError::BadTag);
        }
        Ok(Self { name: name.to_owned(), tag: tag.to_owned(), digest })
    }
}

fn is_tag(text: &str) -> bool {
    let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let all = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    first && all && text.len() <= 128
}

fn is_digest(text: &str) -> bool {
    text.split_once(':').is_some_and(|(algorithm, hexadecimal)| {
        !algorithm.is_empty()
            && !hexadecimal.is_empty()
            && algorithm.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+._-".contains(&byte))
            && hexadecimal.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// The name of an object in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalObjectReference {
    /// Name of the object.
    pub name: String,
}

/// The name of an object, in another namespace if one is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespacedObjectReference {
    /// Name of the object.
    pub name: String,
    /// Namespace of the object; without it, the namespace of the object that refers to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl NamespacedObjectReference {
    /// The namespace that the reference leads to from an object in the namespace `own`.
    #[must_use]
    pub fn effective_namespace<'a>(&'a self, own: &'a str) -> &'a str {
        effective_namespace(self.namespace.as_deref(), own)
    }
}

/// The namespace that is given, or the own one where none or an empty one is.
pub(crate) fn effective_namespace<'a>(given: Option<&'a str>, own: &'a str) -> &'a str {
    given.filter(|namespace| !namespace.is_empty()).unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::{ImageRef, ImageRefError};

    #[test]
    fn splits_and_joins() {
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
    fn says_why_a_text_cannot_be_split() {
        for (text, error) in [
            ("", ImageRefError::NoTag),
            ("alpine", ImageRefError::NoTag),
            ("localhost:5000/app", ImageRefError::NoTag),
            ("alpine@sha256:00", ImageRefError::NoTag),
            (":1.0", ImageRefError::NoName),
            ("ghcr.io/org/:1.0", ImageRefError::NoName),
            ("alpine:", ImageRefError::BadTag),
            ("alpine:-1", ImageRefError::BadTag),
            ("alpine:1.0+build", ImageRefError::BadTag),
            ("alpine:1@", ImageRefError::BadDigest),
            ("alpine:1@sha256", ImageRefError::BadDigest),
            ("alpine:1@sha256:xyz", ImageRefError::BadDigest),
            ("alpine:1@sha256:00@sha256:00", ImageRefError::BadDigest),
        ] {
            assert_eq!(text.parse::<ImageRef>(), Err(error), "{text}");
        }
    }

    #[test]
    fn an_empty_digest_is_not_written() {
        let image = ImageRef { name: "a".into(), tag: "1".into(), digest: Some(String::new()) };
        assert_eq!(image.to_string(), "a:1");
    }
}
