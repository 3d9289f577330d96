//! The rate of status writes of one object, as a pure decision.
//!
//! A changed state is written at once, changed counts and messages at most every ten seconds, and nothing more than
//! once per second. An unchanged status is not written.

use std::time::{Duration, Instant};

use tagboat_api::deployment_status::{DeploymentStatusStatus, Report};

/// The shortest time between two writes of an object.
const STATE_INTERVAL: Duration = Duration::from_secs(1);

/// The shortest time between two writes if only counts and messages differ.
const COUNTS_INTERVAL: Duration = Duration::from_secs(10);

/// The time after which a status that another client has changed is corrected.
///
/// So a client that writes again and again has an answer every ten seconds.
pub(super) const CORRECTION_DELAY: Duration = Duration::from_secs(10);

/// The time of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteTime {
    /// Nothing has changed.
    Never,
    /// At once.
    Now,
    /// After this time, unless another change comes first.
    After(Duration),
}

/// Returns the time at which a new status is written.
///
/// `last` is the time of the last write by this process, if there was one.
pub(super) fn write_time(
    previous: Option<&DeploymentStatusStatus>,
    new: &DeploymentStatusStatus,
    last: Option<Instant>,
    now: Instant,
) -> WriteTime {
    let interval = match previous {
        Some(previous) if previous == new => return WriteTime::Never,
        Some(previous) if differ_in_counts_only(previous, new) => COUNTS_INTERVAL,
        _ => STATE_INTERVAL,
    };
    let since = last.map(|last| now.saturating_duration_since(last));
    match since.and_then(|since| interval.checked_sub(since)).filter(|rest| !rest.is_zero()) {
        Some(rest) => WriteTime::After(rest),
        None => WriteTime::Now,
    }
}

/// Returns the rest of the shortest time between two writes, if it is not over.
pub(super) fn pause(last: Option<Instant>, now: Instant) -> Option<Duration> {
    let since = last.map(|last| now.saturating_duration_since(last))?;
    STATE_INTERVAL.checked_sub(since).filter(|rest| !rest.is_zero())
}

fn differ_in_counts_only(previous: &DeploymentStatusStatus, new: &DeploymentStatusStatus) -> bool {
    previous.deployment_id == new.deployment_id
        && without_counts(&previous.report) == without_counts(&new.report)
}

/// Returns a report without counts, and without messages, which contain counts.
fn without_counts(report: &Report) -> Report {
    let mut report = report.clone();
    report.message = None;
    report.progress.clear();
    for component in &mut report.components {
        (component.desired, component.updated, component.ready) = (0, 0, 0);
        component.updated_ready = None;
        component.message = None;
        component.error.iter_mut().for_each(|error| error.message.clear());
    }
    report.conditions.iter_mut().for_each(|condition| condition.message.clear());
    report
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use tagboat_api::deployment_status::{ComponentStatus, State};

    use super::*;
    use crate::rollout::aggregate::Component;
    use crate::rollout::report::{Observation, status};

    /// Returns the status of a deployment with one component.
    fn deployment(
        state: State,
        ready: i64,
        previous: Option<&DeploymentStatusStatus>,
    ) -> DeploymentStatusStatus {
        let now = Timestamp::UNIX_EPOCH;
        let mut component = ComponentStatus::new("Deployment/apps/podinfo", state, now.into());
        (component.desired, component.updated, component.ready) = (3, 3, ready);
        component.message = Some(format!("{ready} of 3 pods are ready"));
        let observation = Observation {
            deployment_id: "uid".to_owned(),
            target: None,
            commit: None,
            revision: None,
            error: None,
            components: vec![Component { status: component, has_wanted_image: true }],
        };
        status(observation, previous, now)
    }

    #[test]
    fn states_are_written_within_a_second_and_counts_every_ten() {
        use WriteTime::{After, Never, Now};
        let old = deployment(State::Installing, 1, None);
        let same = deployment(State::Installing, 1, Some(&old));
        let counted = deployment(State::Installing, 2, Some(&old));
        let installed = deployment(State::Installed, 3, Some(&old));
        let (millis, secs) = (Duration::from_millis, Duration::from_secs);
        let start = Instant::now();
        for (previous, new, since_last, expected) in [
            (None, &old, None, Now),
            (None, &old, Some(millis(400)), After(millis(600))),
            (Some(&old), &same, None, Never),
            (Some(&old), &same, Some(secs(60)), Never),
            (Some(&old), &counted, None, Now),
            (Some(&old), &counted, Some(secs(3)), After(secs(7))),
            (Some(&old), &counted, Some(secs(10)), Now),
            (Some(&old), &installed, None, Now),
            (Some(&old), &installed, Some(millis(300)), After(millis(700))),
            (Some(&old), &installed, Some(secs(1)), Now),
        ] {
            // The last write was at the start.
            let now = start + since_last.unwrap_or_default();
            let found = write_time(previous, new, since_last.map(|_| start), now);
            assert_eq!(found, expected, "{since_last:?} {:?} {}", new.report.state, new.report.progress);
        }
    }
}
