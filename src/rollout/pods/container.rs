//! The failure of one container of a pod.
//!
//! Source: the reasons of waiting containers in `pkg/kubelet/images/types.go`, `pkg/kubelet/container/` and
//! `pkg/kubelet/kuberuntime/` of Kubernetes.

use jiff::{SignedDuration, Timestamp};

use crate::rollout::assess::Failure;
use crate::rollout::objects::{ContainerStatus, PodSpec, PodStatus, Terminated};

/// The reasons of a waiting container that are failures, worst first.
pub(super) const FAILURES: [&str; 8] = [
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
pub(super) fn failure(
    container: &ContainerStatus,
    spec: &PodSpec,
    now: Timestamp,
) -> Option<(usize, String)> {
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

    use super::super::testing::{NOW, failed, pod, waiting};
    use super::*;

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

    #[test]
    fn a_sidecar_of_another_image_counts() {
        let mut sidecar = waiting("CreateContainerConfigError", "secret \"tls\" not found");
        sidecar["name"] = json!("proxy");
        let text = "CreateContainerConfigError: pod a, container proxy: secret \"tls\" not found";
        assert_eq!(failed(&[pod("a", NOW, &sidecar)]).unwrap(), text);
    }
}
