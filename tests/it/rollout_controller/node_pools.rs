//! The OS image of nodes, from the policy that selects it to the boot.

use std::sync::Arc;

use futures::future::join_all;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tagboat_api::crds;

use super::scene::{Scene, component, image};
use crate::controller::scene::Kind;
use crate::nodes::machine::{Boot, Machine, digest};
use crate::support::api_server::ApiServer;
use crate::support::eventually::eventually;
use crate::support::workloads::{WorkloadCluster, install_kinds};

const ROLES: [&str; 5] = [
    "rbac/cluster-role.yaml",
    "rbac/role.yaml",
    "rollout/cluster-role.yaml",
    "nodes/cluster-role.yaml",
    "nodes/role.yaml",
];

/// A pool of the nodes of a test, whose image follows the policy `os`.
fn pool() -> String {
    format!(
        "apiVersion: tagboat.dev/v1alpha1\nkind: NodePool\nmetadata:\n  name: workers\nspec:\n  nodeSelector:\n    \
         matchLabels: {{tests/namespace: NAMESPACE}}\n  rollout: {{maxUnavailable: 2}}\n  image:\n    \
         ref: {}:1.0.0@{} # {{\"$imagepolicy\": \"NAMESPACE:os\"}}\n",
        image("os"),
        digest('1')
    )
}

/// Selects a version, whose digest has its first digit.
async fn choose(scene: &Scene, version: char) {
    let latest = json!({"name": image("os"), "tag": format!("{version}.0.0"), "digest": digest(version)});
    let status = Patch::Merge(json!({"status": {"latestRef": latest}}));
    scene.api(Kind::Policy).patch_status("os", &PatchParams::default(), &status).await.unwrap();
}

/// Applies the branch once it has a version.
async fn apply(scene: &Scene, version: char) {
    let wanted = format!("{}:{version}.0.0@{} ", image("os"), digest(version));
    eventually("the version is on the branch", async || {
        String::from_utf8(scene.repository.file("main", "os.yaml")).unwrap().contains(&wanted)
    })
    .await;
    scene.apply_tree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_pool_is_a_component_until_its_machines_have_booted_the_image() {
    let server = Arc::new(ApiServer::shared().start_beside("rollout-nodes"));
    install_kinds(&server);
    server.install(&[crds::nodes()]);
    let scene = Scene::of(WorkloadCluster::on(server).await, &[("os", pool())]).await;
    choose(&scene, '1').await;
    let token = scene.cluster().token_with_roles(&ROLES).await;
    let mut program = scene.start_with(&token, &[]);
    let booted = format!("{}@{}", image("os"), digest('1'));
    let machines = join_all(["a", "b"].map(|name| Machine::new(scene.cluster(), name, &booted))).await;
    let kubeconfig = scene.cluster().administrators_kubeconfig();
    machines.iter().for_each(|machine| machine.start_agent(&kubeconfig));
    scene.apply_tree().await;
    let status = scene.state("os", "1.0.0", "installed").await;
    let found = component(&status);
    assert_eq!(found["name"], "NodePool/workers", "{status:#}");
    assert_eq!((&found["desired"], &found["updated"]), (&json!(2), &json!(2)), "{status:#}");
    assert_eq!(found["tie"], "object", "{status:#}");

    choose(&scene, '2').await;
    apply(&scene, '2').await;
    let has_begun = |status: &Value| status["state"] == "installing" && status["target"]["tag"] == "2.0.0";
    scene.until("os", "installing", has_begun).await;
    let status = scene.state("os", "2.0.0", "installed").await;
    assert_eq!(status["progress"], "2/2", "{status:#}");
    assert!(machines.iter().all(|machine| machine.state().booted == digest('2')));
    let versions: Vec<Value> =
        status["deployHistory"].as_array().unwrap().iter().map(|entry| entry["version"].clone()).collect();
    // Machines that had their first image before they were observed are no record of it.
    let all = [json!("2.0.0"), json!("1.0.0")];
    assert!(all.starts_with(&versions) && !versions.is_empty(), "{versions:?}");

    // Machines that roll back halt the pool, which is the failure of the deployment.
    machines.iter().for_each(|machine| machine.next_boots(Boot::RolledBack));
    choose(&scene, '3').await;
    apply(&scene, '3').await;
    let status = scene.state("os", "3.0.0", "failed").await;
    let error = &component(&status)["error"];
    assert_eq!(
        (&error["code"], &error["source"]),
        (&json!("RolloutHalted"), &json!("NodePool/workers")),
        "{status:#}"
    );
    assert!(error["message"].as_str().unwrap().contains("the host came back with"), "{status:#}");

    // The version before is wanted again, which the machines have.
    choose(&scene, '2').await;
    apply(&scene, '2').await;
    let status = scene.state("os", "2.0.0", "installed").await;
    assert_eq!(status["progress"], "2/2", "{status:#}");
    for machine in &machines {
        let state = machine.state();
        assert_eq!((state.booted, state.boots), (digest('2'), 2));
    }
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(scene.cluster().client());
    for machine in &machines {
        let spec = nodes.get(machine.name()).await.unwrap().spec.unwrap();
        assert_eq!(spec.unschedulable, None);
    }
    assert_eq!(program.terminate().0, Some(0));
}
