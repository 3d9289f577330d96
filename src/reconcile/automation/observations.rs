//! The observations of a run besides its conclusion, as a part of its report.

use jiff::Timestamp;

use super::conclusion::Conclusion;
use super::delivered::DeliveryOutcome;
use super::findings::Findings;
use super::report::Report;
use super::reverts::RevertOutcome;
use super::waiting::WaitOutcome;
use crate::objects::{Event, EventType};
use crate::reconcile::conditions::{self, ConditionType};
use crate::reconcile::run::ReconcileRun;

/// The observations of a run.
#[derive(Clone, Copy, Debug)]
pub struct Observations<'r> {
    /// The problems with markers; none if no file was read.
    pub findings: Option<&'r Findings>,
    /// The delivery.
    pub delivery: &'r DeliveryOutcome,
    /// The wait.
    pub wait: &'r WaitOutcome,
    /// The values that others took back.
    pub reverts: &'r RevertOutcome,
}

impl Report {
    /// Adds all that a run observed.
    #[must_use]
    pub fn with_observations(
        self,
        observed: Observations<'_>,
        conclusion: &Conclusion,
        run: &ReconcileRun,
        now: Timestamp,
    ) -> Self {
        self.with_findings(observed.findings, run, now)
            .with_delivery(observed.delivery, conclusion, run, now)
            .with_reverts(observed.reverts, run, now)
            .with_wait(observed.wait, run, now)
    }

    /// Adds the waiting of a run, and an event if the reason is another one.
    #[must_use]
    fn with_wait(mut self, outcome: &WaitOutcome, run: &ReconcileRun, now: Timestamp) -> Self {
        if let WaitOutcome::Waiting(wait) = outcome {
            let (reason, message) = (wait.reason.reason().to_string(), wait.to_string());
            let before = conditions::find(&self.status.conditions, ConditionType::UpdatesWaiting);
            if before.is_none_or(|before| before.reason != reason) {
                self.wait_event = Some(Event { type_: EventType::Normal, reason, message });
            }
        }
        self.status = outcome.on(&self.status, run.generation, now);
        self
    }
}
