//! Other clusters: their kubeconfigs in a mounted Secret, and clusters that hang.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::scene::{ROLES, Scene, deployment, image};
use crate::controller::pod::{Pod, get};
use crate::support::api_server::{ApiServer, Cluster};
use crate::support::eventually::eventually;
use crate::support::workloads::{Controllers, PodState, WorkloadCluster, install_kinds};

/// Timeout of any step; the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(180);

/// The time for which a new cluster is waited for, at most.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);

/// The message of the log about a changed kubeconfig.
pub(super) const NEW_KUBECONFIG: &str = "a cluster has a new kubeconfig";

/// A directory with kubeconfigs, as the kubelet mounts a Secret.
pub(super) struct Mounted {
    directory: TempDir,
    versions: u32,
}

impl Mounted {
    pub(super) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), versions: 0 }
    }

    /// Replaces all files at once, by a symbolic link to another directory.
    pub(super) fn set(&mut self, files: &[(&str, &str)]) {
        let root = self.directory.path();
        self.versions += 1;
        let version = format!("..{}", self.versions);
        fs::create_dir(root.join(&version)).unwrap();
        for (name, text) in files {
            fs::write(root.join(&version).join(name), text).unwrap();
        }
        symlink(&version, root.join("..new")).unwrap();
        fs::rename(root.join("..new"), root.join("..data")).unwrap();
        for entry in fs::read_dir(root).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if !name.starts_with("..") && !files.iter().any(|(file, _)| *file == name) {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        for (name, _) in files {
            if fs::symlink_metadata(root.join(name)).is_err() {
                symlink(format!("..data/{name}"), root.join(name)).unwrap();
            }
        }
    }

    pub(super) fn argument(&self) -> String {
        format!("--clusters={}", self.directory.path().display())
    }
}

/// A cluster with controllers beside that of a scene.
struct Edge {
    workloads: WorkloadCluster,
    _controllers: Controllers,
}

impl Edge {
    /// Starts it, with a namespace of the same name.
    async fn beside(scene: &Scene, name: &str) -> Self {
        let server = Arc::new(ApiServer::shared().start_beside(name));
        install_kinds(&server);
        let controllers = Controllers::start(&server);
        let namespace = scene.cluster().namespace().to_owned();
        let workloads = WorkloadCluster::of(Cluster::named(server, namespace).await);
        Self { workloads, _controllers: controllers }
    }

    /// A kubeconfig with exactly the roles of `deploy`.
    async fn kubeconfig(&self) -> String {
        let cluster = self.workloads.cluster();
        fs::read_to_string(cluster.kubeconfig(&cluster.token_with_roles(&ROLES).await)).unwrap()
    }
}

/// A kubeconfig of an address, with the fields of its user.
pub(super) fn kubeconfig(address: &str, user: &Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "users": [{"name": "c", "user": user}],
    })
    .to_string()
}

fn exec() -> Value {
    json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/false",
        "interactiveMode": "Never"}})
}

