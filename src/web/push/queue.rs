//! The deployments whose status must be sent, and when.
//!
//! The queue decides without a clock: time comes in as an argument. It knows statuses by their fingerprints only, so
//! the latest status of a deployment replaces an unsent one.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::objects::ObjectName;
use crate::secrets::Fingerprint;

/// The maximum number of requests in flight.
pub(super) const MAX_IN_FLIGHT: usize = 4;

/// The delays between the tries to send the status of a deployment.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(5 * 60) };

/// The maximum of `Retry-After` that is respected.
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(60 * 60);

/// The deployments whose status must be sent, and when.
#[derive(Debug, Default)]
pub(super) struct Queue {
    deployments: HashMap<ObjectName, Deployment>,
    /// The deployments that wait, by the time at which they are due.
    due: BTreeSet<(Instant, ObjectName)>,
    in_flight: usize,
    /// The end of the pause that the server has asked for.
    paused_until: Option<Instant>,
}

/// A deployment with its next step.
#[derive(Debug, Default)]
struct Deployment {
    /// The last observed status; `None` if it is not to be sent.
    current: Option<Fingerprint>,
    /// The status that the server has accepted or refused last.
    settled: Option<Fingerprint>,
    /// The consecutive tries that have failed.
    failures: u32,
    step: Step,
}

/// The next step of a deployment.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Nothing is to be sent.
    #[default]
    Rest,
    /// The status is to be sent at this time.
    Due(Instant),
    /// A status is being sent.
    InFlight(Fingerprint),
}

/// The result of a request, as far as the queue needs it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verdict {
    /// The server has accepted or refused the status; it is not sent again.
    Settled,
    /// The status must be sent again.
    Failed {
        /// The pause that the server asks for.
        retry_after: Option<Duration>,
        /// A number from 0 to 1: the delay grows by up to half of itself.
        jitter: f64,
    },
}

impl Queue {
    /// Records the status of a deployment as last observed.
    pub(super) fn observe(&mut self, name: &ObjectName, current: Option<Fingerprint>, now: Instant) {
        let deployment = self.deployments.entry(name.clone()).or_default();
        deployment.current = current;
        if current.is_none() {
            deployment.failures = 0;
        }
        let is_due = current.is_some() && current != deployment.settled;
        let step = match deployment.step {
            Step::Rest if is_due => Step::Due(now),
            Step::Due(_) if !is_due => Step::Rest,
            step => step,
        };
        self.set(name, step);
    }

    /// Forgets a deployment that was deleted.
    pub(super) fn forget(&mut self, name: &ObjectName) {
        self.set(name, Step::Rest);
        self.deployments.remove(name);
    }

