//! The pace of a drain: evictions that are due, and the next list.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;

use super::{Departures, NodePod};

/// The shortest and the longest time between two lists of the pods.
const LISTS: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// The refusal of an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The pod and the reason.
    pub text: String,
    /// The time after which the eviction can be tried again.
    pub wait: Duration,
}

/// The pace of a drain.
///
/// Its times are those since the drain began.
#[derive(Clone, Debug)]
pub struct DrainPace {
    /// The refused evictions by UID of the pod: next time, and text.
    refused: BTreeMap<String, (Duration, String)>,
    /// The last time between two lists.
    pause: Duration,
}

impl Default for DrainPace {
    fn default() -> Self {
        Self { refused: BTreeMap::new(), pause: LISTS.0 }
    }
}

impl DrainPace {
    /// Returns the pods to evict now, without those that were refused a short time ago.
    pub fn due<'p>(&mut self, departures: &'p Departures, at: Duration) -> Vec<&'p NodePod> {
        let pods = &departures.to_evict;
        self.refused.retain(|uid, _| pods.iter().any(|pod| pod.metadata.uid.as_ref() == Some(uid)));
        let is_due = |pod: &&NodePod| {
            let refused = pod.metadata.uid.as_ref().and_then(|uid| self.refused.get(uid));
            refused.is_none_or(|(retry, _)| *retry <= at)
        };
        pods.iter().filter(is_due).collect()
    }

    /// Records the answers to evictions by UID of the pod.
    ///
    /// Returns the time until the next list.
    /// The pods are listed soon after one was evicted, and less and less often while nothing happens.
    pub fn record(
        &mut self,
        answers: impl IntoIterator<Item = (String, Option<Refusal>)>,
        at: Duration,
    ) -> Duration {
        let mut is_progress = false;
        for (uid, refusal) in answers {
            is_progress |= refusal.is_none();
            match refusal {
                Some(Refusal { text, wait }) => self.refused.insert(uid, (at.saturating_add(wait), text)),
                None => self.refused.remove(&uid),
            };
        }
        self.pause = if is_progress { LISTS.0 } else { (self.pause * 3 / 2).min(LISTS.1) };
        let retry = self.refused.values().map(|(retry, _)| retry.saturating_sub(at)).min();
        retry.map_or(self.pause, |retry| retry.clamp(LISTS.0, self.pause))
    }

    /// Returns the reason for the wait: a refusal, or the pod that ends last.
    #[must_use]
    pub fn obstacle(&self, departures: &Departures, now: Timestamp) -> Option<String> {
        self.refused.values().next().map(|(_, text)| text.clone()).or_else(|| {
            // The time of a deletion is that at which the pod has to be gone.
            let ends = |pod: &NodePod| pod.metadata.deletion_timestamp.as_ref().map(|end| end.0);
            let leaving = departures.leaving.iter().filter_map(|pod| Some((ends(pod)?, pod)));
            let late = leaving.clone().find(|(end, _)| *end < now);
            let (end, pod) = late.or_else(|| leaving.max_by_key(|(end, _)| *end))?;
            let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
            let until =
                if end < now { "and has not ended in its time".to_owned() } else { format!("until {end}") };
            Some(format!("pod {namespace}/{name} is being deleted, {until}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, end: Option<&str>) -> NodePod {
        let metadata = json!({"name": name, "namespace": "n", "uid": name, "deletionTimestamp": end});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    fn departures(to_evict: &[&str], leaving: &[(&str, &str)]) -> Departures {
        Departures {
            to_evict: to_evict.iter().map(|name| pod(name, None)).collect(),
            leaving: leaving.iter().map(|(name, end)| pod(name, Some(end))).collect(),
        }
    }

    fn refused(name: &str, seconds: u64) -> (String, Option<Refusal>) {
        let wait = Duration::from_secs(seconds);
        (name.to_owned(), Some(Refusal { text: format!("pod n/{name}: refused"), wait }))
    }

    fn evicted(name: &str) -> (String, Option<Refusal>) {
        (name.to_owned(), None)
    }

    #[test]
    fn a_refused_eviction_is_tried_again_after_its_time() {
        let mut pace = DrainPace::default();
        for (at, pods, due, answers, wait) in [
            (0, &["a", "b"][..], &["a", "b"][..], vec![refused("a", 10_000), evicted("b")], 250),
            (250, &["a"], &[], vec![], 375),
            (625, &["a"], &[], vec![], 562),
            (9_900_000, &["a"], &[], vec![], 843),
            (9_999_500, &["a"], &[], vec![], 500),
            (10_000_000, &["a"], &["a"], vec![refused("a", 60)], 1_898),
            // A pod that is gone, and one that came to the node.
            (10_001_898, &["c"], &["c"], vec![evicted("c")], 250),
            (10_002_148, &["a"], &["a"], vec![evicted("a")], 250),
        ] {
            let at = Duration::from_millis(at);
            let pods = departures(pods, &[]);
            let names: Vec<String> = pace.due(&pods, at).iter().map(|pod| pod.name_any()).collect();
            assert_eq!(names, due, "{at:?}");
            assert_eq!(pace.record(answers, at).as_millis(), wait, "{at:?}");
        }
    }

    #[test]
    fn lists_become_rare_while_nothing_happens() {
        let mut pace = DrainPace::default();
        let waits: Vec<u128> = (0..9).map(|_| pace.record([], Duration::ZERO).as_millis()).collect();
        assert_eq!(waits, [375, 562, 843, 1_265, 1_898, 2_847, 4_271, 5_000, 5_000]);
    }

    /// A pod without a refusal was named only after its grace period.
    #[test]
    fn a_pod_within_its_grace_period_is_named_with_its_end() {
        let (soon, later) = ("2026-11-23T12:00:00Z", "2026-11-23T12:10:00Z");
        let leaving = departures(&[], &[("soon", soon), ("later", later), ("same", soon)]);
        let obstacle = |pace: &DrainPace, time: &str| pace.obstacle(&leaving, time.parse().unwrap());
        let mut pace = DrainPace::default();
        for (time, expected) in [
            (soon, "pod n/later is being deleted, until 2026-11-23T12:10:00Z"),
            ("2026-11-23T12:00:01Z", "pod n/soon is being deleted, and has not ended in its time"),
        ] {
            assert_eq!(obstacle(&pace, time).as_deref(), Some(expected), "{time}");
        }
        pace.record([refused("db", 5)], Duration::ZERO);
        assert_eq!(obstacle(&pace, soon).as_deref(), Some("pod n/db: refused"));
        assert_eq!(DrainPace::default().obstacle(&Departures::default(), soon.parse().unwrap()), None);
    }
}
