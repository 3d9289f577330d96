//! Measures a rollout on nodes whose machines need a fixed time for each step.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::watcher::{Config, Event, watcher};
use serde_json::{Value, json};
use tagboat_api::NodePool;
use tokio::time::sleep;

use crate::nodes::{Fleet, PATIENCE};
use crate::process::Measured;

/// The number of nodes.
const NODES: usize = 50;

/// The number of nodes that are updated at the same time.
const AT_ONCE: usize = 5;

/// The time of a step of a machine: a staging, a hook, a reboot.
const STEP: Duration = Duration::from_secs(2);

const HOOK: &str = "example.com/moved";

/// Measures the time from another image of the pool until all nodes have booted it.
///
/// A hook stands for the drain, because there are no pods: each node has two steps beside its staging.
pub(crate) async fn measure(program: &Path) {
    let fleet = Fleet::new(NODES).await;
    let process = Measured::start_on(program, &fleet.scene, fleet.scene.cluster.namespace(), &[]).await;
    fleet.is_counted().await;
    let client = fleet.scene.cluster.client();
    let machines = tokio::spawn(run_machines(Api::all(client.clone())));
    let pools: Api<NodePool> = Api::all(client);
    let spec = json!({"spec": {
        "image": {"ref": format!("quay.io/org/os@{}", digest())},
        "rollout": {"maxUnavailable": AT_ONCE}, "hooks": {"beforeReboot": [HOOK]},
    }});
    let begin = Instant::now();
    pools.patch("workers", &PatchParams::default(), &Patch::Merge(&spec)).await.unwrap();
    loop {
        let status = pools.get("workers").await.unwrap().status.unwrap_or_default();
        let is_new = status.target_digest == Some(digest());
        if is_new && usize::try_from(status.updated_count) == Ok(NODES) {
            break;
        }
        assert!(begin.elapsed() < PATIENCE && !machines.is_finished(), "{status:?}");
        sleep(Duration::from_millis(50)).await;
    }
    let waves = u32::try_from(NODES / AT_ONCE).unwrap();
    let (time, shortest) = (begin.elapsed().as_secs_f64(), (STEP + 2 * STEP * waves).as_secs_f64());
    println!(
        "\na rollout on {NODES} nodes, {AT_ONCE} at a time, in {time:.1} s: {:.2} times the shortest of {shortest:.0} s\n",
        time / shortest
    );
    machines.abort();
    process.end();
}

fn digest() -> String {
    format!("sha256:{}", "2".repeat(64))
}

/// Plays the agents, the hooks and the kubelets of all nodes.
async fn run_machines(nodes: Api<Node>) {
    let mut begun = HashSet::new();
    let mut events = watcher(nodes.clone(), Config::default()).boxed();
    while let Some(event) = events.next().await {
        let (Event::Apply(node) | Event::InitApply(node)) = event.unwrap() else { continue };
        if let Some((step, patch)) = step(&node)
            && begun.insert((node.name_any(), step))
        {
            tokio::spawn(take(nodes.clone(), node.name_any(), step, patch));
        }
    }
}

async fn take(nodes: Api<Node>, name: String, step: &'static str, patch: Value) {
    sleep(STEP).await;
    if step == "reboot" {
        let boot = Patch::Merge(json!({"status": {"nodeInfo": {"bootID": "2"}}}));
        nodes.patch_status(&name, &PatchParams::default(), &boot).await.unwrap();
    }
    nodes.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Returns the step of a machine, and the patch at its end.
fn step(node: &Node) -> Option<(&'static str, Value)> {
    let wants_it = node.annotations().get("tagboat.dev/desired-image")?.ends_with(&digest());
    let stage = node.labels().get("tagboat.dev/state").filter(|_| wants_it)?;
    let keys = |agent: Option<&str>, annotations: Value| {
        let mut metadata = json!({"annotations": annotations});
        if let Some(agent) = agent {
            metadata["labels"] = json!({"tagboat.dev/agent": agent});
        }
        json!({"metadata": metadata})
    };
    match stage.as_str() {
        "idle" => {
            let staged = json!({"tagboat.dev/staged-digest": digest()});
            Some(("staging", keys(Some("update-staged"), staged)))
        }
        "before-reboot" => Some(("hook", keys(None, json!({HOOK: "true"})))),
        "rebooting" => {
            let booted = json!({"tagboat.dev/booted-digest": digest(), "tagboat.dev/staged-digest": null});
            Some(("reboot", keys(Some("up-to-date"), booted)))
        }
        _ => None,
    }
}