    /// Forgets all deployments but some.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&ObjectName) -> bool) {
        let gone: Vec<ObjectName> = self.deployments.keys().filter(|name| !is_kept(name)).cloned().collect();
        gone.iter().for_each(|name| self.forget(name));
    }

    /// Returns a deployment whose status can be sent now.
    pub(super) fn next(&self, now: Instant) -> Option<ObjectName> {
        let (_, name) = self.due.first()?;
        self.wake().is_some_and(|at| at <= now).then(|| name.clone())
    }

    /// Returns the time at which a status can be sent, unless something else happens before.
    pub(super) fn wake(&self) -> Option<Instant> {
        let (due, _) = self.due.first().filter(|_| self.in_flight < MAX_IN_FLIGHT)?;
        Some(self.paused_until.map_or(*due, |pause| pause.max(*due)))
    }

    /// Records that a status is being sent.
    pub(super) fn begin(&mut self, name: &ObjectName, sent: Fingerprint) {
        self.in_flight += 1;
        self.set(name, Step::InFlight(sent));
    }

    /// Records the result of a request.
    pub(super) fn finish(&mut self, name: &ObjectName, sent: Fingerprint, verdict: Verdict, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Verdict::Failed { retry_after: Some(pause), .. } = verdict {
            let end = now + pause.min(MAX_PAUSE);
            self.paused_until = Some(self.paused_until.map_or(end, |other| other.max(end)));
        }
        let deployment = self.deployments.get_mut(name);
        // A deployment with another step was deleted and created again meanwhile.
        let Some(deployment) = deployment.filter(|one| one.step == Step::InFlight(sent)) else { return };
        let due = match verdict {
            Verdict::Settled => {
                deployment.failures = 0;
                deployment.settled = Some(sent);
                now
            }
            Verdict::Failed { jitter, .. } => {
                // The server may have got the status all the same, so an earlier one must be sent again.
                deployment.settled = None;
                deployment.failures = deployment.failures.saturating_add(1);
                now + BACKOFF.after(deployment.failures).mul_f64(1.0 + jitter / 2.0)
            }
        };
        let is_due = deployment.current.is_some() && deployment.current != deployment.settled;
        self.set(name, if is_due { Step::Due(due) } else { Step::Rest });
    }

    /// Returns true if the last try of a deployment has failed.
    pub(super) fn is_failing(&self) -> bool {
        self.deployments.values().any(|deployment| deployment.failures > 0)
    }

    fn set(&mut self, name: &ObjectName, step: Step) {
        let Some(deployment) = self.deployments.get_mut(name) else { return };
        if let Step::Due(at) = deployment.step {
            self.due.remove(&(at, name.clone()));
        }
        if let Step::Due(at) = step {
            self.due.insert((at, name.clone()));
        }
        deployment.step = step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue at a time that only the test advances.
    struct Scene {
        queue: Queue,
        now: Instant,
    }

    fn name(text: &str) -> ObjectName {
        ObjectName { namespace: "a".to_owned(), name: text.to_owned() }
    }

    fn status(text: &str) -> Fingerprint {
        Fingerprint::of([text])
    }

    fn failed() -> Verdict {
        Verdict::Failed { retry_after: None, jitter: 0.0 }
    }

    fn paused(seconds: u64) -> Verdict {
        Verdict::Failed { retry_after: Some(Duration::from_secs(seconds)), jitter: 0.0 }
    }

    impl Scene {
        fn new() -> Self {
            Self { queue: Queue::default(), now: Instant::now() }
        }

        fn observe(&mut self, deployment: &str, current: &str) {
            let current = (!current.is_empty()).then(|| status(current));
            self.queue.observe(&name(deployment), current, self.now);
        }

        fn is_next(&self, deployment: &str) -> bool {
            self.queue.next(self.now) == Some(name(deployment))
        }

        fn begin(&mut self, deployment: &str, sent: &str) {
            assert!(self.is_next(deployment), "{deployment} is not next: {:?}", self.queue);
            self.queue.begin(&name(deployment), status(sent));
        }

        fn finish(&mut self, deployment: &str, sent: &str, verdict: Verdict) {
            self.queue.finish(&name(deployment), status(sent), verdict, self.now);
        }

        /// The seconds until a status can be sent.
        fn wait(&self) -> Option<u64> {
            Some(self.queue.wake()?.saturating_duration_since(self.now).as_secs())
        }

        fn advance(&mut self, seconds: u64) {
            self.now += Duration::from_secs(seconds);
        }
    }

    #[test]
    fn each_status_is_sent_once() {
        let mut scene = Scene::new();
        scene.observe("web", "1");
        scene.begin("web", "1");
        scene.finish("web", "1", Verdict::Settled);
        scene.observe("web", "1");
        assert_eq!((scene.wait(), scene.queue.next(scene.now)), (None, None));
        scene.observe("web", "2");
        scene.begin("web", "2");
        // Back to a status that was sent before.
        scene.observe("web", "1");
        assert_eq!(scene.wait(), None);
        scene.finish("web", "2", Verdict::Settled);
        scene.begin("web", "1");
        scene.finish("web", "1", Verdict::Settled);
        assert_eq!(scene.wait(), None);
    }

    #[test]
    fn the_latest_status_replaces_unsent_ones_and_keeps_their_delay() {
        let mut scene = Scene::new();
        scene.observe("web", "1");
        for (sent, delay) in [("1", 1), ("2", 2), ("3", 4)] {
            scene.begin("web", sent);
            scene.finish("web", sent, failed());
            scene.observe("web", "2");
            scene.observe("web", "3");
            assert_eq!((scene.wait(), scene.queue.is_failing()), (Some(delay), true));
            assert_eq!(scene.queue.next(scene.now), None);
            scene.advance(delay);
        }
        scene.begin("web", "3");
        scene.finish("web", "3", Verdict::Settled);
        assert_eq!((scene.wait(), scene.queue.is_failing()), (None, false));
        scene.observe("web", "4");
        scene.begin("web", "4");
        scene.finish("web", "4", failed());
        assert_eq!(scene.wait(), Some(1), "the delays begin anew");
    }

    #[test]
    fn a_status_that_may_have_arrived_is_corrected() {
        let mut scene = Scene::new();
        scene.observe("web", "1");
        scene.begin("web", "1");
        scene.finish("web", "1", Verdict::Settled);
        scene.observe("web", "2");
        scene.begin("web", "2");
        scene.observe("web", "1");
        scene.finish("web", "2", failed());
        scene.advance(1);
        scene.begin("web", "1");
    }

    #[test]
    fn delays_grow_up_to_five_minutes_and_jitter_lengthens_them() {
        let mut scene = Scene::new();
        scene.observe("web", "1");
        let mut delays = Vec::new();
        for _ in 0..11 {
            scene.begin("web", "1");
            scene.finish("web", "1", failed());
            let delay = scene.wait().unwrap();
            delays.push(delay);
            scene.advance(delay);
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        scene.begin("web", "1");
        scene.finish("web", "1", Verdict::Failed { retry_after: None, jitter: 1.0 });
        assert_eq!(scene.wait(), Some(450));
    }

    #[test]
    fn a_pause_that_the_server_asks_for_concerns_all_deployments() {
        let mut scene = Scene::new();
        scene.observe("web", "1");
        scene.begin("web", "1");
        scene.finish("web", "1", paused(30));
        scene.observe("other", "1");
        assert_eq!(scene.wait(), Some(30));
        scene.advance(29);
        assert_eq!(scene.queue.next(scene.now), None);
        scene.advance(1);
        scene.begin("other", "1");
        scene.begin("web", "1");
        scene.finish("web", "1", paused(10));
        scene.finish("other", "1", paused(u64::MAX));
        assert_eq!(scene.wait(), Some(3600), "the longest pause counts, up to an hour");
    }

    #[test]
    fn a_few_requests_are_in_flight_and_those_that_wait_longest_go_first() {
        let mut scene = Scene::new();
        let names: Vec<String> = (0..=MAX_IN_FLIGHT).map(|number| number.to_string()).rev().collect();
        for name in &names {
            scene.observe(name, "1");
            scene.advance(1);
        }
        for name in &names[..MAX_IN_FLIGHT] {
            scene.begin(name, "1");
        }
        assert_eq!((scene.wait(), scene.queue.next(scene.now)), (None, None));
        scene.finish(&names[1], "1", Verdict::Settled);
        scene.begin(&names[MAX_IN_FLIGHT], "1");
    }

    #[test]
    fn a_status_without_components_is_not_sent() {
        let mut scene = Scene::new();
        scene.observe("web", "");
        assert_eq!(scene.wait(), None);
        scene.observe("web", "1");
        scene.observe("web", "");
        assert_eq!(scene.wait(), None);
        scene.observe("web", "1");
        scene.begin("web", "1");
        scene.observe("web", "");
        scene.finish("web", "1", failed());
        assert_eq!(scene.wait(), None);
    }

    #[test]
    fn a_deleted_deployment_is_forgotten() {
        let mut scene = Scene::new();
        scene.observe("web", "1");
        scene.queue.forget(&name("web"));
        assert_eq!((scene.wait(), scene.queue.deployments.len()), (None, 0));
        scene.observe("web", "1");
        scene.begin("web", "1");
        scene.queue.retain(|_| false);
        scene.observe("web", "2");
        scene.finish("web", "1", Verdict::Settled);
        scene.begin("web", "2");
        scene.finish("web", "2", Verdict::Settled);
        assert_eq!((scene.queue.in_flight, scene.queue.due.len()), (0, 0));
    }
}
