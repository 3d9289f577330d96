//! The controller, killed before and after each patch by which it cancels and releases nodes.

use futures::future::join_all;
use serde_json::json;
use tagboat::nodes::keys;

use super::kills::KillAtPatches;
use super::scene::{Controller, Fleet, HOOKS, with_hooks};
use crate::nodes::controller::scene::{NodeScene, start_server};
use crate::nodes::machine::{MachineState, digest};
use crate::support::eventually::eventually;

const IDLE: &str = "a-idle";
const BEFORE_DRAIN: &str = "b-before-drain";
const BEFORE_REBOOT: &str = "c-before-reboot";
const REBOOTING: &str = "d-rebooting";
const MACHINES: [&str; 4] = [IDLE, BEFORE_DRAIN, BEFORE_REBOOT, REBOOTING];

/// Takes three machines to their stages; a user paused the other one.
async fn spread(fleet: &Fleet) {
    let [drain, reboot, _] = HOOKS;
    let scene = &fleet.scene;
    join_all(MACHINES[1..].iter().map(|name| scene.reaches(name, "before-drain"))).await;
    join_all([BEFORE_REBOOT, REBOOTING].map(async |name| {
        fleet.confirm(name, drain).await;
        scene.reaches(name, "before-reboot").await;
    }))
    .await;
    // Without its agent, it does not acknowledge the approval.
    fleet.machine(REBOOTING).kill_agent();
    fleet.confirm(REBOOTING, reboot).await;
    scene.reaches(REBOOTING, "rebooting").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_is_killed_before_and_after_each_patch_cancels_and_releases_all_nodes() {
    let (server, _controllers) = start_server("killed-releases");
    let fleet = Fleet::on(NodeScene::on(server, "").await, &MACHINES).await;
    let mut kills = KillAtPatches::new();
    let kubeconfig = fleet.scene.cluster().faulty_kubeconfig(&kills.faults).await;
    let mut controller = Controller::start(&fleet.scene, &kubeconfig, "tagboat");
    fleet.scene.mark(IDLE, json!({keys::PAUSE: "true"}), json!({})).await;
    fleet.create_pool(&with_hooks(MACHINES.len())).await;
    let ends = async {
        fleet.start_agents().await;
        spread(&fleet).await;
        fleet.scene.patch_pool("p", &json!({"spec": {"paused": true}})).await;
        for name in MACHINES {
            fleet.scene.reaches(name, "paused").await;
            assert!(!fleet.scene.keys(name).await.1, "{name} is uncordoned");
        }
        fleet.machine(REBOOTING).restart_agent();
        fleet.scene.patch_pool("p", &json!({"spec": {"paused": false}})).await;
        spread(&fleet).await;
        fleet.scene.delete_pool("p").await;
        eventually("no image is wanted", async || {
            let wanted = fleet.scene.keys(REBOOTING).await.0.remove(keys::DESIRED_IMAGE);
            wanted.is_none_or(|wanted| wanted.is_empty())
        })
        .await;
        fleet.machine(REBOOTING).restart_agent();
        let name = fleet.scene.full("p");
        eventually("the pool is gone", async || fleet.scene.pools().get_opt(&name).await.unwrap().is_none())
            .await;
    };
    tokio::select! {
        () = ends => {}
        () = kills.run(|| controller.restart()) => unreachable!("the faults send kills"),
    }
    for name in MACHINES {
        let (mut found, cordoned) = fleet.scene.keys(name).await;
        found.remove(keys::PAUSE);
        assert!(found.is_empty() && !cordoned, "{name}: {found:?}");
        let state = fleet.machine(name).state();
        let is_own = state.staged.as_ref().is_none_or(|staged| *staged == digest('1'));
        assert!(is_own, "{name} would boot another image: {state:?}");
        let expected = MachineState { booted: digest('1'), staged: None, boots: 0 };
        assert_eq!(MachineState { staged: None, ..state }, expected, "{name}");
    }
    assert!(controller.restarts >= 16, "{} restarts", controller.restarts);
}
