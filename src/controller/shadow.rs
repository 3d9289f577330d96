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
use crate::tenancy::SizedCache;

/// The bytes that are remembered from the look at one automation's files to the next, some 50,000 markers.
const MAX_SHADOW: u64 = 16 * 1024 * 1024;

/// The same of all automations together.
const MAX_SHADOWS: u64 = 32 * 1024 * 1024;

/// Remembers the automations. It is lost with the process.
#[derive(Debug, Default)]
pub(super) struct Shadows {
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    statuses: HashMap<ObjectName, ImageUpdateAutomationStatus>,
    /// The markers of an automation as the last look found them, and its would-be commit.
    shadows: SizedCache<ObjectName, Arc<Shadow>>,
    counts: Counts,
}

impl Default for Known {
    fn default() -> Self {
        let shadows = SizedCache::new(MAX_SHADOWS);
        Self { statuses: HashMap::new(), shadows, counts: Counts::default() }
    }
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
        self.known.lock().statuses.get(name).cloned().unwrap_or_default()
    }

    /// Keeps that status.
    pub(super) fn set_status(&self, name: &ObjectName, status: ImageUpdateAutomationStatus) {
        self.known.lock().statuses.insert(name.clone(), status);
    }

    /// What is known from looks at an automation's files before.
    pub(super) fn before(&self, name: &ObjectName) -> Arc<Shadow> {
        self.known.lock().shadows.get(name).cloned().unwrap_or_default()
    }

    /// Says and counts what a look came to.
    pub(super) fn take(&self, name: &ObjectName, sight: Sight, metrics: &Metrics) {
        let Sight { shadow, comparison, would_be } = sight;
        let mut known = self.known.lock();
        known.remember(name, shadow.bytes(), shadow);
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
        let mut known = self.known.lock();
        known.statuses.remove(name);
        known.shadows.remove(name);
    }

    /// Sums up what was counted.
    pub(super) fn sum_up(&self) {
        let Counts { commits, agreed, differed, missed } = self.known.lock().counts;
        tracing::info!(commits, agreed, differed, missed, "the comparison with the other controller ends");
    }
}

impl Known {
    /// Keeps what the next look has to know. An automation without it is looked at as if for the first time.
    fn remember(&mut self, name: &ObjectName, bytes: u64, shadow: Shadow) {
        if bytes <= MAX_SHADOW {
            self.shadows.insert(&name.namespace, name.clone(), bytes, Arc::new(shadow));
        } else {
            self.shadows.remove(name);
            tracing::warn!(
                "the automation has too many markers to be compared with what another controller pushes; set \
                 update.path to a smaller directory"
            );
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every marker of every automation was kept, however many a tenant made.
    #[test]
    fn markers_of_many_automations_displace_those_of_their_own_namespace() {
        let mut known = Known::default();
        let name = |namespace: &str, name: String| ObjectName { namespace: namespace.to_owned(), name };
        let victim = name("victim", "fleet".to_owned());
        known.remember(&victim, 1024, Shadow::default());
        let flood = 2 * MAX_SHADOWS / MAX_SHADOW;
        for number in 0..flood {
            known.remember(&name("attacker", number.to_string()), MAX_SHADOW, Shadow::default());
        }
        let mut is_kept = |name: &ObjectName| known.shadows.get(name).is_some();
        assert!(is_kept(&victim) && is_kept(&name("attacker", (flood - 1).to_string())));
        assert!(!is_kept(&name("attacker", "0".to_owned())));
        // What is too large is not kept at all, nor is what was known before.
        known.remember(&victim, MAX_SHADOW + 1, Shadow::default());
        assert!(known.shadows.get(&victim).is_none());
    }
}
