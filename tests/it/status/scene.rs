//! A namespace with deployments, and runs of the command on it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tagboat_api::DeploymentStatus;

use crate::support::api_server::{ApiServer, Cluster, apply};
use crate::support::program::{Run, run, tagboat_without_cluster};

/// The longest time that a test waits for something that happens at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// A namespace with deployments on a server that has their kind.
pub(crate) struct Scene {
    pub(super) cluster: Cluster,
    kubeconfig: PathBuf,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let cluster = Cluster::on(ApiServer::shared_with_deployments()).await;
        Self { kubeconfig: cluster.administrators_kubeconfig(), cluster }
    }

    pub(crate) fn namespace(&self) -> &str {
        self.cluster.namespace()
    }

    pub(crate) fn kubeconfig(&self) -> &std::path::Path {
        &self.kubeconfig
    }

    fn api(&self) -> Api<DeploymentStatus> {
        Api::default_namespaced(self.cluster.client())
    }

    /// Creates a deployment without a status.
    pub(super) async fn create(&self, namespace: &str, name: &str, labels: &Value) {
        let object = json!({
            "apiVersion": "tagboat.dev/v1alpha1",
            "kind": "DeploymentStatus",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {"policyRef": {"name": name}},
        });
        apply(&self.cluster.client(), &object, false).await.unwrap();
    }

    /// Creates a deployment with a status.
    pub(crate) async fn deploy(&self, name: &str, status: &Value) {
        self.create(self.namespace(), name, &json!({})).await;
        self.set(self.namespace(), name, status).await;
    }

    /// Replaces the status of a deployment.
    pub(super) async fn set(&self, namespace: &str, name: &str, status: &Value) {
        let api: Api<DeploymentStatus> = Api::namespaced(self.cluster.client(), namespace);
        let patch = json!([{"op": "add", "path": "/status", "value": status}]);
        let patch = Patch::<Value>::Json(serde_json::from_value(patch).unwrap());
        api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.api().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// The command with these options, on this namespace.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        command(&self.kubeconfig, arguments)
    }

    /// Runs the command to its end.
    pub(super) fn status(&self, arguments: &[&str]) -> Run {
        run(&mut self.command(arguments))
    }
}

/// The command with a kubeconfig and options.
pub(super) fn command(kubeconfig: &std::path::Path, arguments: &[&str]) -> Command {
    let mut command = tagboat_without_cluster();
    command.args(["status", "--kubeconfig"]).arg(kubeconfig).args(arguments);
    command
}

/// Writes a kubeconfig for a server without TLS.
pub(crate) fn kubeconfig(directory: &std::path::Path, server: &str) -> PathBuf {
    let file = directory.join("kubeconfig");
    let content = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server}}],
        "users": [{"name": "test", "user": {"token": "hunter2"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": "apps"}}],
        "current-context": "test",
    });
    std::fs::write(&file, content.to_string()).unwrap();
    file
}

/// The status of an installed deployment with one component, of an image `ghcr.io/org/app:TAG`.
pub(crate) fn installed(tag: &str) -> Value {
    let since = (Timestamp::now() - SignedDuration::from_hours(2)).to_string();
    json!({
        "deploymentId": "5d1c0e9a-0000-4000-8000-000000000001",
        "timeStamp": since,
        "state": "installed",
        "since": since,
        "target": {"name": "ghcr.io/org/app", "tag": tag},
        "summary": {"total": 1, "failed": 0, "removing": 0, "installing": 0, "pending": 0, "removed": 0, "installed": 1},
        "progress": "2/2",
        "components": [{
            "name": "Deployment/apps/podinfo",
            "state": "installed",
            "image": format!("ghcr.io/org/app:{tag}"),
            "desired": 2,
            "updated": 2,
            "ready": 2,
            "updatedReady": 2,
            "since": since,
            "automation": "apps",
            "place": "apps/podinfo.yaml:12",
            "tie": "object",
            "applier": "Kustomization/flux-system/apps",
        }],
    })
}

/// The same deployment whose rollout is in progress.
pub(super) fn installing(tag: &str) -> Value {
    let mut status = installed(tag);
    for object in ["", "/components/0"] {
        status.pointer_mut(object).unwrap()["state"] = json!("installing");
    }
    status["progress"] = json!("1/2");
    status["components"][0]["ready"] = json!(1);
    status["components"][0]["updatedReady"] = json!(1);
    status
}

/// The same deployment whose pods cannot pull the image.
pub(super) fn failed(tag: &str) -> Value {
    let mut status = installing(tag);
    for object in ["", "/components/0"] {
        status.pointer_mut(object).unwrap()["state"] = json!("failed");
    }
    status["components"][0]["error"] = json!({
        "code": "ImagePullBackOff",
        "source": "Deployment/apps/podinfo",
        "message": "Back-off pulling image",
    });
    status
}

/// A run of the command that goes on.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in output.lines() {
                if sender.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// Returns the next line of the output, with single spaces.
    pub(crate) fn line(&mut self) -> String {
        let line = self.lines.recv_timeout(PATIENCE).expect("another line");
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Waits for the end and returns the exit status, the remaining output and the errors.
    pub(crate) fn end(self) -> Run {
        let Self { child, lines } = self;
        let ended = child.wait_with_output().unwrap();
        let output = lines.iter().map(|line| line + "\n").collect();
        Run { status: ended.status.code(), output, errors: String::from_utf8(ended.stderr).unwrap() }
    }

    /// Interrupts the command, as Ctrl-C does, and returns its end.
    pub(crate) fn interrupt(self) -> Run {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
        self.end()
    }

    /// Returns true if it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}
