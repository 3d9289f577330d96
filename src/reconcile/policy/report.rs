//! Makes the report of a reconcile: the status, the events, and the requeue (`docs/flux-behaviour.md`, Policies).

use std::time::Duration;

use jiff::Timestamp;
use tagboat_api::policy::ImagePolicyStatus;
use tagboat_api::{GoDuration, ImageRef, Reason};

use super::choice::Held;
use super::digest::Resolution;
use crate::objects::{Event, EventType};
use crate::reconcile::action::Action;
use crate::reconcile::conditions::{self, ConditionStatus, ConditionType, ConditionsBuilder};
use crate::reconcile::lookup::Staleness;
use crate::reconcile::run::{self, Outcome, ReconcileRun};

/// The requeue while there are more images than can be looked up at one time.
pub const LOOKUP_REQUEUE: Duration = Duration::from_secs(300);

/// The conclusion of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// An image is selected.
    Resolved(Resolved),
    /// An error stopped the run.
    Failed(RunFailure),
}

/// A selected image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The image and its staleness.
    pub resolution: Resolution,
    /// The downgrade that is held, if there is one.
    pub held: Option<Held>,
    /// The time until another tag is old enough to be eligible.
    pub matures_in: Option<Duration>,
}

/// The failure of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFailure {
    /// The content of Ready.
    pub outcome: Outcome,
    /// The content of Stale, if the run came that far.
    pub staleness: Option<Staleness>,
    /// The requeue, in place of backoff.
    pub retry_after: Option<Duration>,
    /// True if nothing is stored of the repository, so that it must be scanned.
    ///
    /// An empty list counts as stored.
    pub needs_scan: bool,
}

/// The report of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The new status.
    pub status: ImagePolicyStatus,
    /// The events: first the one that Flux would announce, then ours.
    pub events: Vec<Event>,
    /// The requeue.
    pub action: Action,
}

impl RunFailure {
    /// Makes a failure with nothing but its outcome.
    pub fn at(outcome: Outcome) -> Self {
        Self { outcome, staleness: None, retry_after: None, needs_scan: false }
    }

