//! Approvals that are canceled while the agent acknowledges them.

use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node as ApiNode;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tagboat::nodes::{Action, AgentState, CancelReason, Node, Pool, Stage, Step, keys, patch};

use crate::nodes::machine::{Machine, digest, image};
use crate::support::api_server::Cluster;
use crate::support::eventually::eventually;

const MACHINES: usize = 10;
const RACES: usize = 100;

/// The results of the races of a machine.
#[derive(Debug, Default)]
struct Won {
    by_cancellations: usize,
    by_agents: usize,
}

/// Approves the staged image, and cancels that after a delay, as the controller does.
///
/// Returns `true` if the API server accepted the cancellation.
async fn race(api: &Api<ApiNode>, machine: &Machine, delay: Duration) -> bool {
    let approval = json!({"metadata": {"labels": {keys::STATE: "rebooting"}}});
    machine.patch(approval).await;
    let approved = machine.node().await;
    if approved.agent() == Some(AgentState::Rebooting) {
        return false;
    }
    tokio::time::sleep(delay).await;
    let step = Step {
        to: Stage::Idle,
        actions: vec![Action::ClearAllHooks, Action::Uncordon, Action::RemoveGuards],
        canceled: Some(CancelReason::Paused),
    };
    let cancel = patch(&approved, &Pool::default(), &step, Timestamp::now());
    match api.patch(machine.name(), &PatchParams::default(), &Patch::Merge(cancel)).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if status.is_conflict() => false,
        Err(error) => panic!("{error}"),
    }
}

async fn races(cluster: &Cluster, number: usize) -> Won {
    let machine = Machine::new(cluster, &number.to_string(), &image('1')).await;
    let set = |digit: char| {
        json!({"metadata": {
            "labels": {keys::STATE: "idle"}, "annotations": {keys::DESIRED_IMAGE: image(digit)},
        }})
    };
    machine.patch(set('2')).await;
    machine.start_agent(&cluster.administrators_kubeconfig());
    let api: Api<ApiNode> = Api::all(cluster.client());
    let (mut won, mut wanted) = (Won::default(), '2');
    // It approaches the time of the acknowledgment, which depends on the machine.
    let mut delay = Duration::from_millis(5);
    for _ in 0..RACES {
        let staged = |node: &Node| node.agent() == Some(AgentState::UpdateStaged) && node.is_staged();
        machine.until("the image is staged", staged).await;
        if race(&api, &machine, delay).await {
            won.by_cancellations += 1;
            // Each reboot costs a start of the agent, so the agent wins less often.
            delay = if won.by_agents == 0 { delay * 6 / 5 } else { delay * 27 / 25 };
        } else {
            won.by_agents += 1;
            delay /= 2;
            eventually("the host has rebooted", async || machine.state().boots == won.by_agents).await;
            machine.until("the image is booted", |node| node.agent() == Some(AgentState::UpToDate)).await;
            wanted = if wanted == '2' { '1' } else { '2' };
            machine.patch(set(wanted)).await;
        }
    }
    // The agent has read the host after the last cancellation.
    let before = machine.calls("cat").len();
    eventually("the host is read", async || machine.calls("cat").len() >= before + 4).await;
    assert_eq!(machine.state().boots, won.by_agents, "{won:?}");
    let booted = if wanted == '2' { '1' } else { '2' };
    assert_eq!(machine.state().booted, digest(booted));
    won
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_1000_races_of_approval_and_cancellation_no_canceled_one_reboots_the_host() {
    let cluster = Cluster::new().await;
    let results = join_all((0..MACHINES).map(|number| races(&cluster, number))).await;
    let sum = |count: fn(&Won) -> usize| results.iter().map(count).sum::<usize>();
    let (by_cancellations, by_agents) = (sum(|won| won.by_cancellations), sum(|won| won.by_agents));
    assert_eq!(by_cancellations + by_agents, MACHINES * RACES);
    // Otherwise it was no race.
    assert!(by_cancellations > 20 && by_agents > 20, "{results:?}");
}
