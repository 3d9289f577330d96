//! The places of markers, which the controller keeps for reports of rollouts.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tagboat::controller::automation::{KnownFile, Places};
use tagboat::rollout::place::{Place, ScannedPlaces};
use tagboat_api::ObjectName;

use super::scene::{Controller, Kind, Scene, line};
use crate::support::content::{file, removed};
use crate::support::eventually::eventually;
use crate::support::git_host::Operation;

/// A store that keeps places.
fn turned_on() -> Places {
    let places = Places::default();
    places.turn_on();
    places
}

fn start(scene: &Scene, places: &Places) -> Controller {
    let mut builder = scene.controller();
    builder.options.places = Some(places.clone());
    builder.start()
}

/// The name of the automation `app`, and of its policy.
fn app(scene: &Scene) -> ObjectName {
    ObjectName { namespace: scene.cluster.namespace().to_owned(), name: "app".to_owned() }
}

/// Waits until the last scan of the automation `app` fulfils a condition, and returns it.
async fn scanned(
    scene: &Scene,
    places: &Places,
    what: &str,
    is: impl Fn(&ScannedPlaces) -> bool,
) -> Arc<ScannedPlaces> {
    let scan = || places.of_automation(&app(scene));
    eventually(what, async || scan().is_some_and(|scan| is(&scan))).await;
    scan().unwrap()
}

/// Returns the only place of a scan.
fn only(scan: &ScannedPlaces) -> &Place {
    let [place] = scan.places.as_slice() else { panic!("{scan:#?}") };
    place
}

