//! Pools: membership, deletion, invalid specs, tags.

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use serde_json::json;

use super::scene::{NodeScene, digest, image};
use crate::support::eventually::eventually;
use crate::support::http_front::{Front, Reply};
use crate::support::registry::{PASSWORD, Registry, USER};

async fn has_no_keys(scene: &NodeScene, node: &str) {
    eventually(&format!("{node} has no key"), async || scene.keys(node).await == Default::default()).await;
}

/// Creates a pool with a hook before the reboot, for which its node waits.
async fn before_reboot() -> NodeScene {
    let scene = NodeScene::new().await;
    scene.add_nodes(&["a"]).await;
    let hooks = json!({"beforeReboot": ["example.com/volumes"]});
    scene.create_pool("p", &json!({"image": {"ref": image("2")}, "hooks": hooks})).await;
    scene.stage("a", "2").await;
    scene.reaches("a", "before-reboot").await;
    scene
}

#[tokio::test]
async fn a_deleted_pool_releases_its_nodes_in_every_stage() {
    let hooks = json!({"beforeReboot": ["example.com/volumes"]});
    let scene = NodeScene::new().await;
    scene.add_nodes(&["a", "b", "c"]).await;
    let spec = json!({"image": {"ref": image("2")}, "hooks": hooks, "rollout": {"maxUnavailable": 2}});
    scene.create_pool("p", &spec).await;
    for node in ["a", "b", "c"] {
        scene.stage(node, "2").await;
    }
    scene.reaches("a", "before-reboot").await;
    // Its hook keys are cleared at the beginning of the stage.
    scene.reaches("b", "before-reboot").await;
    scene.mark("b", json!({"example.com/volumes": "true"}), json!({})).await;
    scene.reaches("b", "rebooting").await;
    scene.acknowledge("b", "2").await;
    scene.delete_pool("p").await;
    for node in ["a", "c"] {
        // The agent removes the staged image first.
        eventually("no image is wanted", async || {
            scene.keys(node).await.0.get("tagboat.dev/desired-image").is_some_and(String::is_empty)
        })
        .await;
        assert!(!scene.keys(node).await.1, "{node} is not cordoned");
        let unstaged = json!({"tagboat.dev/staged-digest": null, "tagboat.dev/booted-digest": digest("1")});
        scene.mark(node, json!({"tagboat.dev/agent": "up-to-date"}), unstaged).await;
        has_no_keys(&scene, node).await;
    }
    // A reboot that the agent acknowledged is awaited.
    assert!(scene.pools().get_opt(&scene.full("p")).await.unwrap().is_some());
    assert!(scene.keys("b").await.1);
    scene.set_ready("b", false, "boot-1").await;
    scene.boot("b", "2").await;
    has_no_keys(&scene, "b").await;
    eventually("the pool is gone", async || scene.pools().get_opt(&scene.full("p")).await.unwrap().is_none())
        .await;
}

#[tokio::test]
async fn a_node_that_moves_to_another_pool_is_canceled_though_the_image_is_the_same() {
    let scene = NodeScene::new().await;
    scene.add_nodes(&["a"]).await;
    scene.mark("a", json!({"team": scene.full("x")}), json!({})).await;
    for (pool, team) in [("p", "x"), ("q", "y")] {
        let hooks = json!({
            "beforeDrain": [format!("example.com/backup-{pool}")], "beforeReboot": ["example.com/volumes"],
        });
        let spec = json!({"image": {"ref": image("2")}, "hooks": hooks});
        scene.create_pool_of(pool, &spec, json!({"matchLabels": {"team": scene.full(team)}})).await;
    }
    scene.stage("a", "2").await;
    scene.reaches("a", "before-drain").await;
    scene.mark("a", json!({}), json!({"example.com/backup-p": "true"})).await;
    scene.reaches("a", "before-reboot").await;
    assert!(scene.keys("a").await.1);
    scene.mark("a", json!({"team": scene.full("y")}), json!({})).await;
    // It begins anew in the other pool, and the hooks of that one are asked.
    scene.reaches("a", "before-drain").await;
    let node = scene.node("a").await;
    assert!(!scene.keys("a").await.1, "{node:?}");
    assert!(!node.annotations().contains_key("example.com/backup-p"), "{node:?}");
}

