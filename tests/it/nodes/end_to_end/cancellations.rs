//! Cancellations at each stage, for each reason.

use futures::future::join_all;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tagboat::nodes::{AgentState, keys};

use super::scene::{Fleet, HOOKS, with_hooks};
use crate::nodes::machine::{MachineState, digest};
use crate::support::api_server::apply;
use crate::support::eventually::eventually;

/// The machines with slots, by the stage in which they are canceled.
const SLOTS: [&str; 5] =
    ["a-before-drain", "b-draining", "c-before-reboot", "d-rebooting", "e-before-uncordon"];
const IDLE: &str = "f-idle";
const PAUSED: &str = "g-paused";

/// The machine that gets a slot after the cancellations.
const NEXT: &str = "h-next";

/// The machines that have booted image 1 when they are canceled.
const CANCELED: [&str; 6] = ["a-before-drain", "b-draining", "c-before-reboot", "d-rebooting", IDLE, PAUSED];

/// Makes one machine in each stage, and one that waits for a slot.
///
/// A budget protects the pod on the draining one. The approved one has no agent, so it does not acknowledge that.
async fn in_every_stage() -> Fleet {
    let names = [&SLOTS[..], &[IDLE, PAUSED, NEXT]].concat();
    let fleet = Fleet::new(&names).await;
    let scene = &fleet.scene;
    scene.create_pod("db", "b-draining", json!({"app": "db"})).await;
    set_budget(&fleet, 1).await;
    // The others have no slot before the first five.
    for name in [IDLE, PAUSED, NEXT] {
        scene.mark(name, json!({keys::PAUSE: "true"}), json!({})).await;
    }
    fleet.create_pool(&with_hooks(SLOTS.len())).await;
    fleet.start_agents().await;
    for name in &names {
        let machine = fleet.machine(name);
        machine.until("the image is staged", |node| node.agent() == Some(AgentState::UpdateStaged)).await;
    }
    let [drain, reboot, _] = HOOKS;
    join_all(SLOTS.map(async |name| scene.reaches(name, "before-drain").await)).await;
    for name in [IDLE, NEXT] {
        scene.mark(name, json!({keys::PAUSE: null}), json!({})).await;
        scene.reaches(name, "idle").await;
    }
    fleet.machine("d-rebooting").kill_agent();
    for name in &SLOTS[1..] {
        fleet.confirm(name, drain).await;
    }
    for name in &SLOTS[2..] {
        scene.reaches(name, "before-reboot").await;
    }
    for name in &SLOTS[3..] {
        fleet.confirm(name, reboot).await;
    }
    scene.reaches("b-draining", "draining").await;
    scene.reaches("d-rebooting", "rebooting").await;
    scene.reaches("e-before-uncordon", "before-uncordon").await;
    for (name, stage) in [(IDLE, "idle"), (NEXT, "idle"), (PAUSED, "paused")] {
        assert_eq!(scene.keys(name).await.0["tagboat.dev/state"], stage);
    }
    fleet
}

async fn set_budget(fleet: &Fleet, available: i32) {
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "quorum"},
        "spec": {"minAvailable": available, "selector": {"matchLabels": {"app": "db"}}},
    });
    let client = fleet.scene.cluster().client();
    apply(&client, &budget, false).await.unwrap();
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client);
    let patch = Patch::Merge(json!({"spec": {"minAvailable": available}}));
    budgets.patch("quorum", &PatchParams::default(), &patch).await.unwrap();
    eventually("the budget is computed", async || {
        let budget = budgets.get("quorum").await.unwrap();
        budget
            .status
            .is_some_and(|status| status.current_healthy == 1 && status.disruptions_allowed == 1 - available)
    })
    .await;
}

/// Asserts that a machine was not rebooted, and is schedulable.
///
/// The staged image is one that any reboot may boot.
async fn assert_canceled(fleet: &Fleet, name: &str, staged: char) {
    let expected = MachineState { booted: digest('1'), staged: Some(digest(staged)), boots: 0 };
    eventually(&format!("{name} has the staged image {staged}"), async || {
        fleet.machine(name).state() == expected
    })
    .await;
    eventually(&format!("{name} is schedulable"), async || {
        let (keys, cordoned) = fleet.scene.keys(name).await;
        !cordoned && !keys.contains_key(keys::MADE_UNSCHEDULABLE)
    })
    .await;
}