/// Returns the revision of a branch at present.
fn revision(scene: &Scene, branch: &str) -> String {
    format!("{branch}@sha1:{}", scene.repository.id(branch).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_has_the_value_and_the_commit_of_the_last_push() {
    let (scene, places) = (Scene::new(&["app"]).await, turned_on());
    let controller = start(&scene, &places);
    let scan = scanned(&scene, &places, "known", |_| true).await;
    let place = only(&scan);
    assert_eq!((&*place.location(), &*place.value), ("fleet.yaml:1", "1.0.0"));
    assert_eq!((&place.policy, &place.written, &place.proposed), (&app(&scene), &None, &None));
    assert_eq!((&*scan.revision, scan.checkout.as_deref()), (&*revision(&scene, "main"), Some("main")));
    assert_eq!(places.changed().await, BTreeSet::from([app(&scene)]));

    scene.choose("app", "2.0.0").await;
    let scan = scanned(&scene, &places, "at 2.0.0", |scan| only(scan).value == "2.0.0").await;
    let written = only(&scan).written.clone().unwrap();
    assert_eq!((&*written.former, &*written.commit.branch), ("1.0.0", "main"));
    assert_eq!(
        (written.commit.id.clone(), &*written.commit.automation),
        (scene.commits()[0].id.clone(), "app")
    );
    assert_eq!(scan.revision, revision(&scene, "main"));
    let status = scene.ready("app").await;
    assert_eq!(status["lastPushTime"], json!(written.commit.time));
    assert_eq!(places.changed().await, BTreeSet::from([app(&scene)]));

    // A line that moves is the same place.
    let moved = format!("# Note\n{}", line(scene.cluster.namespace(), "app", "2.0.0"));
    scene.repository.commit("main", "Note", &[file("fleet.yaml", moved)]);
    scene.request("app", "1").await;
    let scan = scanned(&scene, &places, "moved", |scan| only(scan).line == 2).await;
    assert_eq!((&only(&scan).written, &scan.removed_files), (&Some(written), &Vec::new()));
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_removal_of_a_file_is_reported_while_a_status_names_the_file() {
    let (scene, places) = (Scene::new(&["app"]).await, turned_on());
    let controller = start(&scene, &places);
    scanned(&scene, &places, "known", |_| true).await;
    scene.repository.commit("main", "Other", &[removed("fleet.yaml"), file("other.yaml", "a: b\n")]);
    scene.request("app", "1").await;
    let scan = scanned(&scene, &places, "removed", |scan| scan.places.is_empty()).await;
    assert_eq!(scan.removed_files, ["fleet.yaml"]);
    assert!(places.policies().is_empty());

    let known = |file: &str| KnownFile { automation: "app".to_owned(), file: file.to_owned() };
    let files = BTreeSet::from([known("fleet.yaml"), known("other.yaml")]);
    places.set_known_files(&app(&scene), Some(files));
    scene.request("app", "2").await;
    scene.until("app", "asked", |object| object.data["status"]["lastHandledReconcileAt"] == "2").await;
    // The status is written before the places are kept.
    scene.request("app", "3").await;
    scene.until("app", "asked", |object| object.data["status"]["lastHandledReconcileAt"] == "3").await;
    assert_eq!(places.of_automation(&app(&scene)).unwrap().removed_files, ["fleet.yaml"]);
    places.set_known_files(&app(&scene), None);
    scene.request("app", "4").await;
    scanned(&scene, &places, "not named", |scan| scan.removed_files.is_empty()).await;

    scene.delete(Kind::Automation, "app").await;
    eventually("forgotten", async || !places.is_known(&app(&scene))).await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_lost_race_the_places_are_those_of_the_pushed_plan() {
    let (scene, places) = (Scene::new(&["app"]).await, turned_on());
    let controller = start(&scene, &places);
    scanned(&scene, &places, "known", |_| true).await;
    let repository = scene.repository.clone();
    let (moved, has_moved) =
        (format!("# Note\n{}", line(scene.cluster.namespace(), "app", "1.0.0")), AtomicBool::new(false));
    scene.host.meanwhile(Operation::ListForPush, move || {
        if !has_moved.swap(true, Ordering::SeqCst) {
            repository.commit_beside_others("main", "Note", &[file("fleet.yaml", moved.clone())]);
        }
    });
    scene.choose("app", "2.0.0").await;
    let scan = scanned(&scene, &places, "at 2.0.0", |scan| only(scan).value == "2.0.0").await;
    assert_eq!((only(&scan).line, &scan.revision), (2, &revision(&scene, "main")));
    assert_eq!(only(&scan).written.as_ref().unwrap().commit.id, scene.commits()[0].id);
    scene.host.heal();
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_keeps_its_value_while_pushes_are_refused() {
    let (scene, places) = (Scene::new(&["app"]).await, turned_on());
    scene.choose("app", "2.0.0").await;
    scene.repository.hook("pre-receive", "exit 1");
    let controller = start(&scene, &places);
    // It is the first scan, and its push is refused.
    let scan = scanned(&scene, &places, "known", |_| true).await;
    assert_eq!((&*only(&scan).value, &only(&scan).written), ("1.0.0", &None));
    assert_eq!(scan.revision, revision(&scene, "main"));
    scene.not_ready("app", "GitOperationFailed").await;
    scene.repository.hook("pre-receive", "exit 0");
    scene.request("app", "1").await;
    let scan = scanned(&scene, &places, "at 2.0.0", |scan| only(scan).value == "2.0.0").await;
    assert_eq!(only(&scan).written.as_ref().unwrap().former, "1.0.0");
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_on_another_branch_is_proposed_until_it_is_merged() {
    let (scene, places) = (Scene::new(&["app"]).await, turned_on());
    scene.patch(Kind::Automation, "app", &json!({"spec": {"git": {"push": {"branch": "auto"}}}})).await;
    scene.choose("app", "2.0.0").await;
    let controller = start(&scene, &places);
    let is_proposed = |scan: &ScannedPlaces| only(scan).proposed.as_deref() == Some("2.0.0");
    let scan = scanned(&scene, &places, "proposed", is_proposed).await;
    let written = only(&scan).written.clone().unwrap();
    assert_eq!((&*only(&scan).value, &*written.commit.branch), ("1.0.0", "auto"));
    assert_eq!((scan.checkout.as_deref(), &*scan.push), (Some("main"), "auto"));
    assert_eq!(scan.revision, revision(&scene, "main"));

    // The checkout moves on, and the push branch stays.
    scene.repository.commit("main", "Other", &[file("other.yaml", "a: b\n")]);
    scene.request("app", "1").await;
    let now = revision(&scene, "main");
    let scan = scanned(&scene, &places, "at the new revision", |scan| scan.revision == now).await;
    assert_eq!((&*only(&scan).value, is_proposed(&scan)), ("1.0.0", true));
    assert_eq!(only(&scan).written, Some(written));
    controller.end().await;

    let places = turned_on();
    let controller = start(&scene, &places);
    let scan = scanned(&scene, &places, "known again", |_| true).await;
    assert_eq!((&*only(&scan).value, is_proposed(&scan), &only(&scan).written), ("1.0.0", true, &None));

    let merged = line(scene.cluster.namespace(), "app", "2.0.0");
    scene.repository.commit("main", "Merge", &[file("fleet.yaml", merged)]);
    scene.request("app", "2").await;
    let scan = scanned(&scene, &places, "merged", |scan| only(scan).value == "2.0.0").await;
    assert_eq!((&only(&scan).proposed, &scan.revision), (&None, &revision(&scene, "main")));
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn places_are_found_once_they_are_kept() {
    let (scene, places) = (Scene::new(&["app"]).await, Places::default());
    let controller = start(&scene, &places);
    scene.ready("app").await;
    assert!(!places.is_known(&app(&scene)));
    places.turn_on();
    // A changed annotation starts a reconcile, which reads no file without a reason.
    scene.request("app", "1").await;
    let scan = scanned(&scene, &places, "known", |_| true).await;
    assert_eq!(only(&scan).value, "1.0.0");
    places.turn_off();
    assert!(!places.is_known(&app(&scene)) && places.policies().is_empty());
    controller.end().await;
}
