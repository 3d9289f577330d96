//! Rollouts of an image: the order of stages, cancellations, halts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::scene::{NodeScene, digest, image};
use crate::controller::pod::get;
use crate::support::eventually::eventually;

fn pool(version: &str) -> Value {
    json!({"image": {"ref": image(version)}})
}

/// A scene of nodes with version 1 whose pool wants version 2.
async fn staged(nodes: &[&str], spec: &Value) -> NodeScene {
    let scene = NodeScene::new().await;
    scene.add_nodes(nodes).await;
    scene.create_pool("p", spec).await;
    for node in nodes {
        scene.stage(node, "2").await;
    }
    scene
}

#[tokio::test]
async fn nodes_are_updated_one_by_one_and_the_pool_reports_it() {
    let scene = NodeScene::new().await;
    scene.add_nodes(&["a", "b", "c"]).await;
    scene.mark("c", json!({"topology.kubernetes.io/zone": "0"}), json!({})).await;
    scene.mark("b", json!({}), json!({"karpenter.sh/do-not-disrupt": "mine"})).await;
    scene.create_pool("p", &pool("2")).await;
    for node in ["a", "b", "c"] {
        scene.reaches(node, "idle").await;
        scene.stage(node, "2").await;
    }
    // A node without a zone comes first.
    for (node, next) in [("a", Some("b")), ("b", Some("c")), ("c", None)] {
        scene.reaches(node, "rebooting").await;
        let (keys, cordoned) = scene.keys(node).await;
        assert!(cordoned && keys["tagboat.dev/made-unschedulable"] == "true", "{keys:?}");
        assert_eq!(keys["karpenter.sh/do-not-disrupt"], if node == "b" { "mine" } else { "true" });
        if let Some(next) = next {
            assert_eq!(scene.keys(next).await.0["tagboat.dev/state"], "idle");
        }
        scene.condition("p", "UpToDate", "False RolloutInProgress").await;
        scene.reboot(node, "2").await;
        scene.reaches(node, "idle").await;
        let (keys, cordoned) = scene.keys(node).await;
        assert!(!cordoned && !keys.contains_key("tagboat.dev/made-unschedulable"), "{keys:?}");
        assert_eq!(keys["tagboat.dev/last-deployed"], digest("2"));
        let guard = keys.get("karpenter.sh/do-not-disrupt").map(String::as_str);
        assert_eq!(guard, (node == "b").then_some("mine"));
        assert!(!keys.contains_key("tagboat.dev/made-annotations"));
    }
    assert_eq!(scene.condition("p", "UpToDate", "True AllUpdated").await, "3/3 updated");
    scene.condition("p", "Degraded", "False Healthy").await;
    let status = scene.pools().get(&scene.full("p")).await.unwrap().status.unwrap();
    assert_eq!((status.node_count, status.updated_count, status.updating_count), (3, 3, 0));
    assert_eq!(status.target_digest.as_deref(), Some(digest("2").as_str()));
    let [entry] = &status.deploy_history[..] else { panic!("{status:?}") };
    assert_eq!((entry.digest.as_deref(), entry.node_count), (Some(digest("2").as_str()), 3));
    let new = digest("2");
    let expected = [
        format!("NodeUpdated a has {new}"),
        format!("NodeUpdated b has {new}"),
        format!("NodeUpdated c has {new}"),
        format!("RolloutCompleted all 3 nodes have {new}"),
        format!("RolloutStarted 3 of 3 nodes get {new}"),
    ];
    eventually("all events are recorded", async || scene.events("p").await.len() >= expected.len()).await;
    assert_eq!(scene.events("p").await, expected);
    let metrics = get(&scene.metrics, "metrics").await;
    for line in [
        format!("tagboat_nodes{{pool=\"{}\",state=\"idle\"}} 3", scene.full("p")),
        format!("tagboat_nodepool_degraded{{pool=\"{}\"}} 0", scene.full("p")),
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }
    assert!(metrics.contains("tagboat_node_stage_seconds_count{stage=\"rebooting\"}"), "{metrics}");
    // The version goes back: the same node count, and the former image is an entry once.
    scene.patch_pool("p", &json!({"spec": {"image": {"ref": image("1")}}})).await;
    for node in ["a", "b", "c"] {
        scene.stage(node, "1").await;
        scene.reaches(node, "rebooting").await;
        scene.reboot(node, "1").await;
        scene.reaches(node, "idle").await;
    }
    scene.condition("p", "UpToDate", "True AllUpdated").await;
    let status = scene.pools().get(&scene.full("p")).await.unwrap().status.unwrap();
    let digests: Vec<_> = status.deploy_history.iter().map(|entry| entry.digest.clone().unwrap()).collect();
    assert_eq!(digests, [digest("1"), digest("2")]);
}

