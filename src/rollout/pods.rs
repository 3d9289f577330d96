//! The errors of the pods that have the wanted image, before any deadline expires.
//!
//! Source: the reasons of waiting containers in `pkg/kubelet/images/types.go`, `pkg/kubelet/container/` and
//! `pkg/kubelet/kuberuntime/` of Kubernetes.

use jiff::{SignedDuration, Timestamp};

use super::assess::Failure;
use super::message::message;
use super::objects::{
    Condition, ContainerStatus, Pod, PodSpec, PodStatus, Terminated, Unreadable, find, is_true,
};

/// The reasons of a waiting container that are failures, worst first.
const FAILURES: [&str; 8] = [
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImagePullBackOff",
    "ErrImagePull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    CRASH_LOOP,
];

/// The reason of a container that waits for its next restart.
const CRASH_LOOP: &str = "CrashLoopBackOff";

/// The number of restarts from which an unready container is in a crash loop.
const CRASH_LOOP_RESTARTS: i64 = 2;

/// The time after which a running container has left its crash loop.
///
/// The kubelet resets the back-off then. The number of restarts stays that of the pod's whole life.
const CRASH_LOOP_RESET: SignedDuration = SignedDuration::from_mins(10);

/// The code of a component without an available pod.
///
/// It says no cause, which the object or its applier may know.
pub const UNAVAILABLE: &str = "Unavailable";

/// The time without an available pod after which a component has failed.
const UNAVAILABLE_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// The maximum numbers of unready and of ready pods that [`most_informative`] returns.
const KEPT: (usize, usize) = (8, 2);

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
/// `is_wanted` compares the image of a container. Other pods, ended pods and those that are being deleted do not
/// count. Of several failures, the result is the worst of the first pod by name, so it does not depend on the order
/// of the list. Codes: the kubelet's reasons, and `Unavailable`.
#[must_use]
pub fn report(pods: &[Pod], is_wanted: impl Fn(&str) -> bool, now: Timestamp) -> PodReport {
    let mut found = Found::default();
    let mut pods: Vec<&Pod> = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect();
    pods.sort_by_key(|pod| &pod.metadata.name);
    for pod in pods {
        if let Err(error) = found.add(pod, &is_wanted, now) {
            found.messages.push(format!("pod {} cannot be read: {error}", name(pod)));
        }
    }
    PodReport { failure: found.failure(now), message: found.messages.first().map(|text| message(text)) }
}

/// Returns the pods with the wanted image that decide the report.
///
/// These are failed ones first, then the newest. The others tell nothing more. Unreadable pods are kept, because they are
/// reported.
#[must_use]
pub fn most_informative(
    pods: impl IntoIterator<Item = Pod>,
    is_wanted: impl Fn(&str) -> bool,
    now: Timestamp,
) -> Vec<Pod> {
    let is_kept = |pod: &Pod| pod.spec.get().map_or(true, |spec| spec.images().any(&is_wanted));
    let mut pods: Vec<Pod> = pods.into_iter().filter(is_kept).collect();
    pods.sort_by(|left, right| right.metadata.creation_timestamp.cmp(&left.metadata.creation_timestamp));
    let is_ready = |pod: &Pod| pod.status.get().is_ok_and(|status| is_true(&status.conditions, "Ready"));
    let (mut ready, mut unready): (Vec<Pod>, Vec<Pod>) = pods.into_iter().partition(is_ready);
    unready.sort_by_cached_key(|pod| (pod.metadata.deletion_timestamp.is_some(), severity(pod, now)));
    unready.truncate(KEPT.0);
    ready.truncate(KEPT.1);
    unready.extend(ready);
    unready
}

