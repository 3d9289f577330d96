//! Places without an object, and the first object that they get.
//!
//! Pods of the object are not ready, which matters only for a rollout that is observed.

use jiff::{Timestamp, ToSpan};
use tagboat_api::deployment_status::{BlockReason, State};

use super::super::Contact;
use super::super::testing::Scene;
use super::{
    APP, GIT, KUSTOMIZED, NEW, RELEASED, SCANNED, condition, daemon_set, helm_release, insert, kustomization,
    named_deployment, stateful_set,
};

/// A document whose objects have other names.
const RELEASE: &str = "helm.toolkit.fluxcd.io/v2 HelmRelease apps/app";

/// Returns the policy with its marker in another document.
fn in_document(document: &str) -> String {
    APP.replace("apps/v1 Deployment apps/app", document)
}

/// Returns a workload with a name, further metadata and a number of ready pods.
fn workload(kind: &str, name: &str, metadata: &str, ready: u32) -> String {
    let object = if kind == "DaemonSet" { daemon_set(NEW, ready) } else { stateful_set(NEW, ready) };
    let written = "{name: app, namespace: apps, generation: 1}";
    assert!(object.contains(written), "{object}");
    object.replace(written, &format!("{{name: {name}, namespace: apps, generation: 1, {metadata}}}"))
}

/// Returns the DaemonSet of the release.
fn released(metadata: &str, ready: u32) -> String {
    workload("DaemonSet", "app", &format!("{RELEASED}, {metadata}"), ready)
}

/// The component of the place has the name of its file, or of its document.
#[test]
fn an_object_that_a_place_gets_did_not_run_before() {
    let applied = kustomization("", SCANNED, &condition("Ready", "True", "ReconciliationSucceeded"));
    for kind in ["DaemonSet", "StatefulSet"] {
        let (workload_document, no_namespace) =
            (format!("apps/v1 {kind} apps/app"), format!("apps/v1 {kind} app"));
        // Document, name of the component without an object, metadata and name of the object.
        let table = [
            (RELEASE, "apps/app.yaml".to_owned(), RELEASED, "app"),
            ("", "apps/app.yaml".to_owned(), KUSTOMIZED, "app"),
            (&no_namespace, format!("{kind}/app"), "", "app"),
            (&workload_document, format!("{kind}/apps/app"), KUSTOMIZED, "dev-app"),
        ];
        for (document, absent, metadata, name) in table {
            let mut scene = Scene::new(&in_document(document));
            insert(&mut scene, &[GIT.to_owned(), applied.clone()]);
            assert_eq!(scene.lines("app"), [format!("{absent} pending NotFound")]);
            let line = |state: &str| format!("{kind}/apps/{name} {state}");
            insert(&mut scene, &[workload(kind, name, metadata, 0)]);
            for _ in 0..2 {
                assert_eq!(scene.lines("app"), [line("installing")], "{document}");
            }
            insert(&mut scene, &[workload(kind, name, metadata, 3)]);
            assert_eq!(scene.lines("app"), [line("installed")], "{document}");
            assert_eq!(scene.previous["app"].report.deploy_history[0].object_count, 1, "{document}");
        }
    }
}

/// A file with two releases is one component while neither has an object.
#[test]
fn an_object_of_another_place_of_a_file_without_objects_did_not_run_before() {
    let other = RELEASE.replace("apps/app", "apps/other");
    let first = format!(
        "      - {{policy: app, at: \"apps/app.yaml:3\", document: \"{other}\", field: tag}}\n      - {{policy"
    );
    let mut scene = Scene::new(&in_document(RELEASE).replace("      - {policy", &first));
    let absent = scene.report("app").remove(0);
    assert_eq!((absent.name.as_str(), absent.place.as_deref()), ("apps/app.yaml", Some("apps/app.yaml:3")));
    insert(&mut scene, &[released("", 0)]);
    let found = scene.report("app").remove(0);
    assert_eq!((found.state, found.place.as_deref()), (State::Installing, Some("apps/app.yaml:7")));
}

/// The release failed, removed its objects, and is tried again.
#[test]
fn an_object_that_a_failed_place_gets_did_not_run_before() {
    let release = |status: &str, reason: &str| helm_release("", "", &condition("Ready", status, reason));
    let mut scene = Scene::new(&in_document(RELEASE));
    insert(&mut scene, &[release("False", "InstallFailed")]);
    assert_eq!(scene.lines("app"), ["apps/app.yaml failed NotFound InstallFailed of HelmRelease/apps/app"]);
    insert(&mut scene, &[release("True", "InstallSucceeded"), released("", 0)]);
    assert_eq!(scene.lines("app"), ["DaemonSet/apps/app installing"]);
}

