//! Tests of cancelled reconciles, and of others of their batch.
//! They are cancelled because their object was deleted, suspended or deselected.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::hung_servers::{gone, pushing, set_long_timeout};
use super::scene::{Kind, Scene};
use crate::support::api_server::{Call, Fault as ApiFault, Faults};
use crate::support::bare_repository::BareRepository;
use crate::support::content::file;
use crate::support::eventually::{eventually, eventually_within};
use crate::support::git_host::{Fault, Operation};

/// Delay of an answer that no test waits for.
const LONG: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_automation_is_deleted_at_once_though_its_push_goes_on_hanging() {
    let scene = Scene::new(&["app", "other"]).await;
    set_long_timeout(&scene).await;
    let controller = scene.controller().start();
    tokio::join!(scene.ready("app"), scene.ready("other"));
    scene.host.always(Operation::Push, Fault::Hang);
    tokio::join!(scene.choose("app", "2.0.0"), scene.choose("other", "2.0.0"));
    pushing(&scene).await;
    scene.delete(Kind::Automation, "app").await;
    gone(&scene, "app").await;
    assert!(scene.commits().is_empty());
    scene.host.heal();
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_automation_is_deleted_at_once_though_another_of_its_batch_waits_for_its_secret() {
    let scene = Scene::new(&["app", "other"]).await;
    let key = json!({"type": "ssh", "secretRef": {"name": "key"}});
    scene.patch(Kind::Automation, "other", &json!({"spec": {"git": {"commit": {"signingKey": key}}}})).await;
    let faults = Faults::default();
    let is_secret = |call: &Call| call.is("get", "secrets");
    faults.next(usize::MAX, ApiFault::Held, is_secret);
    let controller = scene.controller().through(scene.cluster.faulty_client(&faults)).start();
    eventually("the Secret is asked for", async || faults.calls().iter().any(is_secret)).await;
    scene.delete(Kind::Automation, "app").await;
    // The request for the Secret is cancelled after twice that time.
    eventually_within(Duration::from_secs(15), "app is gone", async || scene.get("app").await.is_none())
        .await;
    assert!(scene.host.requests().is_empty(), "it was waiting for its mate");
    faults.heal();
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_automation_is_deleted_at_once_though_another_of_its_batch_does_not_start() {
    let scene = Scene::new(&["app", "other"]).await;
    let faults = Faults::default();
    let begins =
        |call: &Call| call.is("patch", "imageupdateautomations") && call.name.as_deref() == Some("other");
    faults.next(usize::MAX, ApiFault::Held, begins);
    let controller = scene.controller().through(scene.cluster.faulty_client(&faults)).start();
    eventually("the run of the other is to begin", async || faults.calls().iter().any(begins)).await;
    scene.until("app", "given a finalizer", |object| object.metadata.finalizers.is_some()).await;
    scene.delete(Kind::Automation, "app").await;
    // The request of the other automation is cancelled after twice that time.
    eventually_within(Duration::from_secs(15), "app is gone", async || scene.get("app").await.is_none())
        .await;
    faults.heal();
    controller.end().await;
}

/// Lets `app` follow all policies, with a message template that fails.
/// So it is in each batch that has something to commit, and it is answered before the push.
async fn let_app_fail_with_others(scene: &Scene) {
    let spec = json!({"policySelector": null, "git": {"commit": {"messageTemplate": "{{ fail \"no\" }}"}}});
    scene.patch(Kind::Automation, "app", &json!({"spec": spec})).await;
}

fn suspend() -> Value {
    json!({"spec": {"suspend": true}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_reconcile_with_an_answer_fails_no_other_of_its_batch() {
    let scene = Scene::new(&["app", "other"]).await;
    set_long_timeout(&scene).await;
    let_app_fail_with_others(&scene).await;
    let controller = scene.controller().start();
    tokio::join!(scene.ready("app"), scene.ready("other"));
    scene.host.once(Operation::Push, Fault::Hang);
    scene.choose("other", "2.0.0").await;
    pushing(&scene).await;
    scene.patch(Kind::Automation, "app", &suspend()).await;
    scene.lands("other", "2.0.0").await;
    let commits = scene.commits();
    assert_eq!(commits.len(), 1);
    let report = format!("Normal Succeeded: pushed commit '{}' to branch 'main'", &commits[0].id[..7]);
    scene
        .until("other", "with its push in the status", |object| {
            object.data["status"]["lastPushCommit"] == commits[0].id.as_str()
        })
        .await;
    let events = scene.events("other").await;
    assert_eq!((events.len(), &*events[0]), (2, "Normal Succeeded: repository up-to-date"), "{events:?}");
    assert!(events[1].starts_with(&report), "{events:?}");
    controller.end().await;
}

/// An interrupted search for an earlier push is repeated.
/// If a push arrived without an answer, and others pushed after it, the history is searched for its commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_search_for_an_earlier_push_is_repeated() {
    let scene = Scene::new(&["app", "other"]).await;
    set_long_timeout(&scene).await;
    let controller = scene.controller().start();
    tokio::join!(scene.ready("app"), scene.ready("other"));
    let remote = || BareRepository::existing(scene.repository.path());
    let before = scene.repository.id("main");
    scene.host.once(Operation::Push, Fault::ResetAfterwards);
    scene.host.meanwhile(Operation::ListForFetch, {
        let (remote, have_come) = (remote(), AtomicBool::new(false));
        move || {
            if remote.id("main") != before && !have_come.swap(true, Ordering::SeqCst) {
                for text in ["one\n", "two\n"] {
                    remote.commit_beside_others("main", "A person's", &[file("notes.txt", text.to_owned())]);
                }
            }
        }
    });
    let (is_searching, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    scene.host.meanwhile(Operation::Fetch, {
        let (remote, mirrors) = (remote(), scene.mirrors());
        let (is_searching, is_over) = (is_searching.clone(), is_over.clone());
        move || {
            // A fetch although the mirror has the tip is for the history below it.
            if remote.log("main").len() > 3 && mirror_has_tip(&remote, &mirrors) {
                is_searching.store(true, Ordering::SeqCst);
                let begin = Instant::now();
                while !is_over.load(Ordering::SeqCst) && begin.elapsed() < LONG {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
    });
    tokio::join!(scene.choose("app", "2.0.0"), scene.choose("other", "2.0.0"));
    eventually("history is searched", async || is_searching.load(Ordering::SeqCst)).await;
    scene.patch(Kind::Automation, "app", &suspend()).await;
    let is_observed = |object: &kube::core::DynamicObject| object.data["status"]["observedGeneration"] == 2;
    scene.until("app", "suspended", is_observed).await;
    is_over.store(true, Ordering::SeqCst);
    tokio::join!(scene.lands("app", "2.0.0"), scene.lands("other", "2.0.0"));
    // A suspended automation has its push reported as soon as it is resumed.
    scene.patch(Kind::Automation, "app", &json!({"spec": {"suspend": false}})).await;
    for name in ["app", "other"] {
        let commits = scene.commits();
        let author = format!("{name} <bot@example.com>");
        let own = commits.iter().find(|commit| commit.author == author).unwrap();
        scene
            .until(name, "with its push in the status", |object| {
                object.data["status"]["lastPushCommit"] == own.id.as_str()
            })
            .await;
        assert_eq!(commits.len(), 2);
    }
    controller.end().await;
}

fn mirror_has_tip(remote: &BareRepository, mirrors: &std::path::Path) -> bool {
    let tip = remote.id("main").unwrap();
    let mirror = std::fs::read_dir(mirrors).unwrap().next().unwrap().unwrap().path();
    BareRepository::existing(&mirror.join("repository.git")).id(&format!("refs/tagboat/{tip}")).is_some()
}
