//! The events of rollouts, for Kubernetes and for Flux's notification controller.
//!
//! A target has at most one event for each outcome: the event has a key, from which its name is made, so an API server
//! refuses it a second time. An outcome that the previous status has already is no event, so a restart repeats none, and
//! neither does a cluster that responds again: a failure has one event until the deployment is installed again.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tagboat_api::deployment_status::{ComponentStatus, Report, State, Target};

use super::message::message;

/// An event of a rollout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutEvent {
    /// The outcome of the rollout.
    pub outcome: RolloutOutcome,
    /// The message for users.
    pub message: String,
    /// The identity of the target and the outcome, also after a restart.
    pub key: String,
    /// The time since the commit of a rollout that succeeded, if Tagboat pushed it.
    pub duration: Option<Duration>,
}

/// The outcome of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RolloutOutcome {
    /// All objects run the image.
    Succeeded,
    /// A component failed.
    Failed,
}

/// Formats the outcome as the reason of its event.
impl fmt::Display for RolloutOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Succeeded => "RolloutSucceeded",
            Self::Failed => "RolloutFailed",
        })
    }
}

/// Returns the event of a change of a deployment's report.
///
/// An error before the rollout is no event: the policy or the automation has its own. A deployment that is installed
/// when it is observed for the first time is none either, because Tagboat did not observe its rollout.
#[must_use]
pub fn event(previous: Option<&Report>, report: &Report) -> Option<RolloutEvent> {
    let target = report.target.as_ref()?;
    let outcome = match report.state {
        State::Installed => RolloutOutcome::Succeeded,
        State::Failed if report.error.is_none() => RolloutOutcome::Failed,
        _ => return None,
    };
    let is_same = |previous: &Report| {
        let has_failed = || previous.failed_since.is_some() && previous.failed_since == report.failed_since;
        // Where an older CRD drops the field, the state tells.
        let is_same_state =
            previous.state == report.state && previous.error.is_some() == report.error.is_some();
        previous.target == report.target
            && (is_same_state || outcome == RolloutOutcome::Failed && has_failed())
    };
    let is_rolled_out = previous.is_some_and(|previous| has_rolled_out(previous, report));
    if previous.is_some_and(is_same) || outcome == RolloutOutcome::Succeeded && !is_rolled_out {
        return None;
    }
    let commit = report.commit.as_ref();
    let (text, duration) = match outcome {
        RolloutOutcome::Succeeded => {
            let duration = commit.map(|commit| since(commit.time.0, finished(report)));
            (succeeded(target, report, duration), duration)
        }
        RolloutOutcome::Failed => (failed(target, report), None),
    };
    let commit = commit.map(|commit| commit.id.as_str()).unwrap_or_default();
    let key = format!("{outcome} {target} {commit}");
    Some(RolloutEvent { outcome, message: message(&text), key, duration })
}

/// Returns true if a component was deployed since the deployment was installed before.
///
/// The component that becomes installed last may have been deployed earlier, and recover now. So each component counts
/// that was deployed since the previous report, or since the deployment is not ready.
fn has_rolled_out(previous: &Report, report: &Report) -> bool {
    let known: HashMap<&str, &Time> = deployed(previous).collect();
    let not_ready = previous
        .conditions
        .iter()
        .find(|condition| condition.type_ == "Ready" && condition.status == "False");
    deployed(report).any(|(name, time)| {
        known.get(name) != Some(&time)
            || not_ready.is_some_and(|condition| *time > condition.last_transition_time)
    })
}

/// Returns the components that were deployed, with their times.
fn deployed(report: &Report) -> impl Iterator<Item = (&str, &Time)> {
    let components = report.components.iter();
    components.filter_map(|component| Some((component.name.as_str(), component.last_deployed.as_ref()?)))
}

/// Returns the time at which the last component became installed.
fn finished(report: &Report) -> Timestamp {
    report.components.iter().map(|component| component.since.0).max().unwrap_or(report.since.0)
}

/// Returns the time between two times; zero if the clocks disagree.
fn since(start: Timestamp, end: Timestamp) -> Duration {
    Duration::try_from(end.duration_since(start)).unwrap_or_default()
}

