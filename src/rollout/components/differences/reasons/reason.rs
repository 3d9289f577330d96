//! A reason for a difference.

use super::super::state::{Judge, Outcome, Row};

/// A reason for which a judge has another result.
pub(in super::super) struct DifferenceReason {
    /// A short name, unique.
    pub(in super::super) name: &'static str,
    /// A sentence for users.
    pub(in super::super) text: &'static str,
    pub(in super::super) judges: &'static [Judge],
    pub(in super::super) ours: &'static [Outcome],
    pub(in super::super) theirs: &'static [Outcome],
    /// Holds for the states that have this difference.
    pub(in super::super) holds: fn(&Row, Judge) -> bool,
}

impl DifferenceReason {
    /// Returns `true` if the reason is about this judge and result of ours, and holds.
    pub(in super::super) fn applies(&self, row: &Row, judge: Judge, ours: Outcome) -> bool {
        self.judges.contains(&judge) && self.ours.contains(&ours) && (self.holds)(row, judge)
    }
}
