//! Tags of an image repository.

use std::fmt;

/// A tag: 1 to 128 characters of `A-Z a-z 0-9 _ . -`.
///
/// OCI forbids a leading `.` or `-`; go-containerregistry, which Flux uses, does not check that, nor does this type.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(String);

impl Tag {
    /// Parses a tag.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is empty, too long or contains another character.
    pub fn parse(text: &str) -> Result<Self, TagError> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if text.is_empty() {
            Err(TagError::Empty)
        } else if text.len() > 128 {
            Err(TagError::TooLong)
        } else if let Some(character) = text.chars().find(|&c| !is_allowed(c)) {
            Err(TagError::Character { character })
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    /// Returns true if a text is a tag according to the OCI distribution specification.
    ///
    /// Unlike in [`parse`](Self::parse), a leading `.` or `-` is not allowed.
    pub fn is_well_formed(text: &str) -> bool {
        let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
        (1..=128).contains(&text.len())
            && !text.starts_with(['.', '-'])
            && text.as_bytes().iter().all(is_allowed)
    }

    /// The tag as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The error of a text that is not a tag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TagError {
    /// The text is empty.
    #[error("the tag is empty")]
    Empty,
    /// The text is too long.
    #[error("the tag is longer than 128 characters")]
    TooLong,
    /// It has a character that tags do not have.
    #[error("the tag has the character {character:?}; only letters, digits, '_', '.' and '-' are allowed")]
    Character {
        /// The first such character.
        character: char,
    },
}