/// Records each stage of the nodes of a scene.
async fn record_stages(
    scene: &NodeScene,
    nodes: &[&str],
) -> (JoinHandle<()>, Arc<Mutex<Vec<(String, String)>>>) {
    let labels =
        watcher::Config::default().labels(&format!("tests/namespace={}", scene.cluster().namespace()));
    let api: Api<Node> = Api::all(scene.cluster().client());
    let (prefix, recorded) = (scene.full(""), Arc::new(Mutex::new(Vec::new())));
    let own = recorded.clone();
    let recording = tokio::spawn(async move {
        // Each version of a node is an event.
        let mut events = watcher(api, labels).boxed();
        while let Some(event) = events.next().await {
            let (Event::Apply(node) | Event::InitApply(node)) = event.unwrap() else { continue };
            let (labels, annotations) = (node.labels(), node.annotations());
            for key in ["reboot-needed", "reboot-ok", "reboot-in-progress"] {
                let key = format!("tagboat.dev/{key}");
                assert!(!labels.contains_key(&key) && !annotations.contains_key(&key), "{node:?}");
            }
            let stage = labels.get("tagboat.dev/state").cloned().unwrap_or_default();
            own.lock().unwrap().push((node.name_any().replace(&prefix, ""), stage));
        }
    });
    eventually("the nodes are watched", async || recorded.lock().unwrap().len() >= nodes.len()).await;
    (recording, recorded)
}

#[tokio::test]
async fn each_node_passes_the_stages_in_order_while_the_others_wait() {
    const NODES: [&str; 3] = ["a", "b", "c"];
    let scene = NodeScene::new().await;
    scene.add_nodes(&NODES).await;
    let (recording, recorded) = record_stages(&scene, &NODES).await;
    scene.create_pool("p", &pool("2")).await;
    for node in NODES {
        scene.stage(node, "2").await;
    }
    for node in NODES {
        scene.reaches(node, "rebooting").await;
        scene.reboot(node, "2").await;
        scene.reaches(node, "idle").await;
    }
    eventually("the last stage is recorded", async || {
        recorded.lock().unwrap().last().is_some_and(|last| *last == ("c".to_owned(), "idle".to_owned()))
    })
    .await;
    assert!(!recording.is_finished(), "the watch found a key that does not exist");
    recording.abort();
    let mut stages: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let recorded = recorded.lock().unwrap().clone();
    for (node, stage) in recorded {
        let of_node = stages.entry(node).or_default();
        if of_node.last() != Some(&stage) {
            of_node.push(stage);
        }
        let in_slots =
            stages.values().filter(|stages| !matches!(stages.last().unwrap().as_str(), "" | "idle"));
        assert!(in_slots.count() <= 1, "{stages:?}");
    }
    let expected =
        ["", "idle", "before-drain", "draining", "before-reboot", "rebooting", "before-uncordon", "idle"];
    for node in NODES {
        assert_eq!(stages[node], expected, "{node}");
    }
}

#[tokio::test]
async fn a_node_that_holds_a_slot_finishes_when_the_window_closes() {
    let mut spec = pool("2");
    spec["hooks"] = json!({"beforeReboot": ["example.com/volumes"]});
    spec["rollout"] = json!({"windows": [{"start": "00:00", "length": "168h"}]});
    let scene = staged(&["a", "b"], &spec).await;
    scene.reaches("a", "before-reboot").await;
    let tomorrow = jiff::Timestamp::now().in_tz("UTC").unwrap().tomorrow().unwrap();
    let day = tomorrow.strftime("%a").to_string();
    let closed = json!([{"days": [day], "start": "23:59", "length": "1m"}]);
    scene.patch_pool("p", &json!({"spec": {"rollout": {"windows": closed}}})).await;
    scene.mark("a", json!({}), json!({"example.com/volumes": "true"})).await;
    scene.reaches("a", "rebooting").await;
    scene.reboot("a", "2").await;
    scene.reaches("a", "idle").await;
    let message = scene.condition("p", "UpToDate", "False OutsideWindow").await;
    assert!(message.starts_with("1/2 updated; 1 idle; a window opens at "), "{message}");
    assert_eq!(scene.keys("b").await.0["tagboat.dev/state"], "idle");
}

