//! Comparators, the terms of a constraint, and their matching rules.

use std::fmt;

use super::error::ConstraintError;
use super::segment::Term;
use crate::Version;

/// An operator with a pattern, such as `>=1.2` or `~1.x`.
///
/// A pattern with fewer than three parts denotes more than one version, and nearly every operator treats it
/// differently. The rules are those of `Masterminds/semver`, the surprising ones too: `<=1.1` matches 1.1.9, `>1.1`
/// does not, `~0.0.0` matches every release and `^*` matches 0.0.0 alone.
#[derive(Debug, Clone)]
pub struct Comparator {
    text: String,
    operator: Operator,
    base: Version,
    precision: Precision,
}

/// The operator of a comparator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

/// The last part of a pattern that is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Precision {
    /// `*`
    Nothing,
    /// `1`, `1.x`
    Major,
    /// `1.2`, `1.2.x`
    Minor,
    /// `1.2.3`
    Patch,
}

impl Operator {
    /// Parses an operator; it may be empty.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "" | "=" => Self::Equal,
            "!=" => Self::NotEqual,
            ">" => Self::Greater,
            "<" => Self::Less,
            ">=" | "=>" => Self::GreaterOrEqual,
            "<=" | "=<" => Self::LessOrEqual,
            "~" | "~>" => Self::Tilde,
            "^" => Self::Caret,
            _ => return None,
        })
    }
}

impl Comparator {
    /// Makes a comparator from a parsed term.
    pub(super) fn new(term: &Term<'_>) -> Result<Self, ConstraintError> {
        let shape = &term.pattern;
        let text = format!("{}{}", term.sign, shape.text);
        let prerelease = shape.prerelease.map(|identifiers| format!("-{identifiers}")).unwrap_or_default();
        // Parts behind the first wildcard are ignored, except for the prerelease.
        let (precision, base) = match (number(shape.major), shape.minor.and_then(number), shape.patch) {
            (None, ..) => (Precision::Nothing, format!("0.0.0{prerelease}")),
            (Some(major), None, _) => (Precision::Major, format!("{major}.0.0{prerelease}")),
            (Some(major), Some(minor), patch) => match patch.and_then(number) {
                None => (Precision::Minor, format!("{major}.{minor}.0{prerelease}")),
                Some(_) => (Precision::Patch, shape.text.to_owned()),
            },
        };
        match Version::parse(&base) {
            Ok(base) => Ok(Self { text, operator: term.operator, base, precision }),
            Err(_) => Err(ConstraintError::Pattern { comparator: text }),
        }
    }

    /// Returns whether the pattern has a prerelease.
    pub(super) fn names_prerelease(&self) -> bool {
        self.base.is_prerelease()
    }

    /// Returns whether the comparator matches a version, by precedence alone.
    pub(super) fn matches(&self, version: &Version) -> bool {
        match self.operator {
            Operator::Equal if self.precision == Precision::Patch => *version == self.base,
            Operator::Equal | Operator::Tilde => self.matches_tilde(version),
            Operator::NotEqual => self.matches_not_equal(version),
            Operator::Greater => self.matches_greater(version),
            Operator::Less => *version < self.base,
            Operator::GreaterOrEqual => *version >= self.base,
            Operator::LessOrEqual => self.matches_less_or_equal(version),
            Operator::Caret => self.matches_caret(version),
        }
    }

    fn matches_not_equal(&self, version: &Version) -> bool {
        match self.precision {
            Precision::Nothing | Precision::Patch => *version != self.base,
            Precision::Major => version.major() != self.base.major(),
            Precision::Minor => series(version) != series(&self.base) || version.stage() != self.base.stage(),
        }
    }

    fn matches_greater(&self, version: &Version) -> bool {
        match self.precision {
            Precision::Nothing | Precision::Patch => *version > self.base,
            Precision::Major => version.major() > self.base.major(),
            Precision::Minor => series(version) > series(&self.base),
        }
    }

    fn matches_less_or_equal(&self, version: &Version) -> bool {
        match self.precision {
            Precision::Patch => *version <= self.base,
            Precision::Major => version.major() <= self.base.major(),
            Precision::Nothing | Precision::Minor => series(version) <= series(&self.base),
        }
    }

    fn matches_tilde(&self, version: &Version) -> bool {
        let is_open = matches!(self.precision, Precision::Nothing | Precision::Patch)
            && series(&self.base) == (0, 0)
            && self.base.patch() == 0;
        let is_in_series = match self.precision {
            Precision::Major => version.major() == self.base.major(),
            _ => series(version) == series(&self.base),
        };
        *version >= self.base && (is_open || is_in_series)
    }

    fn matches_caret(&self, version: &Version) -> bool {
        let is_compatible = if self.base.major() > 0 || self.precision == Precision::Major {
            version.major() == self.base.major()
        } else if self.base.minor() > 0 || self.precision == Precision::Minor {
            series(version) == series(&self.base)
        } else {
            series(version) == (0, 0) && version.patch() == self.base.patch()
        };
        *version >= self.base && is_compatible
    }
}

impl fmt::Display for Comparator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Returns a part of a pattern, unless it is a wildcard.
fn number(part: &str) -> Option<&str> {
    (!matches!(part, "x" | "X" | "*")).then_some(part)
}

/// Returns major and minor number, which identify a patch series.
fn series(version: &Version) -> (u64, u64) {
    (version.major(), version.minor())
}
