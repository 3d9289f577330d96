//! `--live` with the deployments of a real API server.

use serde_json::{Value, json};

use super::{Place, deployment, file, history};
use crate::status::scene::{Scene, installed};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_running_value_is_marked() {
    let (scene, place) = (Scene::new().await, Place::new());
    let policy = format!("{}:podinfo", scene.namespace());
    let content = |tag: &str| deployment("podinfo", &[tag]).replace("apps:podinfo", &policy);
    place.repository(&[
        &[file("apps/podinfo.yaml", content("1.0.0"))],
        &[file("apps/podinfo.yaml", content("2.0.0"))],
        &[file("apps/podinfo.yaml", content("3.0.0"))],
    ]);
    let clone = place.clone("clone", &[]);
    scene.deploy("podinfo", &installed("2.0.0")).await;
    let kubeconfig = scene.kubeconfig().to_str().unwrap().to_owned();
    let live = ["--live", "--kubeconfig", &kubeconfig, "--policy", &policy];
    let run = history(&clone, &live).with_status(0);
    assert_eq!(run.errors, "");
    let ends: Vec<&str> = run.output.lines().map(|line| line.rsplit("  ").next().unwrap()).collect();
    let added = format!("1.0.0 (added: {policy}:tag)");
    assert_eq!(ends, ["2.0.0 -> 3.0.0", "1.0.0 -> 2.0.0 [running 2/2]", &added]);
    let run = history(&clone, &[&live[..], &["-o", "json"]].concat()).with_status(0);
    let found: Vec<Value> =
        run.json()["changes"].as_array().unwrap().iter().map(|change| change["live"].clone()).collect();
    let running = json!([{"name": "Deployment/apps/podinfo", "state": "running", "ready": 2, "desired": 2}]);
    assert_eq!(found, [json!([]), running, json!([])]);
    // All namespaces are read without a policy, and another policy has no deployment.
    let run = history(&clone, &["--live", "--kubeconfig", &kubeconfig]).with_status(0);
    assert_eq!(run.output.matches("[running 2/2]").count(), 1);
    scene.delete("podinfo").await;
    let run = history(&clone, &live).with_status(0);
    assert!(!run.output.contains('['), "{run:?}");
    let name = policy.replace(':', "/");
    assert_eq!(
        run.errors,
        format!("note: the cluster has no DeploymentStatus of {name}, so their values are unknown\n")
    );
}

#[test]
fn without_a_cluster_nothing_is_listed() {
    let place = Place::new();
    place.repository(&[&[file("a.yaml", deployment("podinfo", &["1.0.0"]))]]);
    let clone = place.clone("clone", &[]);
    let run = history(&clone, &["--live"]).with_status(1);
    assert_eq!(run.output, "");
    assert!(run.only_error().ends_with("; --live needs a cluster"), "{run:?}");
}
