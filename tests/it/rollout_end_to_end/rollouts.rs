//! Rollouts that succeed.

use std::thread;

use serde_json::json;

use super::fleet::{DEPLOYMENT, Fleet};
use super::step::{COMMITTED, INSTALLED, Step, UNAPPLIED};
use crate::support::program::run;
use crate::support::workloads::PodState;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pushed_tag_is_reported_alike_until_its_last_pod_is_ready() {
    let mut fleet = Fleet::new(DEPLOYMENT).await;
    fleet.start(&[]).await;

    fleet.reports(&UNAPPLIED).await;
    fleet.flux().reconcile().await;
    let status = fleet.reports(&INSTALLED).await;
    let name = format!("Deployment/{}/podinfo", fleet.namespace());
    assert_eq!(status["components"][0]["name"], name, "{status:#}");

    // A pipeline pushes a tag, and waits for it.
    let image = fleet.image("2.0.0");
    let mut pipeline = fleet.status_command(&["podinfo", "--image", &image, "--wait", "5m"]);
    let pipeline = thread::spawn(move || run(&mut pipeline));
    fleet.suspend_automation(true).await;
    fleet.set_pods("2.0.0", PodState::Starting);
    fleet.publish("2.0.0");
    let chosen = Step {
        cause: "NotCommitted",
        message: "ImageUpdateAutomation",
        tag: "2.0.0",
        current: "Committed blocked",
        ..UNAPPLIED
    };
    fleet.reports(&chosen).await;
    fleet.suspend_automation(false).await;
    fleet.reports(&COMMITTED).await;
    fleet.flux().reconcile().await;
    let installing = Step {
        state: "installing",
        components: &["installing"],
        cause: "",
        message: "",
        current: "Running in progress",
        ..COMMITTED
    };
    fleet.reports(&installing).await;
    assert!(!pipeline.is_finished());
    fleet.set_pods("2.0.0", PodState::Ready);
    let installed = Step { tag: "2.0.0", in_git: COMMITTED.in_git, pushed: "main", ..INSTALLED };
    fleet.reports(&installed).await;
    let waited = pipeline.join().unwrap();
    assert_eq!((waited.status, waited.errors.as_str()), (Some(0), ""), "{waited:?}");

    // The next tag.
    fleet.publish("3.0.0");
    let tags = &["1.0.0", "2.0.0", "3.0.0"];
    fleet.reports(&Step { tag: "3.0.0", in_git: tags, ..COMMITTED }).await;
    fleet.flux().reconcile().await;
    let status = fleet.reports(&Step { tag: "3.0.0", in_git: tags, ..installed }).await;
    let deployed = status["deployHistory"].as_array().unwrap();
    let versions: Vec<_> = deployed.iter().map(|entry| &entry["version"]).collect();
    assert_eq!(versions, [&json!("3.0.0"), &json!("2.0.0"), &json!("1.0.0")], "{status:#}");
    assert_eq!(deployed[0]["commit"], status["commit"]["id"], "{status:#}");
    let expected = ["1.0.0", "2.0.0", "3.0.0"].map(|tag| format!("RolloutSucceeded {tag}"));
    fleet.announces(&expected).await;
    fleet.end();
}
