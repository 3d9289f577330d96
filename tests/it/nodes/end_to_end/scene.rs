//! Machines with agents, and their pool.
//!
//! ```text
//! let fleet = Fleet::new(&["a", "b"]).await;      // machines that have booted image 1
//! fleet.create_pool(&json!({})).await;            // wants image 2
//! fleet.start_agents().await;
//! fleet.scene.reaches("a", "rebooting").await;
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::deployment::read;
use crate::nodes::agent_access::{self, ACCOUNT};
use crate::nodes::controller::scene::{ARGUMENTS, NodeScene};
use crate::nodes::machine::{Machine, image};
use crate::support::api_server::{apply, documents};
use crate::support::eventually::eventually_found;
use crate::support::process_reaper::ProcessReaper;
use crate::support::program::tagboat;

/// The keys of the hooks of a pool that has one at each stage.
pub(super) const HOOKS: [&str; 3] = ["example.com/drain", "example.com/reboot", "example.com/uncordon"];

/// Machines of a test.
pub(super) struct Fleet {
    pub(super) scene: NodeScene,
    machines: BTreeMap<String, Machine>,
}

impl Fleet {
    /// Makes machines that have booted image 1, without agents.
    pub(super) async fn new(names: &[&str]) -> Self {
        Self::on(NodeScene::new().await, names).await
    }

    /// Makes machines in a scene.
    pub(super) async fn on(scene: NodeScene, names: &[&str]) -> Self {
        agent_access::install(scene.cluster()).await;
        let cluster = scene.cluster();
        let machine = async |name: &str| (name.to_owned(), Machine::new(cluster, name, &image('1')).await);
        let machines = join_all(names.iter().map(|name| machine(name))).await.into_iter().collect();
        Self { scene, machines }
    }

    /// Returns a machine.
    pub(super) fn machine(&self, name: &str) -> &Machine {
        &self.machines[name]
    }

    /// Creates the pool `p` of all machines, which wants image 2.
    pub(super) async fn create_pool(&self, spec: &Value) {
        let mut spec = spec.clone();
        spec["image"] = json!({"ref": image('2')});
        self.scene.create_pool("p", &spec).await;
    }

    /// Changes the wanted image of the pool.
    pub(super) async fn want(&self, digit: char) {
        self.scene.patch_pool("p", &json!({"spec": {"image": {"ref": image(digit)}}})).await;
    }

    /// Starts the agents with the tokens of the pods of their DaemonSet.
    pub(super) async fn start_agents(&self) {
        let cluster = self.scene.cluster();
        let mut agents = documents(&read("nodes/agent.yaml"));
        let mut agents = agents.remove(1);
        agents["metadata"]["namespace"] = json!(cluster.namespace());
        // Nodes of other tests are in pools as well.
        agents["spec"]["template"]["spec"]["nodeSelector"] = json!({"tests/namespace": cluster.namespace()});
        apply(&cluster.client(), &agents, false).await.unwrap();
        join_all(self.machines.values().map(async |machine| {
            let token = agent_access::token_of(cluster, &self.agent_pod(machine).await).await;
            machine.start_agent(&cluster.kubeconfig(&token));
        }))
        .await;
    }

    async fn agent_pod(&self, machine: &Machine) -> Pod {
        let fields = ListParams::default().fields(&format!("spec.nodeName={}", machine.name()));
        let is_agent =
            |pod: &Pod| pod.spec.as_ref().unwrap().service_account_name.as_deref() == Some(ACCOUNT);
        eventually_found("the pod of the agent is scheduled", async || {
            self.scene.pods().list(&fields).await.unwrap().items.into_iter().find(is_agent)
        })
        .await
    }

    /// Confirms a hook of a node.
    pub(super) async fn confirm(&self, name: &str, hook: &str) {
        self.scene.mark(name, json!({}), json!({hook: "true"})).await;
    }
}

/// A controller of the test's own.
pub(super) struct Controller {
    command: Command,
    process: Option<ProcessReaper>,
    log: String,
    pub(super) restarts: usize,
}

impl Controller {
    /// Starts the program in a pod of that name.
    pub(super) fn start(scene: &NodeScene, kubeconfig: &Path, pod: &str) -> Self {
        let mut command = tagboat();
        command.args(ARGUMENTS).arg("--metrics-addr=0").env("KUBECONFIG", kubeconfig);
        command.env("RUNTIME_NAMESPACE", scene.cluster().namespace()).env("HOSTNAME", pod);
        let (process, log) = (ProcessReaper::start(&command).ok(), String::new());
        Self { command, process, log, restarts: 0 }
    }

    /// Kills the program, and starts it again.
    pub(super) fn restart(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill_server();
            self.log += &process.output();
        }
        self.process = Some(ProcessReaper::start(&self.command).unwrap());
        self.restarts += 1;
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let last = self.process.as_ref().map(ProcessReaper::output).unwrap_or_default();
            eprintln!("{}{last}", self.log);
        }
    }
}

/// Returns a pool with hooks at each stage.
pub(super) fn with_hooks(max_unavailable: usize) -> Value {
    let [drain, reboot, uncordon] = HOOKS;
    json!({
        "hooks": {"beforeDrain": [drain], "beforeReboot": [reboot], "beforeUncordon": [uncordon]},
        "rollout": {"maxUnavailable": max_unavailable},
    })
}