/// Returns the order of an unready pod among others.
///
/// The worst failure is the first, before pods that cannot be scheduled.
fn severity(pod: &Pod, now: Timestamp) -> usize {
    let (Ok(spec), Ok(status)) = (pod.spec.get(), pod.status.get()) else { return FAILURES.len() };
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses);
    let ranks = containers.filter_map(|container| failure(container, spec, now).map(|(rank, _)| rank));
    let is_unscheduled = || find(&status.conditions, "PodScheduled").is_some_and(Condition::is_false);
    ranks.min().unwrap_or_else(|| FAILURES.len() + usize::from(!is_unscheduled()))
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

/// Returns the failure of a pod whose containers wait with an error.
///
/// It is for a pod that is a component itself: only the state of its containers counts, and no time.
#[must_use]
pub fn waiting(status: &PodStatus) -> Option<Failure> {
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses);
    let found = containers.filter_map(|container| Some((container, waiting_failure(container)?)));
    let (container, (rank, detail)) = found.min_by_key(|(_, (rank, _))| *rank)?;
    Some(Failure::new(FAILURES[rank], &format!("container {}: {detail}", container.name)))
}

/// Returns the failure of a container: its rank in [`FAILURES`], and its message.
fn failure(container: &ContainerStatus, spec: &PodSpec, now: Timestamp) -> Option<(usize, String)> {
    if is_between_restarts(container, spec, now) {
        return Some((rank(CRASH_LOOP)?, last_exit(container).unwrap_or_default()));
    }
    waiting_failure(container)
}

/// Returns the failure of a container that waits.
fn waiting_failure(container: &ContainerStatus) -> Option<(usize, String)> {
    let waiting = container.state.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().unwrap_or_default();
    let rank = rank(reason)?;
    let exit = Some(container).filter(|_| reason == CRASH_LOOP).and_then(last_exit);
    let text = waiting.message.as_deref().unwrap_or(reason);
    Some((rank, exit.unwrap_or_else(|| text.to_owned())))
}

fn rank(reason: &str) -> Option<usize> {
    FAILURES.iter().position(|failure| *failure == reason)
}

/// Returns the sentence about the last end of a container.
fn last_exit(container: &ContainerStatus) -> Option<String> {
    let ended = container.state.terminated.as_ref().or(container.last_state.terminated.as_ref())?;
    Some(exit(ended, container.restart_count))
}

/// Returns `true` for a container in a crash loop that does not wait now.
fn is_between_restarts(container: &ContainerStatus, spec: &PodSpec, now: Timestamp) -> bool {
    if container.ready || container.restart_count < CRASH_LOOP_RESTARTS {
        return false;
    }
    let last = container.state.terminated.as_ref().or(container.last_state.terminated.as_ref());
    if last.is_some_and(has_run_for_long) {
        return false;
    }
    if let Some(running) = &container.state.running {
        let started = running.started_at.as_ref().map(|time| time.0);
        return started.is_none_or(|started| now.duration_since(started) < CRASH_LOOP_RESET);
    }
    // Outside of a restart policy `Always`, and for init containers, an exit with 0 is the end.
    let is_init = spec.init_containers.iter().any(|init| init.name == container.name);
    let may_end = is_init || spec.restart_policy.as_deref().is_some_and(|policy| policy != "Always");
    container.state.terminated.as_ref().is_some_and(|ended| ended.exit_code != 0 || !may_end)
}

/// Returns `true` if a process ran long enough to leave a crash loop.
fn has_run_for_long(ended: &Terminated) -> bool {
    let times = ended.started_at.as_ref().zip(ended.finished_at.as_ref());
    times.is_some_and(|(start, end)| end.0.duration_since(start.0) >= CRASH_LOOP_RESET)
}