/// Waits until the status of `podinfo` fulfils a condition, and returns it.
async fn until(scene: &Scene, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    let begin = Instant::now();
    loop {
        let status = scene.object("podinfo").await.map(|object| object.data["status"].clone());
        let status = status.unwrap_or_default();
        if is(&status) {
            return status;
        }
        assert!(begin.elapsed() < PATIENCE, "podinfo is not {what}: {status:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until the REST API shows the clusters other than Tagboat's own so.
async fn until_clusters(program: &Pod, expected: &[(&str, &str)]) {
    let expected: Vec<_> =
        expected.iter().map(|(name, state)| ((*name).to_owned(), (*state).to_owned())).collect();
    let begin = Instant::now();
    loop {
        let found = clusters(program).await;
        if found == expected {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{found:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns the clusters of the REST API with their states, without Tagboat's own.
async fn clusters(program: &Pod) -> Vec<(String, String)> {
    let text = get(&program.status, "api/v1/clusters").await;
    let document: Value = serde_json::from_str(&text).unwrap_or_default();
    let items = document["items"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let items = items.iter().map(|item| (text(&item["name"]), text(&item["state"])));
    items.filter(|(name, _)| name != "in-cluster").collect()
}

/// Returns the component whose name begins so.
fn component<'s>(status: &'s Value, begin: &str) -> Option<&'s Value> {
    let components = status["components"].as_array()?;
    components.iter().find(|component| component["name"].as_str().unwrap().starts_with(begin))
}

fn has_state(status: &Value, begin: &str, state: &str) -> bool {
    component(status, begin).is_some_and(|component| component["state"] == state)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_reported_through_changes_of_its_kubeconfig() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    let edge = Edge::beside(&scene, "edge").await;
    let valid = edge.kubeconfig().await;
    let mut mounted = Mounted::new();
    let mut program = scene.start_serving(&[&mounted.argument()]).await;
    scene.apply_tree().await;
    scene.apply_tree_to(edge.workloads.cluster()).await;
    until(&scene, "installed", |status| status["state"] == "installed").await;
    until_clusters(&program, &[]).await;

    // Added: its workload is a component, with the name of the file.
    mounted.set(&[("edge.kubeconfig", &valid)]);
    let name = format!("edge/Deployment/{}/podinfo", scene.cluster().namespace());
    let both = |status: &Value| {
        status["summary"]["installed"] == 2
            && has_state(status, &name, "installed")
            && status["error"].is_null()
    };
    until(&scene, "installed in both clusters", both).await;
    until_clusters(&program, &[("edge", "up")]).await;

    // A rollout there is in progress while that in the own cluster is complete, and its pods are listed there.
    let wanted = format!("{}:2.0.0", image("podinfo"));
    edge.workloads.kubelet().set_image(&wanted, PodState::waiting("ImagePullBackOff", "no such image"));
    scene.choose("podinfo", "2.0.0").await;
    scene.lands("podinfo", "2.0.0").await;
    scene.apply_tree().await;
    scene.apply_tree_to(edge.workloads.cluster()).await;
    let status = until(&scene, "failed in one cluster", |status| {
        has_state(status, "Deployment/", "installed") && has_state(status, "edge/", "failed")
    });
    assert_eq!(component(&status.await, "edge/").unwrap()["error"]["code"], "ImagePullBackOff");
    edge.workloads.kubelet().set_image(&wanted, PodState::Ready);
    until(&scene, "installed in both clusters", both).await;

    // Changed: a credential plugin is refused.
    mounted.set(&[("edge.kubeconfig", &kubeconfig("https://127.0.0.1:1", &exec()))]);
    let unavailable = |status: &Value| {
        status["error"]["code"] == "HostUnavailable"
            && status["error"]["source"] == "edge"
            && has_state(status, "edge/", "pending")
            && has_state(status, "Deployment/", "installed")
    };
    let status = until(&scene, "unavailable", unavailable).await;
    let message = component(&status, "edge/").unwrap()["message"].as_str().unwrap();
    assert!(message.contains("exec credential plugin, which is refused"), "{message}");
    until_clusters(&program, &[("edge", "down")]).await;
    mounted.set(&[("edge.kubeconfig", &valid)]);
    until(&scene, "installed in both clusters", both).await;

    // Removed: nothing of it is left.
    mounted.set(&[]);
    let alone = |status: &Value| {
        status["state"] == "installed"
            && status["summary"]["total"] == 1
            && component(status, "edge/").is_none()
    };
    until(&scene, "installed in one cluster", alone).await;
    until_clusters(&program, &[]).await;
    mounted.set(&[("edge.kubeconfig", &valid)]);
    until(&scene, "installed in both clusters", both).await;
    assert_eq!(program.terminate().0, Some(0));
    let refused = |cluster: &Cluster| {
        let requests = cluster.audit("tagboat").into_iter();
        requests.filter(|request| matches!(request.code, 401 | 403)).collect::<Vec<_>>()
    };
    for cluster in [scene.cluster(), edge.workloads.cluster()] {
        let refused = refused(cluster);
        assert!(refused.is_empty(), "{refused:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_that_hang_or_are_refused_do_not_delay_the_own_one() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    // Connections to it are accepted by the system, and nothing answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}", silent.local_addr().unwrap());
    let mut mounted = Mounted::new();
    let mut mount = |token: &str| {
        let hung = kubeconfig(&address, &json!({"token": format!("s3cret-{token}")}));
        mounted.set(&[
            ("hung.kubeconfig", &hung),
            ("plugin.kubeconfig", &kubeconfig("https://127.0.0.1:1", &exec())),
            ("broken.kubeconfig", "users: [{name: c, user: {token: [s3cret-token"),
            ("Other.kubeconfig", &hung),
        ]);
        mounted.argument()
    };
    let directory = mount("1.0.0");
    let mut program = scene.start_serving(&[&directory]).await;
    scene.apply_tree().await;
    let status = scene.state("podinfo", "1.0.0", "installed").await;
    assert_eq!(status["error"], json!(null), "{status:#}");

    // A rollout ends before any wait for the silent cluster does. A machine may be too slow for that once: the silence
    // begins anew with each kubeconfig.
    let hung = |program: &Pod| -> Vec<String> {
        let lines = program.lines().into_iter().filter(|line| line["cluster"] == "hung");
        lines.map(|line| line["msg"].as_str().unwrap().to_owned()).collect()
    };
    let kubeconfigs = || hung(&program).iter().filter(|text| *text == NEW_KUBECONFIG).count();
    let mut overtaken = None;
    for tag in ["2.0.0", "3.0.0", "4.0.0", "5.0.0", "6.0.0"] {
        let (known, begin) = (kubeconfigs(), Instant::now());
        mount(tag);
        eventually("the kubeconfig is read", async || kubeconfigs() > known).await;
        scene.choose("podinfo", tag).await;
        scene.lands("podinfo", tag).await;
        scene.apply_tree().await;
        scene.state("podinfo", tag, "installed").await;
        let is_silent = clusters(&program).await.contains(&("hung".to_owned(), "up".to_owned()));
        if is_silent && begin.elapsed() < LIST_TIMEOUT {
            overtaken = Some(tag);
            break;
        }
    }
    let tag = overtaken.expect("no rollout ends before the waits for the silent cluster");
    until_clusters(&program, &[("broken", "down"), ("hung", "down"), ("plugin", "down")]).await;
    let status = scene.state("podinfo", tag, "installed").await;
    assert_eq!((&status["error"], &status["summary"]["total"]), (&json!(null), &json!(1)), "{status:#}");
    assert_eq!(program.terminate().0, Some(0));
    let lines = hung(&program);
    let last = lines.rsplit(|text| text == NEW_KUBECONFIG).next().unwrap();
    assert_eq!(last, ["the cluster does not answer"], "not a line of each kind");
    let log = format!("{:?}", program.lines());
    for text in [
        "its kubeconfig has an exec credential plugin, which is refused",
        "its kubeconfig is not valid",
        "Other",
    ] {
        assert!(log.contains(text), "{text} is not in {log}");
    }
    assert!(!log.contains("s3cret"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_of_kubeconfigs_that_does_not_exist_is_an_error() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    let mut program = scene.start_serving(&["--clusters=/nowhere/at/all"]).await;
    assert_eq!(program.wait(), Some(1));
    let log = format!("{:?}", program.lines());
    assert!(log.contains("--clusters: cannot read the directory /nowhere/at/all: No such file"), "{log}");
}
