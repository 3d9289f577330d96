//! Several replicas: all of them serve the reports, and the leader makes them.

use reqwest::Method;
use serde_json::{Value, json};

use super::scene::{Scene, deployment, image};
use crate::controller::pod::Pod;
use crate::rest::answer::Answer;
use crate::support::api_server::{Call, Faults};
use crate::support::eventually::eventually;

const DEPLOYMENTS: &str = "/api/v1/deployments";

/// Returns whether a request reads objects of which only reports are made.
fn reads_workloads(call: &Call) -> bool {
    const KINDS: [&str; 11] = [
        "deployments",
        "statefulsets",
        "daemonsets",
        "jobs",
        "cronjobs",
        "pods",
        "kustomizations",
        "helmreleases",
        "applications",
        "rollouts",
        "canaries",
    ];
    KINDS.contains(&call.resource.as_str())
}

/// Returns whether the program watches Deployments, after it has listed them.
fn watches(faults: &Faults) -> bool {
    let calls = faults.calls();
    ["list", "watch"].iter().all(|verb| calls.iter().any(|call| call.is(verb, "deployments")))
}

async fn is_leader(replica: &Pod) {
    let leads = async || replica.lines().iter().any(|line| line["msg"] == "became the leader");
    eventually("the replica is the leader", leads).await;
}

async fn get(replica: &Pod, headers: &[(&str, &str)]) -> Answer {
    Answer::of(Method::GET, &replica.status, DEPLOYMENTS, headers).await
}

/// The statuses of the objects, as the documents of the REST API have them.
async fn stored(scene: &Scene) -> Vec<Value> {
    let mut statuses = Vec::new();
    for member in ["other", "podinfo"] {
        let mut status = scene.object(member).await.unwrap().data["status"].clone();
        for field in ["deploymentId", "timeStamp"] {
            status.as_object_mut().unwrap().remove(field);
        }
        statuses.push(status);
    }
    statuses
}

/// Waits until both replicas serve the same documents, as the objects have them.
async fn serve_alike(scene: &Scene, replicas: [&Pod; 2]) {
    let are_alike = async || {
        let [first, second] = [get(replicas[0], &[]).await, get(replicas[1], &[]).await];
        let tag = first.header("etag");
        let document = first.json();
        let statuses = document["items"].as_array().into_iter().flatten().map(|item| &item["status"]);
        // A client that goes to the other replica has the document already.
        (first.status, &first.body, tag) == (200, &second.body, second.header("etag"))
            && statuses.eq(&stored(scene).await)
            && get(replicas[1], &[("If-None-Match", tag)]).await.status == 304
    };
    eventually("both replicas serve the statuses of the objects", are_alike).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_replica_serves_the_reports_and_only_the_leader_watches_workloads() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1)), ("other", deployment("other", 1))]).await;
    let faults = [Faults::default(), Faults::default()];
    let mut first = scene.start_replica(&scene.cluster().faulty_kubeconfig(&faults[0]).await);
    is_leader(&first).await;
    let mut second = scene.start_replica(&scene.cluster().faulty_kubeconfig(&faults[1]).await);
    for member in ["podinfo", "other"] {
        scene.state(member, "1.0.0", "pending").await;
    }
    scene.apply_tree().await;
    let rolls_out = async |member: &str, tag: &str| {
        let is = |status: &Value| {
            status["state"] == "installed" && status["target"]["tag"] == tag && status["progress"] == "1/1"
        };
        scene.until(member, &format!("1/1 with {tag}"), is).await
    };
    rolls_out("podinfo", "1.0.0").await;
    let before = rolls_out("other", "1.0.0").await;
    serve_alike(&scene, [&first, &second]).await;

    scene.choose("podinfo", "2.0.0").await;
    scene.lands("podinfo", "2.0.0").await;
    scene.apply_tree().await;
    rolls_out("podinfo", "2.0.0").await;
    serve_alike(&scene, [&first, &second]).await;
    assert!(watches(&faults[0]));
    let calls = faults[1].calls();
    assert!(calls.iter().any(|call| call.is("watch", "deploymentstatuses")), "{calls:#?}");
    let of_workloads: Vec<Call> = calls.into_iter().filter(reads_workloads).collect();
    assert!(of_workloads.is_empty(), "{of_workloads:#?}");

    // The other one goes on.
    assert_eq!(first.terminate().0, Some(0));
    is_leader(&second).await;
    eventually("the next leader watches workloads", async || watches(&faults[1])).await;
    scene.choose("podinfo", "3.0.0").await;
    scene.lands("podinfo", "3.0.0").await;
    scene.apply_tree().await;
    let status = rolls_out("podinfo", "3.0.0").await;
    let deployed = status["deployHistory"].as_array().unwrap().iter().map(|entry| &entry["version"]);
    assert!(deployed.eq(&[json!("3.0.0"), json!("2.0.0"), json!("1.0.0")]), "{status:#}");
    let after = rolls_out("other", "1.0.0").await;
    for field in ["since", "components", "deployHistory"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    let announced = async |member: &str| {
        let events = scene.events(member).await;
        let outcome = |event: &String| event.split(' ').skip(1).take(2).collect::<Vec<_>>().join(" ");
        events.iter().map(outcome).collect::<Vec<_>>()
    };
    let succeeded = |member: &str, tag: &str| format!("RolloutSucceeded {}:{tag}", image(member));
    let tags = ["1.0.0", "2.0.0", "3.0.0"];
    assert_eq!(announced("podinfo").await, tags.map(|tag| succeeded("podinfo", tag)));
    assert_eq!(announced("other").await, [succeeded("other", "1.0.0")]);
    assert_eq!(second.terminate().0, Some(0));
}
