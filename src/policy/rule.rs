//! The selection rule of a policy: accepts values as candidates, and compares them.

use std::cmp::Ordering;

use tagboat_api::policy::{PolicyChoice, PolicyRule, SortOrder};
use tagboat_api::settings::TextOrder;
use tagboat_go_text::{NumberError, parse_float};
use tagboat_versions::{Constraint, ConstraintError, Version, VersionError};

use super::natural;

/// A selection rule.
#[derive(Debug, Clone)]
pub(super) enum Rule {
    /// The greatest version in a range.
    SemVer(Constraint),
    /// The last text in an order.
    Text(TextOrder, Direction),
    /// The greatest or the least number.
    Number(Direction),
}

/// The direction of an order.
///
/// The last value wins if it is ascending, the first if descending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Ascending,
    Descending,
}

/// A value in the form that the rule compares.
#[derive(Debug, Clone)]
pub(super) enum Rank {
    Version(Version),
    /// The text itself.
    Text,
    Number(f64),
}

/// The reason for which a value is no candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rejection {
    NotAVersion(VersionError),
    OutOfRange,
    NotANumber(NumberError),
}

impl Rule {
    /// Parses a rule; the first of several members counts, as in Flux.
    pub(super) fn new(choice: &PolicyChoice, order: TextOrder) -> Result<Self, RuleError> {
        let rule = match choice.effective_rule().ok_or(RuleError::NoRule)? {
            PolicyRule::SemVer(semver) => Self::SemVer(Constraint::parse(&semver.range)?),
            PolicyRule::Alphabetical(policy) => Self::Text(order, Direction::new(&policy.order)?),
            PolicyRule::Numerical(policy) => Self::Number(Direction::new(&policy.order)?),
        };
        if order == TextOrder::Natural && !matches!(rule, Self::Text(..)) {
            return Err(RuleError::OrderWithoutText);
        }
        Ok(rule)
    }

    /// Accepts or rejects a value as a candidate.
    pub(super) fn evaluate(&self, value: &str) -> Result<Rank, Rejection> {
        match self {
            Self::SemVer(range) => {
                let version = Version::parse_tag(value).map_err(Rejection::NotAVersion)?;
                if range.matches(&version) { Ok(Rank::Version(version)) } else { Err(Rejection::OutOfRange) }
            }
            Self::Text(..) => Ok(Rank::Text),
            Self::Number(_) => parse_float(value).map(Rank::Number).map_err(Rejection::NotANumber),
        }
    }

    /// Compares two candidates; the better one is greater.
    pub(super) fn compare(&self, left: (&str, &Rank), right: (&str, &Rank)) -> Ordering {
        let (ascending, direction) = match (self, left.1, right.1) {
            (_, Rank::Version(left), Rank::Version(right)) => (left.cmp(right), Direction::Ascending),
            (Self::Number(direction), Rank::Number(left), Rank::Number(right)) => {
                // NaN is below every number here; among candidates, Flux's own rule for NaN applies.
                let order = left.partial_cmp(right).unwrap_or_else(|| right.is_nan().cmp(&left.is_nan()));
                if left.is_nan() || right.is_nan() {
                    (order, Direction::Ascending)
                } else {
                    (order, *direction)
                }
            }
            (Self::Text(TextOrder::Natural, direction), ..) => {
                (natural::compare(left.0, right.0), *direction)
            }
            (Self::Text(_, direction) | Self::Number(direction), ..) => (left.0.cmp(right.0), *direction),
            (Self::SemVer(_), ..) => (Ordering::Equal, Direction::Ascending),
        };
        if direction == Direction::Ascending { ascending } else { ascending.reverse() }
    }
}

impl Direction {
    fn new(order: &SortOrder) -> Result<Self, RuleError> {
        let order = order.as_str().to_uppercase();
        match order.as_str() {
            "ASC" => Ok(Self::Ascending),
            "DESC" => Ok(Self::Descending),
            _ => Err(RuleError::Order { order }),
        }
    }
}

/// The error of an invalid rule. The sentences are Flux's, except for the last one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// There is no rule.
    #[error("given ImagePolicyChoice object is invalid")]
    NoRule,
    /// The version range is invalid.
    #[error(transparent)]
    Range(#[from] ConstraintError),
    /// The order does not exist.
    #[error("invalid order argument provided: '{order}', must be one of: ASC, DESC")]
    Order {
        /// The order in upper case.
        order: String,
    },
    /// Natural order with a rule that does not compare texts.
    #[error(
        "the annotation tagboat.dev/order needs spec.policy.alphabetical, since no other rule compares texts"
    )]
    OrderWithoutText,
}
