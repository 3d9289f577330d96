//! Makes the report of a reconcile: the status, one event, and the requeue (`docs/flux-behaviour.md`, Observations,
//! Conditions, Requeue, Events).
//!
//! Everything follows from the status before the run and its conclusion. Each step is as in Flux, oddities included,
//! because tools and people read the results.

use std::time::Duration;

use jiff::Timestamp;
use tagboat_api::automation::ImageUpdateAutomationStatus;
use tagboat_api::{Condition, ImageUpdateAutomation, Reason};

use super::conclusion::{Conclusion, RunFailure, Stage};
use super::delivered::BranchEvent;
use super::event::{self, UP_TO_DATE};
use super::findings::FindingsChange;
use super::pull_requests::{PullRequestEvent, PullRequestProgress};
use crate::git::checkout::Revision;
use crate::git::outcome::Outcome;
use crate::objects::Event;
use crate::reconcile::action::Action;
use crate::reconcile::conditions::ConditionStatus::{False, True, Unknown};
use crate::reconcile::conditions::ConditionType::{Ready, Reconciling, Stalled};
use crate::reconcile::conditions::{self, ConditionsBuilder, whole_seconds};
use crate::reconcile::run::{IN_PROGRESS, ReconcileRun, Started};
use crate::reconcile::times;

/// The report of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The new status.
    pub status: ImageUpdateAutomationStatus,
    /// The one event of the run.
    pub event: Event,
    /// An event for each push to an own branch, by the branches' names.
    pub branch_events: Vec<BranchEvent>,
    /// The events about pull requests.
    pub pull_request_events: Vec<PullRequestEvent>,
    /// The progress of the pull requests that the status and these events tell.
    pub pull_requests: Option<PullRequestProgress>,
    /// The event about a new reason to wait.
    pub wait_event: Option<Event>,
    /// The event about a change of the held images.
    pub revert_event: Option<Event>,
    /// The change of the problems with markers, if there is one.
    pub findings_change: Option<FindingsChange>,
    /// The requeue.
    pub action: Action,
}

/// Returns the time between two reconciles of an automation; zero if only events start one.
pub fn interval(automation: &ImageUpdateAutomation) -> Duration {
    times::interval(automation.spec.interval.to_duration().unwrap_or_default())
}

/// Makes the report of a run that began with the status `previous` and ended now.
pub fn report(
    run: &ReconcileRun,
    interval: Duration,
    previous: &ImageUpdateAutomationStatus,
    conclusion: &Conclusion,
    now: Timestamp,
) -> Report {
    let Started { mut status, must_be_written } = run.begin(previous);
    let builder = conclude(run.generation, &status.conditions, conclusion);
    let stored = if must_be_written { &status.conditions } else { &previous.conditions };
    let conditions = builder.build(stored, now);
    if let Conclusion::Success { outcome, policies } = conclusion {
        if let Some(revision) = observed_revision(outcome) {
            status.observed_source_revision = Some(revision.to_string());
            status.observed_policies = policies.clone();
        }
        if let Outcome::Pushed(push) = outcome {
            status.last_push_commit = Some(push.commit.to_string());
            status.last_push_time = Some(whole_seconds(now));
        }
    }
    if let Some(pushed) = conclusion.pushed() {
        status.last_push_commit = Some(pushed.commit.to_string());
        status.last_push_time = Some(whole_seconds(now));
    }
    let status = run.finish(status, conditions);
    let event = event::of(conditions::is_ready(&previous.conditions), &status.conditions, conclusion);
    let action = match conclusion {
        Conclusion::Success { .. } if interval.is_zero() => Action::AwaitChange,
        Conclusion::Success { .. } => Action::RequeueAfter(interval),
        Conclusion::Stall(_) => Action::AwaitChange,
        Conclusion::Failure(_) => Action::Retry,
    };
    Report {
        status,
        event,
        branch_events: Vec::new(),
        pull_request_events: Vec::new(),
        pull_requests: None,
        wait_event: None,
        revert_event: None,
        findings_change: None,
        action,
    }
}

