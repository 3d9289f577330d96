//! How the program ends.

use std::fs;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use tagboat::controller::lease_name;

use super::pod::{Pod, get};
use super::scene::{Scene, eventually};
use crate::support::git_host::{Fault, Operation};

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
