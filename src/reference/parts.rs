//! A reference whose tag and digest are optional: `name[:tag][@digest]`.

use super::{Digest, ImageName, ReferenceError, Tag};

/// The parts of a reference as they are written, without defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceParts {
    /// The name.
    pub name: ImageName,
    /// The tag.
    pub tag: Option<Tag>,
    /// The digest.
    pub digest: Option<Digest>,
}

impl ReferenceParts {
    /// Parses a reference.
    ///
    /// # Errors
    ///
    /// If a part is malformed. Container runtimes accept other digests than SHA-256; they are errors here.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let (tagged, digest) = match text.split_once('@') {
            Some((tagged, digest)) => (tagged, Some(digest)),
            None => (text, None),
        };
        // The last colon can be that of the registry's port.
        let (name, tag) = match tagged.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')) {
            Some((name, tag)) => (name, Some(tag)),
            None => (tagged, None),
        };
        let parse_digest = |digest: &str| {
            Digest::parse(digest).map_err(|cause| ReferenceError::Digest { digest: digest.to_owned(), cause })
        };
        let parse_tag =
            |tag: &str| Tag::parse(tag).map_err(|cause| ReferenceError::Tag { tag: tag.to_owned(), cause });
        let digest = digest.map(parse_digest).transpose()?;
        Ok(Self { name: ImageName::parse(name)?, tag: tag.map(parse_tag).transpose()?, digest })
    }
}
