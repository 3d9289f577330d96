//! The program as a pod runs it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::scene::Scene;
use crate::support::program::tagboat;

/// The program, and the lines that it logs.
pub(super) struct Pod {
    child: Child,
    lines: Arc<Mutex<Vec<Value>>>,
    pub(super) health: String,
    pub(super) metrics: String,
}

impl Pod {
    /// With the roles that `deploy` gives, and no more.
    pub(super) async fn start(scene: &Scene, arguments: &[&str]) -> Self {
        Self::start_with(scene, &scene.cluster.token_with_the_roles().await, arguments)
    }

    /// As whoever has a token.
    pub(super) fn start_with(scene: &Scene, token: &str, arguments: &[&str]) -> Self {
        Self::start_by(scene, &scene.cluster.kubeconfig(token), arguments)
    }

    /// With a cluster that a kubeconfig leads to.
    pub(super) fn start_by(scene: &Scene, kubeconfig: &Path, arguments: &[&str]) -> Self {
        Self::start_in(scene, kubeconfig, &[], arguments)
    }

    /// The same with variables of the environment.
    pub(super) fn start_in(
        scene: &Scene,
        kubeconfig: &Path,
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> Self {
        let mut command: Command = tagboat();
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
        // Free a moment ago; who takes a port of the kernel's choice is given another.
        let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let (health, metrics) = (free(), free());
        let temporary = scene.root().join("temporary");
        fs::create_dir_all(&temporary).unwrap();
        let says_itself = arguments.iter().any(|argument| argument.starts_with("--allow-local-addresses"));
        command
            .args(arguments)
            .args((!says_itself).then_some("--allow-local-addresses"))
            .args([format!("--health-addr={health}"), format!("--metrics-addr={metrics}")])
            .env("KUBECONFIG", kubeconfig)
            .env("RUNTIME_NAMESPACE", scene.cluster.namespace())
            .env("TMPDIR", temporary)
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (kept, errors) = (lines.clone(), BufReader::new(child.stderr.take().unwrap()));
        std::thread::spawn(move || {
            for line in errors.lines() {
                let line = line.unwrap();
                let line = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
                kept.lock().unwrap().push(line);
            }
        });
        Self { child, lines, health, metrics }
    }

    /// Ends it as Kubernetes does, and gives its exit status and how long it took.
    pub(super) fn terminate(&mut self) -> (Option<i32>, Duration) {
        let begin = Instant::now();
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        (self.wait(), begin.elapsed())
    }

    /// Waits until it has ended by itself, and gives its exit status.
    pub(super) fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Ends it as a machine that dies does.
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(super) fn lines(&self) -> Vec<Value> {
        self.lines.lock().unwrap().clone()
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is served at an address.
pub(super) async fn get(address: &str, path: &str) -> String {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client.get(format!("http://{address}/{path}")).send().await.unwrap().text().await.unwrap()
}
