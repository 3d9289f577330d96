//! The real agent on simulated machines. The tests write what the controller would.

mod failures;
mod flags;
mod interruptions;
mod reboots;
mod requests;
mod staging;
mod update_engine;

use serde_json::{Value, json};
use tagboat::nodes::{AgentState, Node, keys};

use super::agent_access;
use super::machine::{Machine, image};
use crate::support::api_server::Cluster;
use crate::support::eventually::eventually;

/// A machine that has booted image 1, whose node is in a pool.
struct Scene {
    cluster: Cluster,
    machine: Machine,
}

impl Scene {
    /// Creates a scene in which an image is wanted; the agent is not started.
    async fn without_agent(wanted: Option<&str>) -> Self {
        let cluster = Cluster::new().await;
        let machine = Machine::new(&cluster, "a", &image('1')).await;
        let scene = Self { cluster, machine };
        scene.set("idle", wanted).await;
        scene
    }

    /// Creates a scene with an agent that has the permissions of its deployment.
    async fn wanting(wanted: &str) -> Self {
        let scene = Self::without_agent(Some(wanted)).await;
        agent_access::install(&scene.cluster).await;
        let token = agent_access::token(&scene.cluster, scene.machine.name()).await;
        scene.machine.start_agent(&scene.cluster.kubeconfig(&token));
        scene
    }

    /// Creates a scene in which image 2 is staged.
    async fn staged() -> Self {
        let scene = Self::wanting(&image('2')).await;
        scene.until(AgentState::UpdateStaged).await;
        scene
    }

    /// Sets the stage and the wanted image.
    async fn set(&self, stage: &str, wanted: Option<&str>) {
        let (labels, annotations) = (json!({keys::STATE: stage}), json!({keys::DESIRED_IMAGE: wanted}));
        self.machine.patch(json!({"metadata": {"labels": labels, "annotations": annotations}})).await;
    }

    /// Sets the stage.
    async fn set_stage(&self, stage: &str) {
        self.machine.patch(json!({"metadata": {"labels": {keys::STATE: stage}}})).await;
    }

    /// Waits until the agent reports a state.
    async fn until(&self, state: AgentState) -> Node {
        self.machine.until(state.as_str(), |node| node.agent() == Some(state)).await
    }

    /// Waits until the agent reports an error, and returns the message.
    async fn until_error(&self) -> String {
        message(&self.until(AgentState::Error).await)
    }

    /// Waits until the agent has read the host a few times more.
    async fn until_read_again(&self) {
        self.until_read_again_by("cat").await;
    }

    /// Waits until a program has been called a few times more.
    async fn until_read_again_by(&self, program: &str) {
        let before = self.machine.calls(program).len();
        eventually("the host is read", async || self.machine.calls(program).len() >= before + 3).await;
    }

    /// The number of times that the agent has asked for a reboot.
    fn reboots(&self) -> usize {
        self.machine.calls("systemctl").iter().filter(|call| *call == "reboot").count()
    }

    /// The references that the agent has staged.
    fn stagings(&self) -> Vec<String> {
        let calls = self.machine.calls("systemd-run");
        calls.iter().map(|call| call.rsplit_once(' ').unwrap().1.to_owned()).collect()
    }
}

fn message(node: &Node) -> String {
    node.annotation(keys::MESSAGE).unwrap_or_default().to_owned()
}

/// Returns the annotations with the booted and the staged digest.
fn digests(node: &Node) -> [Option<String>; 2] {
    [keys::BOOTED_DIGEST, keys::STAGED_DIGEST].map(|key| node.annotation(key).map(str::to_owned))
}

/// Removes everything of Tagboat from a node.
fn removal() -> Value {
    let annotations: serde_json::Map<String, Value> =
        keys::ANNOTATIONS.into_iter().map(|key| (key.to_owned(), Value::Null)).collect();
    json!({"metadata": {"labels": {keys::STATE: null, keys::AGENT: null}, "annotations": annotations}})
}
