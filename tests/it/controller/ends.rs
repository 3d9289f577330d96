//! The program as a pod runs it, and how it ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, Patch, PatchParams};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tagboat::controller::lease_name;

use super::scene::{Scene, eventually};
use crate::support::git_host::{Fault, Operation};
use crate::support::program::tagboat;

/// The program, and the lines that it logs.
struct Pod {
    child: Child,
    lines: Arc<Mutex<Vec<Value>>>,
    health: String,
    metrics: String,
}

/// The arguments of Flux's Deployment.
const OF_FLUX: [&str; 5] = [
    "--watch-all-namespaces=false",
    "--log-level=info",
    "--log-encoding=json",
    "--enable-leader-election",
    "--events-addr=",
];

impl Pod {
    /// With the roles that `deploy` gives, and no more.
    async fn start(scene: &Scene, arguments: &[&str]) -> Self {
        let token = scene.cluster.token_with_the_roles().await;
        let mut command: Command = tagboat();
        for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
            command.env_remove(name);
        }
        // Free a moment ago; who takes a port of the kernel's choice is given another.
        let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let (health, metrics) = (free(), free());
        let temporary = scene.root().join("temporary");
        fs::create_dir_all(&temporary).unwrap();
        command
            .args(arguments)
            .args([format!("--health-addr={health}"), format!("--metrics-addr={metrics}")])
            .env("KUBECONFIG", scene.cluster.kubeconfig(&token))
            .env("RUNTIME_NAMESPACE", scene.cluster.namespace())
            .env("TMPDIR", temporary)
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
    fn terminate(&mut self) -> (Option<i32>, Duration) {
        let begin = Instant::now();
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        (status.code(), begin.elapsed())
    }

    fn lines(&self) -> Vec<Value> {
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
async fn get(address: &str, path: &str) -> String {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client.get(format!("http://{address}/{path}")).send().await.unwrap().text().await.unwrap()
}

async fn holder(scene: &Scene) -> String {
    let leases: Api<Lease> = Api::namespaced(scene.cluster.client(), scene.cluster.namespace());
    let lease = leases.get_opt(&lease_name(None)).await.unwrap();
    lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default()
}

/// The private directories that are left.
fn left_behind(scene: &Scene) -> Vec<String> {
    let directory = fs::read_dir(scene.root().join("temporary")).unwrap();
    directory.map(|item| item.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_arguments_of_flux_start_it_and_a_signal_ends_it() {
    let scene = Scene::new(&["app"]).await;
    let mut pod = Pod::start(&scene, &OF_FLUX).await;
    scene.ready("app").await;
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    scene.ready("app").await;
    assert!(!holder(&scene).await.is_empty());
    for path in ["healthz", "readyz"] {
        assert_eq!(get(&pod.health, path).await, "ok");
    }
    let metrics = get(&pod.metrics, "metrics").await;
    let labels =
        format!(r#"{{kind="ImageUpdateAutomation",name="app",namespace="{}"}}"#, scene.cluster.namespace());
    for series in [
        format!("gotk_reconcile_duration_seconds_count{labels} "),
        r#"tagboat_runs_total{outcome="pushed"} 1"#.to_owned(),
        r#"tagboat_git_operation_duration_seconds_count{operation="push"} 1"#.to_owned(),
        "tagboat_leader 1".to_owned(),
    ] {
        assert!(metrics.lines().any(|line| line.starts_with(&series)), "{series} is not in\n{metrics}");
    }
    let (status, time) = pod.terminate();
    assert_eq!(status, Some(0), "{:#?}", pod.lines());
    assert!(time < Duration::from_secs(8), "{time:?}");
    assert_eq!(holder(&scene).await, "");
    assert_eq!(left_behind(&scene), ["mirrors"]);
    let lines = pod.lines();
    let pushed =
        lines.iter().find(|line| line["msg"].as_str().unwrap().starts_with("pushed commit")).unwrap();
    assert_eq!(pushed["controllerKind"], "ImageUpdateAutomation");
    assert_eq!(pushed["name"], "app");
    assert_eq!(pushed["ImageUpdateAutomation"]["namespace"], scene.cluster.namespace());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_that_hangs_is_ended_and_made_by_the_next() {
    let scene = Scene::new(&["app"]).await;
    let mut pod = Pod::start(&scene, &OF_FLUX).await;
    scene.ready("app").await;
    scene.host.always(Operation::Push, Fault::Hang);
    scene.choose("app", "2.0.0").await;
    eventually("a push is under way", async || !scene.host.requests_for(Operation::Push).is_empty()).await;
    let (status, time) = pod.terminate();
    assert_eq!(status, Some(0), "{:#?}", pod.lines());
    assert!(time < Duration::from_secs(10), "{time:?}");
    assert_eq!(left_behind(&scene), ["mirrors"]);
    assert!(scene.commits().is_empty());
    scene.host.heal();
    let mut pod = Pod::start(&scene, &OF_FLUX).await;
    scene.lands("app", "2.0.0").await;
    scene.ready("app").await;
    assert_eq!(scene.commits().len(), 1);
    assert_eq!(pod.terminate().0, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_loses_the_lease_says_so_and_ends_with_a_failure() {
    let scene = Scene::new(&["app"]).await;
    let mut pod =
        Pod::start(&scene, &[&OF_FLUX[..], &["--leader-election-retry-period=200ms"]].concat()).await;
    scene.ready("app").await;
    let leases: Api<Lease> = Api::namespaced(scene.cluster.client(), scene.cluster.namespace());
    let spec = json!({"spec": {"holderIdentity": "flux", "leaseDurationSeconds": 3600}});
    leases.patch(&lease_name(None), &PatchParams::default(), &Patch::Merge(spec)).await.unwrap();
    let status = tokio::task::spawn_blocking(move || (pod.child.wait().unwrap().code(), pod)).await.unwrap();
    assert_eq!(status.0, Some(1));
    let last = status.1.lines().last().unwrap().clone();
    assert_eq!(
        (&last["level"], &last["msg"]),
        (&json!("error"), &json!("the leadership is lost: flux is the leader now"))
    );
    assert_eq!(left_behind(&scene), ["mirrors"]);
}

#[test]
fn a_pod_without_a_cluster_says_so_in_its_log() {
    let mut command = tagboat();
    command.args(["controller", "--health-addr=0", "--metrics-addr=0"]);
    command.env("KUBECONFIG", "/nonexistent/kubeconfig").env_remove("KUBERNETES_SERVICE_HOST");
    let run = crate::support::program::run(&mut command).with_status(1);
    let line: Value = serde_json::from_str(run.only_error()).unwrap();
    assert!(line["msg"].as_str().unwrap().starts_with("there is no cluster: "), "{line}");
}
