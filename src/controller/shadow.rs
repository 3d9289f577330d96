//! What a controller does that writes nothing, and runs beside the one that does (`--dry-run`).
//!
//! It has a status for each automation as if it had written it, so that what it looks at depends on its own looks alone
//! and not on what the other controller says of its own.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tagboat_api::automation::ImageUpdateAutomationStatus;

use crate::metrics::{Metrics, ShadowOutcome};
use crate::objects::ObjectName;
use crate::reconcile::automation::shadow::{Comparison, Shadow, Sight, WouldBe};

/// What is remembered of the automations. It is lost with the process.
#[derive(Debug, Default)]
pub(super) struct Shadows {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    automations: HashMap<ObjectName, Remembered>,
    counts: Counts,
}

/// What is remembered of one automation.
#[derive(Clone, Debug, Default)]
struct Remembered {
    status: ImageUpdateAutomationStatus,
    shadow: Arc<Shadow>,
}

/// What was counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Commits that would have been made.
    pub(super) commits: u64,
    /// How often another controller pushed the same,
    pub(super) agreed: u64,
    /// something else,
    pub(super) differed: u64,
    /// something that we would not have pushed.
    pub(super) missed: u64,
}

impl Shadows {
    /// The status that an automation would have, were we the ones who write it.
    pub(super) fn status(&self, name: &ObjectName) -> ImageUpdateAutomationStatus {
        self.known.lock().automations.get(name).map(|known| known.status.clone()).unwrap_or_default()
    }

    /// Keeps that status.
    pub(super) fn set_status(&self, name: &ObjectName, status: ImageUpdateAutomationStatus) {
        self.known.lock().automations.entry(name.clone()).or_default().status = status;
    }

    /// What is known from looks at an automation's files before.
    pub(super) fn before(&self, name: &ObjectName) -> Arc<Shadow> {
        self.known.lock().automations.get(name).map(|known| known.shadow.clone()).unwrap_or_default()
    }

    /// Says and counts what a look came to.
    pub(super) fn take(&self, name: &ObjectName, sight: Sight, metrics: &Metrics) {
        let Sight { shadow, comparison, would_be } = sight;
        let mut known = self.known.lock();
        known.automations.entry(name.clone()).or_default().shadow = Arc::new(shadow);
        if let Some(comparison) = comparison {
            metrics.compared(comparison.outcome);
            known.counts.take(comparison.outcome);
            known.counts.say(&comparison);
        }
        if let Some(WouldBe { message, diff }) = would_be {
            metrics.would_have_committed();
            known.counts.commits += 1;
            tracing::info!(commit_message = message, diff, "would push a commit");
        }
    }

    /// Forgets an automation that has gone.
    pub(super) fn forget(&self, name: &ObjectName) {
        self.known.lock().automations.remove(name);
    }

    /// Sums up what was counted.
    pub(super) fn sum_up(&self) {
        let Counts { commits, agreed, differed, missed } = self.known.lock().counts;
        tracing::info!(commits, agreed, differed, missed, "the comparison with the other controller ends");
    }
}

impl Counts {
    fn take(&mut self, outcome: ShadowOutcome) {
        *match outcome {
            ShadowOutcome::agreed => &mut self.agreed,
            ShadowOutcome::differed => &mut self.differed,
            ShadowOutcome::missed => &mut self.missed,
        } += 1;
    }

    fn say(&self, comparison: &Comparison) {
        let Comparison { outcome, sentence, diff } = comparison;
        let Self { agreed, differed, missed, .. } = *self;
        match outcome {
            ShadowOutcome::agreed => tracing::info!(agreed, differed, missed, "{sentence}"),
            ShadowOutcome::differed | ShadowOutcome::missed => {
                tracing::warn!(diff, agreed, differed, missed, "{sentence}");
            }
        }
    }
}
