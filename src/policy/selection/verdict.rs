//! What became of a tag in a selection.

use std::borrow::Cow;
use std::time::Duration;

use tagboat_go_text::NumberError;
use tagboat_versions::VersionError;

/// What became of one tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict<'t> {
    /// The tag.
    pub tag: &'t str,
    /// What the filter made of the tag; nothing where its pattern does not match.
    pub value: Option<Cow<'t, str>>,
    /// Whether it won, and why not.
    pub outcome: Outcome<'t>,
}

/// Whether a tag won, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<'t> {
    /// It won.
    Latest,
    /// It was in the contest and lost, or nothing won.
    Candidate,
    /// Another tag has the same value and stands for it.
    Shadowed {
        /// That tag.
        by: &'t str,
    },
    /// The pattern of the filter does not match.
    Filtered,
    /// The value is no version.
    NotAVersion(VersionError),
    /// The value is no number.
    NotANumber(NumberError),
    /// The version is not in the range.
    OutOfRange,
    /// An annotation excludes the tag.
    Excluded,
    /// The tag is not old enough yet.
    TooNew {
        /// How old it is, if that is known.
        age: Option<Duration>,
        /// How long it takes until it is old enough, if that is known.
        left: Option<Duration>,
    },
}

impl Outcome<'_> {
    /// The outcome in a word, as programs read it.
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
