//! A run of an automation, and the status that it begins with (`docs/flux-behaviour.md`, A reconcile).

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::automation::ImageUpdateAutomationStatus;
use tagboat_api::{ImageUpdateAutomation, RECONCILE_REQUEST_ANNOTATION, Reason};

use crate::reconcile::conditions::ConditionStatus::{False, True, Unknown};
use crate::reconcile::conditions::ConditionType::{Ready, Reconciling, Stalled};
use crate::reconcile::conditions::{self, Draft, whole_seconds};
use crate::reconcile::times;

/// What is said while a run goes on.
pub(super) const IN_PROGRESS: &str = "reconciliation in progress";

/// The generation that a status without one has observed, as in the schema.
const NEVER_OBSERVED: i64 = -1;

/// A run of an automation.
#[derive(Clone, Debug)]
pub struct Run {
    /// The object's generation.
    pub generation: i64,
    /// The time between two runs; none means that only events start one.
    pub interval: Duration,
    /// The request that the object carries, if any (`reconcile.fluxcd.io/requestedAt`).
    pub requested_at: Option<String>,
    /// When the run began.
    pub started: Timestamp,
}

/// The status at the start of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Beginning {
    /// The status.
    pub status: ImageUpdateAutomationStatus,
    /// Whether it is to be written at once; otherwise only the one at the end is.
    pub is_to_be_written: bool,
}

impl Run {
    /// The run of an automation that begins now.
    pub fn of(automation: &ImageUpdateAutomation, started: Timestamp) -> Self {
        Self {
            generation: automation.metadata.generation.unwrap_or(1),
            interval: times::interval(automation.spec.interval.to_duration().unwrap_or_default()),
            requested_at: automation.annotations().get(RECONCILE_REQUEST_ANNOTATION).cloned(),
            started,
        }
    }

    /// The status with which the run begins.
    pub fn begin(&self, previous: &ImageUpdateAutomationStatus) -> Beginning {
        let observed = previous.observed_generation.unwrap_or(NEVER_OBSERVED);
        let is_changed = self.generation != observed;
        let message = if is_changed {
            format!("processing object: new generation {observed} -> {}", self.generation)
        } else {
            IN_PROGRESS.to_owned()
        };
        let mut draft = Draft::new(&previous.conditions, self.generation);
        draft.remove(Stalled);
        draft.set(Reconciling, True, Reason::Progressing, &message);
        // What a run before found out stays until this one knows better.
        if !draft.is(Ready, True) && !draft.is(Ready, False) {
            draft.set(Ready, Unknown, Reason::Progressing, &message);
        }
        let is_requested =
            self.requested_at.is_some() && self.requested_at != previous.last_handled_reconcile_at;
        let status = ImageUpdateAutomationStatus {
            last_automation_run_time: Some(whole_seconds(self.started)),
            conditions: draft.settle(&previous.conditions, self.started),
            ..previous.clone()
        };
        Beginning { status, is_to_be_written: is_changed || is_requested }
    }
}

/// The status that a run is to be reported on, where `stored` is what the object has at its end.
///
/// If nobody has written to it since the run `begun`, that is the `previous` one; conditions of others count as they
/// stand. Otherwise somebody else has carried the object out meanwhile, and what they found counts.
pub fn reported_on(
    previous: &ImageUpdateAutomationStatus,
    begun: &ImageUpdateAutomationStatus,
    stored: &ImageUpdateAutomationStatus,
) -> ImageUpdateAutomationStatus {
    if conditions::without_those_of_others(begun) != conditions::without_those_of_others(stored) {
        return stored.clone();
    }
    let own = previous.conditions.iter().filter(|condition| conditions::is_own(condition));
    let of_others = stored.conditions.iter().filter(|condition| !conditions::is_own(condition));
    let conditions = own.chain(of_others).cloned().collect();
    ImageUpdateAutomationStatus { conditions, ..previous.clone() }
}

#[cfg(test)]
pub(super) mod tests {
    use tagboat_api::Condition;

    use super::*;
    use crate::reconcile::automation::event::UP_TO_DATE;
    use crate::reconcile::conditions::{ConditionStatus, ConditionType};

