//! Simulated machines: a Node, a directory with host programs, and the agent.
//!
//! The Node is that of the real API server, and the agent the real program.
//!
//! ```text
//! let machine = Machine::new(&cluster, "a", &image('1')).await; // the node NAMESPACE-a, ready
//! machine.start_agent(&cluster.administrators_kubeconfig());    // the real program, also after each boot
//! machine.state();                                              // the booted and the staged digest, the boots
//! machine.node().await;                                         // the node, as the API server has it
//! machine.patch(json!({"metadata": …})).await;
//! machine.calls("systemctl");                                   // the arguments of each run of a program
//!
//! machine.fault("unit", "exec sleep 600");                      // a shell script before what a program does
//! machine.heal("unit");
//! machine.remove_program("bootc");
//! machine.next_boots(Boot::RolledBack);                         // how the machine comes back
//! machine.kill_agent();                                         // kill -9; `start_agent` starts it again
//! machine.crash().await;                                        // without a warning; waits for the next boot
//! ```
//!
//! `systemctl reboot`, and a crash, kill the agent and all programs, set the node NotReady, boot the staged image under
//! another boot ID, and set the node Ready. `systemd-run` runs `bootc switch` as the program `unit`, which stays when
//! the agent is killed. `cat` and `test` see the files below `root` of the machine's directory only.

mod disk;
mod system_bus;

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node as ApiNode;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tagboat::nodes::{Node, NodeObject};
use tokio::task::JoinHandle;

use crate::support::api_server::Cluster;
use crate::support::eventually::{eventually, eventually_found};
use crate::support::process_reaper::ProcessReaper;

use disk::Disk;
pub(crate) use disk::{MachineState, digest, image};
pub(crate) use system_bus::{Answer, SystemBus, status};

/// A machine with a node.
pub(crate) struct Machine {
    inner: Arc<Inner>,
    /// Reboots the machine when a program asks for it.
    power: JoinHandle<()>,
}

struct Inner {
    name: String,
    disk: Disk,
    api: Api<ApiNode>,
    agent: Mutex<Agent>,
    boot: Mutex<Boot>,
}

#[derive(Default)]
struct Agent {
    command: Option<Command>,
    process: Option<ProcessReaper>,
    /// The output of the processes that were killed.
    output: String,
}

/// The way in which a machine comes back.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Boot {
    /// With the staged image, if there is one.
    Staged,
    /// With the image before, as a host that rolls back by itself.
    RolledBack,
    /// With the staged image, after a time.
    Late(Duration),
    /// Not at all.
    Never,
}

impl Machine {
    /// Creates a node, and its machine with a booted image.
    ///
    /// The node has the label `tests/namespace`, as those of `WorkloadCluster`.
    pub(crate) async fn new(cluster: &Cluster, name: &str, image: &str) -> Self {
        let name = format!("{}-{name}", cluster.namespace());
        let api: Api<ApiNode> = Api::all(cluster.client());
        let labels = json!({"tests/namespace": cluster.namespace()});
        let node = json!({"metadata": {"name": name, "labels": labels}});
        api.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
        let inner = Arc::new(Inner {
            name,
            disk: Disk::new(image),
            api,
            agent: Mutex::default(),
            boot: Mutex::new(Boot::Staged),
        });
        // The API server taints each new node, until a controller finds it ready.
        inner.patch(&json!({"spec": {"taints": null}})).await;
        inner.report("True").await;
        let power = tokio::spawn(Arc::clone(&inner).supply_power());
        Self { inner, power }
    }

    /// The name of the node.
    pub(crate) fn name(&self) -> &str {
        &self.inner.name
    }

    /// Starts the agent, which reads the host each second.
    ///
    /// It is started again after each boot.
    pub(crate) fn start_agent(&self, kubeconfig: &Path) {
        self.start_agent_with(kubeconfig, &[]);
    }

    /// Starts the agent with further arguments.
    pub(crate) fn start_agent_with(&self, kubeconfig: &Path, arguments: &[&str]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tagboat"));
        command.args(["agent", "--node", self.name(), "--interval=1s", "--log-encoding=console"]);
        command.args(["--health-addr=0", "--metrics-addr=0", "--on-host", &self.inner.disk.prefix()]);
        command.args(["--dbus-address", &self.inner.disk.bus_address()]);
        command.args(arguments).env_clear().env("KUBECONFIG", kubeconfig).env("container", "podman");
        // By their directory the processes of a machine are known.
        command.env("PATH", "/usr/bin:/bin").current_dir(self.inner.disk.path());
        self.inner.agent.lock().unwrap().command = Some(command);
        self.inner.start_agent();
    }

    /// Starts the system bus of the machine, with update-engine and logind.
    pub(crate) async fn start_bus(&self) -> SystemBus {
        let reboot = self.inner.disk.path().join("reboot");
        let bus = SystemBus::start(&self.inner.disk.path().join("bus")).await;
        bus.on_reboot(move || std::fs::write(&reboot, "").unwrap());
        bus
    }

    /// Kills the agent.
    pub(crate) fn kill_agent(&self) {
        self.inner.kill_agent();
    }

    /// Starts the agent again that was killed.
    pub(crate) fn restart_agent(&self) {
        self.kill_agent();
        self.inner.start_agent();
    }

