//! Write conflicts of a controller that has the committed roles, and no other permission.

use serde_json::json;

use super::scene::Controller;
use crate::nodes::controller::scene::{NodeScene, ROLES, image, start_server};
use crate::support::api_server::{Fault, Faults};

/// After a conflict, the object is read before it is written again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_roles_suffice_for_a_conflict_of_each_write() {
    let (server, _controllers) = start_server("write-conflicts");
    let scene = NodeScene::on(server, "").await;
    scene.add_nodes(&["a"]).await;
    let faults = Faults::default();
    let token = scene.cluster().token_with_roles(&ROLES).await;
    let kubeconfig = scene.cluster().faulty_kubeconfig_of(&faults, &token).await;
    let _controller = Controller::start(&scene, &kubeconfig, "tagboat");
    for resource in ["nodepools", "nodepools/status", "nodes"] {
        faults.next(1, Fault::Conflict, move |call| call.is("patch", resource));
    }
    scene.create_pool("p", &json!({"image": {"ref": image("2")}})).await;
    scene.stage("a", "2").await;
    scene.reaches("a", "rebooting").await;
    scene.condition("p", "UpToDate", "False RolloutInProgress").await;
    let calls = faults.calls();
    for resource in ["nodepools", "nodes"] {
        assert!(calls.iter().any(|call| call.is("get", resource)), "{resource} is read: {calls:?}");
    }
}
