//! `--watch`: changes as they come.

use serde_json::{Value, json};

use super::scene::{Running, Scene, command, failed, installed, installing};
use crate::support::api_server::{Ending, Fault, Faults};
use crate::support::eventually::eventually;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_change_adds_a_row_until_the_command_is_interrupted() {
    let scene = Scene::new().await;
    scene.deploy("podinfo", &installed("6.5.1")).await;
    scene.deploy("other", &installed("1.0.0")).await;
    let mut running = Running::start(scene.command(&["--watch", "podinfo", "backend"]));
    assert_eq!(running.line(), "NAME STATE PROGRESS VERSION SINCE MESSAGE");
    assert_eq!(running.line(), "podinfo installed 2/2 6.5.1 2h");
    scene.set(scene.namespace(), "podinfo", &installing("6.5.2")).await;
    assert_eq!(running.line(), "podinfo installing 1/2 6.5.2 2h");
    // A deployment that is not selected, and a change of metadata.
    scene.set(scene.namespace(), "other", &installed("1.0.1")).await;
    scene.create(scene.namespace(), "backend", &json!({})).await;
    assert_eq!(running.line(), "backend - - - -");
    scene.set(scene.namespace(), "podinfo", &failed("6.5.2")).await;
    let pull = "Deployment/apps/podinfo: ImagePullBackOff: Back-off pulling image";
    assert_eq!(running.line(), format!("podinfo failed 1/2 6.5.2 2h {pull}"));
    scene.delete("podinfo").await;
    assert_eq!(running.line(), "podinfo gone - - -");
    let ended = running.interrupt();
    assert_eq!((ended.status, ended.output.as_str()), (None, ""));
    let words =
        format!("warning: no DeploymentStatus backend in the namespace {} is selected", scene.namespace());
    assert_eq!(ended.only_error(), words);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_is_a_document_on_one_line_after_each_change() {
    let scene = Scene::new().await;
    scene.deploy("podinfo", &installed("6.5.1")).await;
    let mut running = Running::start(scene.command(&["--watch", "-o", "json", "--automation", "apps"]));
    let mut document = || -> Value { serde_json::from_str(&running.line()).unwrap() };
    assert_eq!(document()["items"][0]["status"]["target"]["tag"], "6.5.1");
    scene.set(scene.namespace(), "podinfo", &installing("6.5.2")).await;
    let second = document();
    assert_eq!(
        (&second["state"], &second["items"][0]["status"]["progress"]),
        (&json!("installing"), &json!("1/2"))
    );
    // It is no longer selected.
    let mut status = installed("6.5.2");
    status["components"][0]["automation"] = json!("other");
    scene.set(scene.namespace(), "podinfo", &status).await;
    assert_eq!(document()["items"], json!([]));
    running.interrupt();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_arrive_by_a_watch_that_survives_failures() {
    let scene = Scene::new().await;
    scene.deploy("podinfo", &installed("6.5.1")).await;
    let faults = Faults::default();
    let kubeconfig = scene.cluster.faulty_kubeconfig(&faults).await;
    let mut running = Running::start(command(&kubeconfig, &["--watch", "-o", "wide"]));
    assert!(running.line().starts_with("NAME STATE"));
    assert!(running.line().starts_with("podinfo installed 2/2 6.5.1"));
    assert!(running.line().starts_with("Deployment/apps/podinfo installed 2/2"));
    let is_watch = |call: &crate::support::api_server::Call| call.is("watch", "deploymentstatuses");
    eventually("a watch begins", async || faults.calls().iter().any(is_watch)).await;
    scene.set(scene.namespace(), "podinfo", &installing("6.5.2")).await;
    assert!(running.line().starts_with("podinfo installing 1/2 6.5.2"));
    assert!(running.line().starts_with("Deployment/apps/podinfo installing 1/2"));
    // Nothing else is read, and nothing but the version is polled.
    let calls = faults.calls().into_iter().filter(|call| call.resource != "/version");
    let calls: Vec<(&str, String)> = calls.map(|call| (call.verb, call.resource)).collect();
    let resource = || "deploymentstatuses".to_owned();
    assert_eq!(calls, [("list", resource()), ("watch", resource())]);
    // The API server is away for a moment, in which a status changes.
    faults.next(3, Fault::Unreachable, |_| true);
    assert_eq!(faults.end_watches(Ending::Reset, is_watch), 1);
    scene.set(scene.namespace(), "podinfo", &installed("6.5.2")).await;
    assert!(running.line().starts_with("podinfo installed 2/2 6.5.2"));
    let ended = running.interrupt();
    assert!(
        ended
            .only_error()
            .starts_with("warning: the watch of DeploymentStatuses is interrupted and will be retried: "),
        "{ended:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_shows_the_changes_on_the_way() {
    let scene = Scene::new().await;
    scene.deploy("podinfo", &installing("6.5.2")).await;
    let mut running = Running::start(scene.command(&["podinfo", "--watch", "--wait"]));
    assert!(running.line().starts_with("NAME STATE"));
    assert_eq!(running.line(), "podinfo installing 1/2 6.5.2 2h");
    scene.set(scene.namespace(), "podinfo", &installed("6.5.2")).await;
    let ended = running.end().with_status(0);
    assert_eq!(
        ended.output.split_whitespace().collect::<Vec<_>>(),
        ["podinfo", "installed", "2/2", "6.5.2", "2h"]
    );
    assert_eq!(ended.errors, "");
}