#[tokio::test]
async fn hooks_hold_each_stage_until_they_confirm() {
    let mut spec = pool("2");
    spec["hooks"] = json!({
        "beforeDrain": ["example.com/backup"], "beforeReboot": ["example.com/volumes"],
        "beforeUncordon": ["example.com/check"],
    });
    let scene = NodeScene::new().await;
    scene.add_nodes(&["a"]).await;
    // It is of an earlier rollout.
    scene.mark("a", json!({"example.com/backup": "true"}), json!({})).await;
    scene.create_pool("p", &spec).await;
    scene.stage("a", "2").await;
    scene.reaches("a", "before-drain").await;
    let has = async |key: &str| scene.node("a").await.metadata.labels.unwrap_or_default().contains_key(key);
    assert!(!has("example.com/backup").await);
    assert!(!scene.keys("a").await.1, "it is not cordoned");
    scene.mark("a", json!({"example.com/backup": "true"}), json!({})).await;
    scene.reaches("a", "before-reboot").await;
    assert!(scene.keys("a").await.1);
    scene.mark("a", json!({}), json!({"example.com/volumes": "true"})).await;
    scene.reaches("a", "rebooting").await;
    scene.reboot("a", "2").await;
    scene.reaches("a", "before-uncordon").await;
    assert!(scene.keys("a").await.1);
    scene.mark("a", json!({"example.com/check": "true"}), json!({})).await;
    scene.reaches("a", "idle").await;
    assert!(!scene.keys("a").await.1);
}

#[tokio::test]
async fn a_hook_that_takes_too_long_makes_the_node_degraded_which_keeps_its_slot() {
    let mut spec = pool("2");
    spec["hooks"] = json!({"beforeDrain": ["example.com/backup"], "timeout": "1s"});
    let scene = staged(&["a", "b"], &spec).await;
    scene.reaches("a", "before-drain").await;
    let expected = format!("{}: before-drain takes longer than 1s", scene.full("a"));
    assert_eq!(scene.condition("p", "Degraded", "True NodeDegraded").await, expected);
    let status = scene.pools().get(&scene.full("p")).await.unwrap().status.unwrap();
    assert_eq!((status.degraded_count, status.updating_count), (1, 1));
    assert_eq!(scene.keys("b").await.0["tagboat.dev/state"], "idle");
    eventually("the failure is announced", async || {
        scene.events("p").await.contains(&"NodeFailed a: before-drain takes longer than 1s".to_owned())
    })
    .await;
    // The hook is late, and counts all the same.
    scene.mark("a", json!({"example.com/backup": "true"}), json!({})).await;
    scene.reaches("a", "rebooting").await;
    scene.condition("p", "Degraded", "False Healthy").await;
}

#[tokio::test]
async fn a_stage_whose_time_a_user_removed_has_its_limit_again() {
    let mut spec = pool("2");
    spec["hooks"] = json!({"beforeDrain": ["example.com/backup"], "timeout": "1s"});
    let scene = staged(&["a"], &spec).await;
    scene.reaches("a", "before-drain").await;
    for since in [json!(null), json!("yesterday"), json!("2999-01-01T00:00:00Z")] {
        scene.mark("a", json!({}), json!({"tagboat.dev/state-since": since})).await;
        eventually("the time is repaired", async || {
            let found = scene.keys("a").await.0.get("tagboat.dev/state-since").cloned();
            found.is_some_and(|found| found.starts_with("20") && !found.starts_with("2999"))
        })
        .await;
        scene.condition("p", "Degraded", "True NodeDegraded").await;
    }
}

#[tokio::test]
async fn a_node_of_the_control_plane_that_is_not_ready_holds_the_others_back() {
    let scene = NodeScene::new().await;
    scene.add_nodes(&["a", "b", "c"]).await;
    let control_plane = json!({"node-role.kubernetes.io/control-plane": ""});
    for node in ["a", "b"] {
        scene.mark(node, control_plane.clone(), json!({})).await;
    }
    scene.set_ready("a", false, "boot-1").await;
    let mut spec = pool("2");
    spec["rollout"] = json!({"maxUnavailable": 3});
    scene.create_pool("p", &spec).await;
    scene.stage("b", "2").await;
    scene.stage("c", "2").await;
    // Both could begin, and are granted slots at once.
    scene.reaches("c", "rebooting").await;
    assert_eq!(scene.keys("b").await.0["tagboat.dev/state"], "idle");
    scene.set_ready("a", true, "boot-1").await;
    scene.reaches("b", "rebooting").await;
}

