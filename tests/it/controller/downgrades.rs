//! Tests of downgrade protection, on a real API server and a real registry.
//! It applies to a lower winner that only the list of tags brought.

use std::time::Duration;

use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::floating_tags::fleet::RegistryFront;
use super::reflector::{CREATED, Reflector, chosen, requested, until};
use super::scene::{Kind, Scene, condition};
use crate::support::clock::until_next_second;
use crate::support::eventually::eventually;
use crate::support::http_front::Reply;
use crate::support::registry::Registry;

/// A policy `app` whose winner was 1.1.0, of a repository that has 1.0.0 besides.
struct PolicyScene {
    scene: Scene,
    registry: Registry,
    front: RegistryFront,
}

impl PolicyScene {
    async fn new() -> Self {
        let (scene, registry) = (Scene::new(&["app"]).await, Registry::start());
        registry.push("web", "1.0.0", CREATED);
        registry.push("web", "1.1.0", "2026-02-02T00:00:00Z");
        let front = RegistryFront::before(registry.port());
        let spec = json!({"image": format!("{}/web", front.address()), "interval": "1h"});
        scene.create(Kind::Repository, "app", &spec).await;
        Self { scene, registry, front }
    }

    async fn at(&self, tag: &str) -> Value {
        let image = json!({"name": format!("{}/web", self.front.address()), "tag": tag});
        chosen(&self.scene, "app", &image).await
    }

    /// Has the repository scanned, and waits for the end of the scan.
    /// The time of the last scan is in another second then.
    async fn scan(&self, token: &str) -> Value {
        self.scene.patch(Kind::Repository, "app", &requested(token)).await;
        let is = |object: &DynamicObject| object.data["status"]["lastHandledReconcileAt"] == token;
        let status = until(&self.scene, Kind::Repository, "app", is).await;
        // Scans are distinguished by the second.
        tokio::time::sleep(until_next_second()).await;
        status
    }

    /// Waits until the policy holds its image after this many scans.
    /// Returns the message of the condition.
    async fn held(&self, scans: u32) -> String {
        let words = format!("1.0.0 is lower than 1.1.0 and waits: {scans} of 3 complete scans in a row");
        let is = |object: &DynamicObject| {
            condition(&object.data["status"], "RegressionHeld").is_some_and(|held| {
                held["status"] == "True"
                    && held["message"].as_str().is_some_and(|text| text.starts_with(&words))
            })
        };
        let status = until(&self.scene, Kind::Policy, "app", is).await;
        assert_eq!(status["latestRef"]["tag"], "1.1.0");
        assert_eq!(condition(&status, "Ready").unwrap()["status"], "True");
        condition(&status, "RegressionHeld").unwrap()["message"].as_str().unwrap().to_owned()
    }

