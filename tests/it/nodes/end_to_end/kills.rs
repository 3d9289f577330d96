//! The controller and the agents, killed before and after each of their patches.
//!
//! Each patch of a node is lost at first, with the program that sends it. The next program sends it again; then it is
//! applied, and that program is killed as well, before it has the answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{join, join_all};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::scene::{Controller, Fleet, HOOKS, with_hooks};
use crate::nodes::controller::scene::{NodeScene, start_server};
use crate::nodes::machine::{Machine, MachineState, digest};
use crate::support::api_server::{Call, Fault, Faults};
use crate::support::eventually::eventually;

/// Time from a patch until its program is killed; the server executes it meanwhile.
const EXECUTION: Duration = Duration::from_millis(300);

/// The patches of a program: each is lost once, and its answer once.
pub(super) struct KillAtPatches {
    pub(super) faults: Faults,
    /// A message for each patch after which the program must be killed.
    kills: UnboundedReceiver<()>,
}

impl KillAtPatches {
    pub(super) fn new() -> Self {
        let faults = Faults::default();
        let (send, kills) = unbounded_channel();
        let patches: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
        // Every second patch of a node is lost, and the answers of the others.
        for (fault, turn) in [(Fault::Silence, 0), (Fault::LostAnswer, 1)] {
            let (patches, send) = (patches.clone(), send.clone());
            faults.next(usize::MAX, fault, move |call: &Call| {
                let mut patches = patches.lock().unwrap();
                let Some(node) = call.name.clone().filter(|_| call.is("patch", "nodes")) else {
                    return false;
                };
                let count = patches.entry(node).or_default();
                if *count % 2 != turn {
                    return false;
                }
                *count += 1;
                send.send(()).is_ok()
            });
        }
        Self { faults, kills }
    }

    /// Kills and restarts a program after each patch, until dropped.
    pub(super) async fn run(&mut self, mut restart: impl FnMut()) {
        while self.kills.recv().await.is_some() {
            tokio::time::sleep(EXECUTION).await;
            // Other patches were sent meanwhile.
            while self.kills.try_recv().is_ok() {}
            restart();
        }
    }
}

/// The machines: undisturbed, canceled, crashed, or in a stage that does not exist.
const MACHINES: [&str; 9] = [
    "plain",
    "paused-before-drain",
    "paused-draining",
    "paused-before-reboot",
    "paused-rebooting",
    "crash-drain",
    "crash-draining",
    "crash-drained",
    "unknown-stage",
];

/// The machines with a pod that does not end.
const HELD: [&str; 2] = ["paused-draining", "crash-draining"];

/// Takes a node through its stages, by confirming its hooks.
async fn finish(fleet: &Fleet, name: &str) {
    let stages = ["before-drain", "before-reboot", "before-uncordon"];
    eventually(&format!("{name} is updated"), async || {
        let annotations = fleet.scene.node(name).await.metadata.annotations.unwrap_or_default();
        let (keys, cordoned) = fleet.scene.keys(name).await;
        for (stage, hook) in stages.iter().zip(HOOKS) {
            let is_due = keys.get("tagboat.dev/state").is_some_and(|found| found == stage);
            if is_due && !annotations.contains_key(hook) {
                fleet.confirm(name, hook).await;
            }
        }
        let is_idle = keys.get("tagboat.dev/state").is_some_and(|stage| stage == "idle");
        let is_updated = fleet.machine(name).state().booted == digest('2');
        is_idle && is_updated && !cordoned && !keys.contains_key("tagboat.dev/made-annotations")
    })
    .await;
}

async fn pause(fleet: &Fleet, name: &str, is_paused: bool) {
    let value = is_paused.then_some("true");
    fleet.scene.mark(name, json!({"tagboat.dev/pause": value}), json!({})).await;
    fleet.scene.reaches(name, if is_paused { "paused" } else { "idle" }).await;
}

/// Sets the finalizers of the pod on a node.
async fn hold_pod(fleet: &Fleet, name: &str, is_held: bool) {
    let finalizers: &[&str] = if is_held { &["example.com/held"] } else { &[] };
    let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    fleet.scene.pods().patch(&format!("on-{name}"), &PatchParams::default(), &patch).await.unwrap();
}

