//! Reconcile requests as fast as the owner of an object can send them.

use std::time::{Duration, Instant};

use serde_json::json;
use tagboat::metrics::Metrics;

use super::scene::{Kind, Scene};

/// The number of reconciles of an automation.
fn reconciles(metrics: &Metrics, name: &str) -> u64 {
    let text = metrics.to_text();
    let is_count = |line: &&str| {
        line.starts_with("gotk_reconcile_duration_seconds_count{kind=\"ImageUpdateAutomation\"")
            && line.contains(&format!("name=\"{name}\""))
    };
    let line = text.lines().find(is_count).expect("it was reconciled");
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_is_reconciled_ten_times_in_a_row_and_then_once_a_second() {
    let scene = Scene::new(&["app", "other"]).await;
    let builder = scene.controller();
    let metrics = builder.metrics.clone();
    let controller = builder.start();
    scene.ready("app").await;
    scene.ready("other").await;
    let begin = Instant::now();
    let mut number = 0;
    while begin.elapsed() < Duration::from_secs(8) {
        number += 1;
        let annotations = match number % 3 {
            0 => json!({"tagboat.dev/any": number.to_string()}),
            _ => json!({"reconcile.fluxcd.io/requestedAt": number.to_string()}),
        };
        scene.patch(Kind::Automation, "app", &json!({"metadata": {"annotations": annotations}})).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Another object does not wait, and the last request is answered.
    scene.choose("other", "2.0.0").await;
    scene.lands("other", "2.0.0").await;
    scene.request("app", "last").await;
    let is_answered =
        |object: &kube::core::DynamicObject| object.data["status"]["lastHandledReconcileAt"] == "last";
    scene.until("app", "answered", is_answered).await;
    let most = 10 + begin.elapsed().as_secs() + 2;
    let found = reconciles(&metrics, "app");
    println!("{number} changes, {found} reconciles, at most {most}");
    assert!((10..=most).contains(&found), "{found} reconciles, at most {most}");
    controller.end().await;
}
