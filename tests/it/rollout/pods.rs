//! The errors of pods of a real rollout, before its deadline.

use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, ListParams};
use serde_json::json;
use tagboat::rollout::objects::{Deployment, Pod};
use tagboat::rollout::pods::{PodList, PodReport, report};

use super::manifests::{create, set_image, workload};
use super::observed::Observed;
use crate::support::eventually::eventually_found;
use crate::support::workloads::{Ended, PodState, WorkloadCluster};

/// Reports the errors of the pods with an image, some time from now.
async fn reported(cluster: &WorkloadCluster, image: &str, later: SignedDuration) -> PodReport {
    let pods: Api<Pod> = Api::default_namespaced(cluster.client());
    let pods = pods.list(&ListParams::default().labels("app=podinfo")).await.unwrap().items;
    let listed_at = Timestamp::now() + later;
    report(&PodList { pods, listed_at }, |found| found == image)
}

/// Waits for the failure with a code, and returns its message from the container on.
async fn failure(cluster: &WorkloadCluster, image: &str, code: &str) -> String {
    let message = eventually_found(code, async || {
        let failure = reported(cluster, image, SignedDuration::ZERO).await.failure?;
        (failure.code == code).then_some(failure.message)
    })
    .await;
    message.split_once(", container ").unwrap().1.to_owned()
}

/// Starts a rollout of three pods from the image `podinfo:1.0.0` to `podinfo:2.0.0`.
async fn rolling(cluster: &WorkloadCluster, state: PodState) -> Observed {
    let mut podinfo = Observed::start::<Deployment>(cluster, "podinfo");
    create(cluster, &workload("Deployment", "podinfo:1.0.0", json!({"replicas": 3}))).await;
    podinfo.until("1.0.0 complete 3/3/3").await;
    cluster.kubelet().set_image("podinfo:2.0.0", state);
    set_image::<Deployment>(cluster, "podinfo:2.0.0").await;
    podinfo.until("2.0.0 in progress 3/1/3").await;
    podinfo
}

#[tokio::test]
async fn a_pod_that_cannot_start_fails_its_rollout_before_the_deadline() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = rolling(&cluster, PodState::Starting).await;
    let reasons = [
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    ];
    for reason in reasons {
        cluster.kubelet().set_image("podinfo:2.0.0", PodState::waiting(reason, "it cannot start"));
        assert_eq!(failure(&cluster, "podinfo:2.0.0", reason).await, "podinfo: it cannot start");
        assert_eq!(reported(&cluster, "podinfo:1.0.0", SignedDuration::ZERO).await, PodReport::default());
    }
    cluster.kubelet().set_image("podinfo:2.0.0", PodState::Ready);
    podinfo.only("2.0.0 in progress", "2.0.0 complete 3/3/3").await;
    let settled = reported(&cluster, "podinfo:2.0.0", SignedDuration::from_hours(1)).await;
    assert_eq!(settled, PodReport::default());
}

#[tokio::test]
async fn a_crash_loop_is_a_failure_between_its_restarts_too() {
    let cluster = WorkloadCluster::new().await;
    let ended = |exit_code, reason, restarts| Ended { exit_code, reason, restarts };
    let _podinfo = rolling(&cluster, PodState::Restarted(ended(1, "Error", 1))).await;
    assert_eq!(reported(&cluster, "podinfo:2.0.0", SignedDuration::ZERO).await.failure, None);
    for (state, expected) in [
        (PodState::BackOff(ended(1, "Error", 2)), "podinfo: exit code 1, 2 restarts"),
        (PodState::Restarted(ended(2, "Error", 3)), "podinfo: exit code 2, 3 restarts"),
        (PodState::BackOff(ended(137, "OOMKilled", 4)), "podinfo: OOMKilled (exit code 137), 4 restarts"),
    ] {
        cluster.kubelet().set_image("podinfo:2.0.0", state);
        eventually_found(expected, async || {
            (failure(&cluster, "podinfo:2.0.0", "CrashLoopBackOff").await == expected).then_some(())
        })
        .await;
    }
}

/// The pods of the first image crash, and those of the second are fine.
#[tokio::test]
async fn pods_with_the_old_image_never_count() {
    let cluster = WorkloadCluster::new().await;
    let mut podinfo = rolling(&cluster, PodState::Starting).await;
    let ended = Ended { exit_code: 1, reason: "Error", restarts: 7 };
    cluster.kubelet().set_image("podinfo:1.0.0", PodState::BackOff(ended));
    failure(&cluster, "podinfo:1.0.0", "CrashLoopBackOff").await;
    assert_eq!(reported(&cluster, "podinfo:2.0.0", SignedDuration::ZERO).await.failure, None);
    cluster.kubelet().set_image("podinfo:2.0.0", PodState::Ready);
    podinfo.until("2.0.0 complete 3/3/3").await;
}

#[tokio::test]
async fn pods_that_are_not_available_for_a_minute_are_a_failure() {
    let cluster = WorkloadCluster::new().await;
    let _podinfo = rolling(&cluster, PodState::Unready).await;
    let late = eventually_found("the pod is running", async || {
        let report = reported(&cluster, "podinfo:2.0.0", SignedDuration::from_secs(61)).await;
        report.failure.filter(|failure| failure.message.contains("unready status"))
    })
    .await;
    assert_eq!(late.code, "Unavailable");
    let early = reported(&cluster, "podinfo:2.0.0", SignedDuration::ZERO).await;
    assert_eq!(early, PodReport::default());
}

#[tokio::test]
async fn an_unschedulable_pod_sets_only_the_message() {
    let cluster = WorkloadCluster::new().await;
    let full = "0/3 nodes are available: 3 Insufficient cpu.";
    let _podinfo = rolling(&cluster, PodState::Unschedulable(full.to_owned())).await;
    let message = eventually_found("the pod is unschedulable", async || {
        let report = reported(&cluster, "podinfo:2.0.0", SignedDuration::from_hours(1)).await;
        assert_eq!(report.failure, None);
        report.message
    })
    .await;
    assert!(message.ends_with(full), "{message}");
}