    /// The log of the agent.
    pub(crate) fn agent_log(&self) -> String {
        let agent = self.inner.agent.lock().unwrap();
        agent.output.clone() + &agent.process.as_ref().map(ProcessReaper::output).unwrap_or_default()
    }

    /// The images and the number of boots.
    pub(crate) fn state(&self) -> MachineState {
        self.inner.disk.state()
    }

    /// Returns true if an image is being staged.
    pub(crate) fn is_staging(&self) -> bool {
        self.inner.disk.path().join("unit").exists()
    }

    /// The words that run a program of this machine, and of no other.
    pub(crate) fn prefix(&self) -> String {
        self.inner.disk.prefix()
    }

    /// The arguments of each run of a program.
    pub(crate) fn calls(&self, program: &str) -> Vec<String> {
        self.inner.disk.calls(program)
    }

    /// Lets a program do something before, or in place of, what it does.
    ///
    /// In the script, `$machine` is the directory.
    pub(crate) fn fault(&self, program: &str, script: &str) {
        self.inner.disk.write(&format!("faults/{program}"), script);
    }

    /// Ends the fault of a program.
    pub(crate) fn heal(&self, program: &str) {
        self.inner.disk.remove(&format!("faults/{program}"));
    }

    /// Removes a program.
    pub(crate) fn remove_program(&self, program: &str) {
        self.inner.disk.remove(&format!("bin/{program}"));
    }

    /// Writes a file of the host; its path is absolute.
    pub(crate) fn write_file(&self, path: &str, content: &str) {
        self.inner.disk.write(&format!("root{path}"), content);
    }

    /// Removes a file of the host.
    pub(crate) fn remove_file(&self, path: &str) {
        self.inner.disk.remove(&format!("root{path}"));
    }

    /// Sets the image that is staged, as another program would.
    pub(crate) fn set_staged(&self, image: &str) {
        self.inner.disk.stage(image);
    }

    /// Gives the manifest of the platform of an image a digest of its own.
    pub(crate) fn set_platform(&self, image: char, platform: char) {
        self.inner.disk.write(&format!("platforms/{}", digest(image)), &digest(platform));
    }

    /// Sets the version of the system that the next boot boots.
    pub(crate) fn set_next_version(&self, version: &str) {
        self.inner.disk.write("next_version", version);
    }

    /// Sets how the machine comes back from now on.
    pub(crate) fn next_boots(&self, boot: Boot) {
        *self.inner.boot.lock().unwrap() = boot;
    }

    /// Reboots without a warning, and waits until the machine is back.
    pub(crate) async fn crash(&self) {
        let boots = self.state().boots;
        self.inner.disk.write("reboot", "");
        eventually("the machine is back", async || self.state().boots > boots).await;
    }

    /// The node.
    pub(crate) async fn node(&self) -> Node {
        let api: Api<NodeObject> = Api::all(self.inner.api.clone().into_client());
        Node::from(&api.get(self.name()).await.unwrap())
    }

    /// Patches the node.
    pub(crate) async fn patch(&self, patch: Value) {
        self.inner.patch(&patch).await;
    }

    /// Waits until the node is as wanted, and returns it.
    pub(crate) async fn until(&self, what: &str, is_wanted: impl Fn(&Node) -> bool) -> Node {
        eventually_found(what, async || Some(self.node().await).filter(|node| is_wanted(node))).await
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.power.abort();
        self.inner.turn_off();
        if std::thread::panicking() {
            eprintln!("{}: {:?}\n{}", self.name(), self.state(), self.agent_log());
        }
    }
}

impl Inner {
    /// Reboots the machine whenever a program has asked for it.
    async fn supply_power(self: Arc<Self>) {
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if self.disk.remove("reboot") {
                self.turn_off();
                self.report("Unknown").await;
                let boot = *self.boot.lock().unwrap();
                match boot {
                    Boot::Never => return,
                    Boot::Late(time) => tokio::time::sleep(time).await,
                    Boot::Staged | Boot::RolledBack => {}
                }
                self.disk.boot(matches!(boot, Boot::RolledBack));
                self.report("True").await;
                self.start_agent();
            }
        }
    }

    fn turn_off(&self) {
        self.kill_agent();
        self.disk.kill_programs();
    }

    fn kill_agent(&self) {
        let mut agent = self.agent.lock().unwrap();
        if let Some(process) = agent.process.take() {
            agent.output += &process.output();
        }
    }

    fn start_agent(&self) {
        let mut agent = self.agent.lock().unwrap();
        agent.process = agent.command.as_ref().map(|command| ProcessReaper::start(command).unwrap());
    }

    async fn patch(&self, patch: &Value) {
        self.api.patch(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Reports the machine as its kubelet does, or else the controller of nodes.
    async fn report(&self, ready: &str) {
        let status = json!({"status": {
            "conditions": [{"type": "Ready", "status": ready, "reason": "Test", "message": ""}],
            "nodeInfo": {"bootID": self.disk.boot_id()},
        }});
        let patch = Patch::Merge(&status);
        self.api.patch_status(&self.name, &PatchParams::default(), &patch).await.unwrap();
    }
}