async fn interrupt(fleet: &Fleet, name: &str) {
    let scene = &fleet.scene;
    let [drain, reboot, _] = HOOKS;
    let reach_draining = async || {
        scene.reaches(name, "before-drain").await;
        fleet.confirm(name, drain).await;
        scene.reaches(name, "draining").await;
    };
    let reach_reboot = async || {
        scene.reaches(name, "before-drain").await;
        fleet.confirm(name, drain).await;
        scene.reaches(name, "before-reboot").await;
    };
    match name {
        "paused-before-drain" => {
            scene.reaches(name, "before-drain").await;
            pause(fleet, name, true).await;
            pause(fleet, name, false).await;
        }
        "paused-draining" => {
            reach_draining().await;
            pause(fleet, name, true).await;
            assert!(!scene.keys(name).await.1, "it is uncordoned");
            hold_pod(fleet, name, false).await;
            pause(fleet, name, false).await;
        }
        "paused-before-reboot" => {
            reach_reboot().await;
            pause(fleet, name, true).await;
            assert!(!scene.keys(name).await.1, "it is uncordoned");
            pause(fleet, name, false).await;
        }
        "paused-rebooting" => {
            reach_reboot().await;
            fleet.machine(name).kill_agent();
            fleet.confirm(name, reboot).await;
            scene.reaches(name, "rebooting").await;
            pause(fleet, name, true).await;
            fleet.machine(name).restart_agent();
            pause(fleet, name, false).await;
        }
        "crash-drain" => {
            scene.reaches(name, "before-drain").await;
            fleet.machine(name).crash().await;
        }
        "crash-draining" => {
            reach_draining().await;
            fleet.machine(name).crash().await;
            scene.reaches(name, "before-uncordon").await;
            hold_pod(fleet, name, false).await;
        }
        "crash-drained" => {
            reach_reboot().await;
            fleet.machine(name).crash().await;
        }
        "unknown-stage" => {
            reach_reboot().await;
            scene.mark(name, json!({"tagboat.dev/state": "reboot-ok"}), json!({})).await;
            // It is repaired to idle, and begins anew.
            scene.reaches(name, "before-drain").await;
            assert!(!scene.keys(name).await.1, "it is uncordoned");
        }
        _ => {}
    }
}

/// Asserts one boot of each machine, and one entry of the history.
///
/// A node that crashed before its drain booted the image by itself, so it is not in the history.
async fn assert_updated(fleet: &Fleet, machines: &[&str]) {
    fleet.scene.condition("p", "UpToDate", "True AllUpdated").await;
    for name in machines {
        let expected = MachineState { booted: digest('2'), staged: None, boots: 1 };
        assert_eq!(fleet.machine(name).state(), expected, "{name}");
        let node = fleet.scene.node(name).await;
        let mut keys: Vec<String> = node.metadata.annotations.unwrap_or_default().into_keys().collect();
        keys.retain(|key| !key.starts_with("tagboat.dev/"));
        assert_eq!((keys, node.spec.unwrap().unschedulable), (Vec::new(), None), "{name}");
    }
    let nodes = machines.iter().filter(|name| **name != "crash-drain").count();
    let nodes = i64::try_from(nodes).unwrap();
    eventually("the history has all nodes", async || {
        let status = fleet.scene.pools().get(&fleet.scene.full("p")).await.unwrap().status.unwrap();
        let history: Vec<_> =
            status.deploy_history.iter().map(|entry| (entry.digest.clone(), entry.node_count)).collect();
        assert!(history.len() <= 1, "{history:?}");
        history == [(Some(digest('2')), nodes)]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_is_killed_before_and_after_each_patch_takes_every_step_once() {
    let (server, _controllers) = start_server("node-kills");
    let fleet = Fleet::on(NodeScene::on(server, "").await, &MACHINES).await;
    let mut kills = KillAtPatches::new();
    let kubeconfig = fleet.scene.cluster().faulty_kubeconfig(&kills.faults).await;
    let mut controller = Controller::start(&fleet.scene, &kubeconfig, "tagboat");
    for name in HELD {
        fleet.scene.create_pod(&format!("on-{name}"), name, json!({"app": "held"})).await;
        hold_pod(&fleet, name, true).await;
    }
    fleet.create_pool(&with_hooks(MACHINES.len())).await;
    let rollouts = async {
        fleet.start_agents().await;
        join_all(MACHINES.map(async |name| {
            interrupt(&fleet, name).await;
            finish(&fleet, name).await;
        }))
        .await;
        assert_updated(&fleet, &MACHINES).await;
    };
    tokio::select! {
        () = rollouts => {}
        () = kills.run(|| controller.restart()) => unreachable!("the faults send kills"),
    }
    // Each of the eight patches of a node was sent at least twice; one kill can end several.
    assert!(controller.restarts >= 16, "{} restarts", controller.restarts);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_killed_before_and_after_each_patch_reboots_the_host_once() {
    const AGENTS: [&str; 2] = ["a", "b"];
    let fleet = Fleet::new(&AGENTS).await;
    fleet.create_pool(&json!({"rollout": {"maxUnavailable": 2}})).await;
    let updated = async {
        assert_updated(&fleet, &AGENTS).await;
    };
    let killed = join_all(AGENTS.map(async |name| {
        let mut kills = KillAtPatches::new();
        let machine: &Machine = fleet.machine(name);
        let mut restarts = 0;
        machine.start_agent(&fleet.scene.cluster().faulty_kubeconfig(&kills.faults).await);
        let is_over = eventually("the node is updated", async || {
            let keys: Value = json!(fleet.scene.keys(name).await.0);
            keys["tagboat.dev/last-deployed"] == digest('2') && keys["tagboat.dev/agent"] == "up-to-date"
        });
        tokio::select! {
            () = is_over => {}
            () = kills.run(|| { restarts += 1; machine.restart_agent() }) => unreachable!("the faults send kills"),
        }
        // Staging, staged, the acknowledgment, and booted. A kill after one can end the next one as well.
        assert!(restarts >= 5, "{restarts} restarts");
    }));
    join(updated, killed).await;
}
