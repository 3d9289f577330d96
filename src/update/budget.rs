//! Limits of one plan: a small repository must not become a large plan in memory.

use super::error::PlanError;
use super::report::Severity;

/// The maximum number of changes in one plan.
pub const MAX_CHANGES: usize = 100_000;

/// The maximum memory of one plan in bytes.
///
/// It covers the edits, the changes, the warnings about markers, and the message made of them. It fits beside the
/// memory that a namespace may use for servers.
const MAX_PLAN_BYTES: usize = 96 * 1024 * 1024;

/// The maximum memory in bytes of a plan that reports every marker.
///
/// A namespace can reserve as much.
const MAX_FULL_PLAN_BYTES: usize = 152 * 1024 * 1024;

/// Selects the markers that a plan reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReportedMarkers {
    /// Every marker.
    #[default]
    All,
    /// Only warnings: many automations on one large repository would each hold the same long list.
    Warnings,
}

impl ReportedMarkers {
    /// Returns true if a plan reports markers of this severity.
    pub(super) fn includes(self, severity: Severity) -> bool {
        self == Self::All || severity == Severity::Warning
    }

    /// The maximum memory in bytes of a plan that reports these markers.
    pub fn max_bytes(self) -> usize {
        match self {
            Self::All => MAX_FULL_PLAN_BYTES,
            Self::Warnings => MAX_PLAN_BYTES,
        }
    }
}

/// Counts the changes and the memory of a plan.
#[derive(Debug)]
pub(super) struct PlanBudget {
    changes: usize,
    bytes: usize,
    max_bytes: usize,
}

impl PlanBudget {
    /// Creates the budget of a plan that reports these markers.
    pub(super) fn new(reported: ReportedMarkers) -> Self {
        Self { changes: 0, bytes: 0, max_bytes: reported.max_bytes() }
    }

    /// Counts changes.
    ///
    /// # Errors
    ///
    /// Returns an error if there are more than [`MAX_CHANGES`].
    pub(super) fn add_changes(&mut self, changes: usize) -> Result<(), PlanError> {
        self.changes += changes;
        if self.changes > MAX_CHANGES {
            return Err(PlanError::TooManyChanges { limit: MAX_CHANGES });
        }
        Ok(())
    }

    /// Counts bytes of memory.
    ///
    /// # Errors
    ///
    /// Returns an error if the plan would take more memory than allowed.
    pub(super) fn add_bytes(&mut self, bytes: usize) -> Result<(), PlanError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.max_bytes {
            return Err(PlanError::TooLarge { limit: self.max_bytes });
        }
        Ok(())
    }

    /// The remaining bytes.
    pub(super) fn remaining_bytes(&self) -> usize {
        self.max_bytes.saturating_sub(self.bytes)
    }

    /// The changes so far.
    pub(super) fn changes(&self) -> usize {
        self.changes
    }
}

#[cfg(test)]
mod tests {
    use tagboat_api::ObjectName;

    use super::*;
    use crate::update::{MarkerOutcome, MarkerReport, ObjectIdentifier, UpdatePlan};

    /// A comparison with another controller used to copy all markers beyond the limit.
    #[test]
    fn copies_of_markers_count_as_memory_of_the_plan() {
        let marker = MarkerReport {
            file: "a.yaml".to_owned(),
            line: 1,
            object: ObjectIdentifier::default(),
            setter: "n:p".to_owned(),
            policy: ObjectName { namespace: "n".to_owned(), name: "p".to_owned() },
            value: Some("x".repeat(1_000_000)),
            outcome: MarkerOutcome::Current,
        };
        let plan = |remaining_bytes| UpdatePlan {
            markers: vec![marker.clone()],
            remaining_bytes,
            ..UpdatePlan::default()
        };
        let error = plan(2_000_000).check_memory_for_markers().unwrap_err();
        assert!(error.to_string().contains("more than 152 MiB"), "{error}");
        plan(2_010_000).check_memory_for_markers().unwrap();
    }

    #[test]
    fn a_plan_ends_beyond_its_limits_and_not_at_them() {
        let mut budget = PlanBudget::new(ReportedMarkers::Warnings);
        budget.add_changes(MAX_CHANGES - 1).unwrap();
        budget.add_changes(1).unwrap();
        assert_eq!(
            budget.add_changes(1).unwrap_err().to_string(),
            "there are more than 100000 values to change, the limit of one plan; set update.path to a smaller \
             directory"
        );
        budget.add_bytes(MAX_PLAN_BYTES - 7).unwrap();
        assert_eq!(budget.remaining_bytes(), 7);
        budget.add_bytes(7).unwrap();
        assert_eq!(
            budget.add_bytes(1).unwrap_err().to_string(),
            "the changes and markers take more than 96 MiB of memory, the limit of one plan; set update.path to a \
             smaller directory"
        );
        assert!(budget.add_bytes(usize::MAX).is_err());
    }
}