#[tokio::test]
async fn a_pause_of_a_node_cancels_its_rollout_and_gives_the_slot_to_the_next() {
    let mut spec = pool("2");
    spec["hooks"] = json!({"beforeReboot": ["example.com/volumes"]});
    let scene = staged(&["a", "b"], &spec).await;
    scene.reaches("a", "before-reboot").await;
    scene.mark("a", json!({"tagboat.dev/pause": "true"}), json!({})).await;
    scene.reaches("a", "paused").await;
    assert!(!scene.keys("a").await.1, "it is uncordoned");
    scene.reaches("b", "before-reboot").await;
    scene.mark("a", json!({"tagboat.dev/pause": null}), json!({})).await;
    scene.reaches("a", "idle").await;
    // The approval is canceled before the agent acknowledges it.
    scene.mark("b", json!({"example.com/volumes": "true"}), json!({})).await;
    scene.reaches("b", "rebooting").await;
    scene.patch_pool("p", &json!({"spec": {"paused": true}})).await;
    scene.reaches("b", "paused").await;
    assert!(!scene.keys("b").await.1);
    scene.condition("p", "UpToDate", "False Paused").await;
}

#[tokio::test]
async fn a_node_that_was_cordoned_before_stays_so() {
    let scene = NodeScene::new().await;
    scene.add_nodes(&["a"]).await;
    scene.cordon("a").await;
    scene.create_pool("p", &pool("2")).await;
    scene.stage("a", "2").await;
    scene.reaches("a", "rebooting").await;
    assert!(!scene.keys("a").await.0.contains_key("tagboat.dev/made-unschedulable"));
    scene.reboot("a", "2").await;
    scene.reaches("a", "idle").await;
    assert!(scene.keys("a").await.1);
}

#[tokio::test]
async fn two_failed_boots_halt_the_pool_until_one_recovers() {
    let mut spec = pool("2");
    spec["rollout"] = json!({"maxUnavailable": 2});
    let scene = staged(&["a", "b", "c"], &spec).await;
    for node in ["a", "b"] {
        scene.reaches(node, "rebooting").await;
        scene.acknowledge(node, "2").await;
        let failed = json!({"tagboat.dev/message": "booted \u{1b}[31msha256:1"});
        scene.mark(node, json!({"tagboat.dev/agent": "error"}), failed).await;
    }
    let message = scene.condition("p", "Degraded", "True RolloutHalted").await;
    let expected = r"no other node begins: NS-a: booted \u{1b}[31msha256:1; NS-b: booted \u{1b}[31msha256:1";
    assert_eq!(message, expected.replace("NS-", &scene.full("")));
    let events = scene.events("p").await;
    assert!(events.iter().any(|event| event.starts_with("RolloutHalted ")), "{events:?}");
    let failed = events.iter().filter(|event| event.starts_with("NodeFailed ")).count();
    assert_eq!(failed, 2, "{events:?}");
    // The failed nodes keep their slots.
    assert_eq!(scene.keys("c").await.0["tagboat.dev/state"], "idle");
    scene.boot("a", "2").await;
    scene.reaches("a", "idle").await;
    scene.reaches("c", "rebooting").await;
    scene.condition("p", "Degraded", "True NodeDegraded").await;
}

#[tokio::test]
async fn nothing_is_written_at_rest() {
    let scene = staged(&["a"], &pool("2")).await;
    scene.reaches("a", "rebooting").await;
    scene.reboot("a", "2").await;
    scene.condition("p", "UpToDate", "True AllUpdated").await;
    let versions = async || {
        let pool = scene.pools().get(&scene.full("p")).await.unwrap().metadata.resource_version;
        (pool, scene.node("a").await.metadata.resource_version)
    };
    let before = versions().await;
    // A change of the node without a meaning makes nothing due; one of its labels does.
    scene.mark("a", json!({"example.com/other": "x"}), json!({})).await;
    let node = scene.node("a").await.metadata.resource_version;
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(versions().await, (before.0, node));
}