/// Returns the sentence about the end of a process.
fn exit(ended: &Terminated, restarts: i64) -> String {
    let restarts = format!("{restarts} restart{}", if restarts == 1 { "" } else { "s" });
    match ended.reason.as_deref() {
        Some("OOMKilled") => format!("OOMKilled (exit code {}), {restarts}", ended.exit_code),
        Some(reason) if !matches!(reason, "Error" | "Completed" | "") => {
            format!("exit code {} ({reason}), {restarts}", ended.exit_code)
        }
        _ => format!("exit code {}, {restarts}", ended.exit_code),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const WANTED: &str = "ghcr.io/a/podinfo:6.9.0";
    const NOW: &str = "2026-11-02T10:30:00Z";

    /// Returns a scheduled pod of the wanted image that is unready since a time.
    fn pod(name: &str, since: &str, state: &Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "creationTimestamp": "2026-11-02T10:00:00Z"},
            "spec": {
                "restartPolicy": "Always", "nodeName": "node-1",
                "initContainers": [{"name": "setup", "image": "busybox:1"}],
                "containers": [{"name": "podinfo", "image": WANTED}, {"name": "proxy", "image": "envoy:1"}],
            },
            "status": {
                "phase": "Running",
                "conditions": [
                    {"type": "PodScheduled", "status": "True"},
                    {"type": "Ready", "status": "False", "reason": "ContainersNotReady",
                        "message": "containers with unready status: [podinfo]", "lastTransitionTime": since},
                ],
                "containerStatuses": [state],
            },
        })
    }

    fn waiting(reason: &str, message: &str) -> Value {
        json!({"name": "podinfo", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": reason, "message": message}}})
    }

    fn ready(name: &str) -> Value {
        let mut pod = pod(name, NOW, &json!({"name": "podinfo", "ready": true, "state": {"running": {}}}));
        pod["status"]["conditions"][1]["status"] = json!("True");
        pod
    }

    fn unschedulable(name: &str) -> Value {
        let mut pod = pod(name, NOW, &json!({"name": "podinfo"}));
        pod["status"] = json!({"phase": "Pending", "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes are available: 3 Insufficient cpu.", "lastTransitionTime": "2026-11-02T10:00:00Z",
        }]});
        pod
    }

    fn reported(pods: &[Value]) -> PodReport {
        let pods: Vec<Pod> = pods.iter().map(|pod| serde_json::from_value(pod.clone()).unwrap()).collect();
        report(&pods, |image| image == WANTED, NOW.parse().unwrap())
    }

    /// Returns the code and the message of a failure.
    fn failed(pods: &[Value]) -> Option<String> {
        reported(pods).failure.map(|failure| format!("{}: {}", failure.code, failure.message))
    }

    #[test]
    fn each_reason_of_a_waiting_container_is_a_failure() {
        for reason in FAILURES {
            let expected = Some(format!("{reason}: pod a, container podinfo: the {reason}"));
            assert_eq!(failed(&[pod("a", NOW, &waiting(reason, &format!("the {reason}")))]), expected);
        }
        for reason in ["ContainerCreating", "PodInitializing", ""] {
            assert_eq!(failed(&[pod("a", NOW, &waiting(reason, ""))]), None, "{reason}");
        }
    }

    #[test]
    fn a_crash_loop_has_the_exit_code() {
        let ended = |code: i64, reason: &str| json!({"terminated": {"exitCode": code, "reason": reason, "finishedAt": "2026-11-02T10:29:00Z"}});
        let loops = |state: Value, last: Value, restarts: i64| json!({"name": "podinfo", "ready": false, "restartCount": restarts, "state": state, "lastState": last});
        let back_off =
            json!({"waiting": {"reason": CRASH_LOOP, "message": "back-off 10s restarting failed container"}});
        let running = |started: &str| json!({"running": {"startedAt": started}});
        let text = |text: &str| Some(format!("CrashLoopBackOff: pod a, container podinfo: {text}"));
        let table = [
            ("waiting", loops(back_off.clone(), ended(1, "Error"), 1), text("exit code 1, 1 restart")),
            (
                "killed",
                loops(back_off.clone(), ended(137, "OOMKilled"), 4),
                text("OOMKilled (exit code 137), 4 restarts"),
            ),
            (
                "ended well",
                loops(back_off.clone(), ended(0, "Completed"), 3),
                text("exit code 0, 3 restarts"),
            ),
            (
                "not started",
                loops(back_off.clone(), ended(128, "StartError"), 3),
                text("exit code 128 (StartError), 3 restarts"),
            ),
            (
                "without an end",
                loops(back_off, json!({}), 3),
                text("back-off 10s restarting failed container"),
            ),
            (
                "runs again",
                loops(running("2026-11-02T10:29:50Z"), ended(2, "Error"), 2),
                text("exit code 2, 2 restarts"),
            ),
            ("ended again", loops(ended(3, "Error"), ended(2, "Error"), 2), text("exit code 3, 2 restarts")),
            (
                "ended well again",
                loops(ended(0, "Completed"), ended(0, "Completed"), 2),
                text("exit code 0, 2 restarts"),
            ),
            ("one restart", loops(running("2026-11-02T10:29:50Z"), ended(2, "Error"), 1), None),
            ("runs for long", loops(running("2026-11-02T10:19:00Z"), ended(2, "Error"), 5), None),
        ];
        for (name, state, expected) in table {
            assert_eq!(failed(&[pod("a", NOW, &state)]), expected, "{name}");
        }
        let mut recovered = loops(running("2026-11-02T10:29:50Z"), ended(2, "Error"), 5);
        recovered["ready"] = json!(true);
        assert_eq!(failed(&[pod("a", NOW, &recovered)]), None);
    }

    /// `restartCount` is the number in the life of the pod.
    #[test]
    fn a_restart_after_a_long_run_is_no_crash_loop() {
        let restarted = |started: &str, state: Value| {
            let last = json!({"terminated": {"exitCode": 143, "reason": "Error", "startedAt": started,
                "finishedAt": "2026-11-02T10:29:40Z"}});
            json!({"name": "podinfo", "ready": false, "restartCount": 3, "state": state, "lastState": last})
        };
        let running = || json!({"running": {"startedAt": "2026-11-02T10:29:50Z"}});
        assert_eq!(failed(&[pod("a", NOW, &restarted("2026-11-01T10:29:40Z", running()))]), None);
        let text = "CrashLoopBackOff: pod a, container podinfo: exit code 143, 3 restarts";
        assert_eq!(failed(&[pod("a", NOW, &restarted("2026-11-02T10:29:00Z", running()))]).unwrap(), text);
        let ended = json!({"terminated": {"exitCode": 143, "startedAt": "2026-11-01T10:29:40Z",
            "finishedAt": "2026-11-02T10:29:50Z"}});
        assert_eq!(failed(&[pod("a", NOW, &restarted("2026-11-02T10:29:00Z", ended))]), None);
    }

    #[test]
    fn init_containers_count_until_they_have_succeeded() {
        let mut with_init = pod("a", NOW, &waiting("PodInitializing", ""));
        let state =
            |state: Value| json!([{"name": "setup", "ready": false, "restartCount": 3, "state": state}]);
        with_init["status"]["initContainerStatuses"] = state(json!({"waiting": {"reason": "ErrImagePull"}}));
        assert_eq!(
            failed(&[with_init.clone()]).unwrap(),
            "ErrImagePull: pod a, container setup: ErrImagePull"
        );
        with_init["status"]["initContainerStatuses"] =
            state(json!({"terminated": {"exitCode": 1, "reason": "Error"}}));
        let text = "CrashLoopBackOff: pod a, container setup: exit code 1, 3 restarts";
        assert_eq!(failed(&[with_init.clone()]).unwrap(), text);
        with_init["status"]["initContainerStatuses"] = state(json!({"terminated": {"exitCode": 0}}));
        assert_eq!(failed(&[with_init]), None);
    }

    #[test]
    fn a_container_of_a_job_that_ended_well_is_no_crash_loop() {
        let mut of_job = pod(
            "a",
            NOW,
            &json!({"name": "podinfo", "ready": false, "restartCount": 2,
            "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}),
        );
        of_job["spec"]["restartPolicy"] = json!("OnFailure");
        assert_eq!(failed(&[of_job]), None);
    }

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
    fn a_sidecar_of_another_image_counts() {
        let mut sidecar = waiting("CreateContainerConfigError", "secret \"tls\" not found");
        sidecar["name"] = json!("proxy");
        let text = "CreateContainerConfigError: pod a, container proxy: secret \"tls\" not found";
        assert_eq!(failed(&[pod("a", NOW, &sidecar)]).unwrap(), text);
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

    #[test]
    fn an_unschedulable_pod_is_a_message_only() {
        let report = reported(&[unschedulable("b"), unschedulable("a")]);
        assert_eq!(report.failure, None);
        assert_eq!(report.message.unwrap(), "pod a: 0/3 nodes are available: 3 Insufficient cpu.");
    }

    #[test]
    fn the_failure_does_not_depend_on_the_order_of_the_list() {
        let crash = json!({"name": "podinfo", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": CRASH_LOOP}}});
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

    #[test]
    fn the_newest_unready_pods_with_the_wanted_image_are_kept() {
        let pod = |number: u32, ready: &str, image: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"name": format!("{ready}{number}"),
                    "creationTimestamp": format!("2026-11-02T10:{number:02}:00Z")},
                "spec": {"containers": [{"name": "a", "image": image}]},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            }))
            .unwrap()
        };
        let wanted = (0..30).flat_map(|number| [pod(number, "True", WANTED), pod(number, "False", WANTED)]);
        // A rollback from an image whose pods never became ready, and are newer.
        let broken = (30..50).map(|number| pod(number, "False", "ghcr.io/a/podinfo:7.0.0"));
        let now = NOW.parse().unwrap();
        let kept = most_informative(wanted.chain(broken), |image| image == WANTED, now);
        let names: Vec<String> = kept.into_iter().map(|pod| pod.metadata.name.unwrap()).collect();
        let expected = (22..30).rev().map(|number| format!("False{number}"));
        assert_eq!(names, expected.chain(["True29".to_owned(), "True28".to_owned()]).collect::<Vec<_>>());
    }
    /// The only failed pod of many was not among the kept ones.
    #[test]
    fn failed_pods_are_kept_before_newer_ones() {
        let named = |name: &str, minute: u32, state: &Value| {
            let mut pod = pod(name, NOW, state);
            pod["metadata"]["creationTimestamp"] = json!(format!("2026-11-02T10:{minute:02}:00Z"));
            pod
        };
        let starting =
            json!({"name": "podinfo", "ready": false, "state": {"waiting": {"reason": "ContainerCreating"}}});
        let mut pods: Vec<Value> =
            (10..30).map(|minute| named(&format!("starting{minute}"), minute, &starting)).collect();
        let mut deleted = named("deleted", 31, &waiting("ErrImagePull", "x"));
        deleted["metadata"]["deletionTimestamp"] = json!(NOW);
        let mut waits = unschedulable("waits");
        waits["metadata"]["creationTimestamp"] = json!("2026-11-02T10:03:00Z");
        pods.extend([
            deleted,
            waits,
            named("config", 1, &waiting("CreateContainerConfigError", "x")),
            named("image", 2, &waiting("ImagePullBackOff", "x")),
        ]);
        let pods = pods.into_iter().map(|pod| serde_json::from_value(pod).unwrap());
        let kept = most_informative(pods, |image| image == WANTED, NOW.parse().unwrap());
        let names: Vec<String> = kept.into_iter().map(|pod| pod.metadata.name.unwrap()).collect();
        let expected = ["image", "config", "waits", "starting29", "starting28", "starting27"];
        assert_eq!(names[..6], expected, "{names:?}");
        assert_eq!(names.len(), KEPT.0);
    }
}