    async fn status(&self) -> Value {
        self.scene.api(Kind::Policy).get("app").await.unwrap().data["status"].clone()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_tag_counts_after_three_complete_scans_and_the_time() {
    let policy = PolicyScene::new().await;
    let begin = || Reflector::of(&policy.scene).downgrade_protection(3, Duration::from_secs(6));
    let reflector = begin().start();
    policy.at("1.1.0").await;
    policy.registry.remove("web", "1.1.0");
    policy.scan("1").await;
    policy.held(1).await;

    // A page that fails, an empty list and a restart do not count as scans.
    policy.front.answer(|request| {
        if request.path.ends_with("/tags/list") { Reply::status(500) } else { Reply::Forward }
    });
    policy.scan("failed").await;
    without_tags(&policy.front);
    let status = policy.scan("empty").await;
    assert_eq!(status["lastScanResult"]["tagCount"], json!(0));
    assert_eq!(policy.status().await["latestRef"]["tag"], "1.1.0");
    policy.front.heal();
    reflector.end().await;
    let reflector = begin().start();
    assert_eq!(policy.status().await["latestRef"]["tag"], "1.1.0");

    // The two remaining scans, and then the time.
    policy.scan("2").await;
    policy.held(2).await;
    policy.scan("3").await;
    let status = policy.at("1.0.0").await;
    assert_eq!(condition(&status, "RegressionHeld"), None);
    assert_eq!(status["observedPreviousRef"]["tag"], "1.1.0");
    reflector.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_permits_a_downgrade_and_a_webhook_does_not() {
    let policy = PolicyScene::new().await;
    let reflector = Reflector::of(&policy.scene).start();
    policy.at("1.1.0").await;
    policy.registry.remove("web", "1.1.0");
    // A request for the repository may come from a webhook, so it is no intent of a user.
    policy.scan("1").await;
    let words = policy.held(1).await;
    assert!(words.contains("set the annotation reconcile.fluxcd.io/requestedAt of the policy"), "{words}");
    policy.scan("2").await;
    policy.held(2).await;
    policy.scan("3").await;
    // The time has not passed yet.
    policy.held(3).await;
    policy.scene.patch(Kind::Policy, "app", &requested("by a person")).await;
    policy.at("1.0.0").await;
    assert_eq!(condition(&policy.status().await, "RegressionHeld"), None);
    reflector.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tag_that_comes_back_ends_the_wait() {
    let policy = PolicyScene::new().await;
    let reflector = Reflector::of(&policy.scene).start();
    policy.at("1.1.0").await;
    policy.registry.remove("web", "1.1.0");
    policy.scan("1").await;
    policy.held(1).await;
    policy.registry.push("web", "1.1.0", "2026-02-02T00:00:00Z");
    policy.scan("2").await;
    let is_over = async || condition(&policy.status().await, "RegressionHeld").is_none();
    eventually("nothing is held", is_over).await;
    assert_eq!(policy.status().await["latestRef"]["tag"], "1.1.0");
    reflector.end().await;
}

/// As with a state in memory and a new pod.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_without_stored_tags_changes_nothing() {
    let policy = PolicyScene::new().await;
    let reflector = Reflector::of(&policy.scene).start();
    policy.at("1.1.0").await;
    reflector.end().await;
    let events = policy.scene.events("app").await;
    let before = policy.status().await;

    // The registry is slow to answer the first listing.
    policy.front.answer(|request| {
        if request.path.ends_with("/tags/list") {
            std::thread::sleep(Duration::from_secs(6));
        }
        Reply::Forward
    });
    let reflector = Reflector::of(&policy.scene).with_an_empty_store().start();
    policy.registry.push("web", "1.2.0", CREATED);
    policy.at("1.2.0").await;
    let after = policy.status().await;
    assert_eq!(condition(&after, "Ready").unwrap()["status"], "True");
    assert_eq!(before["latestRef"]["tag"], "1.1.0");
    let news = policy.scene.events("app").await;
    let warnings =
        news.iter().filter(|event| event.starts_with("Warning") && !events.contains(event)).count();
    assert_eq!(warnings, 0, "{news:?}");
    reflector.end().await;
}

fn without_tags(way: &RegistryFront) {
    way.answer(|request| {
        let empty = r#"{"name":"web","tags":[]}"#;
        if request.path.ends_with("/tags/list") { Reply::body(200, empty) } else { Reply::Forward }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_list_keeps_the_policy_ready_with_a_message() {
    let policy = PolicyScene::new().await;
    let reflector = Reflector::of(&policy.scene).start();
    policy.at("1.1.0").await;
    without_tags(&policy.front);
    policy.scan("empty").await;
    let is_held = |object: &DynamicObject| condition(&object.data["status"], "RegressionHeld").is_some();
    let status = until(&policy.scene, Kind::Policy, "app", is_held).await;
    let held = condition(&status, "RegressionHeld").unwrap();
    assert_eq!(held["reason"], "EmptyTagList");
    assert!(held["message"].as_str().unwrap().contains("/web is empty, so 1.1.0 stays"), "{held}");
    assert_eq!(condition(&status, "Ready").unwrap()["status"], "True");
    assert_eq!(status["latestRef"]["tag"], "1.1.0");
    policy.front.heal();
    policy.scan("again").await;
    until(&policy.scene, Kind::Policy, "app", |object| !is_held(object)).await;
    policy.at("1.1.0").await;
    reflector.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ready_policy_is_left_alone_while_its_repository_stalls() {
    let policy = PolicyScene::new().await;
    let reflector = Reflector::of(&policy.scene).start();
    policy.at("1.1.0").await;
    let before = policy.status().await;
    let invalid = json!({"spec": {"image": "https://example.com/no image"}});
    policy.scene.patch(Kind::Repository, "app", &invalid).await;
    let is_stalled = |object: &DynamicObject| {
        condition(&object.data["status"], "Stalled").is_some_and(|stalled| stalled["status"] == "True")
    };
    until(&policy.scene, Kind::Repository, "app", is_stalled).await;
    reflector.end().await;
    // At the start every object is due.
    let reflector = Reflector::of(&policy.scene).start();
    policy.scene.patch(Kind::Repository, "app", &requested("seen")).await;
    let is_seen = |object: &DynamicObject| object.data["status"]["lastHandledReconcileAt"] == "seen";
    until(&policy.scene, Kind::Repository, "app", is_seen).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(policy.status().await, before);
    reflector.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_tag_names_are_reported_in_one_event() {
    let policy = PolicyScene::new().await;
    policy.front.answer(|request| {
        let list = r#"{"name":"web","tags":["1.0.0","1.1.0",".a","-b"]}"#;
        if request.path.ends_with("/tags/list") { Reply::body(200, list) } else { Reply::Forward }
    });
    let reflector = Reflector::of(&policy.scene).start();
    policy.at("1.1.0").await;
    for token in ["1", "2"] {
        policy.scan(token).await;
    }
    let words = "Warning NamesLeftOut: 2 invalid tag names were ignored";
    let reports = async || {
        let events = policy.scene.events("app").await;
        events.iter().filter(|event| event.starts_with(words)).count()
    };
    eventually("an event reports it", async || reports().await == 1).await;
    reflector.end().await;
    assert_eq!(reports().await, 1);
}
