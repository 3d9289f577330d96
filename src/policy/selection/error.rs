//! Why no tag won.

use std::fmt;

use tagboat_api::Reason;

use super::{Outcome, Verdict};
use crate::failing::Failing;

/// Why no tag won. The sentences are Flux's; what our own settings took away follows behind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// No tags are known.
    #[error("no tags in database")]
    NoTags,
    /// None is left to choose from.
    #[error("version list argument cannot be empty{refused}")]
    NoneLeft {
        /// What our own settings took away.
        refused: Refused,
    },
    /// None is a version of the range.
    #[error("unable to determine latest version from provided list{refused}")]
    NoVersion {
        /// What our own settings took away.
        refused: Refused,
    },
    /// One is no number.
    #[error("failed to parse invalid numeric value '{value}'")]
    NotANumber {
        /// What the filter made of the first such tag.
        value: String,
    },
}

/// How many tags our own settings took away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refused {
    /// By the annotation `exclude`.
    pub excluded: usize,
    /// By the annotation `minimum-age`.
    pub too_new: usize,
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut mark = ": ";
        for (number, what) in [(self.excluded, "excluded"), (self.too_new, "too new")] {
            if number > 0 {
                let tags = if number == 1 { "tag is" } else { "tags are" };
                write!(formatter, "{mark}{number} {tags} {what}")?;
                mark = ", ";
            }
        }
        Ok(())
    }
}

impl SelectionError {
    pub(super) fn of(verdicts: &[Verdict<'_>], candidates: usize) -> Option<Self> {
        let mut refused = Refused::default();
        let mut left = 0;
        let mut bad_number = None;
        for verdict in verdicts {
            match verdict.outcome {
                Outcome::Excluded => refused.excluded += 1,
                Outcome::TooNew { .. } => refused.too_new += 1,
                Outcome::Filtered => {}
                Outcome::NotANumber(_) => {
                    left += 1;
                    bad_number = bad_number.or(verdict.value.as_deref());
                }
                _ => left += 1,
            }
        }
        match (bad_number, candidates) {
            (Some(value), _) => Some(Self::NotANumber { value: value.to_owned() }),
            (None, 1..) => None,
            (None, 0) if verdicts.is_empty() => Some(Self::NoTags),
            (None, 0) if left == 0 => Some(Self::NoneLeft { refused }),
            (None, 0) => Some(Self::NoVersion { refused }),
        }
    }
}

impl Failing for SelectionError {
    fn reason(&self) -> Reason {
        match self {
            Self::NoTags => Reason::DependencyNotReady,
            _ => Reason::Failure,
        }
    }

    /// Other tags may come.
    fn is_retryable(&self) -> bool {
        true
    }
}
