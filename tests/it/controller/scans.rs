//! Scans and selections on a real Kubernetes API and a real registry.

use std::time::{Duration, Instant};

use kube::api::DynamicObject;
use serde_json::json;
use tagboat::polling::PollingInterval;
use tagboat::registry::store::StoreLimits;

use super::floating_tags::fleet::RegistryFront;
use super::reflector::{CREATED, Reflector, chosen, ready, requested, until};
use super::scene::{Kind, Scene, condition, kstatus};
use crate::support::eventually::eventually;
use crate::support::registry::Registry;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_is_pushed_is_in_git_a_moment_after_a_request() {
    let scene = Scene::new(&["app"]).await;
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", CREATED);
    registry.push("app/web", "1.0.0.sig", CREATED);
    let image = format!("{}/app/web", registry.address());
    scene.create(Kind::Repository, "app", &json!({"image": image, "interval": "10m"})).await;
    let controller = scene.controller().start();
    let reflector = Reflector::of(&scene).start();

    let status = chosen(&scene, "app", &json!({"name": image, "tag": "1.0.0"})).await;
    assert_eq!(status["observedGeneration"], 1);
    let scanned = until(&scene, Kind::Repository, "app", |object| kstatus(object) == "Current").await;
    assert_eq!(scanned["canonicalImageName"], json!(image));
    assert_eq!(scanned["observedExclusionList"], json!(["^.*\\.sig$"]));
    assert_eq!(scanned["lastScanResult"]["latestTags"], json!(["1.0.0"]));
    let revision = scanned["lastScanResult"]["revision"].as_str().unwrap();
    let words = format!("successful scan: found 1 tags with checksum {revision}");
    assert_eq!(ready(&scanned), ("Succeeded".to_owned(), words));

    registry.push("app/web", "1.1.0", CREATED);
    let begin = Instant::now();
    scene.patch(Kind::Repository, "app", &requested("now")).await;
    scene.lands("app", "1.1.0").await;
    println!("from the request to the commit: {:?}", begin.elapsed());
    // The promise is one second; the machine may be busy.
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    let status = chosen(&scene, "app", &json!({"name": image, "tag": "1.1.0"})).await;
    assert_eq!(status["observedPreviousRef"], json!({"name": image, "tag": "1.0.0"}));
    let words = format!("Latest image tag for {image} resolved to 1.1.0 (previously {image}:1.0.0)");
    assert_eq!(ready(&status), ("Succeeded".to_owned(), words));
    let answered = |object: &DynamicObject| object.data["status"]["lastHandledReconcileAt"] == "now";
    until(&scene, Kind::Repository, "app", answered).await;

    // An exclusion by a user applies at once, also downwards.
    let exclusions = json!({"spec": {"exclusionList": ["^1\\.1"]}});
    scene.patch(Kind::Repository, "app", &exclusions).await;
    chosen(&scene, "app", &json!({"name": image, "tag": "1.0.0"})).await;
    scene.lands("app", "1.0.0").await;

    // Both can be deleted.
    scene.delete(Kind::Policy, "app").await;
    scene.delete(Kind::Repository, "app").await;
    for kind in [Kind::Policy, Kind::Repository] {
        eventually("the object is gone", async || scene.api(kind).get_opt("app").await.unwrap().is_none())
            .await;
    }
    reflector.end().await;
    controller.end().await;
}

