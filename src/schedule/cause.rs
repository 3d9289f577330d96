//! The reason why an agenda is closed, or changes.

use std::fmt;

/// The rule that closes an agenda, or whose beginning or end changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Name of the source that has the rule.
    pub source: String,
    /// The rule.
    pub kind: CauseKind,
}

/// A rule of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CauseKind {
    /// A freeze.
    Freeze {
        /// The reason, if it has one.
        reason: Option<String>,
    },
    /// A setting that is not valid. It closes the agenda until it is corrected.
    Invalid {
        /// The error sentence.
        error: String,
    },
    /// A `deny` entry of a list.
    Deny {
        /// Name of the entry.
        entry: String,
    },
    /// An `allow` entry of a list, which opens it.
    Allow {
        /// Name of the entry.
        entry: String,
    },
    /// No `allow` entry of a list is active.
    OutsideAllow,
}

/// The reason of a closed agenda, in the order in which reasons are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClosedReason {
    /// A freeze, or a setting that is not valid.
    Frozen,
    /// A list of windows.
    WindowClosed,
}

impl Cause {
    /// Returns the reason that the cause has as long as it closes the agenda.
    #[must_use]
    pub fn reason(&self) -> ClosedReason {
        match self.kind {
            CauseKind::Freeze { .. } | CauseKind::Invalid { .. } => ClosedReason::Frozen,
            CauseKind::Deny { .. } | CauseKind::Allow { .. } | CauseKind::OutsideAllow => {
                ClosedReason::WindowClosed
            }
        }
    }
}

impl ClosedReason {
    /// Returns the reason as in conditions.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Frozen => "Frozen",
            Self::WindowClosed => "WindowClosed",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = &self.source;
        match &self.kind {
            CauseKind::Freeze { reason: Some(reason) } => write!(formatter, "freeze of {source}: {reason}"),
            CauseKind::Freeze { reason: None } => write!(formatter, "freeze of {source}"),
            CauseKind::Invalid { error } => write!(formatter, "invalid setting of {source}: {error}"),
            CauseKind::Deny { entry } => write!(formatter, "deny window `{entry}` of {source}"),
            CauseKind::Allow { entry } => write!(formatter, "allow window `{entry}` of {source}"),
            CauseKind::OutsideAllow => write!(formatter, "no allow window of {source} is active"),
        }
    }
}