#[tokio::test]
async fn a_node_of_two_pools_stays_with_the_older_one_and_both_report_it() {
    let scene = NodeScene::new().await;
    scene.add_nodes(&["a", "b"]).await;
    scene.create_pool("p", &json!({"image": {"ref": image("2")}})).await;
    scene.reaches("a", "idle").await;
    // The creation times are in whole seconds.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let both = json!({"matchExpressions": [{"key": "example.com/both", "operator": "In", "values": [scene.full("x")]}]});
    scene.create_pool_of("q", &json!({"image": {"ref": image("3")}}), both).await;
    scene.condition("p", "Degraded", "False Healthy").await;
    scene.mark("b", json!({"example.com/both": scene.full("x")}), json!({})).await;
    let (p, q) = (
        scene.condition("p", "Degraded", "True NodeConflict").await,
        scene.condition("q", "Degraded", "True NodeConflict").await,
    );
    let [node, older, newer] = ["b", "p", "q"].map(|name| scene.full(name));
    assert_eq!(p, format!("{node} is selected by the pool {newer} as well"));
    assert_eq!(q, format!("{node} is selected by the pool {older} as well"));
    assert!(scene.keys("b").await.0["tagboat.dev/desired-image"].ends_with(&digest("2")));
    // It changes to the other pool, and its rollout begins anew.
    scene.delete_pool("p").await;
    eventually("it wants the other image", async || {
        scene
            .keys("b")
            .await
            .0
            .get("tagboat.dev/desired-image")
            .is_some_and(|image| image.ends_with(&digest("3")))
    })
    .await;
    scene.condition("q", "Degraded", "False Healthy").await;
}

#[tokio::test]
async fn an_invalid_field_is_named_and_the_nodes_stay_as_they_are() {
    let scene = before_reboot().await;
    let before = scene.keys("a").await;
    let window = json!([{"start": "01:00", "length": "1h", "timeZone": "Europe/Nowhere"}]);
    let change = json!({"spec": {"rollout": {"windows": window}, "image": {"ref": image("3")}}});
    scene.patch_pool("p", &change).await;
    let message = scene.condition("p", "Degraded", "True InvalidSpec").await;
    assert!(message.starts_with("spec.rollout.windows[0].timeZone: "), "{message}");
    assert_eq!(scene.keys("a").await, before);
    scene.patch_pool("p", &json!({"spec": {"rollout": null, "image": {"ref": image("2")}}})).await;
    scene.condition("p", "Degraded", "False Healthy").await;
    assert_eq!(scene.keys("a").await, before);
}

#[tokio::test]
async fn a_window_that_is_closed_holds_the_rollout_back() {
    let scene = NodeScene::new().await;
    scene.add_nodes(&["a"]).await;
    let tomorrow = jiff::Timestamp::now().in_tz("UTC").unwrap().tomorrow().unwrap();
    let day = tomorrow.strftime("%a").to_string();
    let window = json!([{"days": [day], "start": "23:59", "length": "1m"}]);
    let spec = json!({"image": {"ref": image("2")}, "rollout": {"windows": window}});
    scene.create_pool("p", &spec).await;
    scene.stage("a", "2").await;
    let message = scene.condition("p", "UpToDate", "False OutsideWindow").await;
    let expected = format!("a window opens at {}T23:59:00Z", tomorrow.date());
    assert!(message.contains(&expected), "{message}");
    assert_eq!(scene.keys("a").await.0["tagboat.dev/state"], "idle");
    scene
        .patch_pool("p", &json!({"spec": {"rollout": {"windows": [{"start": "00:00", "length": "168h"}]}}}))
        .await;
    scene.reaches("a", "rebooting").await;
}

#[tokio::test]
async fn a_pool_that_was_never_resolved_leaves_its_nodes_alone() {
    let scene = NodeScene::new().await;
    scene.add_nodes(&["a"]).await;
    scene.create_pool("p", &json!({"image": {"ref": "127.0.0.1:1/os:v1"}})).await;
    let message = scene.condition("p", "Degraded", "True TagResolutionError").await;
    assert!(message.starts_with("the tag cannot be resolved: "), "{message}");
    assert_eq!(scene.keys("a").await.0.len(), 0);
    let pool = scene.pools().get(&scene.full("p")).await.unwrap();
    assert_eq!(pool.finalizers(), ["tagboat.dev/nodes"]);
    assert!(pool.status.unwrap().next_tag_resolution_time.is_some());
}

/// Waits until a node has the wanted image.
async fn wants(scene: &NodeScene, node: &str, image: &str) {
    eventually(&format!("{node} wants {image}"), async || {
        scene.keys(node).await.0.get("tagboat.dev/desired-image").is_some_and(|wanted| wanted == image)
    })
    .await;
}

