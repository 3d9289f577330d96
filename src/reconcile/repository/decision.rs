//! Decides whether a repository is scanned now (`docs/flux-behaviour.md`, Images and scans of a repository).

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use tagboat_api::Reason;
use tagboat_api::repository::ImageRepositoryStatus;

use super::request::Request;
use crate::reconcile::conditions::{self, ConditionStatus, ConditionType};
use crate::reconcile::run::{PreviousResult, ReconcileRun};

/// A scan that would be due within this time is made now.
const DUE_TOLERANCE: Duration = Duration::from_secs(1);

/// The decision on a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// A scan is due.
    Scan(ScanReason),
    /// No scan is due before this time has passed.
    NotDue(Duration),
}

/// The reason for a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanReason {
    /// There was no scan before.
    First,
    /// A scan was requested.
    Requested,
    /// The image has changed.
    NewImage,
    /// The exclusions have changed.
    NewExclusions,
    /// The stored tags are gone.
    NothingStored,
    /// The last scan failed.
    ///
    /// Flux forgets the failure of a requested scan until the interval is over.
    Failed,
    /// The interval is over.
    Interval,
}

/// Prints Flux's words, if it has any.
impl fmt::Display for ScanReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::First => "first scan",
            Self::Requested => "reconcile requested",
            Self::NewImage => "new image name",
            Self::NewExclusions => "updated exclusion list",
            Self::NothingStored => "no tags in database",
            Self::Failed => "last scan failed",
            Self::Interval => "triggered by interval",
        })
    }
}

impl ScanReason {
    /// Returns the validity of the status.
    ///
    /// A status is known to be false if no tags are stored.
    pub fn previous_result(self) -> PreviousResult {
        if self == Self::NothingStored { PreviousResult::Invalid } else { PreviousResult::Valid }
    }

    /// Returns whether the start of the scan is written to the status.
    ///
    /// The start of a scan by interval is not.
    pub fn is_reported_at_start(self) -> bool {
        self != Self::Interval
    }
}

impl Decision {
    /// Decides on a scan.
    ///
    /// `is_stored` is true if a list of the image's tags is stored, even an empty one.
    pub fn of(
        request: &Request,
        run: &ReconcileRun,
        previous: &ImageRepositoryStatus,
        is_stored: bool,
    ) -> Self {
        let Some(last) = &previous.last_scan_result else { return Self::Scan(ScanReason::First) };
        if run.is_requested(previous) {
            return Self::Scan(ScanReason::Requested);
        }
        if previous.canonical_image_name.as_deref() != Some(request.address.canonical().as_str()) {
            return Self::Scan(ScanReason::NewImage);
        }
        if !are_the_same(&request.exclusions, &previous.observed_exclusion_list) {
            return Self::Scan(ScanReason::NewExclusions);
        }
        if !is_stored {
            return Self::Scan(ScanReason::NothingStored);
        }
        let rest = last.scan_time.as_ref().map(|time| rest(request.interval, time.0, run.started));
        match rest.flatten() {
            Some(_) if has_failed(previous) => Self::Scan(ScanReason::Failed),
            Some(rest) => Self::NotDue(rest),
            None => Self::Scan(ScanReason::Interval),
        }
    }
}

/// Returns the rest of the interval, unless it is almost over.
fn rest(interval: Duration, last: Timestamp, now: Timestamp) -> Option<Duration> {
    // A clock that was once fast must not delay the next scan until that time.
    let ahead = Duration::try_from(last.duration_since(now)).unwrap_or_default();
    if ahead > interval {
        return None;
    }
    let passed = Duration::try_from(now.duration_since(last)).unwrap_or_default();
    interval.checked_sub(passed).filter(|rest| *rest >= DUE_TOLERANCE)
}

/// Returns whether the last run failed at the registry.
fn has_failed(previous: &ImageRepositoryStatus) -> bool {
    let ready = conditions::find(&previous.conditions, ConditionType::Ready);
    ready.is_some_and(|ready| {
        ready.status == ConditionStatus::False.to_string()
            && [Reason::ReadOperationFailed, Reason::AuthenticationFailed]
                .iter()
                .any(|reason| reason.to_string() == ready.reason)
    })
}

