//! Compare mode (`--dry-run`): the results of a controller that writes nothing.
//!
//! It runs beside the controller that writes. Each automation has a status here as if it had been written, so
//! that a reconcile depends on the earlier ones of this controller alone, and not on the statuses that the
//! other controller writes.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tagboat_api::automation::ImageUpdateAutomationStatus;

use crate::metrics::{ComparisonOutcome, Metrics};
use crate::objects::ObjectName;
use crate::reconcile::automation::compare::{CompareResult, CompareState, Comparison, WouldBe};
use crate::tenancy::FairCache;

/// The maximum bytes that are kept of one automation between reconciles.
///
/// That is enough for some 50,000 markers.
const MAX_STATE: u64 = 16 * 1024 * 1024;

/// The maximum bytes that are kept of all automations together.
const MAX_STATES: u64 = 32 * 1024 * 1024;

/// The results of compare mode. They are lost with the process.
#[derive(Debug, Default)]
pub(super) struct Comparisons {
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    statuses: HashMap<ObjectName, ImageUpdateAutomationStatus>,
    /// The markers of an automation and its would-be commit, as of its last reconcile.
    states: FairCache<ObjectName, Arc<CompareState>>,
    counts: Counts,
}

impl Default for Known {
    fn default() -> Self {
        let states = FairCache::sized(MAX_STATES);
        Self { statuses: HashMap::new(), states, counts: Counts::default() }
    }
}

/// The counts of compare mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// The commits that would have been made.
    pub(super) commits: u64,
    /// The pushes of the other controller that were the same.
    pub(super) agreed: u64,
    /// The pushes of the other controller that were different.
    pub(super) differed: u64,
    /// The pushes of the other controller that this one would not have made.
    pub(super) missed: u64,
}

impl Comparisons {
    /// Returns the status that an automation would have if this controller wrote it.
    pub(super) fn status(&self, name: &ObjectName) -> ImageUpdateAutomationStatus {
        self.known.lock().statuses.get(name).cloned().unwrap_or_default()
    }

    /// Keeps the status that an automation would have.
    pub(super) fn set_status(&self, name: &ObjectName, status: ImageUpdateAutomationStatus) {
        self.known.lock().statuses.insert(name.clone(), status);
    }

    /// Returns the state that earlier reconciles of an automation left.
    pub(super) fn before(&self, name: &ObjectName) -> Arc<CompareState> {
        self.known.lock().states.get(name).cloned().unwrap_or_default()
    }

    /// Logs and counts the result of a reconcile.
    pub(super) fn take(&self, name: &ObjectName, result: CompareResult, metrics: &Metrics) {
        let CompareResult { state, comparison, would_be } = result;
        let mut known = self.known.lock();
        known.keep(name, state.bytes(), state);
        if let Some(comparison) = comparison {
            metrics.compared(comparison.outcome);
            known.counts.take(comparison.outcome);
            known.counts.log(&comparison);
        }
        if let Some(WouldBe { message, diff }) = would_be {
            metrics.would_have_committed();
            known.counts.commits += 1;
            tracing::info!(commit_message = message, diff, "would push a commit");
        }
    }

    /// Forgets a deleted automation.
    pub(super) fn forget(&self, name: &ObjectName) {
        let mut known = self.known.lock();
        known.statuses.remove(name);
        known.states.remove(name);
    }

    /// Logs the counts.
    pub(super) fn log_counts(&self) {
        let Counts { commits, agreed, differed, missed } = self.known.lock().counts;
        tracing::info!(commits, agreed, differed, missed, "the comparison with the other controller ends");
    }
}

impl Known {
    /// Keeps the state for the next reconcile. Without it, that is like the first one.
    fn keep(&mut self, name: &ObjectName, bytes: u64, state: CompareState) {
        if bytes <= MAX_STATE {
            self.states.insert_sized(&name.namespace, name.clone(), bytes, Arc::new(state));
        } else {
            self.states.remove(name);
            tracing::warn!(
                "the automation has too many markers to be compared with what another controller pushes; set \
                 update.path to a smaller directory"
            );
        }
    }
}

impl Counts {
    fn take(&mut self, outcome: ComparisonOutcome) {
        *match outcome {
            ComparisonOutcome::agreed => &mut self.agreed,
            ComparisonOutcome::differed => &mut self.differed,
            ComparisonOutcome::missed => &mut self.missed,
        } += 1;
    }

    fn log(&self, comparison: &Comparison) {
        let Comparison { outcome, sentence, diff } = comparison;
        let Self { agreed, differed, missed, .. } = *self;
        match outcome {
            ComparisonOutcome::agreed => tracing::info!(agreed, differed, missed, "{sentence}"),
            ComparisonOutcome::differed | ComparisonOutcome::missed => {
                tracing::warn!(diff, agreed, differed, missed, "{sentence}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tenant could make any number of markers, and all of them were kept.
    #[test]
    fn markers_of_many_automations_evict_only_markers_of_their_namespace() {
        let mut known = Known::default();
        let name = |namespace: &str, name: String| ObjectName { namespace: namespace.to_owned(), name };
        let victim = name("victim", "fleet".to_owned());
        known.keep(&victim, 1024, CompareState::default());
        let flood = 2 * MAX_STATES / MAX_STATE;
        for number in 0..flood {
            known.keep(&name("attacker", number.to_string()), MAX_STATE, CompareState::default());
        }
        let mut is_kept = |name: &ObjectName| known.states.get(name).is_some();
        assert!(is_kept(&victim) && is_kept(&name("attacker", (flood - 1).to_string())));
        assert!(!is_kept(&name("attacker", "0".to_owned())));
        // A state that is too large is not kept, and neither is the earlier one.
        known.keep(&victim, MAX_STATE + 1, CompareState::default());
        assert!(known.states.get(&victim).is_none());
    }
}