#[tokio::test]
async fn a_pool_follows_a_tag_that_moves_in_its_registry_and_keeps_its_image_while_the_tag_is_gone() {
    let (registry, scene) = (Registry::start(), NodeScene::new().await);
    let first = registry.push("os", "v1", "2026-01-01T00:00:00Z");
    scene.add_nodes(&["a"]).await;
    let reference = format!("{}/os:v1", registry.address());
    scene.create_pool("p", &json!({"image": {"ref": reference}})).await;
    wants(&scene, "a", &format!("{}/os@{first}", registry.address())).await;
    let second = registry.push("os", "v1", "2026-02-01T00:00:00Z");
    assert_ne!(first, second);
    wants(&scene, "a", &format!("{}/os@{second}", registry.address())).await;
    registry.remove("os", "v1");
    scene.condition("p", "Degraded", "True TagResolutionError").await;
    wants(&scene, "a", &format!("{}/os@{second}", registry.address())).await;
    registry.push("os", "v1", "2026-01-01T00:00:00Z");
    wants(&scene, "a", &format!("{}/os@{first}", registry.address())).await;
    scene.condition("p", "Degraded", "False Healthy").await;
}

/// The reconcile waited for the registry, and then took the steps of the spec before.
#[tokio::test]
async fn a_pause_takes_effect_while_the_registry_does_not_answer() {
    let scene = before_reboot().await;
    let silent = Front::alone(|_| Reply::Silence);
    let reference = format!("{}/os:v1", silent.address());
    scene.patch_pool("p", &json!({"spec": {"image": {"ref": reference}}})).await;
    eventually("the registry is asked", async || !silent.requests().is_empty()).await;
    // The image is not known yet, so no reboot is approved for the one before.
    scene.mark("a", json!({"example.com/volumes": "true"}), json!({})).await;
    scene.patch_pool("p", &json!({"spec": {"paused": true}})).await;
    scene.reaches("a", "paused").await;
    assert!(!scene.keys("a").await.1, "it is uncordoned");
    let pool = scene.pools().get(&scene.full("p")).await.unwrap();
    let conditions = pool.status.unwrap().conditions;
    let is_over = conditions.iter().any(|condition| condition.reason == "TagResolutionError");
    assert!(!is_over, "the registry was given up before: {conditions:?}");
}

#[tokio::test]
async fn hooks_with_invalid_keys_leave_the_labels_of_nodes_alone() {
    let scene = NodeScene::new().await;
    scene.add_nodes(&["a", "b"]).await;
    scene.mark("a", json!({"team": scene.full("x")}), json!({})).await;
    let team = json!({"matchLabels": {"team": scene.full("x")}});
    scene.create_pool_of("p", &json!({"image": {"ref": image("2")}}), team).await;
    let hooks = json!({"beforeReboot": ["node.kubernetes.io/role", "example.com/other"]});
    let other = json!({"matchLabels": {"team": scene.full("none")}});
    scene.create_pool_of("q", &json!({"image": {"ref": image("2")}, "hooks": hooks}), other).await;
    scene.condition("q", "Degraded", "True InvalidSpec").await;
    scene.reaches("a", "idle").await;
    let kept = json!({"node.kubernetes.io/role": "db", "example.com/other": "true"});
    scene.mark("a", kept, json!({"example.com/other": "true"})).await;
    scene.mark("a", json!({"team": null}), json!({})).await;
    has_no_keys(&scene, "a").await;
    let node = scene.node("a").await;
    let (labels, annotations) = (node.labels(), node.annotations());
    assert_eq!(labels.get("node.kubernetes.io/role").map(String::as_str), Some("db"));
    assert!(labels.contains_key("example.com/other") && annotations.contains_key("example.com/other"));
}

#[tokio::test]
async fn a_pool_logs_in_to_its_registry_with_its_pull_secret() {
    let (registry, scene) = (Registry::start(), NodeScene::new().await);
    let digest = registry.push("os", "v1", "2026-01-01T00:00:00Z");
    let guarded = registry.guarded_by_password();
    scene.add_nodes(&["a"]).await;
    let reference = format!("{}/os:v1", guarded.address());
    let secret = json!({"namespace": scene.cluster().namespace(), "name": "login"});
    scene.create_pool("p", &json!({"image": {"ref": reference, "pullSecretRef": secret}})).await;
    let message = scene.condition("p", "Degraded", "True TagResolutionError").await;
    let expected = format!(
        "; the key .dockerconfigjson of the Secret {}/login, which spec.image.pullSecretRef names, must have a login",
        scene.cluster().namespace()
    );
    assert!(message.contains(&expected), "{message}");
    let logins = json!({"auths": {guarded.address(): {"username": USER, "password": PASSWORD}}});
    let secret = json!({
        "metadata": {"name": "login"},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": logins.to_string()},
    });
    let secrets: Api<Secret> = Api::namespaced(scene.cluster().client(), scene.cluster().namespace());
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    wants(&scene, "a", &format!("{}/os@{digest}", guarded.address())).await;
    scene.condition("p", "Degraded", "False Healthy").await;
}