fn succeeded(target: &Target, report: &Report, duration: Option<Duration>) -> String {
    let clusters: BTreeSet<Option<&str>> = report.components.iter().map(ComponentStatus::cluster).collect();
    let (objects, clusters) = (count(report.summary.total, "object"), clusters.len());
    let place = match clusters {
        0 | 1 => String::new(),
        more => format!(" in {more} clusters"),
    };
    let commit = report.commit.as_ref().zip(duration).map(|(commit, duration)| {
        let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        format!(", {:#} after commit {}", SignedDuration::from_secs(seconds), commit.short_id())
    });
    format!("{target} is running: {objects}{place}{}", commit.unwrap_or_default())
}

fn failed(target: &Target, report: &Report) -> String {
    let failed = report.components.iter().find_map(|component| Some((component, component.error.as_ref()?)));
    match failed {
        Some((component, error)) => {
            let others = report.summary.failed - 1;
            let more = if others > 0 {
                format!("; {} failed, too", count(others, "other object"))
            } else {
                String::new()
            };
            format!("{target} failed: {}: {}: {}{more}", component.name, error.code, error.message)
        }
        None => format!("{target} failed"),
    }
}

/// Returns a number with its noun.
fn count(number: i64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use tagboat_api::deployment_status::{BlockReason, CommitRef, StatusError};

    use super::super::aggregate::{Component, DeploymentError, DeploymentErrorCode};
    use super::super::report::{Observation, status};
    use super::*;

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    /// Returns the report of components with the image, in states that begin now.
    fn report(tag: &str, states: &[(&str, State)], previous: Option<&Report>, second: i64) -> Report {
        let components: Vec<Observed<'_>> =
            states.iter().map(|&(name, state)| (name, tag, state, second)).collect();
        report_of(tag, &components, previous, second)
    }

    /// A component: its name, its tag, its state and the beginning of that.
    type Observed<'o> = (&'o str, &'o str, State, i64);

    /// Returns the report of components at a second, after a commit at second 100.
    fn report_of(tag: &str, components: &[Observed<'_>], previous: Option<&Report>, second: i64) -> Report {
        report_with(None, tag, components, previous, second)
    }

    /// Returns such a report with an error before the rollout.
    fn report_with(
        error: Option<DeploymentError>,
        tag: &str,
        components: &[Observed<'_>],
        previous: Option<&Report>,
        second: i64,
    ) -> Report {
        let components = components.iter().map(|&(name, tag, state, since)| {
            let error = (state == State::Failed).then(|| StatusError {
                code: "ImagePullBackOff".into(),
                source: name.into(),
                message: "pull access denied".into(),
            });
            let image = Some(format!("ghcr.io/org/app:{tag}"));
            let reason = (state == State::Pending).then_some(BlockReason::NotApplied);
            let has_wanted_image = state != State::Pending;
            let new = ComponentStatus::new(name, state, at(since));
            let status = ComponentStatus { error, image, reason, ..new };
            Component { status, has_wanted_image }
        });
        let previous = previous.map(|report| tagboat_api::deployment_status::DeploymentStatusStatus {
            deployment_id: "id".into(),
            time_stamp: at(0),
            report: report.clone(),
        });
        let observation = Observation {
            deployment_id: "id".into(),
            target: Some(Target { name: "ghcr.io/org/app".into(), tag: tag.into(), digest: None }),
            commit: Some(CommitRef {
                id: "0123456789abcdef".into(),
                branch: "main".into(),
                time: at(100),
                automation: "apps".into(),
            }),
            revision: None,
            error,
            components: components.collect(),
        };
        status(observation, previous.as_ref(), at(second).0).report
    }

    const WEB: &str = "Deployment/apps/web";
    const WORKER: &str = "Deployment/apps/worker";

    #[test]
    fn a_rollout_has_one_event_for_its_outcome() {
        let installing = report("2", &[(WEB, State::Installing)], None, 110);
        assert_eq!(event(None, &installing), None);
        let installed = report("2", &[(WEB, State::Installed)], Some(&installing), 225);
        let found = event(Some(&installing), &installed).unwrap();
        assert_eq!(found.message, "ghcr.io/org/app:2 is running: 1 object, 2m 5s after commit 0123456");
        assert_eq!(
            (found.outcome.to_string(), found.duration),
            ("RolloutSucceeded".into(), Some(Duration::from_secs(125)))
        );
        // The same state again, and counts that change.
        assert_eq!(event(Some(&installed), &installed), None);
        let failed = report("2", &[(WEB, State::Failed)], Some(&installed), 300);
        let failure = event(Some(&installed), &failed).unwrap();
        assert_eq!(
            failure.message,
            "ghcr.io/org/app:2 failed: Deployment/apps/web: ImagePullBackOff: pull access denied"
        );
        assert_eq!((failure.outcome.to_string(), failure.duration), ("RolloutFailed".into(), None));
        assert_ne!(failure.key, found.key);
        // It recovers without another rollout.
        let again = report("2", &[(WEB, State::Installed)], Some(&failed), 400);
        assert_eq!(event(Some(&failed), &again), None);
        let pending = report("3", &[(WEB, State::Pending)], Some(&again), 450);
        let next = report("3", &[(WEB, State::Installed)], Some(&pending), 500);
        assert_ne!(event(Some(&pending), &next).unwrap().key, found.key);
    }

    /// Returns the seconds with an event `RolloutSucceeded`.
    ///
    /// An observation has the tag of the target, its second and the components.
    fn successes(observations: &[(&str, i64, &[Observed<'_>])]) -> Vec<i64> {
        let mut previous: Option<Report> = None;
        let mut seconds = Vec::new();
        for (tag, second, components) in observations {
            let next = report_of(tag, components, previous.as_ref(), *second);
            let found = event(previous.as_ref(), &next);
            if found.is_some_and(|event| event.outcome == RolloutOutcome::Succeeded) {
                seconds.push(*second);
            }
            previous = Some(next);
        }
        seconds
    }

    const EDGE: &str = "edge/Deployment/apps/web";

    /// The cluster `edge` does not answer until second 130.
    #[test]
    fn a_rollout_that_ended_before_that_of_another_component_and_is_observed_later_has_an_event() {
        use State::{Installed, Installing, Pending};
        let found = successes(&[
            ("1", 10, &[(WEB, "1", Installing, 10), (EDGE, "1", Installing, 10)]),
            ("1", 20, &[(WEB, "1", Installed, 20), (EDGE, "1", Installed, 20)]),
            ("2", 100, &[(WEB, "1", Pending, 100), (EDGE, "1", Pending, 100)]),
            ("2", 105, &[(WEB, "2", Installed, 105), (EDGE, "1", Pending, 105)]),
            ("2", 130, &[(WEB, "2", Installed, 105), (EDGE, "2", Installed, 103)]),
            ("2", 140, &[(WEB, "2", Installed, 105), (EDGE, "2", Installed, 103)]),
        ]);
        assert_eq!(found, [20, 130]);
    }

    /// The component that becomes installed last was deployed before.
    #[test]
    fn a_rollout_that_ends_with_the_recovery_of_a_component_has_an_event() {
        use State::{Failed, Installed, Installing, Pending};
        let found = successes(&[
            ("1", 10, &[(WEB, "1", Installing, 10), (WORKER, "1", Installing, 10)]),
            ("1", 20, &[(WEB, "1", Installed, 20), (WORKER, "1", Installed, 20)]),
            ("2", 100, &[(WEB, "1", Pending, 100), (WORKER, "1", Pending, 100)]),
            ("2", 103, &[(WEB, "2", Installing, 103), (WORKER, "2", Installed, 103)]),
            ("2", 104, &[(WEB, "2", Installing, 103), (WORKER, "2", Failed, 104)]),
            ("2", 105, &[(WEB, "2", Installed, 105), (WORKER, "2", Failed, 104)]),
            ("2", 110, &[(WEB, "2", Installed, 105), (WORKER, "2", Installed, 110)]),
            ("2", 120, &[(WEB, "2", Failed, 120), (WORKER, "2", Installed, 110)]),
            ("2", 130, &[(WEB, "2", Installed, 130), (WORKER, "2", Installed, 110)]),
        ]);
        assert_eq!(found, [20, 110]);
    }

    /// The target was chosen for a moment, or the object was restarted.
    #[test]
    fn a_deployment_that_becomes_installed_without_a_rollout_has_no_event() {
        use State::{Installed, Installing, Pending};
        let found = successes(&[
            ("1", 10, &[(WEB, "1", Installing, 10)]),
            ("1", 20, &[(WEB, "1", Installed, 20)]),
            ("2", 30, &[(WEB, "1", Pending, 30)]),
            ("1", 40, &[(WEB, "1", Installed, 40)]),
            ("1", 50, &[(WEB, "1", Installing, 50)]),
            ("1", 60, &[(WEB, "1", Installed, 60)]),
            ("1", 70, &[(WEB, "1", Pending, 70)]),
            ("1", 80, &[(WEB, "1", Installed, 60), (WORKER, "1", Installed, 5)]),
        ]);
        assert_eq!(found, [20]);
    }

    /// Returns the seconds with an event `RolloutFailed`.
    ///
    /// An observation has its second, whether the cluster `edge` does not answer, and the components.
    fn failures(observations: &[(i64, bool, &[Observed<'_>])]) -> Vec<i64> {
        let mut previous: Option<Report> = None;
        let mut seconds = Vec::new();
        for &(second, is_lost, components) in observations {
            let error = is_lost.then(|| DeploymentError {
                code: DeploymentErrorCode::HostUnavailable,
                source: "edge".into(),
                message: "cluster edge does not respond".into(),
            });
            let next = report_with(error, "1", components, previous.as_ref(), second);
            let found = event(previous.as_ref(), &next);
            if found.is_some_and(|event| event.outcome == RolloutOutcome::Failed) {
                seconds.push(second);
            }
            previous = Some(next);
        }
        seconds
    }

    /// After the outage, the pods are still to be listed.
    #[test]
    fn a_failure_has_one_event_though_its_cluster_does_not_answer_meanwhile() {
        use State::{Failed, Installed, Installing, Pending};
        let found = failures(&[
            (10, false, &[(EDGE, "1", Installing, 10)]),
            (20, false, &[(EDGE, "1", Failed, 20)]),
            (30, true, &[(EDGE, "1", Pending, 30)]),
            (90, false, &[(EDGE, "1", Installing, 90)]),
            (91, false, &[(EDGE, "1", Failed, 91)]),
            (95, false, &[(EDGE, "1", Installed, 95)]),
            (99, false, &[(EDGE, "1", Failed, 99)]),
        ]);
        assert_eq!(found, [20, 99]);
    }

    #[test]
    fn a_failure_has_its_event_while_another_cluster_does_not_answer() {
        use State::{Failed, Installed, Installing, Pending};
        let found = failures(&[
            (10, false, &[(WEB, "1", Installing, 10), (EDGE, "1", Installing, 10)]),
            (20, true, &[(WEB, "1", Installing, 10), (EDGE, "1", Pending, 20)]),
            (30, true, &[(WEB, "1", Failed, 30), (EDGE, "1", Pending, 20)]),
            (90, false, &[(WEB, "1", Failed, 30), (EDGE, "1", Installed, 90)]),
        ]);
        assert_eq!(found, [30]);
    }

    #[test]
    fn a_deployment_that_ran_before_has_no_event_unless_it_failed() {
        let installed = report("2", &[(WEB, State::Installed)], None, 200);
        assert_eq!(event(None, &installed), None);
        let failed = report("2", &[(WEB, State::Failed)], None, 200);
        assert_eq!(event(None, &failed).unwrap().outcome, RolloutOutcome::Failed);
    }

    #[test]
    fn objects_and_clusters_are_counted() {
        let states = [
            (WEB, State::Installed),
            ("west/Deployment/apps/web", State::Installed),
            ("east/Kustomization/apps", State::Installed),
        ];
        let before = report("2", &[(WEB, State::Installing)], None, 110);
        let found = event(Some(&before), &report("2", &states, Some(&before), 130)).unwrap();
        assert_eq!(
            found.message,
            "ghcr.io/org/app:2 is running: 3 objects in 3 clusters, 30s after commit 0123456"
        );
        let states = [(WEB, State::Failed), (WORKER, State::Failed), ("Job/apps/x", State::Failed)];
        let found = event(Some(&before), &report("2", &states, Some(&before), 130)).unwrap();
        assert!(found.message.ends_with("pull access denied; 2 other objects failed, too"), "{found:?}");
    }

    #[test]
    fn an_error_before_the_rollout_is_no_event_of_it() {
        let error = DeploymentError {
            code: DeploymentErrorCode::GitPushRejected,
            source: "ImageUpdateAutomation/apps/apps".into(),
            message: "denied".into(),
        };
        let pending =
            Component { status: ComponentStatus::new(WEB, State::Pending, at(1)), has_wanted_image: false };
        let observation = Observation {
            deployment_id: "id".into(),
            target: Some(Target { name: "a".into(), tag: "1".into(), digest: None }),
            commit: None,
            revision: None,
            error: Some(error),
            components: vec![pending],
        };
        let report = status(observation, None, at(1).0).report;
        assert_eq!((report.state, event(None, &report)), (State::Failed, None));
    }
}
