//! The common frame of one object's reconcile, for all kinds: its status and event.
//!
//! Source: `docs/flux-behaviour.md`, A reconcile, Conditions, Events. In Flux, a Ready that is False keeps the reason of an
//! earlier failure when the object stalls or fails otherwise; here Ready has the reason for which the last run ended. Only
//! `automation::report` copies that oddity.

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::{Condition, FORCE_REQUEST_ANNOTATION, RECONCILE_REQUEST_ANNOTATION, Reason};

use super::conditions::ConditionStatus::{False, True, Unknown};
use super::conditions::ConditionType::{Ready, Reconciling, Stalled};
use super::conditions::{self, ConditionsBuilder};
use super::status::Status;
use crate::error::{ReconcileError, chain};
use crate::objects::{Event, EventType};

/// The message of conditions while a run is in progress.
pub const IN_PROGRESS: &str = "reconciliation in progress";

/// The generation that a status without one has observed, as in the schema.
const NEVER_OBSERVED: i64 = -1;

/// One reconcile of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconcileRun {
    /// The object's generation.
    pub generation: i64,
    /// The request that the object carries, if any (`reconcile.fluxcd.io/requestedAt`).
    pub requested_at: Option<String>,
    /// The time at which the run began.
    pub started: Timestamp,
}

/// The status at the start of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Started<S> {
    /// The status.
    pub status: S,
    /// True if the status must be written at once.
    ///
    /// Otherwise only the status at the end of the run is written.
    pub must_be_written: bool,
}

/// The end of a run, as far as Ready shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The run succeeded; the sentence is the message of Ready.
    Success(String),
    /// The run failed, and only a change of an object helps.
    Stall(Reason, String),
    /// The run failed, and is retried.
    Failure(Reason, String),
}

impl Outcome {
    /// Creates the outcome of a run that an error stopped, with the error as message.
    pub fn of(error: &(impl ReconcileError + 'static)) -> Self {
        let (reason, message) = (error.reason(), chain(error));
        if error.is_retryable() { Self::Failure(reason, message) } else { Self::Stall(reason, message) }
    }
}

impl ReconcileRun {
    /// Begins a run of an object.
    pub fn of(object: &impl ResourceExt, started: Timestamp) -> Self {
        Self {
            generation: object.meta().generation.unwrap_or(1),
            requested_at: object.annotations().get(RECONCILE_REQUEST_ANNOTATION).cloned(),
            started,
        }
    }

    /// Returns whether the object carries a request that no run has answered.
    pub fn is_requested(&self, previous: &impl Status) -> bool {
        self.requested_at.is_some() && self.requested_at.as_deref() != previous.common().handled
    }

    /// Returns whether that request is forced (`reconcile.fluxcd.io/forceAt`), as by `flux reconcile --force`.
    pub fn is_forced(&self, object: &impl ResourceExt, previous: &impl Status) -> bool {
        self.is_requested(previous)
            && object.annotations().get(FORCE_REQUEST_ANNOTATION) == self.requested_at.as_ref()
    }

    /// Returns whether the object's spec has changed since a run last came to an end.
    pub fn is_changed(&self, previous: &impl Status) -> bool {
        self.generation != previous.common().observed_generation.unwrap_or(NEVER_OBSERVED)
    }

    /// Makes the status with which the run begins.
    pub fn begin<S: Status>(&self, previous: &S) -> Started<S> {
        let observed = previous.common().observed_generation.unwrap_or(NEVER_OBSERVED);
        let message = if self.is_changed(previous) {
            format!("processing object: new generation {observed} -> {}", self.generation)
        } else {
            IN_PROGRESS.to_owned()
        };
        let must_be_written =
            self.is_changed(previous) || (S::ANNOUNCES_REQUESTS && self.is_requested(previous));
        let mut status = self.progress(previous, &message, PreviousResult::Valid);
        status.set_run_time(self.started);
        Started { status, must_be_written }
    }

    /// Makes the status of a run in progress, with a message about its present step.
    pub fn progress<S: Status>(&self, previous: &S, message: &str, previous_result: PreviousResult) -> S {
        let stored = previous.common().conditions;
        let mut builder = ConditionsBuilder::new(stored, self.generation);
        builder.remove(Stalled);
        builder.set(Reconciling, True, Reason::Progressing, message);
        // The result of an earlier run stays until this one has another.
        if previous_result == PreviousResult::Invalid || !builder.is(Ready, True) && !builder.is(Ready, False)
        {
            builder.set(Ready, Unknown, Reason::Progressing, message);
        }
        let mut status = previous.clone();
        *status.common_mut().conditions = builder.build(stored, self.started);
        status
    }

