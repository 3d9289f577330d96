//! Makes the report of a reconcile: the status, one event, and the requeue (`docs/flux-behaviour.md`, Conditions,
//! Requeue, Events).

use jiff::Timestamp;
use tagboat_api::repository::{ImageRepositoryStatus, ScanResult};
use tagboat_api::{GoDuration, Reason};

use super::decision::{Decision, ScanReason};
use super::request::Request;
use crate::error::chain;
use crate::objects::Event;
use crate::reconcile::action::Action;
use crate::reconcile::lookup::{LookupFailureKind, Staleness};
use crate::reconcile::run::{self, Outcome, ReconcileRun};

/// The conclusion of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Conclusion {
    /// No scan was due; with the time until the next one.
    Skipped(std::time::Duration),
    /// The scan succeeded.
    ///
    /// The number counts the names in the list that are no tags; it is absent if the list is unchanged.
    Scanned(ScanResult, Option<usize>),
    /// An error stopped the run.
    Failed(RunFailure),
}

/// The failure of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunFailure {
    /// The object cannot be scanned as it is.
    Stall(Reason, String),
    /// The login cannot be made.
    Login(String),
    /// The registry cannot be read.
    Listing(LookupFailureKind, String),
    /// An exclusion is no pattern, or the tags cannot be stored.
    Scan(String),
}

/// The report of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The new status.
    pub status: ImageRepositoryStatus,
    /// The one event of the run.
    pub event: Event,
    /// The requeue.
    pub action: Action,
}

impl RunFailure {
    /// Makes the failure from an error that only a change of the object corrects.
    pub fn stall(error: &(impl crate::error::ReconcileError + 'static)) -> Self {
        Self::Stall(error.reason(), chain(error))
    }

    /// Returns the staleness of the repository's tags, if its registry stopped the run.
    pub fn staleness(&self, image: &str) -> Option<Staleness> {
        let (kind, cause) = match self {
            Self::Listing(kind, cause) => (*kind, cause),
            Self::Login(cause) => (LookupFailureKind::Denied, cause),
            Self::Stall(..) | Self::Scan(_) => return None,
        };
        let message = format!("the tags of {image} could not be listed: {cause}");
        Some(Staleness { reason: kind.reason(), message })
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::Stall(reason, message) => Outcome::Stall(*reason, message.clone()),
            Self::Login(cause) => Outcome::Failure(
                Reason::AuthenticationFailed,
                format!("failed to configure authentication options: {cause}"),
            ),
            Self::Listing(_, cause) | Self::Scan(cause) => {
                Outcome::Failure(Reason::ReadOperationFailed, format!("scan failed: {cause}"))
            }
        }
    }
}

/// Makes the status while a scan is in progress from that of the beginning.
pub fn scanning(
    run: &ReconcileRun,
    initial: &ImageRepositoryStatus,
    reason: ScanReason,
) -> ImageRepositoryStatus {
    run.progress(initial, &format!("scanning: {reason}"), reason.previous_result())
}

/// Makes the status with which a run begins, from the decision if there is one.
pub fn initial_status(
    run: &ReconcileRun,
    previous: &ImageRepositoryStatus,
    decision: Option<Decision>,
) -> ImageRepositoryStatus {
    let initial = run.begin(previous).status;
    match decision {
        Some(Decision::Scan(reason)) => scanning(run, &initial, reason),
        _ => initial,
    }
}

/// Makes the report of a run that began with the status `previous` and ended now.
pub fn report(
    run: &ReconcileRun,
    planned: Planned<'_>,
    previous: &ImageRepositoryStatus,
    conclusion: &Conclusion,
    now: Timestamp,
) -> Report {
    let initial = initial_status(run, previous, planned.decision);
    let mut status = previous.clone();
    let (mut trace, mut action) = (String::new(), Action::Retry);
    let outcome = match conclusion {
        Conclusion::Failed(failure) => {
            let outcome = failure.outcome();
            if matches!(outcome, Outcome::Stall(..)) {
                action = Action::AwaitChange;
            }
            outcome
        }
        Conclusion::Skipped(_) | Conclusion::Scanned(..) => {
            let request = planned.request.expect("only what was understood is scanned");
            let (what, rest) = match conclusion {
                Conclusion::Skipped(rest) => ("no change in repository configuration since last scan", *rest),
                _ => ("tags did not change", request.interval),
            };
            let mut what = what;
            if let Conclusion::Scanned(result, _) = conclusion {
                let before = previous.last_scan_result.as_ref().map_or("", |last| last.revision.as_str());
                if before != result.revision {
                    what = "successful scan";
                }
                status.last_scan_result = Some(result.clone());
            }
            trace = format!("{what}, next scan in {}", GoDuration::from(rest));
            action = if rest.is_zero() { Action::AwaitChange } else { Action::RequeueAfter(rest) };
            status.canonical_image_name = Some(request.address.canonical());
            status.observed_exclusion_list.clone_from(&request.exclusions);
            let last = status.last_scan_result.clone().unwrap_or_default();
            Outcome::Success(format!(
                "successful scan: found {} tags with checksum {}",
                last.tag_count, last.revision
            ))
        }
    };
    let conditions = run.conclude(&initial.conditions, &outcome).build(&previous.conditions, now);
    let status = run.finish(status, conditions);
    let event = run::event(&previous.conditions, &status.conditions, &trace);
    Report { status, event, action }
}

