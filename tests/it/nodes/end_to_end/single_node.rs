//! A cluster of one node, which the controller itself runs on.

use kube::ResourceExt;
use serde_json::json;

use super::scene::{Controller, Fleet};
use crate::nodes::controller::scene::{NodeScene, ROLES, start_server};
use crate::nodes::machine::{MachineState, digest};
use crate::support::eventually::eventually;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_of_one_node_is_updated_and_uncordoned() {
    let (server, _controllers) = start_server("single-node");
    let fleet = Fleet::on(NodeScene::on(server, "").await, &["a"]).await;
    for pod in ["tagboat", "app"] {
        fleet.scene.create_pod(pod, "a", json!({})).await;
    }
    let uid = async |name: &str| fleet.scene.pods().get_opt(name).await.unwrap().and_then(|pod| pod.uid());
    let own = uid("tagboat").await;
    let cluster = fleet.scene.cluster();
    let token = cluster.token_with_roles(&ROLES).await;
    let mut controller = Controller::start(&fleet.scene, &cluster.kubeconfig(&token), "tagboat");
    fleet.create_pool(&json!({})).await;
    fleet.start_agents().await;
    let expected = MachineState { booted: digest('2'), staged: None, boots: 1 };
    eventually("the machine has rebooted", async || fleet.machine("a").state() == expected).await;
    // The controller goes down with the machine, and its pod comes back on the cordoned node.
    controller.restart();
    fleet.scene.condition("p", "UpToDate", "True AllUpdated").await;
    eventually("the node is schedulable", async || !fleet.scene.keys("a").await.1).await;
    assert!(own.is_some() && uid("tagboat").await == own, "the controller does not evict itself");
    assert_eq!(uid("app").await, None, "the other pod was evicted");
    assert_eq!(fleet.machine("a").state(), expected);
}