    /// Makes the conditions after the run from those that it began with.
    pub fn conclude(&self, initial: &[Condition], outcome: &Outcome) -> ConditionsBuilder {
        let mut builder = ConditionsBuilder::new(initial, self.generation);
        builder.remove(Stalled);
        match outcome {
            Outcome::Success(message) => {
                builder.remove(Reconciling);
                builder.set(Ready, True, Reason::Succeeded, message);
            }
            Outcome::Stall(reason, message) => {
                builder.remove(Reconciling);
                builder.set(Stalled, True, *reason, message);
                builder.set(Ready, False, *reason, message);
            }
            Outcome::Failure(reason, message) => {
                let work = conditions::find(initial, Reconciling)
                    .map_or(IN_PROGRESS, |initial| initial.message.as_str());
                builder.set(Reconciling, True, Reason::ProgressingWithRetry, work);
                builder.set(Ready, False, *reason, message);
            }
        }
        builder
    }

    /// Sets the members of a status that follow from the end of the run alone.
    pub fn finish<S: Status>(&self, mut status: S, conditions: Vec<Condition>) -> S {
        let is_settled = conditions::is_settled(&conditions);
        let common = status.common_mut();
        *common.conditions = conditions;
        if is_settled {
            *common.observed_generation = Some(self.generation);
        }
        if self.requested_at.is_some() {
            common.handled.clone_from(&self.requested_at);
        }
        status
    }
}

/// The validity of the result of the previous reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviousResult {
    /// The status is known to be false, so the object is not Ready any more.
    Invalid,
    /// The status may hold.
    Valid,
}

/// Creates the event of a run.
///
/// It reports the change of Ready, or `trace` if there is none (`docs/flux-behaviour.md`, Events).
pub fn event(before: &[Condition], after: &[Condition], trace: &str) -> Event {
    let message = |conditions| {
        conditions::find(conditions, Ready).map(|ready| ready.message.as_str()).unwrap_or_default()
    };
    let (was_ready, is_ready) = (conditions::is_ready(before), conditions::is_ready(after));
    let type_ = match (was_ready, is_ready) {
        (_, false) => EventType::Warning,
        (true, true) if message(before) == message(after) => EventType::Trace,
        _ => EventType::Normal,
    };
    if type_ == EventType::Trace {
        return Event { type_, reason: Reason::Succeeded.to_string(), message: trace.to_owned() };
    }
    let reason = conditions::find(after, Ready).map(|ready| ready.reason.clone()).unwrap_or_default();
    Event { type_, reason, message: message(after).to_owned() }
}

/// Returns the status on which a run is reported.
///
/// `stored` is the status as it is stored at the end of the run. If no other process has written to it since
/// the run has `initial`, that is the `previous` status, with the conditions of others as they are stored.
/// Otherwise another process has reconciled the object meanwhile, and its result counts.
pub fn reported_on<S: Status>(previous: &S, initial: &S, stored: &S) -> S {
    if own(initial) != own(stored) {
        return stored.clone();
    }
    let mut status = own(previous);
    let of_others = stored.common().conditions.iter().filter(|condition| !conditions::is_own(condition));
    status.common_mut().conditions.extend(of_others.cloned());
    status
}

/// Returns the status before a run, once the beginning of the run is stored.
///
/// `known` is the status in the cache, which may be older than `stored`, the one on which the beginning was written.
/// If that is `begun` itself, the answer to the first write was lost.
pub fn status_before<S: Status>(known: &S, begun: &S, stored: &S) -> S {
    let before = if own(stored) == own(begun) { known } else { stored };
    before.clone()
}

/// Returns a status without the conditions of others.
fn own<S: Status>(status: &S) -> S {
    let mut status = status.clone();
    status.common_mut().conditions.retain(conditions::is_own);
    status
}

#[cfg(test)]
pub(super) mod tests {
    use tagboat_api::automation::ImageUpdateAutomationStatus;
    use tagboat_api::policy::ImagePolicyStatus;
    use tagboat_api::repository::ImageRepositoryStatus;

    use super::*;
    use crate::reconcile::conditions::{ConditionStatus, ConditionType, whole_seconds};

    pub(in crate::reconcile) fn run(generation: i64) -> ReconcileRun {
        ReconcileRun { generation, requested_at: None, started: "2026-01-01T00:00:00.9Z".parse().unwrap() }
    }

    /// Makes conditions of generation 1.
    pub(in crate::reconcile) fn list(
        conditions: &[(ConditionType, ConditionStatus, Reason, &str)],
    ) -> Vec<Condition> {
        let mut builder = ConditionsBuilder::new(&[], 1);
        for (type_, status, reason, message) in conditions {
            builder.set(*type_, *status, *reason, message);
        }
        builder.build(&[], "2025-01-01T00:00:00Z".parse().unwrap())
    }

