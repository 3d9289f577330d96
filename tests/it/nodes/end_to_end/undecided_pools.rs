//! Pools whose nodes are not known: their selector is invalid, or they cannot be read.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};
use tagboat_api::NodePool;

use super::scene::Controller;
use crate::nodes::controller::scene::{NodeScene, image, start_server};
use crate::support::api_server::Faults;
use crate::support::eventually::eventually;

/// Replaces the schema of the kind NodePool by one that allows everything.
async fn loosen(scene: &NodeScene) {
    let definitions: Api<CustomResourceDefinition> = Api::all(scene.cluster().client());
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}});
    let version = json!({
        "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": schema,
    });
    let patch = json!([{"op": "replace", "path": "/spec/versions", "value": [version]}]);
    let patch: Patch<()> = Patch::Json(serde_json::from_value(patch).unwrap());
    definitions.patch("nodepools.tagboat.dev", &PatchParams::default(), &patch).await.unwrap();
}

/// Replaces the node selector of a pool, as soon as the server allows it.
async fn select(scene: &NodeScene, pool: &str, selector: &Value) {
    let kind = GroupVersionKind::gvk("tagboat.dev", "v1alpha1", "NodePool");
    let kind = ApiResource::from_gvk_with_plural(&kind, &NodePool::plural(&()));
    let pools: Api<DynamicObject> = Api::all_with(scene.cluster().client(), &kind);
    let patch = json!([{"op": "replace", "path": "/spec/nodeSelector", "value": selector}]);
    let patch: Patch<()> = Patch::Json(serde_json::from_value(patch).unwrap());
    eventually("the server allows the selector", async || {
        pools.patch(&scene.full(pool), &PatchParams::default(), &patch).await.is_ok()
    })
    .await;
}

/// Changes a pool, and waits until it is reconciled.
async fn reconciled(scene: &NodeScene, pool: &str, max_unavailable: usize) {
    let spec = json!({"spec": {"rollout": {"maxUnavailable": max_unavailable}}});
    scene.patch_pool(pool, &spec).await;
    eventually(&format!("{pool} is reconciled"), async || {
        let found = scene.pools().get(&scene.full(pool)).await.unwrap();
        found.status.as_ref().map(|status| status.observed_generation) == found.meta().generation
    })
    .await;
}

/// A younger pool took them, and rolled its own image out on them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_nodes_of_a_pool_that_becomes_invalid_or_unreadable_stay_as_they_are() {
    let (server, _controllers) = start_server("undecided-pools");
    let scene = NodeScene::on(server, "").await;
    loosen(&scene).await;
    scene.add_nodes(&["a", "b"]).await;
    let kubeconfig = scene.cluster().faulty_kubeconfig(&Faults::default()).await;
    let mut controller = Controller::start(&scene, &kubeconfig, "tagboat");
    scene.create_pool("p", &json!({"image": {"ref": image("2")}})).await;
    scene.reaches("a", "idle").await;
    scene.reaches("b", "idle").await;
    // The creation times are in whole seconds.
    tokio::time::sleep(Duration::from_secs(1)).await;
    scene.create_pool("q", &json!({"image": {"ref": image("3")}})).await;
    scene.condition("q", "Degraded", "True NodeConflict").await;
    let before = [scene.keys("a").await, scene.keys("b").await];
    let selector = scene.pools().get(&scene.full("p")).await.unwrap().spec.node_selector;
    let mut max_unavailable = 1;
    for broken in [json!({"matchLabels": {"a b": "c"}}), json!(5)] {
        select(&scene, "p", &broken).await;
        for is_restarted in [false, true] {
            if is_restarted {
                controller.restart();
            }
            max_unavailable += 1;
            reconciled(&scene, "q", max_unavailable).await;
            scene.condition("q", "Degraded", "True NodeConflict").await;
            let found = [scene.keys("a").await, scene.keys("b").await];
            assert_eq!(found, before, "{broken} {is_restarted}");
        }
    }
    // The younger pool gets them once the older one is gone.
    select(&scene, "p", &serde_json::to_value(&selector).unwrap()).await;
    scene.condition("p", "Degraded", "True NodeConflict").await;
    scene.delete_pool("p").await;
    eventually("the nodes want the other image", async || {
        let wanted = scene.keys("a").await.0.remove("tagboat.dev/desired-image");
        wanted.is_some_and(|wanted| wanted == image("3"))
    })
    .await;
    let name = scene.pools().get(&scene.full("q")).await.unwrap().name_any();
    assert_eq!(scene.keys("a").await.0["tagboat.dev/pool"], name);
}
