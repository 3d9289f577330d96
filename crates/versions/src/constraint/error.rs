//! The errors of parsing a constraint.

use super::quote::Quoted;

/// The maximum length of a constraint, in bytes: the library's own limit.
pub(super) const MAX_LENGTH: usize = 512;

/// The maximum number of alternatives of a constraint: the library's own limit.
pub(super) const MAX_GROUPS: usize = 32;

/// The error of a text that is not a constraint.
///
/// The messages are the library's: they are part of the Ready message of Flux's objects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// The text is too long.
    #[error("constraint string is too long (max {MAX_LENGTH} bytes)")]
    TooLong,
    /// The constraint has too many alternatives.
    #[error("too many constraint groups (max {MAX_GROUPS})")]
    TooManyGroups,
    /// An alternative is not a list of comparators.
    #[error("improper constraint: {}", Quoted(segment))]
    Improper {
        /// The alternative, with its ranges `A - B` already rewritten.
        segment: String,
    },
    /// A pattern has the form of a version but is invalid.
    ///
    /// A number is too large, a part is `1x`, and the like.
    #[error("constraint parser error")]
    Pattern {
        /// The comparator with that pattern.
        comparator: String,
    },
}

impl ConstraintError {
    /// Returns the reason for the conditions of an ImagePolicy.
    ///
    /// A git checkout has a reason of its own.
    pub fn reason(&self) -> &'static str {
        "InvalidPolicy"
    }

    /// Returns false: only a changed spec can fix the error.
    pub fn is_retryable(&self) -> bool {
        false
    }
}
