//! The course of a run of an ImageRepository or an ImagePolicy, which is the same for both: how it begins, how it ends,
//! and what is announced of it (`docs/flux-behaviour.md`, A reconcile, Conditions, Events).
//!
//! One oddity of Flux's is left out on purpose: there, a Ready that is False keeps the reason of an earlier failure when
//! the object stalls or fails otherwise. Here Ready says why the last run ended.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::{Condition, RECONCILE_REQUEST_ANNOTATION, Reason};

use super::conditions::ConditionStatus::{False, True, Unknown};
use super::conditions::ConditionType::{Ready, Reconciling, Stalled};
use super::conditions::{self, Draft};
use super::status::Status;
use crate::error::{ReconcileError, chain};
use crate::objects::{Event, EventType};

/// What is said while a run goes on.
pub const IN_PROGRESS: &str = "reconciliation in progress";

/// The generation that a status without one has observed, as in the schema.
const NEVER_OBSERVED: i64 = -1;

/// A run of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course {
    /// The object's generation.
    pub generation: i64,
    /// The request that the object carries, if any (`reconcile.fluxcd.io/requestedAt`).
    pub requested_at: Option<String>,
    /// When the run began.
    pub started: Timestamp,
}

/// The status at the start of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Beginning<S> {
    /// The status.
    pub status: S,
    /// Whether it is to be written at once; otherwise only the one at the end is.
    pub is_to_be_written: bool,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All went well; the sentence is what Ready says.
    Success(String),
    /// It stopped, and only a change of an object helps.
    Stall(Reason, String),
    /// It stopped, and is to be tried again.
    Failure(Reason, String),
}

/// When to look at an object again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// After exactly this time.
    After(Duration),
    /// Soon, and ever later the more often it fails.
    Retry,
    /// When an object has changed or somebody asks for it.
    Wait,
}

impl Ending {
    /// The end of a run that an error stopped, which speaks for itself.
    pub fn of(error: &(impl ReconcileError + 'static)) -> Self {
        let (reason, words) = (error.reason(), chain(error));
        if error.is_retryable() { Self::Failure(reason, words) } else { Self::Stall(reason, words) }
    }
}

impl Course {
    /// The run of an object that begins now.
    pub fn of(object: &impl ResourceExt, started: Timestamp) -> Self {
        Self {
            generation: object.meta().generation.unwrap_or(1),
            requested_at: object.annotations().get(RECONCILE_REQUEST_ANNOTATION).cloned(),
            started,
        }
    }

    /// Whether somebody asked for the object since a run last answered.
    pub fn is_requested(&self, previous: &impl Status) -> bool {
        self.requested_at.is_some() && self.requested_at.as_deref() != previous.common().handled
    }

    /// Whether the object's spec is another than a run last came to an end with.
    pub fn is_changed(&self, previous: &impl Status) -> bool {
        self.generation != previous.common().observed_generation.unwrap_or(NEVER_OBSERVED)
    }

    /// The status with which the run begins.
    pub fn begin<S: Status>(&self, previous: &S) -> Beginning<S> {
        let observed = previous.common().observed_generation.unwrap_or(NEVER_OBSERVED);
        let message = if self.is_changed(previous) {
            format!("processing object: new generation {observed} -> {}", self.generation)
        } else {
            IN_PROGRESS.to_owned()
        };
        let is_to_be_written =
            self.is_changed(previous) || (S::ANNOUNCES_REQUESTS && self.is_requested(previous));
        Beginning { status: self.progress(previous, &message, Drift::No), is_to_be_written }
    }

    /// The status of a run that has come as far as the message says.
    pub fn progress<S: Status>(&self, previous: &S, message: &str, drift: Drift) -> S {
        let stored = previous.common().conditions;
        let mut draft = Draft::new(stored, self.generation);
        draft.remove(Stalled);
        draft.set(Reconciling, True, Reason::Progressing, message);
        // What a run before found out stays until this one knows better.
        if drift == Drift::Yes || !draft.is(Ready, True) && !draft.is(Ready, False) {
            draft.set(Ready, Unknown, Reason::Progressing, message);
        }
        let mut status = previous.clone();
        *status.common_mut().conditions = draft.settle(stored, self.started);
        status
    }