/// Asserts that no eviction follows, although the budget allows it, and no reboot.
async fn assert_rests(fleet: &Fleet, staged: char) {
    fleet.machine("d-rebooting").restart_agent();
    for name in CANCELED {
        assert_canceled(fleet, name, staged).await;
    }
    set_budget(fleet, 0).await;
    // A refused eviction is tried again after five seconds.
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
    assert!(fleet.scene.pods().get_opt("db").await.unwrap().is_some());
    for name in CANCELED {
        assert_canceled(fleet, name, staged).await;
    }
}

/// Ends the rollout of the node that has booted the image.
///
/// It stages another one then, if that is wanted.
async fn finish(fleet: &Fleet, staged: Option<char>) {
    fleet.confirm("e-before-uncordon", HOOKS[2]).await;
    let expected = MachineState { booted: digest('2'), staged: staged.map(digest), boots: 1 };
    eventually("the updated node is schedulable", async || {
        !fleet.scene.keys("e-before-uncordon").await.1
            && fleet.machine("e-before-uncordon").state() == expected
    })
    .await;
}

async fn is_in(fleet: &Fleet, name: &str, stage: &str) -> bool {
    fleet.scene.keys(name).await.0.get(keys::STATE).is_some_and(|found| found == stage)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_cancels_a_node_in_every_stage() {
    let fleet = in_every_stage().await;
    let all = [&SLOTS[..], &[IDLE]].concat();
    join_all(all.iter().map(|name| fleet.scene.mark(name, json!({keys::PAUSE: "true"}), json!({})))).await;
    for name in CANCELED {
        fleet.scene.reaches(name, "paused").await;
    }
    fleet.scene.reaches(NEXT, "before-drain").await;
    // Image 2 is still the wanted one.
    assert_rests(&fleet, '2').await;
    // A node that has booted the image is not canceled: to go on is the shortest way back.
    assert!(is_in(&fleet, "e-before-uncordon", "before-uncordon").await);
    finish(&fleet, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_image_cancels_a_node_in_every_stage() {
    let fleet = in_every_stage().await;
    fleet.want('3').await;
    // The agent could acknowledge the approval before that.
    fleet.scene.reaches("d-rebooting", "idle").await;
    // Nodes begin anew only after the agent has staged image 3.
    fleet.machine("d-rebooting").restart_agent();
    for name in CANCELED {
        let machine = fleet.machine(name);
        machine
            .until("image 3 is staged", |node| node.annotation(keys::STAGED_DIGEST) == Some(&digest('3')))
            .await;
    }
    assert_rests(&fleet, '3').await;
    // The four slots went to the nodes that had staged image 3 first.
    let mut begun = 0;
    for name in [&CANCELED[..], &[NEXT]].concat() {
        begun += usize::from(is_in(&fleet, name, "before-drain").await);
    }
    assert_eq!(begun, SLOTS.len() - 1);
    finish(&fleet, Some('3')).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaving_the_pool_cancels_a_node_in_every_stage() {
    let fleet = in_every_stage().await;
    let all = [&SLOTS[..], &[IDLE, PAUSED]].concat();
    // The pool keeps one node.
    let selector = json!({"spec": {"nodeSelector": {"matchLabels": {"example.com/stays": "true"}}}});
    fleet.scene.mark(NEXT, json!({"example.com/stays": "true"}), json!({})).await;
    fleet.scene.patch_pool("p", &selector).await;
    assert_rests(&fleet, '1').await;
    for name in all {
        assert_released(&fleet, name).await;
    }
    fleet.scene.reaches(NEXT, "before-drain").await;
    let updated = MachineState { booted: digest('2'), staged: None, boots: 1 };
    assert_eq!(fleet.machine("e-before-uncordon").state(), updated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deletion_of_the_pool_cancels_a_node_in_every_stage() {
    let fleet = in_every_stage().await;
    fleet.scene.delete_pool("p").await;
    assert_rests(&fleet, '1').await;
    for name in [&SLOTS[..], &[IDLE, PAUSED, NEXT]].concat() {
        assert_released(&fleet, name).await;
    }
    let name = fleet.scene.full("p");
    eventually("the pool is gone", async || fleet.scene.pools().get_opt(&name).await.unwrap().is_none())
        .await;
}

/// Asserts that a node has no key of Tagboat, except for that of users.
async fn assert_released(fleet: &Fleet, name: &str) {
    eventually(&format!("{name} is released"), async || {
        let (mut found, cordoned) = fleet.scene.keys(name).await;
        found.remove(keys::PAUSE);
        found.is_empty() && !cordoned
    })
    .await;
}
