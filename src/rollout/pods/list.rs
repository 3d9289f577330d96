//! The report of a list of pods.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::container::{FAILURES, failure};
use crate::rollout::assess::Failure;
use crate::rollout::message::message;
use crate::rollout::objects::{Pod, PodStatus, Unreadable, find, is_true};

/// The code of a component without an available pod.
///
/// It says no cause, which the object or its applier may know.
pub const UNAVAILABLE: &str = "Unavailable";

/// The time without an available pod after which a component has failed.
const UNAVAILABLE_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// The pods of an object that decide its report, at the time of their list.
#[derive(Clone, Debug)]
pub struct PodList {
    /// The pods.
    pub pods: Vec<Pod>,
    /// The time of the list: pods may have become ready since.
    pub listed_at: Timestamp,
}

/// The result of the last list of an object's pods.
///
/// The error says why they cannot be listed.
pub type LastList = Result<PodList, String>;

impl PodList {
    /// Returns the time from the list until its pods have been unavailable for a minute.
    ///
    /// It is none if a pod is available, or none with the wanted image is known.
    #[must_use]
    pub fn unavailable_in(&self, is_wanted: impl Fn(&str) -> bool) -> Option<Duration> {
        let found = Found::new(&self.pods, &is_wanted, self.listed_at);
        let since = found.unavailable_since.filter(|_| !found.has_available)?;
        let wait = UNAVAILABLE_AFTER.saturating_sub(self.listed_at.duration_since(since));
        Duration::try_from(wait).ok().filter(|wait| !wait.is_zero())
    }
}

/// The errors of a component's pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodReport {
    /// The failure of the component.
    pub failure: Option<Failure>,
    /// A sentence about pods that are no failure, such as those that cannot be scheduled.
    pub message: Option<String>,
}

/// Reports the errors of the pods that have the wanted image.
///
/// They are those at the time of the list. `is_wanted` compares the image of a container. Other pods, ended pods and
/// those that are being deleted do not count. Of several failures, the result is the worst of the first pod by name, so
/// it does not depend on the order of the list. Codes: the kubelet's reasons, and `Unavailable`.
#[must_use]
pub fn report(list: &PodList, is_wanted: impl Fn(&str) -> bool) -> PodReport {
    let found = Found::new(&list.pods, &is_wanted, list.listed_at);
    let message = found.messages.first().map(|text| message(text));
    PodReport { failure: found.failure(list.listed_at), message }
}

/// Returns `true` if there are pods with the wanted image that are not being deleted.
#[must_use]
pub fn has_any(pods: &[Pod], is_wanted: impl Fn(&str) -> bool) -> bool {
    let is_one = |pod: &Pod| pod.spec.get().is_ok_and(|spec| spec.images().any(&is_wanted));
    pods.iter().any(|pod| pod.metadata.deletion_timestamp.is_none() && is_one(pod))
}

/// Returns `true` for a code of [`report`].
#[must_use]
pub fn is_code(code: &str) -> bool {
    code == UNAVAILABLE || FAILURES.contains(&code)
}

/// Returns the failure of an object that has had no pod for long.
///
/// A quota or an admission webhook refuses them; a StatefulSet and a DaemonSet do not report that.
#[must_use]
pub fn none_created(since: Timestamp, now: Timestamp) -> Option<Failure> {
    let is_late = now.duration_since(since) >= UNAVAILABLE_AFTER;
    is_late.then(|| Failure::new(UNAVAILABLE, "no pod is available: none was created"))
}

/// The facts about the pods so far.
#[derive(Default)]
struct Found {
    /// Failures of containers, with their ranks in [`FAILURES`].
    failures: Vec<(usize, Failure)>,
    messages: Vec<String>,
    has_available: bool,
    /// The time at which the last of the unavailable pods became unavailable.
    unavailable_since: Option<Timestamp>,
    /// The reason of an unavailable pod.
    unavailable: Option<String>,
}

impl Found {
    fn new(pods: &[Pod], is_wanted: &impl Fn(&str) -> bool, now: Timestamp) -> Self {
        let mut found = Self::default();
        let mut pods: Vec<&Pod> =
            pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect();
        pods.sort_by_key(|pod| &pod.metadata.name);
        for pod in pods {
            if let Err(error) = found.add(pod, is_wanted, now) {
                found.messages.push(format!("pod {} cannot be read: {error}", name(pod)));
            }
        }
        found
    }

    fn add<'p>(
        &mut self,
        pod: &'p Pod,
        is_wanted: &impl Fn(&str) -> bool,
        now: Timestamp,
    ) -> Result<(), &'p Unreadable> {
        let (spec, status) = (pod.spec.get()?, pod.status.get()?);
        let has_ended = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
        if has_ended || !spec.images().any(is_wanted) {
            return Ok(());
        }
        for container in status.init_container_statuses.iter().chain(&status.container_statuses) {
            if let Some((rank, detail)) = failure(container, spec, now) {
                let text = format!("pod {}, container {}: {detail}", name(pod), container.name);
                self.failures.push((rank, Failure::new(FAILURES[rank], &text)));
            }
        }
        let unscheduled = find(&status.conditions, "PodScheduled").filter(|scheduled| scheduled.is_false());
        if let Some(unscheduled) = unscheduled {
            self.messages.push(format!("pod {}: {}", name(pod), unscheduled.text()));
        } else if is_true(&status.conditions, "Ready") {
            self.has_available = true;
        } else {
            self.add_unavailable(pod, status);
        }
        Ok(())
    }

    fn add_unavailable(&mut self, pod: &Pod, status: &PodStatus) {
        let ready = find(&status.conditions, "Ready");
        let since = ready.and_then(|ready| ready.last_transition_time.as_ref());
        let since = since.or(pod.metadata.creation_timestamp.as_ref()).map(|time| time.0);
        self.unavailable_since = self.unavailable_since.max(since);
        let text = ready.map_or("not ready", |ready| ready.text());
        self.unavailable.get_or_insert_with(|| format!("pod {}: {text}", name(pod)));
    }

    fn failure(&self, now: Timestamp) -> Option<Failure> {
        if let Some((_, failure)) = self.failures.iter().min_by_key(|(rank, _)| *rank) {
            return Some(failure.clone());
        }
        let is_late =
            self.unavailable_since.is_some_and(|since| now.duration_since(since) >= UNAVAILABLE_AFTER);
        if self.has_available || !is_late {
            return None;
        }
        let text = self.unavailable.as_deref().unwrap_or_default();
        Some(Failure::new(UNAVAILABLE, &format!("no pod is available: {text}")))
    }
}

fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{NOW, WANTED, failed, list, pod, ready, reported, unschedulable, waiting};
    use super::*;

    /// A crash loop in the old ReplicaSet says nothing about the new one.
    #[test]
    fn only_live_pods_with_the_wanted_image_count() {
        let broken = pod("a", "2026-11-02T10:00:00Z", &waiting("ImagePullBackOff", "no such image"));
        let mut old = broken.clone();
        old["spec"]["containers"][0]["image"] = json!("ghcr.io/a/podinfo:6.8.0");
        let mut deleted = broken.clone();
        deleted["metadata"]["deletionTimestamp"] = json!("2026-11-02T10:29:00Z");
        let mut evicted = broken.clone();
        evicted["status"]["phase"] = json!("Failed");
        for other in [old.clone(), deleted, evicted] {
            assert_eq!(reported(std::slice::from_ref(&other)), PodReport::default(), "{other}");
        }
        assert!(failed(&[old, broken.clone()]).unwrap().starts_with("ImagePullBackOff"));

        let mut of_init = broken;
        of_init["spec"]["containers"][0]["image"] = json!("other:1");
        of_init["spec"]["initContainers"][0]["image"] = json!(WANTED);
        assert!(failed(&[of_init]).unwrap().starts_with("ImagePullBackOff"));
    }

    #[test]
    fn without_an_available_pod_for_60_seconds_the_component_is_unavailable() {
        let starting = |name, since| pod(name, since, &waiting("ContainerCreating", ""));
        let (late, early) = ("2026-11-02T10:29:00Z", "2026-11-02T10:29:01Z");
        let text = "Unavailable: no pod is available: pod a: containers with unready status: [podinfo]";
        assert_eq!(failed(&[starting("a", late)]).unwrap(), text);
        assert_eq!(failed(&[starting("a", early)]), None);
        assert_eq!(failed(&[starting("a", late), starting("b", early)]), None);
        assert_eq!(failed(&[starting("a", late), ready("b")]), None);
        assert_eq!(failed(&[ready("b")]), None);
        assert_eq!(failed(&[]), None);
        assert_eq!(failed(&[starting("a", late), unschedulable("b")]).unwrap(), text);

        let mut new = starting("a", late);
        new["status"] = json!({"phase": "Pending"});
        assert_eq!(failed(&[new.clone()]).unwrap(), "Unavailable: no pod is available: pod a: not ready");
        new["metadata"]["creationTimestamp"] = json!(early);
        assert_eq!(failed(&[new]), None);
    }

    /// A list is due when its pods are unavailable for long.
    #[test]
    fn a_list_knows_when_its_pods_are_unavailable_for_long() {
        let unready = |name, since| pod(name, since, &waiting("ContainerCreating", ""));
        let wait =
            |pods: &[Value]| list(pods).unavailable_in(|image| image == WANTED).map(|wait| wait.as_secs());
        assert_eq!(
            wait(&[unready("a", "2026-11-02T10:29:20Z"), unready("b", "2026-11-02T10:29:58Z")]),
            Some(58)
        );
        assert_eq!(wait(&[unready("a", "2026-11-02T10:29:00Z")]), None, "it is now");
        assert_eq!(wait(&[unready("a", "2026-11-02T10:29:20Z"), ready("b")]), None);
        assert_eq!(wait(&[]), None);
    }

    #[test]
    fn an_unschedulable_pod_is_a_message_only() {
        let report = reported(&[unschedulable("b"), unschedulable("a")]);
        assert_eq!(report.failure, None);
        assert_eq!(report.message.unwrap(), "pod a: 0/3 nodes are available: 3 Insufficient cpu.");
    }

    #[test]
    fn the_failure_does_not_depend_on_the_order_of_the_list() {
        let crash = json!({"name": "podinfo", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}});
        let mut pods = [
            pod("a", NOW, &crash),
            pod("c", NOW, &waiting("ErrImagePull", "x")),
            pod("b", NOW, &waiting("ErrImagePull", "x")),
        ];
        let text = "ErrImagePull: pod b, container podinfo: x";
        assert_eq!(failed(&pods).unwrap(), text);
        pods.reverse();
        assert_eq!(failed(&pods).unwrap(), text);
    }

    #[test]
    fn an_unreadable_pod_is_a_message_and_the_others_count() {
        let mut unreadable = pod("a", NOW, &waiting("ErrImagePull", ""));
        unreadable["status"]["containerStatuses"] = json!("none");
        let report = reported(&[unreadable, pod("b", NOW, &waiting("ErrImagePull", "x"))]);
        assert_eq!(report.failure.unwrap().message, "pod b, container podinfo: x");
        let text = "pod a cannot be read: status.containerStatuses: invalid type: string \"none\", expected a sequence";
        assert_eq!(report.message.unwrap(), text);
    }
}