    /// The conditions after the run, from those that it began with.
    pub fn conclude(&self, begun: &[Condition], ending: &Ending) -> Draft {
        let mut draft = Draft::new(begun, self.generation);
        draft.remove(Stalled);
        match ending {
            Ending::Success(message) => {
                draft.remove(Reconciling);
                draft.set(Ready, True, Reason::Succeeded, message);
            }
            Ending::Stall(reason, message) => {
                draft.remove(Reconciling);
                draft.set(Stalled, True, *reason, message);
                draft.set(Ready, False, *reason, message);
            }
            Ending::Failure(reason, message) => {
                let work =
                    conditions::find(begun, Reconciling).map_or(IN_PROGRESS, |begun| begun.message.as_str());
                draft.set(Reconciling, True, Reason::ProgressingWithRetry, work);
                draft.set(Ready, False, *reason, message);
            }
        }
        draft
    }

    /// Writes to a status what follows from the end of the run alone.
    pub fn finish<S: Status>(&self, mut status: S, conditions: Vec<Condition>) -> S {
        let is_settled = conditions::is_ready(&conditions) || conditions::is_stalled(&conditions);
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

/// Whether what an object says of itself is known to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// It is, so it is not Ready any more.
    Yes,
    /// It is not.
    No,
}

/// The event of a run: the change of Ready, or `trace` where there is none (`docs/flux-behaviour.md`, Events).
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

/// The status that a run is to be reported on, where `stored` is what the object has at its end.
///
/// If nobody has written to it since the run `begun`, that is the `previous` one, with conditions of others as they
/// stand. Otherwise somebody else has carried the object out meanwhile, and what they found counts.
pub fn reported_on<S: Status>(previous: &S, begun: &S, stored: &S) -> S {
    let own = |status: &S| {
        let mut status = status.clone();
        status.common_mut().conditions.retain(conditions::is_own);
        status
    };
    if own(begun) != own(stored) {
        return stored.clone();
    }
    let mut status = own(previous);
    let of_others = stored.common().conditions.iter().filter(|condition| !conditions::is_own(condition));
    status.common_mut().conditions.extend(of_others.cloned());
    status
}

#[cfg(test)]
pub(super) mod tests {
    use tagboat_api::policy::ImagePolicyStatus;
    use tagboat_api::repository::ImageRepositoryStatus;

    use super::*;
    use crate::reconcile::conditions::{ConditionStatus, ConditionType};

    pub(in crate::reconcile) fn course(generation: i64) -> Course {
        Course { generation, requested_at: None, started: "2026-01-01T00:00:00.9Z".parse().unwrap() }
    }

    /// Conditions of generation 1, with reason and message in one.
    pub(in crate::reconcile) fn list(
        conditions: &[(ConditionType, ConditionStatus, Reason, &str)],
    ) -> Vec<Condition> {
        let mut draft = Draft::new(&[], 1);
        for (type_, status, reason, message) in conditions {
            draft.set(*type_, *status, *reason, message);
        }
        draft.settle(&[], "2025-01-01T00:00:00Z".parse().unwrap())
    }

