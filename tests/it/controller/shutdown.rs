//! Shutdown: exit status, in-flight reconciles, and the files that are removed.

use std::fs;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tagboat::controller::lease_name;
use tagboat::objects::cluster::FIELD_MANAGER;

use super::pod::{Pod, get};
use super::scene::{Kind, Scene};
use crate::support::eventually::eventually;
use crate::support::git_host::{Fault, Operation};
use crate::support::program::tagboat;

/// The arguments of Flux's Deployment.
const OF_FLUX: [&str; 5] = [
    "--watch-all-namespaces=false",
    "--log-level=info",
    "--log-encoding=json",
    "--enable-leader-election",
    "--events-addr=",
];

async fn holder(scene: &Scene) -> String {
    let leases: Api<Lease> = Api::namespaced(scene.cluster.client(), scene.cluster.namespace());
    let lease = leases.get_opt(&lease_name(FIELD_MANAGER, None)).await.unwrap();
    lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default()
}

/// The private directories that were not removed.
pub(super) fn left_behind(scene: &Scene) -> Vec<String> {
    let directory = fs::read_dir(scene.root().join("temporary")).unwrap();
    directory.map(|item| item.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_controller_starts_with_the_arguments_of_flux_and_ends_on_a_signal() {
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
    eventually("a push is in flight", async || !scene.host.requests_for(Operation::Push).is_empty()).await;
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
async fn a_controller_that_loses_the_lease_reports_it_and_fails() {
    let scene = Scene::new(&["app"]).await;
    let mut pod =
        Pod::start(&scene, &[&OF_FLUX[..], &["--leader-election-retry-period=200ms"]].concat()).await;
    scene.ready("app").await;
    let leases: Api<Lease> = Api::namespaced(scene.cluster.client(), scene.cluster.namespace());
    let spec = json!({"spec": {"holderIdentity": "flux", "leaseDurationSeconds": 3600}});
    leases
        .patch(&lease_name(FIELD_MANAGER, None), &PatchParams::default(), &Patch::Merge(spec))
        .await
        .unwrap();
    let status = tokio::task::spawn_blocking(move || (pod.wait(), pod)).await.unwrap();
    assert_eq!(status.0, Some(1));
    let last = status.1.lines().last().unwrap().clone();
    assert_eq!(
        (&last["level"], &last["msg"]),
        (&json!("error"), &json!("the leadership is lost: flux is the leader now"))
    );
    assert_eq!(left_behind(&scene), ["mirrors"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_selector_that_the_api_server_refuses_ends_the_process_with_its_sentence() {
    let scene = Scene::new(&["app"]).await;
    for more in [&[][..], &["--controllers=reflector"], &["--dry-run"]] {
        let arguments = ["--watch-all-namespaces=false", "--watch-label-selector=shard in shard1"];
        let mut pod = Pod::start(&scene, &[&["controller"], &arguments[..], more].concat()).await;
        let (status, pod) = tokio::task::spawn_blocking(move || (pod.wait(), pod)).await.unwrap();
        assert_eq!(status, Some(1), "{more:?}: {:#?}", pod.lines());
        let errors: Vec<Value> = pod.lines().into_iter().filter(|line| line["level"] == "error").collect();
        assert_eq!(errors.len(), 1, "{more:?}: {errors:#?}");
        let begin = "--watch-label-selector \"shard in shard1\" cannot be used: unable to parse requirement: found 'shard1'";
        assert!(errors[0]["msg"].as_str().unwrap().starts_with(begin), "{more:?}: {errors:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_selector_in_the_syntax_of_kubectl_selects_automations() {
    let scene = Scene::new(&["app", "other"]).await;
    scene.patch(Kind::Automation, "app", &json!({"metadata": {"labels": {"shard": "a"}}})).await;
    let selector = "--watch-label-selector=shard in (a, b), !paused";
    let mut pod = Pod::start(&scene, &["controller", "--watch-all-namespaces=false", selector]).await;
    scene.ready("app").await;
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    let other = scene.api(Kind::Automation).get("other").await.unwrap();
    assert_eq!(other.metadata.finalizers, None);
    assert_eq!(pod.terminate().0, Some(0));
}

#[test]
fn a_pod_without_a_cluster_logs_the_error() {
    let mut command = tagboat();
    command.args(["controller", "--health-addr=0", "--metrics-addr=0"]);
    command.env("KUBECONFIG", "/nonexistent/kubeconfig").env_remove("KUBERNETES_SERVICE_HOST");
    let run = crate::support::program::run(&mut command).with_status(1);
    let line: Value = serde_json::from_str(run.only_error()).unwrap();
    assert!(
        line["msg"].as_str().unwrap().starts_with("no file of KUBECONFIG exists: /nonexistent"),
        "{line}"
    );
}

/// Its series would stay for ever, because no later event concerns it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_measured_of_an_automation_that_became_anothers_during_its_run() {
    let scene = Scene::new(&["app"]).await;
    let label = |value: Value| json!({"metadata": {"labels": {"shard": value}}});
    scene.patch(Kind::Automation, "app", &label(json!("a"))).await;
    let mut builder = scene.controller();
    builder.options.controller.scope.labels = Some("shard=a".to_owned());
    let metrics = builder.metrics.clone();
    let controller = builder.start();
    scene.ready("app").await;
    assert!(metrics.to_text().contains(r#"name="app""#));
    scene.host.always(Operation::Push, Fault::Hang);
    scene.choose("app", "2.0.0").await;
    eventually("a push is in flight", async || !scene.host.requests_for(Operation::Push).is_empty()).await;
    // The other controller pushes now.
    scene.patch(Kind::Automation, "app", &label(json!("b"))).await;
    eventually("nothing is measured of it", async || !metrics.to_text().contains(r#"name="app""#)).await;
    // It is not reconciled again either.
    scene.host.heal();
    scene.choose("app", "3.0.0").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(scene.commits().is_empty());
    controller.end().await;
}
