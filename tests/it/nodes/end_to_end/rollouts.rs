//! Rollouts from the reference of a pool to the booted machines.

use std::time::Duration;

use serde_json::json;

use super::scene::Fleet;
use crate::nodes::machine::{Boot, MachineState, digest};
use crate::support::eventually::eventually;

const MACHINES: [&str; 3] = ["a", "b", "c"];

fn booted(digit: char, boots: usize) -> MachineState {
    MachineState { booted: digest(digit), staged: None, boots }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_machines_boot_an_image_one_by_one_and_go_back_to_the_one_before() {
    let fleet = Fleet::new(&MACHINES).await;
    // Its pod moves from node to node.
    fleet.scene.create_pod("app", "a", json!({"app": "x"})).await;
    fleet.create_pool(&json!({})).await;
    fleet.start_agents().await;
    let pools = fleet.scene.pools();
    let name = fleet.scene.full("p");
    for (round, digit) in ['2', '1'].into_iter().enumerate() {
        fleet.want(digit).await;
        let mut most_in_slots = 0;
        eventually("all machines are updated", async || {
            let status = pools.get(&name).await.unwrap().status.unwrap_or_default();
            most_in_slots = most_in_slots.max(status.updating_count);
            MACHINES.iter().all(|name| fleet.machine(name).state() == booted(digit, round + 1))
                && status.updated_count == 3
                && status.target_digest == Some(digest(digit))
        })
        .await;
        assert_eq!(most_in_slots, 1);
        assert_eq!(fleet.scene.condition("p", "UpToDate", "True AllUpdated").await, "3/3 updated");
        for machine in MACHINES {
            let (keys, cordoned) = fleet.scene.keys(machine).await;
            assert!(!cordoned && keys["tagboat.dev/state"] == "idle", "{machine}: {keys:?}");
            assert_eq!(keys["tagboat.dev/last-deployed"], digest(digit));
        }
    }
    assert!(fleet.scene.pods().get_opt("app").await.unwrap().is_none(), "it was evicted");
    let status = pools.get(&name).await.unwrap().status.unwrap();
    let history: Vec<_> =
        status.deploy_history.iter().map(|entry| (entry.digest.clone().unwrap(), entry.node_count)).collect();
    assert_eq!(history, [(digest('1'), 3), (digest('2'), 3)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_machines_that_roll_back_halt_the_pool_until_another_image_is_wanted() {
    let fleet = Fleet::new(&MACHINES).await;
    for machine in ["a", "b"] {
        fleet.machine(machine).next_boots(Boot::RolledBack);
    }
    fleet.create_pool(&json!({"rollout": {"maxUnavailable": 2}})).await;
    let pause = |value: Option<&str>| json!({"tagboat.dev/pause": value});
    fleet.scene.mark("c", pause(Some("true")), json!({})).await;
    fleet.start_agents().await;
    let message = fleet.scene.condition("p", "Degraded", "True RolloutHalted").await;
    fleet.scene.mark("c", pause(None), json!({})).await;
    fleet.scene.reaches("c", "idle").await;
    for machine in ["a", "b"] {
        let text = format!(
            "{}: the host came back with {} in place of {}",
            fleet.scene.full(machine),
            digest('1'),
            digest('2')
        );
        assert!(message.contains(&text), "{message}");
        assert_eq!(fleet.machine(machine).state(), booted('1', 1));
    }
    let state = fleet.machine("c").state();
    assert_eq!((state.boots, state.staged), (0, Some(digest('2'))));
    // The next image boots. A machine that failed once is not rebooted again for the same image.
    for machine in ["a", "b"] {
        fleet.machine(machine).next_boots(Boot::Staged);
    }
    fleet.want('3').await;
    fleet.scene.condition("p", "UpToDate", "True AllUpdated").await;
    for (machine, boots) in [("a", 2), ("b", 2), ("c", 1)] {
        assert_eq!(fleet.machine(machine).state(), booted('3', boots));
    }
    fleet.scene.condition("p", "Degraded", "False Healthy").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_machines_that_do_not_come_back_halt_the_pool_until_one_does() {
    let fleet = Fleet::new(&MACHINES).await;
    fleet.machine("a").next_boots(Boot::Late(Duration::from_secs(20)));
    fleet.machine("b").next_boots(Boot::Never);
    fleet.create_pool(&json!({"rollout": {"maxUnavailable": 2, "rebootTimeout": "3s"}})).await;
    let pause = |value: Option<&str>| json!({"tagboat.dev/pause": value});
    fleet.scene.mark("c", pause(Some("true")), json!({})).await;
    fleet.start_agents().await;
    let message = fleet.scene.condition("p", "Degraded", "True RolloutHalted").await;
    fleet.scene.mark("c", pause(None), json!({})).await;
    fleet.scene.reaches("c", "idle").await;
    let late = |name: &str| format!("{}: rebooting takes longer than 3s", fleet.scene.full(name));
    assert_eq!(message, format!("no other node begins: {}; {}", late("a"), late("b")));
    let (keys, state) = (fleet.scene.keys("c").await.0, fleet.machine("c").state());
    assert_eq!((keys["tagboat.dev/state"].as_str(), state.booted), ("idle", digest('1')));
    // One is back.
    fleet.scene.reaches("a", "idle").await;
    eventually("the next one is updated", async || fleet.machine("c").state() == booted('2', 1)).await;
    assert_eq!(fleet.scene.condition("p", "Degraded", "True NodeDegraded").await, late("b"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_that_ask_for_a_reboot_get_it_one_by_one() {
    let fleet = Fleet::new(&["a", "b"]).await;
    for machine in ["a", "b"] {
        fleet.machine(machine).remove_program("bootc");
        fleet.machine(machine).write_file("/var/run/reboot-required", "*** System restart required ***\n");
    }
    fleet.scene.create_pool("p", &json!({})).await;
    fleet.start_agents().await;
    eventually("both have rebooted", async || {
        ["a", "b"].iter().all(|machine| fleet.machine(machine).state().boots == 1)
    })
    .await;
    for machine in ["a", "b"] {
        eventually("the node is schedulable", async || {
            let (keys, cordoned) = fleet.scene.keys(machine).await;
            keys["tagboat.dev/state"] == "idle"
                && !cordoned
                && keys.contains_key("tagboat.dev/last-deployed-at")
        })
        .await;
        assert_eq!(fleet.machine(machine).state().boots, 1);
    }
}
