//! Servers that never answer, and the objects that depend on them or share their mirror.

use kube::api::{DynamicObject, ListParams};
use serde_json::json;
use tempfile::TempDir;

use super::reflector::{CREATED, Reflector, chosen};
use super::scene::{Kind, Scene, condition};
use crate::support::bare_repository::BareRepository;
use crate::support::eventually::eventually;
use crate::support::git_host::{Fault, GitHost, Operation, Settings};
use crate::support::registry::Registry;

/// A git server that never answers.
struct Silent {
    host: GitHost,
    _root: TempDir,
}

impl Silent {
    fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        let host = GitHost::start(root.path(), Settings::default());
        host.always(Operation::ListForFetch, Fault::Hang);
        Self { host, _root: root }
    }

    /// Creates automations, each with a repository of its own on this server.
    /// The sources have a long timeout.
    async fn create_automations(&self, scene: &Scene, names: &[&str]) {
        for name in names {
            let source = json!({"url": self.host.url(&format!("{name}.git")), "timeout": "10m"});
            scene.create_with_source(name, &source).await;
        }
    }

    /// Waits until this many requests have arrived.
    async fn asked(&self, count: usize) {
        let what = format!("{count} questions to the silent server");
        eventually(&what, async || self.host.requests_for(Operation::ListForFetch).len() >= count).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_git_host_delays_no_other_host() {
    let scene = Scene::new(&["app"]).await;
    let silent = Silent::start();
    silent.create_automations(&scene, &["one", "two", "three", "four"]).await;
    let mut builder = scene.controller();
    builder.options.concurrent = 2;
    let controller = builder.start();
    silent.asked(2).await;
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    scene.ready("app").await;
    // The host has no more requests than there are slots.
    assert_eq!(silent.host.requests_for(Operation::ListForFetch).len(), 2);
    controller.end().await;
}

/// Sets a timeout that is longer than any test.
/// No test waits for the end of a hanging reconcile.
pub(super) async fn set_long_timeout(scene: &Scene) {
    scene.patch(Kind::Source, "fleet", &json!({"spec": {"timeout": "10m"}})).await;
}

pub(super) async fn pushing(scene: &Scene) {
    eventually("a push is in flight", async || !scene.host.requests_for(Operation::Push).is_empty()).await;
}

pub(super) async fn gone(scene: &Scene, name: &str) {
    eventually(&format!("{name} is gone"), async || scene.get(name).await.is_none()).await;
}

/// Asserts that the mirrors are sound.
fn assert_mirrors_sound(scene: &Scene) {
    for mirror in std::fs::read_dir(scene.mirrors()).unwrap() {
        BareRepository::existing(&mirror.unwrap().path().join("repository.git")).assert_sound();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_automation_is_deleted_at_once_while_its_push_hangs_and_others_land() {
    let scene = Scene::new(&["app", "other"]).await;
    set_long_timeout(&scene).await;
    let controller = scene.controller().start();
    tokio::join!(scene.ready("app"), scene.ready("other"));
    scene.host.once(Operation::Push, Fault::Hang);
    tokio::join!(scene.choose("app", "2.0.0"), scene.choose("other", "2.0.0"));
    pushing(&scene).await;
    scene.delete(Kind::Automation, "app").await;
    gone(&scene, "app").await;
    scene.lands("other", "2.0.0").await;
    scene.ready("other").await;
    let authors: Vec<String> = scene.commits().into_iter().map(|commit| commit.author).collect();
    assert_eq!(authors, ["other <bot@example.com>"]);
    // The cancelled reconcile has no event.
    assert_eq!(scene.events("app").await, ["Normal Succeeded: repository up-to-date"]);
    controller.end().await;
    scene.repository.assert_sound();
    assert_mirrors_sound(&scene);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_automation_waiting_behind_a_hanging_one_is_deleted_at_once() {
    let scene = Scene::new(&["app", "late"]).await;
    set_long_timeout(&scene).await;
    let spec = json!({"spec": {"git": {"push": {"branch": "late"}}}});
    scene.patch(Kind::Automation, "late", &spec).await;
    let controller = scene.controller().start();
    tokio::join!(scene.ready("app"), scene.ready("late"));
    scene.host.always(Operation::Push, Fault::Hang);
    scene.choose("app", "2.0.0").await;
    pushing(&scene).await;
    // Both use one mirror, which serves one transaction at a time.
    let before = scene.status("late").await["lastHandledReconcileAt"].clone();
    scene.request("late", "now").await;
    scene.until("late", "begun", |object| condition(&object.data["status"], "Reconciling").is_some()).await;
    assert_eq!(scene.status("late").await["lastHandledReconcileAt"], before);
    scene.delete(Kind::Automation, "late").await;
    gone(&scene, "late").await;
    assert!(scene.get("app").await.is_some() && scene.commits().is_empty());
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_automation_suspended_while_it_hangs_is_at_once_as_before_the_reconcile() {
    let scene = Scene::new(&["app"]).await;
    set_long_timeout(&scene).await;
    let controller = scene.controller().start();
    let before = scene.ready("app").await;
    scene.host.always(Operation::ListForFetch, Fault::Hang);
    scene.request("app", "now").await;
    scene.until("app", "begun", |object| condition(&object.data["status"], "Reconciling").is_some()).await;
    scene.patch(Kind::Automation, "app", &json!({"spec": {"suspend": true}})).await;
    let is_resting = |object: &DynamicObject| object.data["status"]["observedGeneration"] == 2;
    let after = scene.until("app", "at rest", is_resting).await;
    assert_eq!(after["conditions"], before["conditions"]);
    // The request of the meantime is served once the server answers.
    scene.host.heal();
    scene.choose("app", "2.0.0").await;
    scene.patch(Kind::Automation, "app", &json!({"spec": {"suspend": false}})).await;
    scene.lands("app", "2.0.0").await;
    let handled = |object: &DynamicObject| object.data["status"]["lastHandledReconcileAt"] == "now";
    scene.until("app", "handled", handled).await;
    controller.end().await;
    assert_mirrors_sound(&scene);
}

/// More repositories wait for it than there are slots for work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_registry_delays_no_other() {
    let (scene, registry) = (Scene::new(&["app"]).await, Registry::start());
    // Its connections are never accepted.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    for number in 0..80 {
        let spec = json!({"image": format!("{address}/web{number}"), "interval": "1h", "timeout": "10m", "insecure": true});
        scene.create(Kind::Repository, &format!("silent{number}"), &spec).await;
    }
    let reflector = Reflector::of(&scene).start();
    // A reconcile that takes long sets the condition `Reconciling`.
    eventually("all others are in progress", async || {
        let found = scene.api(Kind::Repository).list(&ListParams::default()).await.unwrap();
        found.items.iter().all(|object| condition(&object.data["status"], "Reconciling").is_some())
    })
    .await;
    registry.push("web", "2.0.0", CREATED);
    let image = format!("{}/web", registry.address());
    scene.create(Kind::Repository, "app", &json!({"image": image, "interval": "1h"})).await;
    chosen(&scene, "app", &json!({"name": image, "tag": "2.0.0"})).await;
    reflector.end().await;
}
