//! Rollouts that fail, and the recovery from them.

use serde_json::json;

use super::fleet::{DEPLOYMENT, Fleet, RELEASE};
use super::step::{COMMITTED, INSTALLED, Step, UNAPPLIED};
use crate::support::workloads::PodState;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_cannot_be_pulled_is_reported_alike_until_the_next_tag_runs() {
    let mut fleet = Fleet::new(DEPLOYMENT).await;
    fleet.start(&[]).await;
    fleet.reports(&UNAPPLIED).await;
    fleet.flux().reconcile().await;
    fleet.reports(&INSTALLED).await;
    let message = "Back-off pulling image <2.0.0> & \"others\"";
    fleet.set_pods("2.0.0", PodState::waiting("ImagePullBackOff", message));
    fleet.publish("2.0.0");
    fleet.reports(&COMMITTED).await;
    fleet.flux().reconcile().await;
    let failed = Step {
        state: "failed",
        components: &["failed"],
        cause: "ImagePullBackOff",
        message: "Back-off pulling image",
        current: "Running failed",
        ..COMMITTED
    };
    let status = fleet.reports(&failed).await;
    let source = format!("Deployment/{}/podinfo", fleet.namespace());
    assert_eq!(status["components"][0]["error"]["source"], source, "{status:#}");
    fleet.announces(&["RolloutSucceeded 1.0.0", "RolloutFailed 2.0.0"]).await;

    fleet.publish("2.0.1");
    let tags = &["1.0.0", "2.0.0", "2.0.1"];
    fleet.reports(&Step { tag: "2.0.1", in_git: tags, ..COMMITTED }).await;
    fleet.flux().reconcile().await;
    let recovered = Step { tag: "2.0.1", in_git: tags, pushed: "main", ..INSTALLED };
    let status = fleet.reports(&recovered).await;
    assert_eq!(status["deployHistory"][1]["version"], "1.0.0", "{status:#}");
    let outcomes = ["RolloutSucceeded 1.0.0", "RolloutFailed 2.0.0", "RolloutSucceeded 2.0.1"];
    fleet.announces(&outcomes).await;
    fleet.end();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_helm_release_is_reported_alike_until_a_retry_succeeds() {
    let mut fleet = Fleet::new(RELEASE).await;
    fleet.start(&[]).await;
    fleet.reports(&UNAPPLIED).await;
    fleet.flux().reconcile().await;
    fleet.flux().upgrade().await;
    fleet.reports(&INSTALLED).await;
    fleet.publish("2.0.0");
    fleet.reports(&COMMITTED).await;
    fleet.flux().reconcile().await;
    fleet.flux().fail_to_upgrade("Helm upgrade failed: timed out").await;
    let failed = Step {
        state: "failed",
        components: &["failed"],
        cause: "UpgradeFailed",
        message: "Helm upgrade failed: timed out",
        current: "Applied failed",
        ..COMMITTED
    };
    let status = fleet.reports(&failed).await;
    let (component, namespace) = (&status["components"][0], fleet.namespace());
    assert_eq!(component["name"], format!("Deployment/{namespace}/podinfo"), "{status:#}");
    assert_eq!(component["error"]["source"], format!("HelmRelease/{namespace}/podinfo"), "{status:#}");
    assert_eq!(
        (&component["applier"], &component["tie"]),
        (&component["error"]["source"], &json!("release"))
    );
    fleet.flux().upgrade().await;
    fleet.reports(&Step { tag: "2.0.0", in_git: COMMITTED.in_git, pushed: "main", ..INSTALLED }).await;
    let outcomes = ["RolloutSucceeded 1.0.0", "RolloutFailed 2.0.0", "RolloutSucceeded 2.0.0"];
    fleet.announces(&outcomes).await;
    fleet.end();
}
