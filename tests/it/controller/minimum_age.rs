//! Minimum age in a cluster: a tag waits until it is old enough.

use jiff::{SignedDuration, Timestamp};
use kube::api::DynamicObject;
use serde_json::json;

use super::reflector::{Reflector, chosen, until};
use super::scene::{Kind, Scene, condition};
use crate::support::registry::Registry;

fn ago(hours: i64) -> String {
    (Timestamp::now() - SignedDuration::from_hours(hours)).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tag_counts_when_it_is_old_enough() {
    let scene = Scene::new(&["app"]).await;
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", &ago(1000));
    registry.push("app/web", "1.1.0", &ago(100));
    registry.push("app/web", "1.2.0", &ago(1));
    let image = format!("{}/app/web", registry.address());
    let aged = |age: &str| json!({"metadata": {"annotations": {"tagboat.dev/minimum-age": age}}});
    scene.patch(Kind::Policy, "app", &aged("3d")).await;
    scene.create(Kind::Repository, "app", &json!({"image": image, "interval": "1h"})).await;
    let reflector = Reflector::of(&scene).start();
    chosen(&scene, "app", &json!({"name": image, "tag": "1.1.0"})).await;

    // A tag that appears now is new to us, even if its image is old.
    registry.push("app/web", "1.3.0", &ago(1000));
    let request = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "now"}}});
    scene.patch(Kind::Repository, "app", &request).await;
    let scanned =
        |object: &DynamicObject| object.data["status"]["lastScanResult"]["latestTags"][0] == "1.3.0";
    until(&scene, Kind::Repository, "app", scanned).await;
    // A user's change of the policy applies at once, upwards and downwards.
    for (age, tag) in [("30d", "1.0.0"), ("30m", "1.2.0"), ("0s", "1.3.0"), ("3d", "1.1.0")] {
        scene.patch(Kind::Policy, "app", &aged(age)).await;
        chosen(&scene, "app", &json!({"name": image, "tag": tag})).await;
    }
    scene.patch(Kind::Policy, "app", &aged("20w")).await;
    let refused = |object: &DynamicObject| {
        condition(&object.data["status"], "Ready").is_some_and(|ready| {
            ready["message"] == "version list argument cannot be empty: 4 tags are too new"
        })
    };
    let status = until(&scene, Kind::Policy, "app", refused).await;
    assert_eq!(status["latestRef"], json!({"name": image, "tag": "1.1.0"}));
    reflector.end().await;
}