#[test]
fn an_object_that_was_still_to_be_listed_ran_before_unless_it_is_newer() {
    let table = [("2026-11-02T10:29:00Z", "installed"), ("2026-11-02T10:31:00Z", "installing")];
    for document in ["apps/v1 DaemonSet apps/app", RELEASE] {
        for (created, state) in table {
            let mut scene = Scene::new(&in_document(document));
            scene.clusters[0].contact = Contact::Listing;
            let absent = scene.report("app").remove(0);
            assert_eq!((absent.state, absent.reason), (State::Pending, None));
            scene.clusters[0].contact = Contact::Watched;
            scene.now += 120.seconds();
            insert(&mut scene, &[released(&format!("creationTimestamp: '{created}'"), 2)]);
            assert_eq!(scene.lines("app"), [format!("DaemonSet/apps/app {state}")], "{document}");
            assert_eq!(scene.previous["app"].report.deploy_history, [], "{document} {created}");
        }
    }
}

/// Without an image, the objects of a release are not found.
#[test]
fn an_object_that_is_found_when_the_first_image_is_selected_ran_before() {
    let policies = in_document(RELEASE);
    let mut scene = Scene::new(&policies.replace("\"ghcr.io/org/app:2\"}", "null}"));
    insert(&mut scene, &[released("creationTimestamp: '2026-11-02T10:00:00Z'", 2)]);
    let absent = scene.report("app").remove(0);
    assert_eq!((absent.name.as_str(), absent.reason), ("apps/app.yaml", Some(BlockReason::NotChosen)));
    scene.set(&policies);
    assert_eq!(scene.lines("app"), ["DaemonSet/apps/app installed"]);
    assert_eq!(scene.previous["app"].report.deploy_history, []);
}

/// The component of the file stands for its other marker, which has no object.
#[test]
fn an_object_with_a_new_marker_in_a_file_without_objects_ran_before() {
    let marker = |line: usize, name: &str| {
        let document = RELEASE.replace("apps/app", name);
        format!("{{policy: app, at: \"apps/app.yaml:{line}\", document: \"{document}\", field: reference}}")
    };
    let other = in_document(&RELEASE.replace("apps/app", "apps/other"));
    let both =
        other.replace("      - {policy", &format!("      - {}\n      - {{policy", marker(3, "apps/app")));
    let created = |time: &str| format!("creationTimestamp: '2026-11-02T{time}Z'");
    for (time, line, count) in [("09:00:00", "installed", 0), ("10:35:00", "installing", 1)] {
        for kind in ["DaemonSet", "Deployment"] {
            let mut scene = Scene::new(&other);
            assert_eq!(scene.lines("app"), ["apps/app.yaml pending NotFound"]);
            scene.now += 10.minutes();
            let metadata = format!("{RELEASED}, {}", created(time));
            let object = match kind {
                "DaemonSet" => workload(kind, "app", &metadata, 0),
                _ => named_deployment("apps/app", NEW, &metadata),
            };
            insert(&mut scene, &[object]);
            scene.set(&both);
            let found = scene.report("app");
            let of_object = found.iter().find(|found| found.name == format!("{kind}/apps/app")).unwrap();
            let history = &scene.previous["app"].report.deploy_history;
            if kind == "DaemonSet" {
                assert_eq!(of_object.state.to_string(), line, "{time}");
                assert_eq!(*history, [], "{time}");
            } else {
                let end: Timestamp = "2026-11-02T10:04:11Z".parse().unwrap();
                assert_eq!((of_object.state, of_object.since.0), (State::Installed, end), "{time}");
                assert_eq!(history.len(), count, "{time}");
            }
        }
    }
}

/// It is old, but got the image of the place later.
#[test]
fn an_object_whose_rollout_may_be_that_of_a_place_without_an_object_did_not_run_before() {
    let created = "creationTimestamp: '2026-11-02T09:00:00Z'";
    let release = |status: &str| helm_release("", "", &condition("Ready", status, "InstallFailed"));
    for (status, end, count) in
        [("True", "10:04:11", 0), ("True", "10:35:00", 1), ("False", "10:04:11", 1), ("False", "10:35:00", 1)]
    {
        let mut scene = Scene::new(&in_document(RELEASE));
        insert(&mut scene, &[release(status)]);
        scene.report("app");
        scene.now += 10.minutes();
        let object = named_deployment("apps/app", NEW, &format!("{RELEASED}, {created}"));
        insert(&mut scene, &[release("True"), object.replace("10:04:11", end)]);
        assert_eq!(scene.lines("app"), ["Deployment/apps/app installed"]);
        let history = &scene.previous["app"].report.deploy_history;
        assert_eq!(history.len(), count, "{status} {end}");
    }
}
