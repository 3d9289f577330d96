//! Steps of the controller that lose to writes of others, which change nothing that decides.

use serde_json::json;

use super::scene::Controller;
use crate::nodes::controller::scene::{NodeScene, digest, image, start_server};
use crate::support::api_server::{Fault, Faults};
use crate::support::eventually::eventually;

/// A patch of the controller that loses to one of the taints of its node.
struct LostPatch<'s> {
    scene: &'s NodeScene,
    faults: &'s Faults,
}

impl<'s> LostPatch<'s> {
    /// Holds the next patch of the controller.
    fn hold(scene: &'s NodeScene, faults: &'s Faults) -> Self {
        faults.forget_calls();
        faults.next(1, Fault::Held, |call| call.is("patch", "nodes"));
        Self { scene, faults }
    }

    /// Waits for that patch, and taints the node before it arrives.
    async fn lose(self, node: &str, taint: &str) {
        let is_sent = async || self.faults.calls().iter().any(|call| call.is("patch", "nodes"));
        eventually("a patch is on its way", is_sent).await;
        self.scene.taint(node, taint).await;
        self.faults.heal();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_loses_to_a_taint_is_taken_again_also_if_nothing_else_changes() {
    let (server, _controllers) = start_server("lost-writes");
    let scene = NodeScene::on(server, "").await;
    scene.add_nodes(&["a"]).await;
    let faults = Faults::default();
    let kubeconfig = scene.cluster().faulty_kubeconfig(&faults).await;
    let _controller = Controller::start(&scene, &kubeconfig, "tagboat");
    scene.create_pool("p", &json!({"image": {"ref": image("2")}})).await;
    scene.condition("p", "UpToDate", "False RolloutInProgress").await;
    let lost = LostPatch::hold(&scene, &faults);
    scene.stage("a", "2").await;
    lost.lose("a", "first").await;
    scene.reaches("a", "rebooting").await;
    // The first step of its release, and the last one.
    let lost = LostPatch::hold(&scene, &faults);
    scene.delete_pool("p").await;
    lost.lose("a", "second").await;
    eventually("no image is wanted", async || {
        scene.keys("a").await.0.get("tagboat.dev/desired-image").is_some_and(String::is_empty)
    })
    .await;
    let lost = LostPatch::hold(&scene, &faults);
    let unstaged = json!({"tagboat.dev/staged-digest": null, "tagboat.dev/booted-digest": digest("1")});
    scene.mark("a", json!({"tagboat.dev/agent": "up-to-date"}), unstaged).await;
    lost.lose("a", "third").await;
    eventually("the node is released", async || scene.keys("a").await == Default::default()).await;
    eventually("the pool is gone", async || scene.pools().get_opt(&scene.full("p")).await.unwrap().is_none())
        .await;
}
