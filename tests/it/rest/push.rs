//! The status push of `--status-endpoint`, to a server that the test plays.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::openapi::assert_valid;
use super::scene::Scene;
use super::sink::{Sink, document};
use super::status::status;
use crate::support::eventually::eventually;
use crate::support::http_front::{Front, Reply};

const PATIENCE: Duration = Duration::from_secs(60);

/// A status of a deployment with one component in the same state.
fn simple(id: &str, state: &str) -> Value {
    status(id, state, &[("Deployment/a/b", state)])
}

async fn write(scene: &Scene, id: &str, status: &Value) {
    scene.write(id, &json!({}), status).await;
}

fn lines(scene: &Scene, text: &str) -> Vec<String> {
    scene.pod.lines().iter().map(ToString::to_string).filter(|line| line.contains(text)).collect()
}

fn endpoint(sink: &Sink) -> String {
    format!("--status-endpoint={}", sink.endpoint())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_change_of_a_status_is_sent_once_and_all_are_sent_again_after_a_restart() {
    let sink = Sink::start(|_| Reply::status(200));
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    fs::write(&token, "hunter2-one\n").unwrap();
    let arguments = [endpoint(&sink), format!("--status-token-file={}", token.display())];
    let arguments = [arguments[0].as_str(), &arguments[1]];
    let mut scene = Scene::start(&arguments).await;

    // A deployment without components is never sent.
    write(&scene, "empty", &status("empty", "pending", &[])).await;
    write(&scene, "web", &simple("web", "installing")).await;
    let first = sink.pushed("web", 1).await;
    assert_eq!(first[0], scene.get("/api/v1/deployments/web/status").await.json());
    assert_valid(&json!({"$ref": "#/components/schemas/Document"}), &first[0], "a document");
    assert_eq!(sink.requests("web")[0].header("authorization"), Some("Bearer hunter2-one"));

    // Counts, times and messages are sent with the next change only.
    let mut counts = simple("web", "installing");
    counts["progress"] = json!("3/3");
    counts["components"][0]["ready"] = json!(3);
    counts["timeStamp"] = json!("2026-11-23T10:00:09Z");
    write(&scene, "web", &counts).await;
    let path = "/api/v1/deployments/web/status";
    scene.until(path, PATIENCE, |answer| answer.json()["status"]["progress"] == "3/3").await;
    fs::write(&token, "hunter2-two").unwrap();
    let mut changed = counts.clone();
    changed["target"]["tag"] = json!("1.2.1");
    write(&scene, "web", &changed).await;
    let second = sink.pushed("web", 2).await;
    assert_eq!(second[1]["status"]["target"]["tag"], "1.2.1");
    assert_eq!(second[1]["status"]["progress"], "3/3");
    assert_eq!(sink.requests("web")[1].header("authorization"), Some("Bearer hunter2-two"));

    // The state of a component is a state as well.
    let failed = status("web", "failed", &[("Deployment/a/b", "failed")]);
    write(&scene, "web", &failed).await;
    assert_eq!(
        sink.pushed("web", 3).await[2]["status"]["components"][0]["error"]["code"],
        "CrashLoopBackOff"
    );

    write(&scene, "other", &simple("other", "installed")).await;
    sink.pushed("other", 1).await;
    scene.pod.terminate();
    scene.pod = scene.another_pod(&arguments);
    assert_eq!(sink.pushed("other", 2).await[1]["status"]["state"], "installed");
    assert_eq!(sink.pushed("web", 4).await[3]["status"]["state"], "failed");
    // Another change arrives, and nothing was sent twice before it.
    write(&scene, "other", &simple("other", "removing")).await;
    sink.pushed("other", 3).await;
    assert_eq!((sink.requests("web").len(), sink.requests("empty").len()), (4, 0));
    assert!(lines(&scene, "hunter2").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_latest_status_is_sent_once_the_server_is_back_and_only_the_leader_sends() {
    let code = Arc::new(AtomicU16::new(503));
    let answers = code.clone();
    let sink = Sink::start(move |_| Reply::status(answers.load(Ordering::SeqCst)));
    let endpoint = endpoint(&sink);
    let arguments =
        [endpoint.as_str(), "--enable-leader-election", "--status-format=margo", "--cluster-name=edge-1"];
    let mut scene = Scene::start(&arguments).await;
    eventually("the first process leads", async || !lines(&scene, "became the leader").is_empty()).await;
    let second = scene.another_pod(&arguments);
    eventually("both processes are candidates", async || {
        let lines = second.lines();
        lines.iter().any(|line| line["msg"].as_str().is_some_and(|text| text.ends_with("the leader")))
    })
    .await;

    for state in ["pending", "installing", "installed"] {
        write(&scene, "web", &simple("web", state)).await;
        let path = "/api/v1/deployments/web/status";
        scene
            .until(path, PATIENCE, |answer| answer.status == 200 && answer.json()["status"]["state"] == state)
            .await;
    }
    eventually("a try has failed", async || !sink.requests("web").is_empty()).await;
    eventually("the failure is logged", async || !lines(&scene, "cannot send the status").is_empty()).await;
    code.store(204, Ordering::SeqCst);
    let before = sink.requests("web").len();
    eventually("the server has the status", async || !lines(&scene, "accepts all statuses again").is_empty())
        .await;
    let requests = sink.requests("web");
    // A try may have been answered with 503 while the test counted.
    assert!((1..=2).contains(&(requests.len() - before)), "{requests:?}");
    let manifest = document(requests.last().unwrap());
    assert_valid(&json!({"$ref": "#/components/schemas/MargoManifest"}), &manifest, "a manifest");
    assert_eq!(
        manifest,
        json!({
            "apiVersion": "deployment.margo.org/v1alpha1",
            "kind": "DeploymentStatusManifest",
            "deploymentId": "web",
            "deviceId": "edge-1",
            "status": {"state": "installed"},
            "components": [{"name": "Deployment/a/b", "state": "installed"}],
        })
    );
    assert_eq!(lines(&scene, "cannot send the status").len(), 1, "{:#?}", scene.pod.lines());

    // The next leader sends each status once more.
    let count = requests.len();
    scene.pod.terminate();
    sink.pushed("web", count + 1).await;
    let leads = second.lines().iter().any(|line| line["msg"] == "became the leader");
    assert!(leads, "{:#?}", second.lines());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_refuses_redirects_hangs_or_floods_affects_nothing_else() {
    const TOKEN: &str = "hunter2-hunter2-hunter2";
    let elsewhere = Arc::new(Front::alone(|_| Reply::status(200)));
    let place = elsewhere.url("/elsewhere?token=1");
    let sink = Sink::start(move |id| match id {
        "refused" => Reply::body(422, format!("no {TOKEN} \u{1b}[31m {}", "a ".repeat(4 << 20))),
        "moved" => Reply::redirect(&place),
        "silent" => Reply::Silence,
        "endless" => Reply::Drip,
        _ => Reply::status(204),
    });
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    fs::write(&token, TOKEN).unwrap();
    let token = format!("--status-token-file={}", token.display());
    let scene = Scene::start(&[&endpoint(&sink), &token]).await;
    for id in ["refused", "moved", "silent", "endless"] {
        write(&scene, id, &simple(id, "installed")).await;
        sink.pushed(id, 1).await;
    }
    // A status arrives while a request hangs.
    write(&scene, "fine", &simple("fine", "installed")).await;
    sink.pushed("fine", 1).await;
    assert_eq!(scene.get("/api/v1/deployments").await.json()["summary"]["total"], 5);
    eventually("the redirect is retried", async || sink.requests("moved").len() >= 3).await;
    assert!(elsewhere.requests().is_empty());
    eventually("the timeout is logged", async || {
        lines(&scene, "cannot send").iter().any(|line| line.contains("silent"))
    })
    .await;
    eventually("the redirect is logged", async || !lines(&scene, "redirects to").is_empty()).await;

    // A refused status is logged and not retried, but its change is sent.
    let refusals = lines(&scene, "refuses the status");
    assert_eq!((sink.requests("refused").len(), refusals.len()), (1, 1), "{refusals:?}");
    let said = r"the server responded with status 422: no •••• \\u{1b}[31m a a";
    assert!(refusals[0].contains(said) && refusals[0].len() < 1000, "{refusals:?}");
    write(&scene, "refused", &simple("refused", "removing")).await;
    sink.pushed("refused", 2).await;
    assert!(lines(&scene, TOKEN).is_empty() && lines(&scene, "token=1").is_empty());
    assert_eq!(
        sink.requests("endless").len(),
        1,
        "a status is accepted before the content of its response ends"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_that_the_server_asks_for_is_kept() {
    let first = AtomicU16::new(0);
    let sink = Sink::start(move |_| match first.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::status(429).with("Retry-After", "4"),
        _ => Reply::status(200),
    });
    let scene = Scene::start(&[&endpoint(&sink)]).await;
    write(&scene, "web", &simple("web", "installed")).await;
    sink.pushed("web", 1).await;
    let begin = Instant::now();
    write(&scene, "other", &simple("other", "installed")).await;
    sink.pushed("web", 2).await;
    // The first delay without the pause is at most a second and a half.
    assert!(begin.elapsed() > Duration::from_secs(3), "{:?}", begin.elapsed());
    sink.pushed("other", 1).await;
}