    pub(in crate::reconcile::automation) fn run(generation: i64) -> Run {
        Run {
            generation,
            interval: Duration::from_secs(60),
            requested_at: None,
            started: "2026-01-01T00:00:00.9Z".parse().unwrap(),
        }
    }

    /// A status with these conditions, all of generation 1, which was observed.
    pub(in crate::reconcile::automation) fn status(
        conditions: &[(ConditionType, ConditionStatus, Reason, &str)],
    ) -> ImageUpdateAutomationStatus {
        let mut draft = Draft::new(&[], 1);
        for (type_, status, reason, message) in conditions {
            draft.set(*type_, *status, *reason, message);
        }
        ImageUpdateAutomationStatus {
            conditions: draft.settle(&[], "2025-01-01T00:00:00Z".parse().unwrap()),
            observed_generation: Some(1),
            ..Default::default()
        }
    }

    /// The conditions in short, one a line.
    pub(in crate::reconcile::automation) fn short(conditions: &[Condition]) -> Vec<String> {
        let short = |condition: &Condition| {
            let Condition { type_, status, reason, message, .. } = condition;
            format!("{type_}={status} {reason} {message}")
        };
        conditions.iter().map(short).collect()
    }

    #[test]
    fn a_run_begins_by_saying_so_where_somebody_waits_for_it() {
        let steady = status(&[(Ready, True, Reason::Succeeded, UP_TO_DATE)]);
        let begun = run(1).begin(&steady);
        assert!(!begun.is_to_be_written);
        let progressing = |message: &str| format!("Reconciling=True Progressing {message}");
        let good = format!("Ready=True Succeeded {UP_TO_DATE}");
        assert_eq!(short(&begun.status.conditions), [progressing(IN_PROGRESS), good.clone()]);

        let begun = run(2).begin(&steady);
        assert!(begun.is_to_be_written);
        let words = "processing object: new generation 1 -> 2";
        assert_eq!(short(&begun.status.conditions), [progressing(words), good.clone()]);
        assert_eq!(begun.status.observed_generation, Some(1));

        for observed_generation in [None, Some(-1)] {
            let fresh = ImageUpdateAutomationStatus { observed_generation, ..Default::default() };
            let begun = run(1).begin(&fresh);
            assert!(begun.is_to_be_written);
            let words = "processing object: new generation -1 -> 1";
            let unknown = format!("Ready=Unknown Progressing {words}");
            assert_eq!(short(&begun.status.conditions), [progressing(words), unknown]);
        }

        let requested = |requested_at: &str| Run { requested_at: Some(requested_at.to_owned()), ..run(1) };
        let handled =
            ImageUpdateAutomationStatus { last_handled_reconcile_at: Some("a".to_owned()), ..steady.clone() };
        for (run, status, is_to_be_written) in [
            (requested("a"), &steady, true),
            (requested("b"), &handled, true),
            (requested("a"), &handled, false),
            (run(1), &handled, false),
        ] {
            assert_eq!(run.begin(status).is_to_be_written, is_to_be_written);
        }

        let stalled = status(&[
            (Stalled, True, Reason::AccessDenied, "old"),
            (Ready, False, Reason::AccessDenied, "old"),
        ]);
        let begun = run(1).begin(&stalled);
        let ready = "Ready=False AccessDenied old".to_owned();
        assert_eq!(short(&begun.status.conditions), [progressing(IN_PROGRESS), ready]);
    }

    #[test]
    fn a_run_is_reported_on_what_it_began_with_unless_somebody_else_was_at_it() {
        let previous = status(&[(Ready, True, Reason::Succeeded, UP_TO_DATE)]);
        let begun = run(2).begin(&previous).status;
        assert_eq!(reported_on(&previous, &begun, &begun), previous);
        // A condition of somebody else comes meanwhile.
        let mut stored = begun.clone();
        let theirs = Condition { type_: "Theirs".to_owned(), ..stored.conditions[0].clone() };
        stored.conditions.push(theirs.clone());
        let base = reported_on(&previous, &begun, &stored);
        assert_eq!(base.conditions, [previous.conditions[0].clone(), theirs]);
        // Another controller has pushed.
        stored.last_push_commit = Some("theirs".to_owned());
        assert_eq!(reported_on(&previous, &begun, &stored), stored);
    }
}
