//! Tags of an image repository.

use std::fmt;

/// A tag: 1 to 128 characters of `A-Z a-z 0-9 _ . -`.
///
/// OCI forbids `.` and `-` in front; go-containerregistry, whose rules Flux follows, does not look, and nor do
/// we.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(String);

impl Tag {
    /// Parses a tag.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is empty, too long or holds another character.
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

    /// Whether a text is a tag as the OCI distribution specification has it: like those that [`parse`](Self::parse)
    /// accepts, and without `.` or `-` in front.
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

/// Why a text is no tag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TagError {
    /// There is no text.
    #[error("the tag is empty")]
    Empty,
    /// There is too much of it.
    #[error("the tag is longer than 128 characters")]
    TooLong,
    /// A character that no tag has.
    #[error("the tag has the character {character:?}; only letters, digits, '_', '.' and '-' are allowed")]
    Character {
        /// The first such character.
        character: char,
    },
}
