//! The errors of a selection without a winner.

use std::fmt;

use tagboat_api::Reason;

use super::{Outcome, Verdict};
use crate::error::ReconcileError;

/// The error of a selection without a winner.
///
/// The sentences are Flux's, followed by the number of tags that our own settings rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// No tags are known.
    #[error("no tags in database")]
    NoTags,
    /// No tag is left to choose from.
    #[error("version list argument cannot be empty{rejected}")]
    NoneLeft {
        /// The tags rejected by our own settings.
        rejected: Rejected,
    },
    /// No tag is a version in the range.
    #[error("unable to determine latest version from provided list{rejected}")]
    NoVersion {
        /// The tags rejected by our own settings.
        rejected: Rejected,
    },
    /// A value is not a number.
    #[error("failed to parse invalid numeric value '{value}'")]
    NotANumber {
        /// The filter's value of the first such tag.
        value: String,
    },
}

/// The number of tags rejected by our own settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rejected {
    /// Tags excluded by the annotation `exclude`.
    pub excluded: usize,
    /// Tags rejected by the annotation `minimum-age`.
    pub too_new: usize,
}

impl fmt::Display for Rejected {
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
        let mut rejected = Rejected::default();
        let mut left = 0;
        let mut bad_number = None;
        for verdict in verdicts {
            match verdict.outcome {
                Outcome::Excluded => rejected.excluded += 1,
                Outcome::TooNew { .. } => rejected.too_new += 1,
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
            (None, 0) if left == 0 => Some(Self::NoneLeft { rejected }),
            (None, 0) => Some(Self::NoVersion { rejected }),
        }
    }
}

/// Always retryable: the next list may have other tags.
impl ReconcileError for SelectionError {
    fn reason(&self) -> Reason {
        match self {
            Self::NoTags => Reason::DependencyNotReady,
            _ => Reason::Failure,
        }
    }
}
