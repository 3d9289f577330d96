//! Clusters that lack the kind, go away, and come back.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use tagboat::web::store::ClusterState;

use super::scene::{Scene, define};
use super::server::Server;
use super::sink::Sink;
use super::status::status;
use crate::support::api_server::ApiServer;
use crate::support::http_front::Reply;

/// The kind is requested once per minute.
const PATIENCE: Duration = Duration::from_secs(150);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_waits_for_the_kind_and_reports_an_outage_of_the_cluster() {
    let server = Arc::new(ApiServer::start());
    let sink = Sink::start(|_| Reply::status(204));
    let endpoint = format!("--status-endpoint={}", sink.endpoint());
    let scene = Scene::without_kind(server.clone(), &["--cluster-name=edge-1", &endpoint]).await;
    let reason =
        "the deployments cannot be listed: the CustomResourceDefinition of DeploymentStatus is not installed";
    let answer = scene.until("/api/v1/deployments", PATIENCE, |answer| answer.body.contains(reason)).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, "10"));
    assert_eq!(scene.get("/api/v1/deployments/1/status").await.status, 503);
    assert_eq!(scene.get("/api/v1/clusters").await.status, 200);

    define(&scene.cluster).await;
    let components = [("Deployment/a/b", "installed")];
    let installed = status("1", "installed", &components);
    scene.write("web", &json!({}), &installed).await;
    let path = "/api/v1/deployments/1/status";
    let before = scene.until(path, PATIENCE, |answer| answer.status == 200).await.json();
    assert_eq!(before["status"]["state"], "installed");
    let logged = |text: &str| {
        let lines = scene.pod.lines();
        lines.iter().filter(|line| line.to_string().contains(text)).count()
    };
    assert_eq!(logged("the status of deployments is not served"), 1, "{:#?}", scene.pod.lines());

    assert_eq!(sink.pushed("1", 1).await, std::slice::from_ref(&before));

    server.stop();
    let during =
        scene.until(path, PATIENCE, |answer| answer.json()["status"]["state"] == "failed").await.json();
    let error = &during["status"]["error"];
    assert_eq!((&error["code"], &error["source"]), (&json!("HostUnavailable"), &json!("edge-1")));
    assert_eq!(during["status"]["components"][0]["state"], "pending");
    assert_eq!(sink.pushed("1", 2).await[1], during);
    let clusters = scene.get("/api/v1/clusters").await.json();
    assert_eq!(clusters["items"][0]["state"], "down");
    assert_eq!(scene.get("/api/v1/deployments").await.json()["state"], "failed");
    assert_eq!(scene.get("/api/v1/deployments?state=installed").await.json()["summary"]["total"], 0);

    server.resume();
    let after = scene.until(path, PATIENCE, |answer| answer.json()["status"]["state"] == "installed").await;
    assert_eq!(after.json(), before);
    assert_eq!(sink.pushed("1", 3).await[2], before);
    assert_eq!(
        scene.get("/api/v1/clusters").await.json()["items"],
        json!([{"name": "edge-1", "state": "up"}])
    );
}

#[tokio::test]
async fn the_time_of_an_outage_is_in_whole_seconds_as_every_other_time() {
    let server = Server::start("edge-1").await;
    server.stores.set_cluster("core", ClusterState::Down("2026-11-23T10:00:00.123456789Z".parse().unwrap()));
    let clusters = server.get("/api/v1/clusters").await.json();
    let expected = json!([
        {"name": "core", "state": "down", "since": "2026-11-23T10:00:00Z"},
        {"name": "edge-1", "state": "up"},
    ]);
    assert_eq!(clusters["items"], expected);
}