    /// Prints conditions in short, one per line.
    pub(in crate::reconcile) fn short(conditions: &[Condition]) -> Vec<String> {
        let short = |condition: &Condition| {
            let Condition { type_, status, reason, message, .. } = condition;
            format!("{type_}={status} {reason} {message}")
        };
        conditions.iter().map(short).collect()
    }

    fn policy(conditions: Vec<Condition>) -> ImagePolicyStatus {
        ImagePolicyStatus { conditions, observed_generation: Some(1), ..Default::default() }
    }

    #[test]
    fn the_start_of_a_run_is_written_if_a_client_waits_for_it() {
        let steady = policy(list(&[(Ready, True, Reason::Succeeded, "good")]));
        let initial = run(1).begin(&steady);
        assert!(!initial.must_be_written);
        assert_eq!(
            short(&initial.status.conditions),
            ["Reconciling=True Progressing reconciliation in progress", "Ready=True Succeeded good"]
        );
        let initial = run(2).begin(&steady);
        assert!(initial.must_be_written);
        assert_eq!(
            short(&initial.status.conditions)[0],
            "Reconciling=True Progressing processing object: new generation 1 -> 2"
        );
        for observed_generation in [None, Some(-1)] {
            let initial = run(1).begin(&ImagePolicyStatus { observed_generation, ..Default::default() });
            assert!(initial.must_be_written);
            let message = "processing object: new generation -1 -> 1";
            assert_eq!(
                short(&initial.status.conditions),
                [
                    format!("Reconciling=True Progressing {message}"),
                    format!("Ready=Unknown Progressing {message}")
                ]
            );
        }
        let stalled = policy(list(&[
            (Stalled, True, Reason::AccessDenied, "old"),
            (Ready, False, Reason::AccessDenied, "old"),
        ]));
        assert_eq!(
            short(&run(1).begin(&stalled).status.conditions),
            ["Reconciling=True Progressing reconciliation in progress", "Ready=False AccessDenied old"]
        );
        let asked = ReconcileRun { requested_at: Some("now".to_owned()), ..run(1) };
        let repository = ImageRepositoryStatus { observed_generation: Some(1), ..Default::default() };
        assert!(asked.begin(&repository).must_be_written);
        assert!(!asked.begin(&steady).must_be_written);
        let answered =
            ImageRepositoryStatus { last_handled_reconcile_at: Some("now".to_owned()), ..repository };
        assert!(!asked.begin(&answered).must_be_written);
        let later = ReconcileRun { requested_at: Some("later".to_owned()), ..run(1) };
        assert!(later.begin(&answered).must_be_written);
        let initial = run(1).begin(&ImageUpdateAutomationStatus::default()).status;
        assert_eq!(initial.last_automation_run_time, Some(whole_seconds(run(1).started)));
    }

    #[test]
    fn an_object_with_an_invalid_previous_result_is_not_ready() {
        for ready in [True, False, Unknown] {
            let before = policy(list(&[(Ready, ready, Reason::Failed, "old")]));
            let status = run(1).progress(&before, "scanning: x", PreviousResult::Invalid);
            assert_eq!(short(&status.conditions)[1], "Ready=Unknown Progressing scanning: x");
            let status = run(1).progress(&before, "scanning: x", PreviousResult::Valid);
            let kept = if ready == Unknown {
                "Ready=Unknown Progressing scanning: x".to_owned()
            } else {
                format!("Ready={ready} Failed old")
            };
            assert_eq!(short(&status.conditions)[1], kept);
        }
    }

    #[test]
    fn final_conditions_depend_on_the_outcome_alone() {
        use Reason::{DependencyNotReady, InvalidPolicy};
        let work = "Reconciling=True ProgressingWithRetry reconciliation in progress";
        for before in [
            vec![],
            list(&[(Ready, True, Reason::Succeeded, "good")]),
            list(&[
                (Reconciling, True, Reason::ProgressingWithRetry, "old"),
                (Ready, False, Reason::Failed, "old"),
            ]),
            list(&[
                (Stalled, True, Reason::ImageURLInvalid, "old"),
                (Ready, False, Reason::ImageURLInvalid, "old"),
            ]),
            list(&[
                (Reconciling, True, Reason::Progressing, "x"),
                (Ready, Unknown, Reason::Progressing, "x"),
            ]),
        ] {
            let initial = run(1).begin(&policy(before)).status.conditions;
            for (outcome, expected) in [
                (Outcome::Success("found".to_owned()), vec!["Ready=True Succeeded found"]),
                (
                    Outcome::Stall(InvalidPolicy, "bad".to_owned()),
                    vec!["Stalled=True InvalidPolicy bad", "Ready=False InvalidPolicy bad"],
                ),
                (
                    Outcome::Failure(DependencyNotReady, "gone".to_owned()),
                    vec![work, "Ready=False DependencyNotReady gone"],
                ),
            ] {
                let after = run(1).conclude(&initial, &outcome).build(&initial, Timestamp::UNIX_EPOCH);
                assert_eq!(short(&after), expected);
            }
        }
    }

