//! The program as a pod runs it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::scene::Scene;
use crate::support::program::tagboat;

/// The program, and the lines that it logs.
pub(crate) struct Pod {
    child: Child,
    lines: Arc<Mutex<Vec<Value>>>,
    /// Reads the lines until the program has ended.
    reader: Option<JoinHandle<()>>,
    pub(crate) health: String,
    pub(crate) metrics: String,
    /// The address of the status; nothing serves there unless the settings say so.
    pub(crate) status: String,
}

/// The settings of a pod.
#[derive(Clone, Copy)]
pub(crate) struct PodSpec<'a> {
    pub(crate) kubeconfig: &'a Path,
    /// The namespace that the pod is in.
    pub(crate) namespace: &'a str,
    /// The directory that holds its `TMPDIR`.
    pub(crate) directory: &'a Path,
    pub(crate) environment: &'a [(&'a str, &'a str)],
    pub(crate) arguments: &'a [&'a str],
    /// Serves the status of deployments.
    pub(crate) serves_status: bool,
    /// The only CPU that the program and its children may run on.
    pub(crate) cpu: Option<usize>,
}

/// Returns an address that no other test uses.
///
/// A port of loopback that was free a moment ago may be taken by the time that the program listens there, so
/// each pod has a loopback address of its own. All of 127.0.0.0/8 is local on Linux.
fn own_address() -> Ipv4Addr {
    static PODS: AtomicU8 = AtomicU8::new(0);
    let [.., high, low] = std::process::id().to_be_bytes();
    let pod = PODS.fetch_add(1, Ordering::Relaxed);
    // 127.0.0.0/16 and 127.1.0.0/16 are for everything else.
    Ipv4Addr::new(127, high % 250 + 2, low, pod)
}

/// The program, on one CPU or on all.
fn tagboat_on(cpu: Option<usize>) -> Command {
    let program = tagboat();
    let Some(cpu) = cpu else { return program };
    // `taskset` becomes the program, so the id of the process stays.
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &cpu.to_string()]).arg(program.get_program()).stdin(Stdio::null());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

impl Pod {
    /// Starts the program with just the roles of `deploy`.
    pub(super) async fn start(scene: &Scene, arguments: &[&str]) -> Self {
        Self::start_with(scene, &scene.cluster.token_with_the_roles().await, arguments)
    }

    /// Starts the program with the account of a token.
    pub(super) fn start_with(scene: &Scene, token: &str, arguments: &[&str]) -> Self {
        Self::start_by(scene, &scene.cluster.kubeconfig(token), arguments)
    }

    /// Starts the program with a kubeconfig.
    pub(super) fn start_by(scene: &Scene, kubeconfig: &Path, arguments: &[&str]) -> Self {
        Self::start_in(scene, kubeconfig, &[], arguments)
    }

    /// Starts the program with a kubeconfig and further environment variables.
    ///
    /// Other tests share its API server, so that it must be limited to the objects of this one.
    pub(super) fn start_in(
        scene: &Scene,
        kubeconfig: &Path,
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> Self {
        let is_limit = |argument: &&str| {
            *argument == "--watch-all-namespaces=false" || argument.starts_with("--watch-label-selector=")
        };
        assert!(arguments.iter().any(is_limit), "{arguments:?} would reconcile the objects of other tests");
        let namespace = scene.cluster.namespace();
        Self::spawn(PodSpec {
            kubeconfig,
            namespace,
            directory: scene.root(),
            environment,
            arguments,
            serves_status: false,
            cpu: None,
        })
    }

    /// Starts the program.
    /// It may reach local addresses, because the servers of tests are on loopback.
    pub(crate) fn spawn(spec: PodSpec<'_>) -> Self {
        let PodSpec { kubeconfig, namespace, directory, environment, arguments, serves_status, cpu } = spec;
        let mut command: Command = tagboat_on(cpu);
        for name in [
            "HTTPS_PROXY",
            "https_proxy",
            "HTTP_PROXY",
            "http_proxy",
            "ALL_PROXY",
            "all_proxy",
            "NO_PROXY",
            "no_proxy",
        ] {
            command.env_remove(name);
        }
        let address = own_address();
        let [health, metrics, status] = [9440, 8080, 9797].map(|port| format!("{address}:{port}"));
        let temporary = directory.join("temporary");
        fs::create_dir_all(&temporary).unwrap();
        let says_itself = arguments.iter().any(|argument| argument.starts_with("--allow-local-addresses"));
        command
            .args(arguments)
            .args((!says_itself).then_some("--allow-local-addresses"))
            .args([format!("--health-addr={health}"), format!("--metrics-addr={metrics}")])
            .args(serves_status.then(|| format!("--status-addr={status}")))
            .env("KUBECONFIG", kubeconfig)
            .env("RUNTIME_NAMESPACE", namespace)
            .env("TMPDIR", temporary)
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (kept, errors) = (lines.clone(), BufReader::new(child.stderr.take().unwrap()));
        let reader = std::thread::spawn(move || {
            for line in errors.lines() {
                let line = line.unwrap();
                let line = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
                kept.lock().unwrap().push(line);
            }
        });
        Self { child, lines, reader: Some(reader), health, metrics, status }
    }

    /// Ends the program with SIGTERM as Kubernetes does.
    /// Returns its exit status and the time that it took.
    pub(crate) fn terminate(&mut self) -> (Option<i32>, Duration) {
        let begin = Instant::now();
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        (self.wait(), begin.elapsed())
    }

    /// Waits until the program ends by itself and all its lines are read.
    /// Returns its exit status.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let status = self.child.wait().unwrap();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        status.code()
    }

    /// Ends it with SIGKILL, as after the failure of a machine.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        self.lines.lock().unwrap().clone()
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Fetches a path over HTTP, and returns the whole response.
pub(crate) async fn get(address: &str, path: &str) -> String {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client.get(format!("http://{address}/{path}")).send().await.unwrap().text().await.unwrap()
}