/// Makes the conditions after a run from those that it began with (`docs/flux-behaviour.md`, Conditions).
fn conclude(generation: i64, initial: &[Condition], conclusion: &Conclusion) -> ConditionsBuilder {
    let mut builder = ConditionsBuilder::new(initial, generation);
    match conclusion {
        Conclusion::Success { .. } => {
            builder.remove(Reconciling);
            builder.set(Ready, True, Reason::Succeeded, UP_TO_DATE);
        }
        Conclusion::Stall(failure) => {
            forget_settled_reasons(&mut builder, failure);
            builder.remove(Reconciling);
            builder.set(Stalled, True, failure.reason, &failure.message);
            // An oddity of Flux's: a Ready that is False already keeps its old reason and message.
            if !builder.is(Ready, False) {
                builder.set(Ready, False, failure.reason, &failure.message);
            }
        }
        Conclusion::Failure(failure) => {
            forget_settled_reasons(&mut builder, failure);
            // A failure without a reason of its own does not hide one that has.
            if failure.reason != Reason::Failed || !builder.is(Ready, False) {
                builder.set(Ready, False, failure.reason, &failure.message);
            }
            let initial = conditions::find(initial, Reconciling).expect("a run begins with Reconciling");
            builder.set(Reconciling, True, Reason::ProgressingWithRetry, &initial.message);
        }
    }
    builder
}

/// Creates the status of a suspended automation.
///
/// Only its generation is observed, and only if an earlier run came to an end.
pub fn while_suspended(
    previous: &ImageUpdateAutomationStatus,
    generation: i64,
) -> ImageUpdateAutomationStatus {
    let mut status = previous.clone();
    if conditions::is_settled(&status.conditions) {
        status.observed_generation = Some(generation);
    }
    status
}

/// Removes the reason of Ready if its stage has passed in this run.
fn forget_settled_reasons(builder: &mut ConditionsBuilder, failure: &RunFailure) {
    let settled = failure.stage.before().flat_map(Stage::settles);
    let is_settled = conditions::find(builder.conditions(), Ready)
        .is_some_and(|ready| settled.into_iter().any(|reason| reason.to_string() == ready.reason));
    if is_settled {
        builder.set(Ready, Unknown, Reason::Progressing, IN_PROGRESS);
    }
}

/// Returns the revision that a status names after a run that read the files.
///
/// Source: `docs/flux-behaviour.md`, Observations.
fn observed_revision(outcome: &Outcome) -> Option<Revision> {
    match outcome {
        Outcome::DryRun { .. } | Outcome::Waiting { .. } => None,
        outcome => read_revision(outcome),
    }
}