/// The plan of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planned<'a> {
    /// The request of the object, if it is valid.
    pub request: Option<&'a Request>,
    /// The decision on a scan, if the run came that far.
    pub decision: Option<Decision>,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::super::request::ObjectIdentity;
    use super::super::request::tests::repository;
    use super::super::scan;
    use super::*;
    use crate::objects::EventType::{Normal, Trace, Warning};
    use crate::reconcile::conditions::ConditionStatus::{False, True};
    use crate::reconcile::conditions::ConditionType::{Ready, Reconciling};
    use crate::reconcile::conditions::whole_seconds;
    use crate::reconcile::run::tests::{list, run, short};
    use crate::reconcile::times::TimeBounds;

    fn now() -> Timestamp {
        "2026-01-01T00:00:05.9Z".parse().unwrap()
    }

    fn found(revision: &str) -> ScanResult {
        scan::result(&["1.0.0", "1.1.0"].into_iter().collect(), revision.to_owned(), now())
    }

    fn steady() -> ImageRepositoryStatus {
        ImageRepositoryStatus {
            conditions: list(&[(
                Ready,
                True,
                Reason::Succeeded,
                "successful scan: found 2 tags with checksum 7",
            )]),
            observed_generation: Some(1),
            canonical_image_name: Some("example.com/foo/bar".to_owned()),
            last_scan_result: Some(found("7")),
            observed_exclusion_list: vec![r"^.*\.sig$".to_owned()],
            last_handled_reconcile_at: None,
        }
    }

    fn report_after(previous: &ImageRepositoryStatus, decision: Decision, conclusion: &Conclusion) -> Report {
        let request =
            Request::of(&repository(&json!({}), &json!({})), ObjectIdentity::Off, TimeBounds::default())
                .unwrap();
        let planned = Planned { request: Some(&request), decision: Some(decision) };
        report(&run(1), planned, previous, conclusion, now())
    }

    /// The rows of `docs/flux-behaviour.md`, Conditions.
    #[test]
    fn each_conclusion_has_its_status_from_each_state() {
        let scan = Decision::Scan(ScanReason::Requested);
        let rest = Decision::NotDue(Duration::from_secs(30));
        let fresh = ImageRepositoryStatus::default();
        let failing = ImageRepositoryStatus {
            conditions: list(&[
                (Reconciling, True, Reason::ProgressingWithRetry, "scanning: first scan"),
                (Ready, False, Reason::ReadOperationFailed, "scan failed: old"),
            ]),
            ..Default::default()
        };
        let good = vec!["Ready=True Succeeded successful scan: found 2 tags with checksum 7"];
        let retry = |work: &str, ready: &str| {
            vec![format!("Reconciling=True ProgressingWithRetry {work}"), format!("Ready=False {ready}")]
        };
        for previous in [&steady(), &fresh, &failing] {
            let report = report_after(previous, scan, &Conclusion::Scanned(found("7"), None));
            assert_eq!(short(&report.status.conditions), good);
            assert_eq!(report.action, Action::RequeueAfter(Duration::from_secs(60)));
            assert_eq!(report.status.observed_generation, Some(1));
            assert_eq!(report.status.canonical_image_name.as_deref(), Some("example.com/foo/bar"));
            assert_eq!(report.status.observed_exclusion_list, [r"^.*\.sig$"]);
            assert_eq!(report.status.last_scan_result, Some(found("7")));

            for (failure, reason, message) in [
                (
                    RunFailure::Login("secrets \"x\" not found".to_owned()),
                    "AuthenticationFailed",
                    "failed to configure authentication options: secrets \"x\" not found",
                ),
                (RunFailure::Scan("refused".to_owned()), "ReadOperationFailed", "scan failed: refused"),
                (
                    RunFailure::Listing(LookupFailureKind::Denied, "refused".to_owned()),
                    "ReadOperationFailed",
                    "scan failed: refused",
                ),
            ] {
                let report = report_after(previous, scan, &Conclusion::Failed(failure));
                let expected = retry("scanning: reconcile requested", &format!("{reason} {message}"));
                assert_eq!(short(&report.status.conditions), expected);
                assert_eq!(report.action, Action::Retry);
                assert_eq!(report.status.observed_generation, previous.observed_generation);
                assert_eq!(report.status.last_scan_result, previous.last_scan_result);
                assert_eq!((report.event.type_, report.event.message.as_str()), (Warning, message));
            }

            let stall = RunFailure::Stall(Reason::ImageURLInvalid, "bad".to_owned());
            let report =
                super::report(&run(1), Planned::default(), previous, &Conclusion::Failed(stall), now());
            let expected = ["Stalled=True ImageURLInvalid bad", "Ready=False ImageURLInvalid bad"];
            assert_eq!(short(&report.status.conditions), expected);
            assert_eq!((report.action, report.status.observed_generation), (Action::AwaitChange, Some(1)));
        }
        let report = report_after(&steady(), rest, &Conclusion::Skipped(Duration::from_secs(30)));
        assert_eq!(report.status, steady());
        assert_eq!(report.action, Action::RequeueAfter(Duration::from_secs(30)));
    }

    #[test]
    fn failures_of_the_registry_are_staleness_and_others_are_not() {
        let listing = |kind| RunFailure::Listing(kind, "refused".to_owned()).staleness("r.io/app");
        for (found, expected) in [
            (listing(LookupFailureKind::Denied), Some(Reason::AuthenticationFailed)),
            (listing(LookupFailureKind::Missing), Some(Reason::TagNotFound)),
            (listing(LookupFailureKind::Unavailable), Some(Reason::RegistryUnavailable)),
            (
                RunFailure::Login("refused".to_owned()).staleness("r.io/app"),
                Some(Reason::AuthenticationFailed),
            ),
            (RunFailure::Scan("refused".to_owned()).staleness("r.io/app"), None),
            (RunFailure::Stall(Reason::ImageURLInvalid, "refused".to_owned()).staleness("r.io/app"), None),
        ] {
            assert_eq!(found.as_ref().map(|staleness| staleness.reason), expected);
            assert!(
                found
                    .is_none_or(|found| found.message == "the tags of r.io/app could not be listed: refused")
            );
        }
    }

    #[test]
    fn the_event_states_the_change_of_the_tags() {
        let (scan, seconds) = (Decision::Scan(ScanReason::Interval), Duration::from_secs(30));
        for (previous, decision, conclusion, type_, message) in [
            (
                steady(),
                scan,
                Conclusion::Scanned(found("7"), None),
                Trace,
                "tags did not change, next scan in 1m0s",
            ),
            (
                steady(),
                scan,
                Conclusion::Scanned(found("8"), None),
                Normal,
                "successful scan: found 2 tags with checksum 8",
            ),
            (
                steady(),
                Decision::NotDue(seconds),
                Conclusion::Skipped(seconds),
                Trace,
                "no change in repository configuration since last scan, next scan in 30s",
            ),
            (
                ImageRepositoryStatus::default(),
                scan,
                Conclusion::Scanned(found("7"), None),
                Normal,
                "successful scan: found 2 tags with checksum 7",
            ),
        ] {
            let event = report_after(&previous, decision, &conclusion).event;
            assert_eq!(
                (event.type_, event.reason.as_str(), event.message.as_str()),
                (type_, "Succeeded", message)
            );
        }
    }

    #[test]
    fn a_scan_of_the_same_tags_changes_its_time_only() {
        let later: Timestamp = "2026-01-01T00:01:05Z".parse().unwrap();
        let again = ScanResult { scan_time: Some(whole_seconds(later)), ..found("7") };
        let report = report_after(
            &steady(),
            Decision::Scan(ScanReason::Interval),
            &Conclusion::Scanned(again.clone(), None),
        );
        assert_eq!(report.status, ImageRepositoryStatus { last_scan_result: Some(again), ..steady() });
    }

    #[test]
    fn without_an_interval_only_events_start_a_scan() {
        let request = Request::of(
            &repository(&json!({"interval": "0s"}), &json!({})),
            ObjectIdentity::Off,
            TimeBounds::default(),
        );
        let request = request.unwrap();
        let decision = Some(Decision::Scan(ScanReason::First));
        let planned = Planned { request: Some(&request), decision };
        let report = report(&run(1), planned, &steady(), &Conclusion::Scanned(found("7"), None), now());
        assert_eq!(report.action, Action::AwaitChange);
    }

    #[test]
    fn only_lost_tags_make_a_repository_not_ready_before_a_scan() {
        let initial =
            |reason| short(&initial_status(&run(1), &steady(), Some(Decision::Scan(reason))).conditions);
        assert_eq!(
            initial(ScanReason::NothingStored),
            [
                "Reconciling=True Progressing scanning: no tags in database",
                "Ready=Unknown Progressing scanning: no tags in database"
            ]
        );
        assert_eq!(
            initial(ScanReason::NewImage)[1],
            "Ready=True Succeeded successful scan: found 2 tags with checksum 7"
        );
    }
}