    #[test]
    fn the_generation_is_observed_after_success_or_stall_and_a_request_is_always_handled() {
        let run = ReconcileRun { requested_at: Some("now".to_owned()), ..run(7) };
        for (outcome, observed) in [
            (Outcome::Success(String::new()), Some(7)),
            (Outcome::Stall(Reason::InvalidPolicy, String::new()), Some(7)),
            (Outcome::Failure(Reason::Failure, String::new()), Some(1)),
        ] {
            let before = policy(vec![]);
            let conditions = run.conclude(&[], &outcome).build(&[], Timestamp::UNIX_EPOCH);
            let after = run.finish(before, conditions);
            assert_eq!(after.observed_generation, observed, "{outcome:?}");
            assert_eq!(after.last_handled_reconcile_at.as_deref(), Some("now"));
        }
    }

    /// The rows of `docs/flux-behaviour.md`, Events.
    #[test]
    fn each_transition_of_ready_has_its_event() {
        let found = |count: &str| list(&[(Ready, True, Reason::Succeeded, &format!("found {count} tags"))]);
        let failed = list(&[(Ready, False, Reason::Failed, "scan failed")]);
        let busy = list(&[
            (Ready, True, Reason::Succeeded, "found x tags"),
            (Reconciling, True, Reason::Progressing, ""),
        ]);
        for (before, after, type_, reason, message) in [
            (vec![], found("x"), EventType::Normal, "Succeeded", "found x tags"),
            (found("x"), found("x"), EventType::Trace, "Succeeded", "foo"),
            (found("x"), found("y"), EventType::Normal, "Succeeded", "found y tags"),
            (found("x"), failed.clone(), EventType::Warning, "Failed", "scan failed"),
            (failed.clone(), failed.clone(), EventType::Warning, "Failed", "scan failed"),
            (failed, found("x"), EventType::Normal, "Succeeded", "found x tags"),
            (busy, found("x"), EventType::Normal, "Succeeded", "found x tags"),
        ] {
            let expected = Event { type_, reason: reason.to_owned(), message: message.to_owned() };
            assert_eq!(event(&before, &after, "foo"), expected);
        }
    }

    #[test]
    fn a_report_keeps_the_concurrent_changes_of_others() {
        let foreign = |name: &str| Condition {
            type_: name.to_owned(),
            ..list(&[(Ready, True, Reason::Failed, "")])[0].clone()
        };
        let previous = policy(list(&[(Ready, True, Reason::Succeeded, "good")]));
        let initial = run(2).begin(&previous).status;
        let mut stored = initial.clone();
        stored.conditions.push(foreign("Theirs"));
        let status = reported_on(&previous, &initial, &stored);
        assert_eq!(status.conditions, [previous.conditions[0].clone(), foreign("Theirs")]);
        stored.observed_generation = Some(9);
        assert_eq!(reported_on(&previous, &initial, &stored), stored);
        // Another controller has pushed.
        let previous = ImageUpdateAutomationStatus::default();
        let initial = run(2).begin(&previous).status;
        let pushed =
            ImageUpdateAutomationStatus { last_push_commit: Some("theirs".to_owned()), ..initial.clone() };
        assert_eq!(reported_on(&previous, &initial, &initial), previous);
        assert_eq!(reported_on(&previous, &initial, &pushed), pushed);
    }
    /// The end of such a run removed the last push.
    #[test]
    fn a_run_that_begins_on_a_newer_status_keeps_what_that_has() {
        let known = ImageUpdateAutomationStatus::default();
        let begin = |status: &ImageUpdateAutomationStatus| run(2).begin(status).status;
        let newer =
            ImageUpdateAutomationStatus { last_push_commit: Some("ours".to_owned()), ..known.clone() };
        let before = status_before(&known, &begin(&known), &newer);
        assert_eq!(reported_on(&before, &begin(&newer), &begin(&newer)), newer);
        // The first write has arrived, and its answer was lost.
        assert_eq!(status_before(&known, &begin(&known), &begin(&known)), known);
        assert_eq!(status_before(&known, &begin(&known), &known), known);
    }
}
