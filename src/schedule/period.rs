//! The time between two times.

use jiff::Timestamp;

/// The state of a rule at a time, and its shortest duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Phase {
    pub(super) is_active: bool,
    /// The time at which the state may change; without one it never does.
    pub(super) until: Option<Timestamp>,
}

/// The time from a beginning to before an end; either may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    pub(super) from: Option<Timestamp>,
    pub(super) until: Option<Timestamp>,
}

impl Period {
    /// Returns whether a time is in the period, and until when that is so.
    pub(super) fn phase(&self, now: Timestamp) -> Phase {
        match (self.from, self.until) {
            (Some(from), _) if now < from => Phase { is_active: false, until: Some(from) },
            (_, Some(until)) if now >= until => Phase { is_active: false, until: None },
            (_, until) => Phase { is_active: true, until },
        }
    }
}
