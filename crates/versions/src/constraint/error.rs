//! The errors of parsing a constraint.

use super::quote::Quoted;

/// The longest constraint, in bytes: the library's own bound.
pub(super) const LONGEST: usize = 512;

/// The most alternatives of a constraint: the library's own bound.
pub(super) const MOST_GROUPS: usize = 32;

/// The error of a text that is no constraint.
///
/// The sentences are the library's: they are part of the Ready message of Flux's objects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// The text is too long.
    #[error("constraint string is too long (max {LONGEST} bytes)")]
    TooLong,
    /// The constraint has too many alternatives.
    #[error("too many constraint groups (max {MOST_GROUPS})")]
    TooManyGroups,
    /// An alternative is not made of comparators.
    #[error("improper constraint: {}", Quoted(segment))]
    Improper {
        /// The alternative, its ranges `A - B` already rewritten.
        segment: String,
    },
    /// A pattern has the form of a version and is not one: a number is too large, a part is `1x`, and the like.
    #[error("constraint parser error")]
    Pattern {
        /// The comparator with that pattern.
        comparator: String,
    },
}

impl ConstraintError {
    /// Returns the reason of the error in the conditions of an ImagePolicy; a checkout has one of its own.
    pub fn reason(&self) -> &'static str {
        "InvalidPolicy"
    }

    /// Returns false: only a changed spec helps.
    pub fn is_retryable(&self) -> bool {
        false
    }
}