/// A policy whose tags were evicted has its repository scanned.
///
/// Formerly, it waited for the next interval of its repository if its tags were removed to make room for
/// others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_whose_tags_were_evicted_has_its_repository_scanned() {
    let scene = Scene::new(&["app"]).await;
    let registry = Registry::start();
    for repository in ["app", "other"] {
        registry.push(repository, "1.0.0", CREATED);
    }
    let image = |repository: &str| format!("{}/{repository}", registry.address());
    let create = async |name: &str| {
        scene.create(Kind::Repository, name, &json!({"image": image(name), "interval": "10h"})).await;
        until(&scene, Kind::Repository, name, |object| kstatus(object) == "Current").await;
    };
    // There is room for one list.
    let reflector = Reflector::of(&scene).storing(StoreLimits { memory: 1, disk: 1 }).start();
    create("app").await;
    chosen(&scene, "app", &json!({"name": image("app"), "tag": "1.0.0"})).await;
    create("other").await;
    registry.push("app", "1.1.0", CREATED);
    scene.patch(Kind::Policy, "app", &requested("now")).await;
    chosen(&scene, "app", &json!({"name": image("app"), "tag": "1.1.0"})).await;
    reflector.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_have_the_messages_of_flux() {
    let scene = Scene::new(&["app"]).await;
    let registry = Registry::start();
    let reflector = Reflector::of(&scene).start();
    let is = |reason: &'static str| {
        move |object: &DynamicObject| {
            condition(&object.data["status"], "Ready").is_some_and(|ready| ready["reason"] == reason)
        }
    };
    let status = until(&scene, Kind::Policy, "app", is("DependencyNotReady")).await;
    let words = "failed to get the referred ImageRepository: referenced ImageRepository does not exist: \
                 ImageRepository.image.toolkit.fluxcd.io \"app\" not found";
    assert_eq!(ready(&status).1, words);

    let image = format!("{}/nothing", registry.address());
    scene.create(Kind::Repository, "app", &json!({"image": image, "interval": "10m"})).await;
    let failed = until(&scene, Kind::Repository, "app", is("ReadOperationFailed")).await;
    assert!(ready(&failed).1.starts_with("scan failed: GET http://127.0.0.1"), "{failed}");
    assert_eq!(condition(&failed, "Reconciling").unwrap()["reason"], "ProgressingWithRetry");
    let waits = |object: &DynamicObject| {
        condition(&object.data["status"], "Ready")
            .is_some_and(|ready| ready["message"] == "retrying in 30s error: no tags in database")
    };
    until(&scene, Kind::Policy, "app", waits).await;

    let with_tag = json!({"spec": {"image": format!("{image}:1")}});
    scene.patch(Kind::Repository, "app", &with_tag).await;
    let stalled = until(&scene, Kind::Repository, "app", is("ImageURLInvalid")).await;
    let words = format!("image '{image}:1' should not include a tag; remove ':1'");
    assert_eq!(ready(&stalled).1, words);
    assert_eq!(condition(&stalled, "Stalled").unwrap()["status"], "True");

    // The corrected repository is scanned by itself, and the policy with it.
    registry.push("nothing", "2.0.0", CREATED);
    scene.patch(Kind::Repository, "app", &json!({"spec": {"image": image}})).await;
    chosen(&scene, "app", &json!({"name": image, "tag": "2.0.0"})).await;
    let bad = json!({"metadata": {"annotations": {"tagboat.dev/minimum-age": "soon"}}});
    scene.patch(Kind::Policy, "app", &bad).await;
    let stalled = until(&scene, Kind::Policy, "app", is("InvalidSettings")).await;
    assert!(ready(&stalled).1.starts_with("annotation tagboat.dev/minimum-age has the value `soon`"));
    reflector.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_floating_tag_is_followed_by_its_digest() {
    let scene = Scene::new(&["app"]).await;
    let registry = Registry::start();
    let front = RegistryFront::before(registry.port());
    let first = registry.push("web", "2.4", CREATED);
    let image = format!("{}/web", front.address());
    let spec = json!({
        "policy": {"semver": null, "alphabetical": {}},
        "digestReflectionPolicy": "Always",
        "interval": "1h",
    });
    let often = json!({"annotations": {"tagboat.dev/poll-interval": "500ms"}});
    scene.patch(Kind::Policy, "app", &json!({"spec": spec, "metadata": often})).await;
    scene.create(Kind::Repository, "app", &json!({"image": image, "interval": "1h"})).await;
    let reflector = Reflector::of(&scene).start();
    chosen(&scene, "app", &json!({"name": image, "tag": "2.4", "digest": first})).await;
    // Nothing is written while the tag does not move.
    let version = async || scene.api(Kind::Policy).get("app").await.unwrap().metadata.resource_version;
    let before = version().await;
    front.more_lookups(3).await;
    assert_eq!(version().await, before);

    let second = registry.push("web", "2.4", "2026-02-02T00:00:00Z");
    assert_ne!(first, second);
    let moved = json!({"name": image, "tag": "2.4", "digest": second});
    let status = chosen(&scene, "app", &moved).await;
    assert_eq!(status["observedPreviousRef"]["digest"], json!(first));

    // A registry that cannot be reached removes nothing, not even after a restart.
    drop((registry, front));
    let stale = |object: &DynamicObject| condition(&object.data["status"], "Stale").is_some();
    let status = until(&scene, Kind::Policy, "app", stale).await;
    assert_eq!(condition(&status, "Stale").unwrap()["reason"], "RegistryUnavailable");
    assert_eq!((&status["latestRef"], ready(&status).0.as_str()), (&moved, "Succeeded"));
    reflector.end().await;
    let reflector = Reflector::of(&scene).polling(PollingInterval::Disabled).start();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let status = scene.api(Kind::Policy).get("app").await.unwrap().data["status"].clone();
    assert_eq!((&status["latestRef"], ready(&status).0.as_str()), (&moved, "Succeeded"));
    reflector.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_that_gets_no_answer_is_measured_while_it_goes_on() {
    let scene = Scene::new(&[]).await;
    // It accepts connections, and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let image = format!("{}/app", silent.local_addr().unwrap());
    scene.create(Kind::Repository, "app", &json!({"image": image, "interval": "10m", "timeout": "1m"})).await;
    let reflector = Reflector::of(&scene).start();
    eventually("the lookup takes long", async || reflector.longest_look("imagerepository") > 0.5).await;
    assert_eq!(reflector.longest_look("imagepolicy"), 0.0);
    reflector.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_measured_of_repositories_and_policies_that_have_gone() {
    let scene = Scene::new(&[]).await;
    let reflector = Reflector::of(&scene).start();
    scene.create(Kind::Repository, "one", &json!({"image": "127.0.0.1:1/app", "interval": "10m"})).await;
    scene.create_policy("other", "1.0.0").await;
    for (kind, name) in [(Kind::Repository, "one"), (Kind::Policy, "other")] {
        eventually("it is measured", async || reflector.measures(name)).await;
        scene.delete(kind, name).await;
        let is_gone = async || scene.api(kind).get_opt(name).await.unwrap().is_none();
        eventually("the object is gone", is_gone).await;
        // Also after the end of the lookup that was cancelled.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(!reflector.measures(name), "{name} has gone and is measured still");
    }
    reflector.end().await;
}
