//! Version constraints, such as `>=1.2 <2 || ^3.0.1`.

mod comparator;
mod error;
mod hyphen;
mod quote;
mod segment;

use std::fmt;

use super::Version;
pub use comparator::Comparator;
pub use error::ConstraintError;
use error::{MAX_GROUPS, MAX_LENGTH};

/// A version constraint in the language of Go's `Masterminds/semver` v3.5.0.
///
/// Comparators with spaces or one comma between them must all match; `||` separates alternatives. A comparator is a
/// pattern such as `1.2.3`, `1.2` or `1.x`, with `=`, `!=`, `>`, `<`, `>=` or `=>`, `<=` or `=<`, `~` or `~>`, or `^`
/// in front; `A - B` stands for `>=A <=B`. An alternative without a prerelease in it matches no prerelease.
///
/// It prints as it was written.
#[derive(Debug, Clone)]
pub struct Constraint {
    text: String,
    groups: Vec<Group>,
}

/// One alternative: comparators that must all match.
#[derive(Debug, Clone)]
struct Group {
    comparators: Vec<Comparator>,
    admits_prereleases: bool,
}

impl Constraint {
    /// Parses a constraint, as the library's `NewConstraint` does.
    ///
    /// # Errors
    ///
    /// If the text is not a constraint; the message is the library's.
    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        if text.len() > MAX_LENGTH {
            return Err(ConstraintError::TooLong);
        }
        let rewritten = hyphen::rewrite(text);
        let segments: Vec<&str> = rewritten.split("||").collect();
        if segments.len() > MAX_GROUPS {
            return Err(ConstraintError::TooManyGroups);
        }
        let groups = segments.into_iter().map(Group::parse).collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), groups })
    }

    /// Returns the text of the constraint.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether a version matches the constraint, as the library's `Check` does.
    pub fn matches(&self, version: &Version) -> bool {
        self.groups.iter().any(|group| group.mismatch(version).is_none())
    }

    /// Returns the reason of each alternative for not matching a version.
    ///
    /// Returns nothing if the version matches.
    pub fn mismatches(&self, version: &Version) -> Vec<Mismatch<'_>> {
        let reasons = self.groups.iter().map(|group| group.mismatch(version));
        reasons.collect::<Option<_>>().unwrap_or_default()
    }

    /// Returns the greatest matching versions, in the given order.
    ///
    /// There are several if they differ in their text alone.
    pub fn highest<'v>(&self, versions: impl IntoIterator<Item = &'v Version>) -> Vec<&'v Version> {
        let mut highest: Vec<&Version> = Vec::new();
        for version in versions.into_iter().filter(|version| self.matches(version)) {
            if highest.first().is_some_and(|other| *other > version) {
                continue;
            }
            highest.retain(|other| *other == version);
            highest.push(version);
        }
        highest
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Group {
    fn parse(segment: &str) -> Result<Self, ConstraintError> {
        let terms = segment::terms(segment)
            .ok_or_else(|| ConstraintError::Improper { segment: segment.to_owned() })?;
        let comparators: Vec<_> = terms.iter().map(Comparator::new).collect::<Result<_, _>>()?;
        let admits_prereleases = comparators.iter().any(Comparator::names_prerelease);
        Ok(Self { comparators, admits_prereleases })
    }

    fn mismatch(&self, version: &Version) -> Option<Mismatch<'_>> {
        if version.is_prerelease() && !self.admits_prereleases {
            return Some(Mismatch::Prerelease);
        }
        self.comparators.iter().find(|comparator| !comparator.matches(version)).map(Mismatch::Comparator)
    }
}

/// The reason for which an alternative does not match a version.
#[derive(Debug, Clone, Copy)]
pub enum Mismatch<'c> {
    /// The version is a prerelease, and the alternative names none.
    Prerelease,
    /// The first comparator that does not match.
    Comparator(&'c Comparator),
}

impl fmt::Display for Mismatch<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prerelease => formatter.write_str("it is a prerelease, and only releases are accepted"),
            Self::Comparator(comparator) => write!(formatter, "it does not satisfy {comparator}"),
        }
    }
}

#[cfg(test)]
mod tests;