/// Returns the revision after a run that read the files.
///
/// The next run finds it if nothing changes.
pub(super) fn read_revision(outcome: &Outcome) -> Option<Revision> {
    match outcome {
        Outcome::NothingNew => None,
        Outcome::DryRun { source, .. } | Outcome::Waiting { source } => Some(source.clone()),
        Outcome::NothingToCommit { source } | Outcome::Branches { base: source, .. } => Some(source.clone()),
        Outcome::Pushed(push) => {
            let reference = Some(push.branch.reference());
            let is_same_branch = push.source.reference == reference;
            Some(if is_same_branch {
                // The files were read at the tip that a push of an earlier run was found in.
                let read = push.found.as_ref().map_or(push.commit, |found| found.commit);
                Revision { reference, commit: read }
            } else {
                push.source.clone()
            })
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use tagboat_api::ImageRef;

    use super::*;
    use crate::git::outcome::Push;
    use crate::reconcile::conditions::{ConditionStatus, ConditionType};
    use crate::reconcile::run::tests::{list, run, short};

    const INTERVAL: Duration = Duration::from_secs(60);

    const SOURCE: &str = "1111111111111111111111111111111111111111";
    const PUSHED: &str = "2222222222222222222222222222222222222222";

    /// A status with these conditions, all of generation 1, which was observed.
    pub(in crate::reconcile::automation) fn status(
        conditions: &[(ConditionType, ConditionStatus, Reason, &str)],
    ) -> ImageUpdateAutomationStatus {
        ImageUpdateAutomationStatus {
            conditions: list(conditions),
            observed_generation: Some(1),
            ..Default::default()
        }
    }

    fn now() -> Timestamp {
        "2026-01-01T00:00:05.9Z".parse().unwrap()
    }

    fn success(outcome: Outcome) -> Conclusion {
        let image = ImageRef { name: "img/app".to_owned(), tag: "1.1.0".to_owned(), digest: None };
        Conclusion::Success { outcome, policies: BTreeMap::from([("p".to_owned(), image)]) }
    }

    fn source(reference: Option<&str>) -> Revision {
        let reference = reference.map(|name| name.parse().unwrap());
        Revision { reference, commit: SOURCE.parse().unwrap() }
    }

    fn pushed(from: &str, to: &str) -> Conclusion {
        success(Outcome::Pushed(Push {
            source: source(Some(from)),
            branch: to.parse().unwrap(),
            commit: PUSHED.parse().unwrap(),
            refspec: None,
            message: String::new(),
            found: None,
        }))
    }

    fn failure(stage: Stage, reason: Reason) -> RunFailure {
        RunFailure { stage, reason, message: "new".to_owned(), hint: Some("old".to_owned()), pushed: None }
    }

    /// The rows of `docs/flux-behaviour.md`, Observations.
    #[test]
    fn observations_are_stored_only_after_a_checkout_was_searched() {
        let at_source = format!("main@sha1:{SOURCE}");
        let before = ImageUpdateAutomationStatus {
            observed_source_revision: Some("main@sha1:old".to_owned()),
            last_push_commit: Some("old".to_owned()),
            ..status(&[(Ready, True, Reason::Succeeded, UP_TO_DATE)])
        };
        for (conclusion, revision, is_policies_stored, is_push_stored) in [
            (success(Outcome::NothingNew), "main@sha1:old".to_owned(), false, false),
            (
                success(Outcome::NothingToCommit { source: source(Some("refs/heads/main")) }),
                at_source.clone(),
                true,
                false,
            ),
            (
                success(Outcome::NothingToCommit { source: source(None) }),
                format!("sha1:{SOURCE}"),
                true,
                false,
            ),
            (pushed("refs/heads/a/b", "a/b"), format!("a/b@sha1:{PUSHED}"), true, true),
            (pushed("refs/heads/main", "auto"), at_source, true, true),
            (pushed("refs/tags/main", "main"), format!("main@sha1:{SOURCE}"), true, true),
            (
                Conclusion::Stall(failure(Stage::Push, Reason::RemovedTemplateField)),
                "main@sha1:old".to_owned(),
                false,
                false,
            ),
            (
                Conclusion::Failure(failure(Stage::Push, Reason::GitOperationFailed)),
                "main@sha1:old".to_owned(),
                false,
                false,
            ),
        ] {
            let after = report(&run(1), INTERVAL, &before, &conclusion, now()).status;
            assert_eq!(after.observed_source_revision, Some(revision), "{conclusion:?}");
            assert_eq!(!after.observed_policies.is_empty(), is_policies_stored, "{conclusion:?}");
            let commit = if is_push_stored { PUSHED } else { "old" };
            assert_eq!(after.last_push_commit.as_deref(), Some(commit), "{conclusion:?}");
            let time = is_push_stored.then(|| whole_seconds(now()));
            assert_eq!(after.last_push_time, time, "{conclusion:?}");
            assert_eq!(after.last_automation_run_time, Some(whole_seconds(run(1).started)));
        }
    }

    /// Each conclusion from each state of Ready (`docs/flux-behaviour.md`, Conditions).
    #[test]
    fn conditions_depend_on_the_previous_ones_and_the_conclusion() {
        use Reason::{GitOperationFailed, InvalidPolicySelector, RemovedTemplateField, UpdateFailed};
        let good = [(Ready, True, Reason::Succeeded, UP_TO_DATE)];
        let fresh = [];
        let failing = [
            (Reconciling, True, Reason::ProgressingWithRetry, IN_PROGRESS),
            (Ready, False, UpdateFailed, "old"),
        ];
        let stalled =
            [(Stalled, True, RemovedTemplateField, "old"), (Ready, False, RemovedTemplateField, "old")];
        let unknown = [
            (Reconciling, True, Reason::Progressing, IN_PROGRESS),
            (Ready, Unknown, Reason::Progressing, IN_PROGRESS),
        ];
        let is_good = ["Ready=True Succeeded repository up-to-date"];
        for before in [&good[..], &fresh, &failing, &stalled, &unknown] {
            let report = report(&run(1), INTERVAL, &status(before), &success(Outcome::NothingNew), now());
            assert_eq!(short(&report.status.conditions), is_good, "{before:?}");
            assert_eq!(report.action, Action::RequeueAfter(Duration::from_secs(60)));
        }
        for (before, stage, reason, ready) in [
            (&good[..], Stage::Policies, InvalidPolicySelector, "InvalidPolicySelector new"),
            (&fresh, Stage::Policies, InvalidPolicySelector, "InvalidPolicySelector new"),
            (&unknown, Stage::Policies, InvalidPolicySelector, "InvalidPolicySelector new"),
            // Ready keeps what it said …
            (&failing, Stage::Policies, InvalidPolicySelector, "UpdateFailed old"),
            (&failing, Stage::Source, Reason::AccessDenied, "UpdateFailed old"),
            (&failing, Stage::Update, Reason::InvalidUpdateStrategy, "UpdateFailed old"),
            (&stalled, Stage::Push, Reason::InvalidSettings, "RemovedTemplateField old"),
            // … unless the stage that it speaks of has passed.
            (&failing, Stage::Push, RemovedTemplateField, "RemovedTemplateField new"),
        ] {
            let report =
                report(&run(1), INTERVAL, &status(before), &Conclusion::Stall(failure(stage, reason)), now());
            let expected = [format!("Stalled=True {reason} new"), format!("Ready=False {ready}")];
            assert_eq!(short(&report.status.conditions), expected, "{before:?}");
            assert_eq!(format!("{} {}", report.event.reason, report.event.message), ready);
            assert_eq!(report.action, Action::AwaitChange);
        }
        for (before, stage, reason, ready) in [
            (&good[..], Stage::Checkout, GitOperationFailed, "GitOperationFailed new"),
            (&fresh, Stage::Checkout, GitOperationFailed, "GitOperationFailed new"),
            (&failing, Stage::Checkout, GitOperationFailed, "GitOperationFailed new"),
            (&stalled, Stage::Source, Reason::SourceManagerFailed, "SourceManagerFailed new"),
            // What has no reason of its own hides none.
            (&good, Stage::Policies, Reason::Failed, "Failed new"),
            (&unknown, Stage::Policies, Reason::Failed, "Failed new"),
            (&failing, Stage::Policies, Reason::Failed, "UpdateFailed old"),
        ] {
            let report = report(
                &run(1),
                INTERVAL,
                &status(before),
                &Conclusion::Failure(failure(stage, reason)),
                now(),
            );
            let retry = format!("Reconciling=True ProgressingWithRetry {IN_PROGRESS}");
            assert_eq!(
                short(&report.status.conditions),
                [retry, format!("Ready=False {ready}")],
                "{before:?}"
            );
            assert_eq!(format!("{} {}", report.event.reason, report.event.message), ready);
            assert_eq!(report.action, Action::Retry);
        }
    }

    /// Each stage that passed removes its reasons.
    ///
    /// Ready has another reason after a stall at a later stage.
    #[test]
    fn a_stage_that_passed_removes_its_reasons() {
        let stages = [Stage::Policies, Stage::Source, Stage::Checkout, Stage::Update, Stage::Push];
        for (reason, first_to_forget) in [
            (Reason::InvalidPolicySelector, Some(Stage::Source)),
            (Reason::AccessDenied, Some(Stage::Checkout)),
            (Reason::InvalidSourceConfiguration, Some(Stage::Checkout)),
            (Reason::SourceManagerFailed, Some(Stage::Checkout)),
            (Reason::FeatureGateDisabled, Some(Stage::Checkout)),
            (Reason::GitOperationFailed, Some(Stage::Update)),
            (Reason::InvalidUpdateStrategy, Some(Stage::Push)),
            (Reason::UpdateFailed, Some(Stage::Push)),
            (Reason::RemovedTemplateField, None),
            (Reason::Failed, None),
        ] {
            let before = status(&[(Ready, False, reason, "old")]);
            for stage in stages {
                let stall = Conclusion::Stall(failure(stage, Reason::InvalidSettings));
                let report = report(&run(1), INTERVAL, &before, &stall, now());
                let is_forgotten = first_to_forget.is_some_and(|first| stage >= first);
                let expected = if is_forgotten { "new" } else { "old" };
                assert_eq!(report.event.message, expected, "{reason} {stage:?}");
            }
        }
    }

    #[test]
    fn a_request_is_handled_whatever_the_conclusion() {
        let run = ReconcileRun { requested_at: Some("now".to_owned()), ..run(1) };
        for conclusion in [
            success(Outcome::NothingNew),
            Conclusion::Stall(failure(Stage::Source, Reason::AccessDenied)),
            Conclusion::Failure(failure(Stage::Source, Reason::SourceManagerFailed)),
        ] {
            let report = report(&run, INTERVAL, &status(&[]), &conclusion, now());
            assert_eq!(report.status.last_handled_reconcile_at.as_deref(), Some("now"));
        }
    }

    #[test]
    fn the_generation_is_observed_after_success_or_stall() {
        for (conclusion, observed) in [
            (success(Outcome::NothingNew), 7),
            (Conclusion::Stall(failure(Stage::Source, Reason::AccessDenied)), 7),
            (Conclusion::Failure(failure(Stage::Source, Reason::SourceManagerFailed)), 1),
        ] {
            let report = report(&run(7), INTERVAL, &status(&[]), &conclusion, now());
            assert_eq!(report.status.observed_generation, Some(observed), "{conclusion:?}");
        }
        for (conditions, observed) in [
            (vec![(Ready, True, Reason::Succeeded, "")], 7),
            (vec![(Stalled, True, Reason::AccessDenied, "")], 7),
            (vec![(Ready, False, Reason::Failed, "")], 1),
            (vec![], 1),
        ] {
            let before = status(&conditions);
            let after = while_suspended(&before, 7);
            assert_eq!(after.observed_generation, Some(observed));
            let observed_generation = before.observed_generation;
            assert_eq!(ImageUpdateAutomationStatus { observed_generation, ..after }, before);
        }
    }

    #[test]
    fn a_steady_run_changes_its_time_only() {
        for (before, conclusion) in [
            (status(&[(Ready, True, Reason::Succeeded, UP_TO_DATE)]), success(Outcome::NothingNew)),
            (
                status(&[
                    (Reconciling, True, Reason::ProgressingWithRetry, IN_PROGRESS),
                    (Ready, False, Reason::UpdateFailed, "new"),
                ]),
                Conclusion::Failure(failure(Stage::Update, Reason::UpdateFailed)),
            ),
            (
                status(&[
                    (Stalled, True, Reason::AccessDenied, "new"),
                    (Ready, False, Reason::AccessDenied, "new"),
                ]),
                Conclusion::Stall(failure(Stage::Source, Reason::AccessDenied)),
            ),
        ] {
            let after = report(&run(1), INTERVAL, &before, &conclusion, now()).status;
            let last_automation_run_time = before.last_automation_run_time.clone();
            assert_eq!(ImageUpdateAutomationStatus { last_automation_run_time, ..after }, before);
        }
    }

    #[test]
    fn without_an_interval_only_events_start_a_run() {
        let report_on =
            |conclusion: Conclusion| report(&run(1), Duration::ZERO, &status(&[]), &conclusion, now());
        let report = report_on(success(Outcome::NothingNew));
        assert_eq!(report.action, Action::AwaitChange);
        assert_eq!(short(&report.status.conditions), ["Ready=True Succeeded repository up-to-date"]);
        let report = report_on(Conclusion::Stall(failure(Stage::Source, Reason::AccessDenied)));
        let expected = ["Stalled=True AccessDenied new", "Ready=False AccessDenied new"];
        assert_eq!(short(&report.status.conditions), expected);
    }
}
