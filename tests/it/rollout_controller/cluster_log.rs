//! The log about other clusters has a line for each problem, not for each retry.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use super::clusters::{Mounted, NEW_KUBECONFIG, kubeconfig};
use super::scene::{Scene, deployment};
use crate::controller::pod::Pod;
use crate::support::api_server::{ApiServer, Cluster, Ending, Fault, Faults};
use crate::support::eventually::{eventually, eventually_within};
use crate::support::http_front::{Front, Reply};
use crate::support::workloads::install_kinds;

/// Timeout of a wait for an outage, which lasts a minute before it is one.
const OUTAGE_TIMEOUT: Duration = Duration::from_secs(180);

/// A scene whose program watches another cluster, named `edge`, with faults on the way.
struct Watched {
    _scene: Scene,
    /// Keeps the server of the other cluster.
    _edge: Cluster,
    faults: Faults,
    program: Pod,
}

impl Watched {
    /// Starts the program, and waits until it watches the other cluster without faults.
    async fn start(name: &str, add_faults: impl FnOnce(&Faults)) -> Self {
        let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
        let server = Arc::new(ApiServer::shared().start_beside(name));
        install_kinds(&server);
        let edge = Cluster::named(server, scene.cluster().namespace().to_owned()).await;
        let faults = Faults::default();
        add_faults(&faults);
        let kubeconfig = fs::read_to_string(edge.faulty_kubeconfig(&faults).await).unwrap();
        let mut mounted = Mounted::new();
        mounted.set(&[("edge.kubeconfig", &kubeconfig)]);
        let program = scene.start_serving(&[&mounted.argument()]).await;
        let watched = Self { _scene: scene, _edge: edge, faults, program };
        eventually("the other cluster is watched", async || watched.kinds().len() >= 10).await;
        watched
    }

    /// The resources with a watch since the last outage.
    fn kinds(&self) -> BTreeSet<String> {
        let calls = self.faults.calls().into_iter().filter(|call| call.verb == "watch");
        calls.map(|call| call.resource).collect()
    }

    /// The number of lists of a resource.
    fn lists(&self, resource: &str) -> usize {
        self.faults.calls().iter().filter(|call| call.is("list", resource)).count()
    }

    /// The lines of the log about the other cluster, each with its kind.
    fn lines(&self) -> Vec<(String, String)> {
        lines(&self.program)
    }
}

/// The lines of the log about the cluster `edge`, each with its kind.
fn lines(program: &Pod) -> Vec<(String, String)> {
    let lines = program.lines().into_iter().filter(|line| line["cluster"] == "edge");
    let texts = lines.map(|line| {
        let kind = line["kind"].as_str().unwrap_or_default().to_owned();
        (line["msg"].as_str().unwrap().to_owned(), kind)
    });
    texts.filter(|(text, _)| text != NEW_KUBECONFIG).collect()
}

/// A line about a kind; an empty one stands for the whole cluster.
fn line(text: &str, kind: &str) -> (String, String) {
    (text.to_owned(), kind.to_owned())
}

/// Each watched kind had a line of its own before the outage was noticed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_another_cluster_is_one_line_and_its_end_another() {
    let watched = Watched::start("outage", |_| ()).await;
    let faults = &watched.faults;
    faults.forget_calls();
    faults.next(usize::MAX, Fault::Unreachable, |_| true);
    faults.end_watches(Ending::Reset, |_| true);
    let (silent, answers) = (line("the cluster does not answer", ""), line("the cluster answers again", ""));
    eventually_within(OUTAGE_TIMEOUT, "an outage", async || watched.lines().contains(&silent)).await;
    for resource in ["deployments", "jobs", "helmreleases"] {
        eventually_within(OUTAGE_TIMEOUT, resource, async || watched.lists(resource) > 3).await;
    }
    assert_eq!(watched.lines(), std::slice::from_ref(&silent));
    faults.heal();
    eventually("the cluster answers", async || watched.lines().contains(&answers)).await;
    faults.forget_calls();
    eventually("the cluster is watched again", async || watched.kinds().len() >= 10).await;
    assert_eq!(watched.lines(), [silent, answers]);
}

/// An aggregated API server refuses the login, while the others answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_login_for_one_kind_is_one_line_and_its_end_another() {
    let refuse = |faults: &Faults| {
        faults.next(usize::MAX, Fault::Unauthorized, |call| call.resource == "helmreleases");
    };
    let watched = Watched::start("refused-kind", refuse).await;
    let (refused, over) =
        (line("watch failed, retrying", "HelmRelease"), line("watch recovered", "HelmRelease"));
    eventually("the refusal is logged", async || !watched.lines().is_empty()).await;
    let known = watched.lists("helmreleases");
    eventually("the kind is tried again", async || watched.lists("helmreleases") > known + 3).await;
    assert_eq!(watched.lines(), std::slice::from_ref(&refused));
    watched.faults.heal();
    eventually("the login is accepted", async || watched.lines().contains(&over)).await;
    assert_eq!(watched.lines(), [refused, over]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_login_of_another_cluster_is_one_line_and_its_end_another() {
    let scene = Scene::new(&[("podinfo", deployment("podinfo", 1))]).await;
    let is_accepted = Arc::new(AtomicBool::new(false));
    let accepts = is_accepted.clone();
    let front = Front::alone(move |request| {
        let version = json!({
            "major": "1", "minor": "34", "gitVersion": "v1.34.0", "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
        });
        match accepts.load(Ordering::SeqCst) {
            true if request.path.starts_with("/version") => Reply::body(200, version.to_string()),
            true => Reply::body(404, "404 page not found\n"),
            false => Reply::body(
                401,
                json!({"kind": "Status", "code": 401, "message": "Unauthorized"}).to_string(),
            ),
        }
    });
    let mut mounted = Mounted::new();
    mounted.set(&[("edge.kubeconfig", &kubeconfig(&front.url(""), &json!({})))]);
    let program = scene.start_serving(&[&mounted.argument()]).await;
    let refused = line("the cluster refuses the login of its kubeconfig", "");
    eventually("the login is refused", async || lines(&program).contains(&refused)).await;
    for kind in ["/deployments", "/jobs", "/helmreleases"] {
        let attempts = || front.requests().iter().filter(|request| request.path.contains(kind)).count();
        eventually("the kind is tried again", async || attempts() > 3).await;
    }
    assert_eq!(lines(&program), [refused]);
    is_accepted.store(true, Ordering::SeqCst);
    let end = line("the cluster answers again", "");
    eventually("the login is accepted", async || lines(&program).contains(&end)).await;
    assert_eq!(lines(&program).iter().filter(|line| **line == end).count(), 1);
}
