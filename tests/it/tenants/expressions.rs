//! Regular expressions that are slow on purpose, over a long list of tags.

use serde_json::json;

use super::scene::Scene;
use crate::controller::scene::{Kind, condition};
use crate::support::http_front::{Front, Reply};

/// The number of tags of the list.
/// Each tag has 100 letters `a` and `b`; a search without a deadline takes half a minute and more.
const TAGS: usize = 50_000;

/// A registry with random-looking tags, so that no search can reuse cached states.
fn registry() -> Front {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut letter = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if state >> 63 == 0 { 'a' } else { 'b' }
    };
    let tags: Vec<String> = (0..TAGS).map(|_| (0..100).map(|_| letter()).collect()).collect();
    let body = json!({"name": "app", "tags": tags}).to_string();
    Front::alone(move |request| match request.path.as_str() {
        "/v2/" => Reply::status(200),
        _ => Reply::body(200, body.clone()),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_exclusions_end_at_the_timeout_of_their_own_repository() {
    let scene = Scene::start().await;
    let (attacker, registry) = (&scene.attacker, registry());
    let image = format!("{}/app", registry.address());
    let exclusions: Vec<String> = (0..25).map(|number| format!("[ab]*a[ab]{{60}}c{number}")).collect();
    let spec = json!({"image": image, "interval": "10m", "timeout": "5s", "exclusionList": exclusions});
    scene
        .assert_healthy_while(async {
            for name in ["slow-1", "slow-2", "slow-3"] {
                attacker.create(Kind::Repository, name, &spec).await;
            }
            scene.victim_is_reconciled().await;
        })
        .await;
    // A busy machine may take this long for the list alone; then the scan is retried.
    let words = "scan failed: spec.exclusionList could not be applied to all 50000 tags within 5s";
    let is_slow = |object: &kube::core::DynamicObject| {
        let ready = condition(&object.data["status"], "Ready");
        ready.and_then(|ready| ready["message"].as_str()).is_some_and(|message| message.starts_with(words))
    };
    attacker.until(Kind::Repository, "slow-1", "slow", is_slow).await;
    scene.delete_and_wait(Kind::Repository, "slow-2").await;
    scene.assert_memory_below(512 << 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_filters_end_at_the_timeout_of_the_repository() {
    let scene = Scene::start().await;
    let (attacker, registry) = (&scene.attacker, registry());
    let image = format!("{}/app", registry.address());
    let spec = json!({"image": image, "interval": "10m", "timeout": "2s", "exclusionList": ["^$"]});
    attacker.create(Kind::Repository, "slow", &spec).await;
    // No required letter that a search could find first, and matches that are no longer than the tags.
    let alternatives: Vec<String> = (40..60).map(|number| format!("[ab]*a[ab]{{{number}}}[c-z]")).collect();
    let pattern = alternatives.join("|");
    scene
        .assert_healthy_while(async {
            for name in ["slow-1", "slow-2", "slow-3"] {
                let spec = json!({
                    "imageRepositoryRef": {"name": "slow"},
                    "policy": {"alphabetical": {}},
                    "filterTags": {"pattern": pattern},
                });
                attacker.create(Kind::Policy, name, &spec).await;
            }
            scene.victim_is_reconciled().await;
        })
        .await;
    let is_late =
        |object: &kube::core::DynamicObject| object.data["status"].to_string().contains("within 2s");
    let status = attacker.until(Kind::Policy, "slow-1", "late", is_late).await;
    let words =
        format!("not all 50000 tags of {image} were evaluated within 2s: use a simpler rule or filter");
    assert!(status.to_string().contains(&words), "{status:#}");
    scene.assert_memory_below(512 << 20);
}
