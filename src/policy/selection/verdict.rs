//! The verdict on one tag of a selection.

use std::borrow::Cow;
use std::time::Duration;

use tagboat_go_text::NumberError;
use tagboat_versions::VersionError;

/// The verdict on one tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict<'t> {
    /// The tag.
    pub tag: &'t str,
    /// The filter's value of the tag; `None` if its pattern does not match.
    pub value: Option<Cow<'t, str>>,
    /// The outcome, with the reason if the tag lost.
    pub outcome: Outcome<'t>,
}

/// The outcome of a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<'t> {
    /// It won.
    Latest,
    /// It was a candidate and lost, or no tag won.
    Candidate,
    /// Another tag has the same value and counts in its place.
    Shadowed {
        /// The other tag.
        by: &'t str,
    },
    /// The filter's pattern does not match.
    Filtered,
    /// The value is not a version.
    NotAVersion(VersionError),
    /// The value is not a number.
    NotANumber(NumberError),
    /// The version is not in the range.
    OutOfRange,
    /// The annotation excludes it.
    Excluded,
    /// The tag is not old enough yet.
    TooNew {
        /// Its age, if known.
        age: Option<Duration>,
        /// The time until it is old enough, if known.
        left: Option<Duration>,
    },
}

impl Outcome<'_> {
    /// The outcome's name, for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Latest => "latest",
            Self::Candidate => "candidate",
            Self::Shadowed { .. } => "shadowed",
            Self::Filtered => "filtered",
            Self::NotAVersion(_) => "not-a-version",
            Self::NotANumber(_) => "not-a-number",
            Self::OutOfRange => "out-of-range",
            Self::Excluded => "excluded",
            Self::TooNew { .. } => "too-new",
        }
    }
}