/// Returns whether two lists are equal by Flux's comparison.
///
/// They are if they have the same length and the second contains every item of the first.
fn are_the_same(one: &[String], other: &[String]) -> bool {
    one.len() == other.len() && one.iter().all(|item| other.contains(item))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::request::tests::repository;
    use super::super::request::{ObjectIdentity, Request};
    use super::*;
    use crate::reconcile::run::tests::{list, run};
    use crate::reconcile::times::TimeBounds;

    /// Tests the rows of `docs/flux-behaviour.md`, Images and scans of a repository.
    ///
    /// The run begins 0.9 s into the year.
    #[test]
    fn a_scan_is_due_by_the_table_of_decisions() {
        let scanned = |time: &str| json!({"revision": "1", "tagCount": 1, "scanTime": time});
        let (now, half, ten, two) =
            ("2026-01-01T00:00:00Z", "2025-12-31T23:59:30Z", "2025-12-31T23:59:50Z", "2025-12-31T23:58:00Z");
        let status = |more: serde_json::Value| {
            let mut whole = json!({
                "canonicalImageName": "example.com/foo/bar",
                "observedExclusionList": ["aaa"],
                "lastScanResult": scanned(half),
            });
            whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value::<ImageRepositoryStatus>(whole).unwrap()
        };
        let annotated = json!({"annotations": {"reconcile.fluxcd.io/requestedAt": "now"}});
        let plain = json!({});
        let aaa = json!({"exclusionList": ["aaa"]});
        let failed = |reason| {
            let conditions = list(&[(ConditionType::Ready, ConditionStatus::False, reason, "")]);
            ImageRepositoryStatus { conditions, ..status(json!({})) }
        };
        let rest = |milliseconds| Decision::NotDue(Duration::from_millis(milliseconds));
        for (name, spec, metadata, previous, is_stored, expected) in [
            (
                "new object",
                &aaa,
                &plain,
                ImageRepositoryStatus::default(),
                true,
                Decision::Scan(ScanReason::First),
            ),
            (
                "first annotation",
                &aaa,
                &annotated,
                status(json!({})),
                true,
                Decision::Scan(ScanReason::Requested),
            ),
            (
                "second annotation",
                &aaa,
                &annotated,
                status(json!({"lastHandledReconcileAt": "foo"})),
                true,
                Decision::Scan(ScanReason::Requested),
            ),
            (
                "same annotation",
                &aaa,
                &annotated,
                status(json!({"lastHandledReconcileAt": "now"})),
                true,
                rest(29_100),
            ),
            (
                "annotation taken away",
                &aaa,
                &plain,
                status(json!({"lastHandledReconcileAt": "now"})),
                true,
                rest(29_100),
            ),
            (
                "change image",
                &json!({"exclusionList": ["aaa"], "image": "example.com/other/image"}),
                &plain,
                status(json!({})),
                true,
                Decision::Scan(ScanReason::NewImage),
            ),
            (
                "exclusion change",
                &json!({"exclusionList": ["bar"]}),
                &plain,
                status(json!({"observedExclusionList": ["baz"]})),
                true,
                Decision::Scan(ScanReason::NewExclusions),
            ),
            (
                "no tags",
                &aaa,
                &plain,
                status(json!({"lastScanResult": scanned(ten)})),
                false,
                Decision::Scan(ScanReason::NothingStored),
            ),
            (
                "after interval",
                &aaa,
                &plain,
                status(json!({"lastScanResult": scanned(two)})),
                true,
                Decision::Scan(ScanReason::Interval),
            ),
            (
                "scanned in the future",
                &aaa,
                &plain,
                status(json!({"lastScanResult": scanned("2026-02-01T00:00:00Z")})),
                true,
                Decision::Scan(ScanReason::Interval),
            ),
            (
                "just scanned",
                &aaa,
                &plain,
                status(json!({"lastScanResult": scanned(now)})),
                true,
                rest(59_100),
            ),
            (
                "a failed scan is made again",
                &aaa,
                &plain,
                failed(Reason::ReadOperationFailed),
                true,
                Decision::Scan(ScanReason::Failed),
            ),
            (
                "and so is a login",
                &aaa,
                &plain,
                failed(Reason::AuthenticationFailed),
                true,
                Decision::Scan(ScanReason::Failed),
            ),
            (
                "another failure is not the registry's",
                &aaa,
                &plain,
                failed(Reason::InvalidSettings),
                true,
                rest(29_100),
            ),
        ] {
            let repository = repository(spec, metadata);
            let request = Request::of(&repository, ObjectIdentity::Off, TimeBounds::default()).unwrap();
            let run = ReconcileRun {
                requested_at: ReconcileRun::of(&repository, run(1).started).requested_at,
                ..run(1)
            };
            assert_eq!(Decision::of(&request, &run, &previous, is_stored), expected, "{name}");
        }
    }

    #[test]
    fn a_scan_due_within_a_second_is_due_now() {
        let (start, minute): (Timestamp, _) =
            ("2026-01-01T00:00:00Z".parse().unwrap(), Duration::from_secs(60));
        for (milliseconds, expected) in [
            (0, Some(60_000)),
            (59_000, Some(1_000)),
            (59_001, None),
            (60_000, None),
            (3_600_000, None),
            (-5_000, Some(60_000)),
            (-60_001, None),
        ] {
            let now = start + jiff::SignedDuration::from_millis(milliseconds);
            assert_eq!(rest(minute, start, now), expected.map(Duration::from_millis), "{milliseconds}");
        }
        assert_eq!(rest(Duration::ZERO, start, start), None);
    }

    #[test]
    fn lists_are_compared_as_flux_does() {
        let list = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        for (one, other, expected) in [
            ("", "", true),
            ("foo1 bar1", "bar1 foo1", true),
            ("foo1 bar1", "foo2 bar1", false),
            ("a", "a b", false),
        ] {
            assert_eq!(are_the_same(&list(one), &list(other)), expected, "{one} {other}");
        }
    }
}
