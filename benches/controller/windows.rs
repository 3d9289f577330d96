//! Measures windows and freezes of many automations.

use std::path::Path;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::crowd::Crowd;
use crate::process::Measured;
use crate::scene::{Kind, condition};
use crate::support::git_host::Operation;

/// The time from the annotation of a window to its end.
const CLOSED: SignedDuration = SignedDuration::from_secs(30);

/// Four windows, none of which is ever active in the benchmark.
const FOUR: &str = "[{name: a, kind: deny, cron: '0 3 1 1 *', window: 1h, timeZone: Europe/Berlin}, \
     {name: b, kind: deny, cron: '30 4 1 2 *', window: 1h, timeZone: America/New_York}, \
     {name: c, kind: deny, from: 2020-12-18T12:00, until: 2021-01-04T08:00}, \
     {name: d, kind: deny, cron: '0 5 29 2 *', window: 2h}]";

/// Measures a window that opens, and a freeze.
pub(crate) async fn measure(program: &Path) {
    opening(program).await;
    freeze(program).await;
}

/// Measures a minute at rest, without and with windows.
pub(crate) async fn measure_rest(program: &Path, members: usize) {
    for windows in [None, Some(FOUR)] {
        rest(program, members, windows).await;
    }
}

/// A window of all automations of a branch opens.
async fn opening(program: &Path) {
    let crowd = Crowd::new(200, 1, "10m").await;
    let process = start(program, &crowd).await;
    crowd.all_at("1.0.0").await;
    let end = Timestamp::from_second((Timestamp::now() + CLOSED).as_second()).unwrap();
    let windows = format!("[{{name: long, kind: deny, from: 2020-01-01T00:00, until: '{end}'}}]");
    annotate_all(&crowd, &windows).await;
    let row = crowd.row(&process);
    crowd.choose_all("2.0.0").await;
    all_wait(&crowd).await;
    row.print("200 automations on 1: all policies move behind a closed window");
    let left = end.duration_since(Timestamp::now());
    tokio::time::sleep(left.try_into().expect("the window is still closed")).await;
    let row = crowd.row(&process);
    crowd.all_at("2.0.0").await;
    row.print("200 on 1: the window opens");
    crowd.assert_each_landed_once();
    process.end();
}

/// A freeze while all policies move, and its end.
async fn freeze(program: &Path) {
    let crowd = Crowd::new(200, 20, "10m").await;
    let process = start(program, &crowd).await;
    crowd.all_at("1.0.0").await;
    let row = crowd.row(&process);
    crowd.choose_all("2.0.0").await;
    annotate_namespace(&crowd, &json!({"tagboat.dev/freeze": "incident"})).await;
    let (begin, pushes) = (Instant::now(), || crowd.scene.host.requests_for(Operation::Push).len());
    let before = pushes();
    tokio::time::sleep(Duration::from_secs(1).saturating_sub(begin.elapsed())).await;
    let after_a_second = pushes();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let late = pushes() - after_a_second;
    row.print(&format!(
        "200 on 20: a freeze while all policies move ({before} pushes before it, {} in the second after it, {late} later)",
        after_a_second - before
    ));
    let row = crowd.row(&process);
    annotate_namespace(&crowd, &json!({"tagboat.dev/freeze": null})).await;
    crowd.all_at("2.0.0").await;
    row.print("200 on 20: the freeze ends");
    crowd.assert_each_landed_once();
    process.end();
}

/// One minute without changes.
async fn rest(program: &Path, members: usize, windows: Option<&str>) {
    let crowd = Crowd::new(members, 20, "1h").await;
    if let Some(windows) = windows {
        annotate_all(&crowd, windows).await;
    }
    let process = start(program, &crowd).await;
    crowd.all_at("1.0.0").await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let row = crowd.row(&process);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let what = if windows.is_some() { "four windows each" } else { "no windows" };
    row.print(&format!("{members} automations on 20 with {what}, at rest for a minute"));
    process.end();
}

/// Starts the program for the automations of the crowd, with the Namespaces watched.
async fn start(program: &Path, crowd: &Crowd) -> Measured {
    let tenant = crowd.scene.cluster.namespace();
    annotate_each(crowd, &json!({"metadata": {"labels": {"tenant": tenant}}})).await;
    let selector = format!("--watch-label-selector=tenant={tenant}");
    Measured::start_everywhere(program, &crowd.scene, &[&selector])
}

async fn annotate_all(crowd: &Crowd, windows: &str) {
    annotate_each(crowd, &json!({"metadata": {"annotations": {"tagboat.dev/windows": windows}}})).await;
}

async fn annotate_each(crowd: &Crowd, patch: &Value) {
    for member in crowd.members() {
        crowd.scene.patch(Kind::Automation, member, patch).await;
    }
}

async fn annotate_namespace(crowd: &Crowd, annotations: &Value) {
    let api: Api<Namespace> = Api::all(crowd.scene.cluster.client());
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    api.patch(crowd.scene.cluster.namespace(), &PatchParams::default(), &patch).await.unwrap();
}

/// Waits until the status of every automation says that it waits.
async fn all_wait(crowd: &Crowd) {
    let api = crowd.scene.api(Kind::Automation);
    loop {
        let found = api.list(&ListParams::default()).await.unwrap().items;
        let waits = |object: &kube::core::DynamicObject| {
            condition(&object.data["status"], "UpdatesWaiting").is_some_and(|found| found["status"] == "True")
        };
        if found.iter().all(waits) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