    /// Makes the failure for a repository that cannot be used.
    pub fn at_repository(error: &(impl crate::error::ReconcileError + 'static)) -> Self {
        let message = format!("failed to get the referred ImageRepository: {}", crate::error::chain(error));
        Self::at(Outcome::Failure(error.reason(), message))
    }

    /// Creates the failure of a policy without an image while ages are looked up.
    ///
    /// There are more images than can be looked up at one time.
    pub fn lookups_pending() -> Self {
        let message =
            "the ages of the best images are still being looked up, because many of them are too new";
        let outcome = Outcome::Failure(Reason::DependencyNotReady, message.to_owned());
        Self { retry_after: Some(LOOKUP_REQUEUE), ..Self::at(outcome) }
    }

    /// Creates the failure for a repository without stored tags, with a requeue.
    ///
    /// `staleness` is the reason for which its registry cannot be asked, if that is known and concerns the
    /// policy. `is_stored` is true if an empty list is stored.
    pub fn without_tags(requeue: Duration, staleness: Option<Staleness>, is_stored: bool) -> Self {
        let seconds = Duration::from_secs(requeue.as_secs() + u64::from(requeue.subsec_millis() >= 500));
        let message = format!("retrying in {} error: no tags in database", GoDuration::from(seconds));
        let outcome = Outcome::Failure(Reason::DependencyNotReady, message);
        Self { retry_after: Some(requeue), staleness, needs_scan: !is_stored, ..Self::at(outcome) }
    }
}

/// Makes the report of a run that began with the status `previous` and ended now.
pub fn report(
    run: &ReconcileRun,
    previous: &ImagePolicyStatus,
    conclusion: &Conclusion,
    now: Timestamp,
) -> Report {
    let initial = run.begin(previous).status;
    let mut status = previous.clone();
    let (outcome, action) = match conclusion {
        Conclusion::Resolved(resolved) => {
            choose(&mut status, &resolved.resolution.latest);
            (Outcome::Success(ready_message(&status)), resolved.action(now))
        }
        Conclusion::Failed(failure) => (failure.outcome.clone(), failure.action()),
    };
    let mut builder = run.conclude(&initial.conditions, &outcome);
    let is_news = match conclusion {
        Conclusion::Resolved(resolved) => {
            let held = resolved.held.as_ref().map(|held| (held.reason, held.message.as_str()));
            let stale = resolved.resolution.staleness.as_ref();
            let is_held = put(&mut builder, ConditionType::RegressionHeld, held);
            let is_stale = put(&mut builder, ConditionType::Stale, stale.map(Staleness::parts));
            [is_held, is_stale]
        }
        Conclusion::Failed(RunFailure { staleness: Some(staleness), .. }) => {
            [false, put(&mut builder, ConditionType::Stale, Some(staleness.parts()))]
        }
        Conclusion::Failed(_) => [false, false],
    };
    let conditions = builder.build(&previous.conditions, now);
    let status = run.finish(status, conditions);
    let trace = match &outcome {
        Outcome::Success(message) => message.as_str(),
        Outcome::Stall(..) | Outcome::Failure(..) => "",
    };
    let mut events = vec![run::event(&previous.conditions, &status.conditions, trace)];
    for (type_, _) in [ConditionType::RegressionHeld, ConditionType::Stale]
        .into_iter()
        .zip(is_news)
        .filter(|(_, is_news)| *is_news)
    {
        let condition = conditions::find(&status.conditions, type_).expect("it has just been set");
        let (reason, message) = (condition.reason.clone(), condition.message.clone());
        events.push(Event { type_: EventType::Warning, reason, message });
    }
    Report { status, events, action }
}

impl Resolved {
    fn action(&self, now: Timestamp) -> Action {
        if self.resolution.is_retried {
            return Action::Retry;
        }
        let until = self.held.as_ref().and_then(|held| held.until);
        // A downgrade that waits for time alone applies exactly when the time has come.
        let wait = until.map(|until| Duration::try_from(until.duration_since(now)).unwrap_or_default());
        let soonest = [wait, self.matures_in].into_iter().flatten().min();
        soonest
            .map_or(Action::AwaitChange, |soonest| Action::RequeueAfter(soonest.max(Duration::from_secs(1))))
    }
}

impl RunFailure {
    fn action(&self) -> Action {
        match (&self.outcome, self.retry_after) {
            (Outcome::Stall(..), _) => Action::AwaitChange,
            (_, Some(wait)) => Action::RequeueAfter(wait),
            (_, None) => Action::Retry,
        }
    }
}

impl Staleness {
    fn parts(&self) -> (Reason, &str) {
        (self.reason, &self.message)
    }
}

/// Sets or removes a condition, and returns whether its reason has changed.
fn put(builder: &mut ConditionsBuilder, type_: ConditionType, value: Option<(Reason, &str)>) -> bool {
    let before = conditions::find(builder.conditions(), type_).map(|condition| condition.reason.clone());
    let Some((reason, message)) = value else {
        builder.remove(type_);
        return false;
    };
    builder.set(type_, ConditionStatus::True, reason, message);
    before != Some(reason.to_string())
}

/// Sets the selected image, and keeps the one before it.
fn choose(status: &mut ImagePolicyStatus, latest: &ImageRef) {
    let is_same = status.latest_ref.as_ref().is_some_and(|before| {
        (&before.name, &before.tag, before.digest()) == (&latest.name, &latest.tag, latest.digest())
    });
    if !is_same {
        status.observed_previous_ref = status.latest_ref.replace(latest.clone());
    }
}

/// Returns the message of Ready for a selected image (`docs/flux-behaviour.md`, Policies).
fn ready_message(status: &ImagePolicyStatus) -> String {
    let Some(latest) = &status.latest_ref else { return String::new() };
    let mut message = format!("Latest image tag for {} resolved to {}", latest.name, latest.tag);
    if let Some(digest) = latest.digest() {
        message.push_str(" with digest ");
        message.push_str(digest);
    }
    if let Some(previous) = status.observed_previous_ref.as_ref().filter(|previous| *previous != latest) {
        message.push_str(&format!(" (previously {previous})"));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{DowngradeProtection, HeldDowngrade};
    use crate::reconcile::conditions::ConditionStatus::{False, True};
    use crate::reconcile::conditions::ConditionType::{Ready, Reconciling, Stalled};
    use crate::reconcile::run::tests::{list, run, short};

    fn now() -> Timestamp {
        "2026-01-01T00:00:05Z".parse().unwrap()
    }

    fn image(text: &str) -> ImageRef {
        text.parse().unwrap()
    }

    fn resolved(latest: &str) -> Resolved {
        let resolution = Resolution { latest: image(latest), staleness: None, is_retried: false };
        Resolved { resolution, held: None, matures_in: None }
    }

    fn after(previous: &ImagePolicyStatus, conclusion: &Conclusion) -> Report {
        report(&run(1), previous, conclusion, now())
    }

    fn status(latest: Option<&str>, previous: Option<&str>) -> ImagePolicyStatus {
        ImagePolicyStatus {
            latest_ref: latest.map(image),
            observed_previous_ref: previous.map(image),
            ..Default::default()
        }
    }

    /// The messages of `docs/flux-behaviour.md`, Policies.
    #[test]
    fn the_ready_message_names_the_selected_and_the_previous_image() {
        let digest = "sha256:1234567890abcdef";
        let before = "sha256:abcdef1234567890";
        for (latest, previous, message) in [
            ("foo/bar:1.0.0".to_owned(), None, "Latest image tag for foo/bar resolved to 1.0.0".to_owned()),
            (
                "foo/bar:1.1.0".to_owned(),
                Some("foo/bar:1.0.0".to_owned()),
                "Latest image tag for foo/bar resolved to 1.1.0 (previously foo/bar:1.0.0)".to_owned(),
            ),
            (
                "foo/bar:1.0.0".to_owned(),
                Some("foo/bar:1.0.0".to_owned()),
                "Latest image tag for foo/bar resolved to 1.0.0".to_owned(),
            ),
            (
                format!("foo/bar:1.0.0@{digest}"),
                Some("baz/qux:1.0.0".to_owned()),
                format!(
                    "Latest image tag for foo/bar resolved to 1.0.0 with digest {digest} (previously baz/qux:1.0.0)"
                ),
            ),
            (
                format!("foo/bar:1.0.0@{digest}"),
                Some(format!("foo/bar:1.0.0@{before}")),
                format!(
                    "Latest image tag for foo/bar resolved to 1.0.0 with digest {digest} (previously foo/bar:1.0.0@{before})"
                ),
            ),
        ] {
            assert_eq!(ready_message(&status(Some(&latest), previous.as_deref())), message);
        }
    }

    /// Two reconciles in a row (`docs/flux-behaviour.md`, Policies).
    #[test]
    fn the_previous_image_is_stored_if_the_image_differs() {
        for (first, second, previous) in [
            ("i:v1.1.1", "i:v1.1.1", None),
            ("i:v1.1.1@d1", "i:v1.1.1@d2", Some("i:v1.1.1@d1")),
            ("i:v1.1.1@d1", "i:v2.0.0@d2", Some("i:v1.1.1@d1")),
            ("i:v1.1.1@d1", "i:v1.1.1@d1", None),
            ("i:v1.1.1", "i:v1.1.1@d2", Some("i:v1.1.1")),
            ("i:v1.1.1@d1", "i:v1.1.1", Some("i:v1.1.1@d1")),
        ] {
            let once = after(&ImagePolicyStatus::default(), &Conclusion::Resolved(resolved(first))).status;
            assert_eq!(
                (once.latest_ref.clone(), once.observed_previous_ref.clone()),
                (Some(image(first)), None)
            );
            let twice = after(&once, &Conclusion::Resolved(resolved(second))).status;
            assert_eq!(twice.latest_ref, Some(image(second)));
            assert_eq!(twice.observed_previous_ref, previous.map(image), "{first} {second}");
            let thrice = after(&twice, &Conclusion::Resolved(resolved(second)));
            assert_eq!(thrice.status, twice);
            assert_eq!(thrice.events[0].type_, EventType::Trace);
            assert_eq!(thrice.events[0].message, ready_message(&twice));
        }
        let empty = ImagePolicyStatus {
            latest_ref: Some(ImageRef { digest: Some(String::new()), ..image("i:1") }),
            ..Default::default()
        };
        assert_eq!(after(&empty, &Conclusion::Resolved(resolved("i:1"))).status.observed_previous_ref, None);
    }

    /// Each conclusion from each state (`docs/flux-behaviour.md`, Policies).
    #[test]
    fn each_conclusion_has_its_conditions() {
        let work = "Reconciling=True ProgressingWithRetry reconciliation in progress".to_owned();
        let good = "Ready=True Succeeded Latest image tag for i resolved to 1".to_owned();
        let failure =
            |reason: Reason, message: &str| RunFailure::at(Outcome::Failure(reason, message.to_owned()));
        let stall = |reason: Reason| RunFailure::at(Outcome::Stall(reason, "bad".to_owned()));
        let no_tags = RunFailure::without_tags(Duration::from_secs(30), None, false);
        for conditions in [
            vec![],
            list(&[(Ready, True, Reason::Succeeded, "old")]),
            list(&[
                (Reconciling, True, Reason::ProgressingWithRetry, "old"),
                (Ready, False, Reason::Failure, "old"),
            ]),
            list(&[
                (Stalled, True, Reason::InvalidPolicy, "old"),
                (Ready, False, Reason::InvalidPolicy, "old"),
            ]),
        ] {
            let before =
                ImagePolicyStatus { conditions, observed_generation: Some(1), ..status(Some("i:1"), None) };
            for (conclusion, expected, action) in [
                (Conclusion::Resolved(resolved("i:1")), vec![good.clone()], Action::AwaitChange),
                (
                    Conclusion::Resolved(Resolved {
                        matures_in: Some(Duration::from_secs(600)),
                        ..resolved("i:1")
                    }),
                    vec![good.clone()],
                    Action::RequeueAfter(Duration::from_secs(600)),
                ),
                (
                    Conclusion::Failed(stall(Reason::IntervalNotConfigured)),
                    vec![
                        "Stalled=True IntervalNotConfigured bad".to_owned(),
                        "Ready=False IntervalNotConfigured bad".to_owned(),
                    ],
                    Action::AwaitChange,
                ),
                (
                    Conclusion::Failed(failure(Reason::AccessDenied, "no")),
                    vec![work.clone(), "Ready=False AccessDenied no".to_owned()],
                    Action::Retry,
                ),
                (
                    Conclusion::Failed(no_tags.clone()),
                    vec![
                        work.clone(),
                        "Ready=False DependencyNotReady retrying in 30s error: no tags in database"
                            .to_owned(),
                    ],
                    Action::RequeueAfter(Duration::from_secs(30)),
                ),
            ] {
                let report = after(&before, &conclusion);
                assert_eq!(short(&report.status.conditions), expected);
                assert_eq!(report.action, action);
                assert_eq!(report.status.latest_ref, Some(image("i:1")), "no failure takes the image away");
                let is_good = expected.len() == 1;
                assert_eq!(report.events.len(), 1);
                assert_eq!(report.events[0].type_ == EventType::Warning, !is_good);
            }
        }
        let outcome = RunFailure::without_tags(Duration::from_millis(1_500), None, false).outcome;
        let expected = "retrying in 2s error: no tags in database".to_owned();
        assert_eq!(outcome, Outcome::Failure(Reason::DependencyNotReady, expected));
    }

    #[test]
    fn a_held_downgrade_is_a_condition_beside_ready_and_announced_once() {
        let pending = HeldDowngrade { tag: "0.9".to_owned(), since: now(), scans: 3, last_scan: now() };
        let message = DowngradeProtection::default().message("1", &pending);
        let until = now() + Duration::from_secs(900);
        let held = Held {
            pending: Some(pending),
            message: message.clone(),
            until: Some(until),
            reason: Reason::LowerWinner,
        };
        let conclusion = Conclusion::Resolved(Resolved { held: Some(held), ..resolved("i:1") });
        let before = after(&ImagePolicyStatus::default(), &Conclusion::Resolved(resolved("i:1"))).status;
        let report = after(&before, &conclusion);
        assert_eq!(
            short(&report.status.conditions),
            [
                "Ready=True Succeeded Latest image tag for i resolved to 1".to_owned(),
                format!("RegressionHeld=True LowerWinner {message}")
            ]
        );
        assert_eq!(report.action, Action::RequeueAfter(Duration::from_secs(900)));
        let kinds: Vec<_> = report.events.iter().map(|event| (event.type_, event.reason.as_str())).collect();
        assert_eq!(kinds, [(EventType::Trace, "Succeeded"), (EventType::Warning, "LowerWinner")]);
        assert_eq!(after(&report.status, &conclusion).events.len(), 1);
        // A failure elsewhere changes nothing about it, and its end takes it away.
        let failed = Conclusion::Failed(RunFailure::at(Outcome::Failure(Reason::Failure, "x".to_owned())));
        assert_eq!(after(&report.status, &failed).status.conditions.len(), 3);
        let ended = after(&report.status, &Conclusion::Resolved(resolved("i:0.9")));
        assert_eq!(ended.status.conditions.len(), 1);
    }

    #[test]
    fn the_stale_condition_is_set_beside_ready_and_announced_if_its_reason_changes() {
        let stale = |reason, is_retried| {
            let staleness = Some(Staleness { reason, message: "no answer".to_owned() });
            let resolution = Resolution { staleness, is_retried, ..resolved("i:1").resolution };
            Conclusion::Resolved(Resolved { resolution, ..resolved("i:1") })
        };
        let first = after(&ImagePolicyStatus::default(), &stale(Reason::RegistryUnavailable, false));
        assert_eq!(short(&first.status.conditions)[1], "Stale=True RegistryUnavailable no answer");
        assert_eq!((first.events.len(), first.action), (2, Action::AwaitChange));
        let second = after(&first.status, &stale(Reason::RegistryUnavailable, true));
        assert_eq!((second.events.len(), second.action), (1, Action::Retry));
        assert_eq!(after(&second.status, &stale(Reason::TagNotFound, true)).events.len(), 2);
        assert_eq!(after(&second.status, &Conclusion::Resolved(resolved("i:1"))).status.conditions.len(), 1);
        let failure = RunFailure {
            staleness: Some(Staleness { reason: Reason::TagNotFound, message: "gone".to_owned() }),
            ..RunFailure::at(Outcome::Failure(Reason::Failed, "x".to_owned()))
        };
        let failed = after(&ImagePolicyStatus::default(), &Conclusion::Failed(failure));
        assert_eq!(short(&failed.status.conditions)[2], "Stale=True TagNotFound gone");
    }

    #[test]
    fn an_unusable_repository_has_the_message_of_flux() {
        let error = super::super::access::AccessError::Missing { name: "r".to_owned() };
        let failure = RunFailure::at_repository(&error);
        let message = "failed to get the referred ImageRepository: referenced ImageRepository does not exist: \
                     ImageRepository.image.toolkit.fluxcd.io \"r\" not found";
        assert_eq!(failure.outcome, Outcome::Failure(Reason::DependencyNotReady, message.to_owned()));
    }
}
