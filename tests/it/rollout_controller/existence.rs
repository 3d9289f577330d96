//! The life of the object of a policy.

use std::sync::Arc;

use serde_json::json;

use super::scene::{Scene, deployment};
use crate::controller::scene::Kind;
use crate::support::api_server::ApiServer;
use crate::support::eventually::eventually;
use crate::support::workloads::{WorkloadCluster, install_kinds};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_belongs_to_its_policy_and_has_its_labels() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    // A policy without a marker has no object.
    scene.create_policy("unused", "1.0.0").await;
    let _program = scene.start().await;
    scene.state("podinfo", "1.0.0", "pending").await;
    let object = scene.object("podinfo").await.unwrap();
    let policy = scene.api(Kind::Policy).get("podinfo").await.unwrap();
    assert_eq!(object.metadata.labels, policy.metadata.labels);
    assert_eq!(object.data["spec"], json!({"policyRef": {"name": "podinfo"}}));
    assert_eq!(object.data["status"]["deploymentId"], policy.metadata.uid.clone().unwrap());
    let owner = json!([{
        "apiVersion": "image.toolkit.fluxcd.io/v1", "kind": "ImagePolicy", "name": "podinfo", "uid": policy.metadata.uid,
    }]);
    assert_eq!(json!(object.metadata.owner_references), owner);
    assert!(scene.object("unused").await.is_none());

    // Labels follow the policy, and those of others are removed.
    let labels = json!({"metadata": {"labels": {"app": null, "team": "a"}}});
    scene.patch(Kind::Policy, "podinfo", &labels).await;
    let has_labels = async || {
        let labels = scene.object("podinfo").await.unwrap().metadata.labels.unwrap_or_default();
        labels.into_iter().collect::<Vec<_>>() == [("team".to_owned(), "a".to_owned())]
    };
    eventually("the labels are those of the policy", has_labels).await;
    let patch = kube::api::Patch::Merge(json!({"metadata": {"labels": {"other": "x"}}}));
    scene.statuses().patch("podinfo", &kube::api::PatchParams::default(), &patch).await.unwrap();
    eventually("the labels are those of the policy again", has_labels).await;

    // An object that another client deletes is made again.
    let uid = object.metadata.uid;
    scene.statuses().delete("podinfo", &kube::api::DeleteParams::default()).await.unwrap();
    let is_new = async || scene.object("podinfo").await.is_some_and(|object| object.metadata.uid != uid);
    eventually("the object is made again", is_new).await;
    scene.state("podinfo", "1.0.0", "pending").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_is_deleted_with_its_last_marker_automation_or_policy() {
    let members = ["marker", "policy", "automation"].map(|member| (member, deployment(member, 1)));
    let scene = Scene::new(&members).await;
    let _program = scene.start().await;
    for (member, _) in &members {
        scene.state(member, "1.0.0", "pending").await;
    }
    // Only the marker is removed.
    let unmarked = deployment("marker", 1).replace("$imagepolicy", "none");
    scene.commit("marker.yaml", Some(&unmarked));
    scene.rescan("1").await;
    scene.gone("marker").await;
    assert!(scene.object("policy").await.is_some() && scene.object("automation").await.is_some());
    scene.delete(Kind::Policy, "policy").await;
    scene.gone("policy").await;
    assert!(scene.object("automation").await.is_some());
    scene.delete(Kind::Automation, "fleet").await;
    scene.gone("automation").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_deletes_no_object_whose_automation_cannot_be_scanned() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    let mut program = scene.start().await;
    scene.apply_tree().await;
    scene.state("podinfo", "1.0.0", "installed").await;
    assert_eq!(program.terminate().0, Some(0));
    let before = scene.object("podinfo").await.unwrap();
    // The next process never scans, and its policy moves on meanwhile.
    scene.patch(Kind::Automation, "fleet", &json!({"spec": {"suspend": true}})).await;
    let mut program = scene.start().await;
    scene.choose("podinfo", "2.0.0").await;
    let is_ready = async || program.lines().iter().any(|line| line["msg"] == "reporting rollouts");
    eventually("the program reports rollouts", is_ready).await;
    scene.patch(Kind::Automation, "fleet", &json!({"spec": {"suspend": false}})).await;
    scene.lands("podinfo", "2.0.0").await;
    let status = scene.state("podinfo", "2.0.0", "pending").await;
    let after = scene.object("podinfo").await.unwrap();
    assert_eq!(after.metadata.uid, before.metadata.uid);
    assert_eq!(status["deployHistory"], before.data["status"]["deployHistory"], "{status:#}");
    assert_eq!(program.terminate().0, Some(0));
}

/// A suspended automation is never scanned after a restart, so its markers are unknown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_is_deleted_beside_an_automation_that_is_never_scanned() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1)), ("other", deployment("other", 1))]).await;
    let mut program = scene.start().await;
    scene.apply_tree().await;
    scene.state("podinfo", "1.0.0", "installed").await;
    assert_eq!(program.terminate().0, Some(0));
    scene.create_automation("unrelated").await;
    scene.patch(Kind::Automation, "unrelated", &json!({"spec": {"suspend": true}})).await;
    let mut program = scene.start().await;
    let unmarked = deployment("podinfo", 1).replace("$imagepolicy", "none");
    scene.commit("podinfo.yaml", Some(&unmarked));
    scene.rescan("1").await;
    scene.gone("podinfo").await;
    assert!(scene.object("other").await.is_some());
    assert_eq!(program.terminate().0, Some(0));
}

/// The API server keeps objects without their owners here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_is_deleted_with_its_policy_in_a_cluster_without_a_garbage_collector() {
    let server = Arc::new(ApiServer::shared().start_beside("no-collector"));
    install_kinds(&server);
    let members = ["first", "second", "third"].map(|member| (member, deployment(member, 1)));
    let scene = Scene::of(WorkloadCluster::on(server).await, &members).await;
    let mut program = scene.start().await;
    for (member, _) in &members {
        scene.state(member, "1.0.0", "pending").await;
    }
    scene.delete(Kind::Policy, "first").await;
    scene.gone("first").await;
    assert_eq!(program.terminate().0, Some(0));

    // A policy that is deleted while no program runs, and one that is also made again.
    scene.delete(Kind::Policy, "second").await;
    scene.delete(Kind::Policy, "third").await;
    scene.create_policy("third", "1.0.0").await;
    assert!(scene.object("second").await.is_some());
    let before = scene.object("third").await.unwrap();
    let mut program = scene.start().await;
    scene.gone("second").await;
    let is_new = async || {
        let object = scene.object("third").await;
        object.is_some_and(|object| object.metadata.uid != before.metadata.uid)
    };
    eventually("the new policy has an object of its own", is_new).await;
    let status = scene.state("third", "1.0.0", "pending").await;
    let policy = scene.api(Kind::Policy).get("third").await.unwrap();
    assert_eq!(status["deploymentId"], policy.metadata.uid.unwrap());
    assert_eq!(program.terminate().0, Some(0));
}