    /// The conditions in short, one a line.
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
    fn a_run_begins_by_saying_so_where_somebody_waits_for_it() {
        let steady = policy(list(&[(Ready, True, Reason::Succeeded, "good")]));
        let begun = course(1).begin(&steady);
        assert!(!begun.is_to_be_written);
        assert_eq!(
            short(&begun.status.conditions),
            ["Reconciling=True Progressing reconciliation in progress", "Ready=True Succeeded good"]
        );
        let begun = course(2).begin(&steady);
        assert!(begun.is_to_be_written);
        assert_eq!(
            short(&begun.status.conditions)[0],
            "Reconciling=True Progressing processing object: new generation 1 -> 2"
        );
        for observed_generation in [None, Some(-1)] {
            let begun = course(1).begin(&ImagePolicyStatus { observed_generation, ..Default::default() });
            assert!(begun.is_to_be_written);
            let words = "processing object: new generation -1 -> 1";
            assert_eq!(
                short(&begun.status.conditions),
                [
                    format!("Reconciling=True Progressing {words}"),
                    format!("Ready=Unknown Progressing {words}")
                ]
            );
        }
        let asked = Course { requested_at: Some("now".to_owned()), ..course(1) };
        let repository = ImageRepositoryStatus { observed_generation: Some(1), ..Default::default() };
        assert!(asked.begin(&repository).is_to_be_written);
        assert!(!asked.begin(&steady).is_to_be_written);
        let answered =
            ImageRepositoryStatus { last_handled_reconcile_at: Some("now".to_owned()), ..repository };
        assert!(!asked.begin(&answered).is_to_be_written);
    }

    #[test]
    fn what_is_known_to_be_wrong_is_not_ready() {
        for ready in [True, False, Unknown] {
            let before = policy(list(&[(Ready, ready, Reason::Failed, "old")]));
            let status = course(1).progress(&before, "scanning: x", Drift::Yes);
            assert_eq!(short(&status.conditions)[1], "Ready=Unknown Progressing scanning: x");
            let status = course(1).progress(&before, "scanning: x", Drift::No);
            let kept = if ready == Unknown {
                "Ready=Unknown Progressing scanning: x".to_owned()
            } else {
                format!("Ready={ready} Failed old")
            };
            assert_eq!(short(&status.conditions)[1], kept);
        }
    }

    #[test]
    fn conditions_follow_from_the_end_alone() {
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
            let begun = course(1).begin(&policy(before)).status.conditions;
            for (ending, expected) in [
                (Ending::Success("found".to_owned()), vec!["Ready=True Succeeded found"]),
                (
                    Ending::Stall(InvalidPolicy, "bad".to_owned()),
                    vec!["Stalled=True InvalidPolicy bad", "Ready=False InvalidPolicy bad"],
                ),
                (
                    Ending::Failure(DependencyNotReady, "gone".to_owned()),
                    vec![work, "Ready=False DependencyNotReady gone"],
                ),
            ] {
                let after = course(1).conclude(&begun, &ending).settle(&begun, Timestamp::UNIX_EPOCH);
                assert_eq!(short(&after), expected);
            }
        }
    }

    #[test]
    fn the_generation_is_observed_where_the_run_came_to_an_end_and_a_request_is_always_answered() {
        let course = Course { requested_at: Some("now".to_owned()), ..course(7) };
        for (ending, observed) in [
            (Ending::Success(String::new()), Some(7)),
            (Ending::Stall(Reason::InvalidPolicy, String::new()), Some(7)),
            (Ending::Failure(Reason::Failure, String::new()), Some(1)),
        ] {
            let before = policy(vec![]);
            let conditions = course.conclude(&[], &ending).settle(&[], Timestamp::UNIX_EPOCH);
            let after = course.finish(before, conditions);
            assert_eq!(after.observed_generation, observed, "{ending:?}");
            assert_eq!(after.last_handled_reconcile_at.as_deref(), Some("now"));
        }
    }

    /// The vectors of §2.11, and the rest of its table.
    #[test]
    fn each_change_of_ready_has_its_event() {
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
    fn a_report_goes_on_top_of_what_others_wrote() {
        let foreign = |name: &str| Condition {
            type_: name.to_owned(),
            ..list(&[(Ready, True, Reason::Failed, "")])[0].clone()
        };
        let previous = policy(list(&[(Ready, True, Reason::Succeeded, "good")]));
        let begun = course(2).begin(&previous).status;
        let mut stored = begun.clone();
        stored.conditions.push(foreign("Theirs"));
        let status = reported_on(&previous, &begun, &stored);
        assert_eq!(status.conditions, [previous.conditions[0].clone(), foreign("Theirs")]);
        stored.observed_generation = Some(9);
        assert_eq!(reported_on(&previous, &begun, &stored), stored);
    }
}
