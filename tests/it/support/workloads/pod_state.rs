//! States of pods, as a kubelet reports them.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

/// The state that the tests' kubelet gives a pod and its containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PodState {
    /// No node has room for it, with this message.
    /// A pod that has a node keeps it.
    Unschedulable(String),
    /// On a node, and not started.
    Starting,
    Ready,
    /// Running, and not ready.
    Unready,
    /// The containers cannot start.
    Waiting {
        reason: String,
        message: String,
    },
    /// The containers have ended, and wait for the next restart.
    BackOff(Ended),
    /// The containers run again after an end, and are not ready.
    Restarted(Ended),
    /// All containers have ended with 0.
    Succeeded,
    /// The containers have ended with this exit code, for good.
    Failed(i32),
}

/// The end of a container that is restarted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) exit_code: i32,
    /// `Error` or `OOMKilled`.
    pub(crate) reason: &'static str,
    pub(crate) restarts: i32,
}

impl PodState {
    pub(crate) fn waiting(reason: &str, message: &str) -> Self {
        Self::Waiting { reason: reason.to_owned(), message: message.to_owned() }
    }

    /// Returns `true` if the pod stays without a node.
    pub(super) fn is_unscheduled(&self) -> bool {
        matches!(self, Self::Unschedulable(_))
    }

    /// The status of a pod in this state since `now`.
    pub(super) fn status(&self, pod: &Pod, now: &str) -> Value {
        let scheduled = match self {
            Self::Unschedulable(message) => condition(
                "PodScheduled",
                false,
                &json!({"reason": "Unschedulable", "message": message}),
                (pod, now),
            ),
            _ => condition("PodScheduled", true, &json!({}), (pod, now)),
        };
        if self.is_unscheduled() {
            return json!({"phase": "Pending", "conditions": [scheduled]});
        }
        let is_ready = *self == Self::Ready;
        let names: Vec<&str> = containers(pod).map(|(name, _)| name).collect();
        let detail = match self {
            Self::Ready => json!({}),
            Self::Succeeded => json!({"reason": "PodCompleted"}),
            _ => json!({
                "reason": "ContainersNotReady",
                "message": format!("containers with unready status: [{}]", names.join(" ")),
            }),
        };
        let conditions = [
            scheduled,
            condition("Initialized", true, &json!({}), (pod, now)),
            condition("ContainersReady", is_ready, &detail, (pod, now)),
            condition("Ready", is_ready, &detail, (pod, now)),
        ];
        let (state, last_state, restarts) = self.container(now);
        let containers = containers(pod).map(|(name, image)| {
            json!({
                "name": name, "image": image, "imageID": "", "ready": is_ready, "started": is_ready,
                "restartCount": restarts, "state": state, "lastState": last_state,
            })
        });
        json!({
            "phase": self.phase(),
            "startTime": pod.status.as_ref().and_then(|status| status.start_time.as_ref()).map_or(json!(now), |time| json!(time)),
            "conditions": conditions,
            "containerStatuses": containers.collect::<Vec<_>>(),
        })
    }

    fn phase(&self) -> &'static str {
        match self {
            Self::Unschedulable(_) | Self::Starting | Self::Waiting { .. } => "Pending",
            Self::Ready | Self::Unready | Self::BackOff(_) | Self::Restarted(_) => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed(_) => "Failed",
        }
    }

    /// The state of each container, its last state, and the number of restarts.
    fn container(&self, now: &str) -> (Value, Value, i32) {
        let running = json!({"running": {"startedAt": now}});
        let waiting =
            |reason: &str, message: &str| json!({"waiting": {"reason": reason, "message": message}});
        let ended = |exit_code: i32, reason: &str| json!({"terminated": {"exitCode": exit_code, "reason": reason, "startedAt": now, "finishedAt": now}});
        match self {
            Self::Unschedulable(_) => (json!({}), json!({}), 0),
            Self::Starting => (waiting("ContainerCreating", ""), json!({}), 0),
            Self::Ready | Self::Unready => (running, json!({}), 0),
            Self::Waiting { reason, message } => (waiting(reason, message), json!({}), 0),
            Self::BackOff(last) => (
                waiting("CrashLoopBackOff", "back-off 10s restarting failed container"),
                ended(last.exit_code, last.reason),
                last.restarts,
            ),
            Self::Restarted(last) => (running, ended(last.exit_code, last.reason), last.restarts),
            Self::Succeeded => (ended(0, "Completed"), json!({}), 0),
            Self::Failed(exit_code) => (ended(*exit_code, "Error"), json!({}), 0),
        }
    }
}

/// The names and images of a pod's containers.
pub(super) fn containers(pod: &Pod) -> impl Iterator<Item = (&str, &str)> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers.map(|container| (container.name.as_str(), container.image.as_deref().unwrap_or_default()))
}

/// A condition of a pod, whose time changes only with its status.
fn condition(kind: &str, holds: bool, detail: &Value, (pod, now): (&Pod, &str)) -> Value {
    let status = if holds { "True" } else { "False" };
    let former = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut former = former.filter(|condition| condition.type_ == kind && condition.status == status);
    let since = former.find_map(|condition| condition.last_transition_time.as_ref());
    let since = since.map_or_else(|| json!(now), |time| json!(time));
    let mut condition = json!({"type": kind, "status": status, "lastTransitionTime": since});
    for (field, value) in detail.as_object().into_iter().flatten() {
        condition[field] = value.clone();
    }
    condition
}
