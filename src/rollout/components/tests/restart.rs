//! Statuses after a restart of the controller, whose automations were not scanned yet.
//!
//! A suspended automation is never scanned again, so its components have the places of the previous status.

use tagboat_api::deployment_status::{State, Tie};

use super::super::Contact;
use super::super::testing::{Scene, line};
use super::reasons::{reasons, scene_of};
use super::{
    APP, NEW, OLD, RELEASED, SCANNED, condition, deployment, helm_release, insert, kustomization,
    named_deployment, of_app, widget,
};
use crate::rollout::index::{ClusterIndex, Unlisted};
use crate::rollout::tie::{MAX_TIES, Stop};
use crate::rollout::watched::GroupKind;

const LATER: &str = "ghcr.io/org/app:3";

/// Asserts that a change makes the same status with and without a restart.
fn assert_same_after_restart(policies: &str, objects: &[String], change: &dyn Fn(&mut Scene)) {
    let scenes = [false, true].map(|restarts| {
        let mut scene = scene_of(policies, objects);
        scene.report("app");
        if restarts {
            scene.forget_scans();
            scene.report("app");
        }
        change(&mut scene);
        scene.report("app");
        scene.report("app");
        scene.previous.remove("app").unwrap()
    });
    let [without, with] = scenes;
    assert_eq!(with, without, "{policies} {objects:?}");
}

#[test]
fn after_a_restart_each_reason_stays() {
    for (policies, objects, _, _) in reasons() {
        assert_same_after_restart(&policies, &objects, &|_| {});
    }
}

#[test]
fn after_a_restart_the_reason_is_that_of_the_image_which_the_policy_chooses() {
    let installed = (APP.to_owned(), vec![deployment(NEW)], "", "");
    for (policies, objects, _, _) in reasons().into_iter().chain([installed]) {
        assert_same_after_restart(&policies, &objects, &|scene| scene.choose("app", LATER));
    }
}

#[test]
fn after_a_restart_an_outage_keeps_each_reason() {
    let installed = (APP.to_owned(), vec![deployment(NEW)], "", "");
    for (policies, objects, _, _) in reasons().into_iter().chain([installed]) {
        for later in [None, Some(LATER)] {
            assert_same_after_restart(&policies, &objects, &|scene| {
                later.into_iter().for_each(|image| scene.choose("app", image));
                scene.clusters[0].contact = Contact::Lost;
                scene.report("app");
                scene.clusters[0].contact = Contact::Watched;
            });
        }
    }
}

#[test]
fn after_a_restart_a_place_without_an_object_gets_that_of_its_document_or_release() {
    let of_release = APP.replace("apps/v1 Deployment", "helm.toolkit.fluxcd.io/v2 HelmRelease");
    let release = helm_release("", "", &condition("Ready", "True", "UpgradeSucceeded"));
    let released = |image: &str| named_deployment("apps/app", image, RELEASED);
    for (policies, objects, new) in [
        (APP, vec![], deployment(NEW)),
        (&of_release, vec![release.clone()], released(NEW)),
        (&of_release, vec![release.clone()], released("ghcr.io/other/app:2")),
    ] {
        assert_same_after_restart(policies, &objects, &|scene| insert(scene, std::slice::from_ref(&new)));
    }
    // It was there before, and vanishes after the restart.
    let mut scene = scene_of(&of_release, &[release, released(NEW)]);
    let before = scene.report("app");
    assert_eq!((before[0].tie, before[0].state), (Some(Tie::Release), State::Installed));
    scene.forget_scans();
    scene.remove(&GroupKind::DEPLOYMENT, "apps", "app");
    assert_eq!(scene.lines("app"), [of_app("pending NotFound")]);
    insert(&mut scene, &[released(NEW)]);
    let found = scene.report("app");
    assert_eq!((found[0].tie, found[0].state), (Some(Tie::Release), State::Installed));
}

/// It may be that of another policy.
#[test]
fn after_a_restart_a_place_without_an_object_gets_that_of_its_document_only_with_an_image_of_its_own() {
    let missing = "pending NotFound";
    for (image, deployed, expected) in [
        (NEW, false, "installed"),
        ("ghcr.io/org/app:7", false, missing),
        ("ghcr.io/other/app:2", false, missing),
        (OLD, false, missing),
        (OLD, true, "pending NotApplied"),
    ] {
        let mut scene = Scene::new(APP);
        if deployed {
            // The history has the image.
            scene.choose("app", OLD);
            scene.report("app");
            insert(&mut scene, &[deployment(OLD)]);
            scene.report("app");
            scene.remove(&GroupKind::DEPLOYMENT, "apps", "app");
            scene.choose("app", NEW);
            scene.report("app");
            scene.previous.get_mut("app").unwrap().report.components[0].tie = None;
        }
        scene.report("app");
        assert_eq!(scene.lines("app"), [of_app(missing)]);
        scene.forget_scans();
        insert(&mut scene, &[deployment(image)]);
        assert_eq!(scene.lines("app"), [of_app(expected)], "{image}");
    }
}

/// Each release is looked up once for all of its places.
#[test]
fn after_a_restart_the_work_for_places_without_an_object_is_bounded() {
    let document = "helm.toolkit.fluxcd.io/v2 HelmRelease apps/app";
    let (objects, places) = (100, 250);
    let place = |number: usize| {
        format!(
            "\n      - {{policy: app, at: \"apps/{number:03}.yaml:7\", document: \"{document}\", field: reference}}"
        )
    };
    let (head, _) = APP.split_once("\n      - {policy").unwrap();
    let policies = format!("{head}{}", (0..places).map(place).collect::<String>());
    let release = helm_release("", "", &condition("Ready", "True", "UpgradeSucceeded"));
    let mut scene = scene_of(&policies, &[release]);
    assert_eq!(scene.report("app").len(), places);
    scene.forget_scans();
    let released: Vec<String> =
        (0..objects).map(|number| named_deployment(&format!("apps/app-{number}"), NEW, RELEASED)).collect();
    insert(&mut scene, &released);
    let found = scene.components("app").components;
    let (of_objects, rest): (Vec<_>, Vec<_>) =
        found.iter().map(|component| &component.status).partition(|status| status.tie.is_some());
    assert_eq!((of_objects.len(), rest.len()), (objects, places - MAX_TIES / objects));
    assert_eq!(line(rest[0]), "apps/200.yaml pending NotFound");
    let stopped = scene.components_until("app", Stop(&|| true)).components;
    assert_eq!(stopped.iter().filter(|component| component.status.tie.is_some()).count(), 0);
}

/// Only the next scan leads to its kind.
#[test]
fn after_a_restart_a_component_of_a_kind_that_is_not_watched_yet_stays() {
    let policies = APP.replace("apps/v1 Deployment", "a.example/v1 Widget");
    let kind = GroupKind::new("a.example/v1", "Widget");
    let mut scene = scene_of(&policies, &[widget()]);
    let before = scene.report("app");
    assert_eq!(line(&before[0]), "Widget/apps/app installed");
    scene.forget_scans();
    scene.clusters[0].index = ClusterIndex::default();
    assert_eq!(scene.report("app"), before);
    scene.set(&policies);
    scene.clusters[0].index.set_unlisted(&kind, Some(Unlisted::Expected));
    assert_eq!(scene.report("app"), before);
    insert(&mut scene, &[widget()]);
    scene.clusters[0].index.set_unlisted(&kind, None);
    assert_eq!(scene.report("app"), before);

    scene.remove(&kind, "apps", "app");
    assert_eq!(scene.lines("app"), ["Widget/apps/app pending NotFound"], "it is listed");
    let absent = scene.report("app");
    scene.forget_scans();
    scene.clusters[0].index.forget_kind(&kind);
    assert_eq!(scene.report("app"), absent);
}

/// No place tells which policy a change of the object concerns.
#[test]
fn after_a_restart_the_objects_of_an_automation_without_a_scan_are_looked_at_again() {
    let mut scene = scene_of(APP, &[deployment(NEW)]);
    scene.report("app");
    assert_eq!(scene.components("app").next_check, None);
    scene.forget_scans();
    assert!(scene.components("app").next_check.unwrap() > scene.now);
}

#[test]
fn after_a_restart_a_deleted_object_has_the_reason_of_its_place() {
    let installed = (APP.to_owned(), vec![deployment(NEW)], "", "");
    let rows = reasons().into_iter().chain([installed]);
    let alone =
        rows.filter(|(_, objects, _, _)| objects.len() == 1 && objects[0].contains("kind: Deployment"));
    let mut reasons = Vec::new();
    for (policies, objects, _, _) in alone {
        let delete = |scene: &mut Scene| scene.remove(&GroupKind::DEPLOYMENT, "apps", "app");
        assert_same_after_restart(&policies, &objects, &delete);

        // It was deleted before the restart.
        let mut scene = scene_of(&policies, &objects);
        scene.report("app");
        delete(&mut scene);
        let before = scene.report("app");
        reasons.extend(before[0].reason.map(|reason| reason.to_string()));
        scene.forget_scans();
        assert_eq!(scene.report("app"), before, "{policies}");
    }
    reasons.dedup();
    assert_eq!(reasons, ["NotChosen", "NotCommitted", "AwaitingMerge", "NotFound"]);
}

#[test]
fn after_a_restart_a_place_without_an_object_has_the_reason_of_its_image() {
    let of_file = APP.replace("document: \"apps/v1 Deployment apps/app\", ", "");
    assert_same_after_restart(&of_file, &[], &|_| {});
    assert_same_after_restart(&of_file, &[], &|scene| scene.choose("app", LATER));
    assert_same_after_restart(APP, &[], &|scene| scene.choose("app", LATER));

    // The cluster of its object may be one that does not respond.
    for (policies, name) in [(of_file.as_str(), "apps/app.yaml"), (APP, "Deployment/apps/app")] {
        let mut scene = Scene::new(policies);
        scene.add_cluster(Some("edge"));
        scene.clusters[1].contact = Contact::Lost;
        assert_eq!(scene.lines("app"), [format!("{name} pending")]);
        let before = scene.report("app");
        scene.forget_scans();
        assert_eq!(scene.report("app"), before);
        scene.clusters[1].contact = Contact::Watched;
        assert_eq!(scene.lines("app"), [format!("{name} pending NotFound")]);
    }
    let mut scene = Scene::new(APP);
    scene.clusters[0].index.set_unlisted(&GroupKind::DEPLOYMENT, Some(Unlisted::Skipped));
    let before = scene.report("app");
    scene.forget_scans();
    assert_eq!(scene.report("app"), before);
    scene.clusters[0].index.set_unlisted(&GroupKind::DEPLOYMENT, None);
    assert_eq!(scene.lines("app"), [of_app("pending NotFound")]);
}

/// It has no image that tells.
#[test]
fn after_a_restart_a_kustomization_of_another_cluster_is_judged_by_the_revision_of_the_status() {
    let at = |revision: &str| {
        let ready = condition("Ready", "True", "ReconciliationSucceeded");
        kustomization("kubeConfig: {secretRef: {name: edge}}", revision, &ready)
    };
    let without_commit = APP.replace(", former: \"ghcr.io/org/app:1\"", "");
    for (policies, revision) in [(APP, SCANNED), (APP, "main@sha1:2222222"), (&without_commit, SCANNED)] {
        assert_same_after_restart(policies, &[at("main@sha1:0000000")], &|scene| {
            insert(scene, &[at(revision)]);
            assert_eq!(scene.lines("app"), ["Kustomization/flux-system/apps installed"], "{revision}");
        });
    }
}

/// The failure of a policy counts only while its image has to be committed.
#[test]
fn after_a_restart_a_policy_that_fails_is_no_error_of_a_committed_image() {
    let proposed =
        APP.replace("former:", "value: \"ghcr.io/org/app:1\", proposed: \"ghcr.io/org/app:2\", former:");
    for (policies, image) in [(APP, OLD), (APP, NEW), (&proposed, OLD)] {
        assert_same_after_restart(policies, &[deployment(image)], &Scene::fail_policies);
    }
    let open = APP.replace("former:", "value: \"ghcr.io/org/app:1\", former:");
    let mut scene = scene_of(&open, &[deployment(OLD)]);
    scene.report("app");
    scene.forget_scans();
    scene.fail_policies();
    scene.report("app");
    let report = &scene.previous["app"].report;
    assert_eq!(
        (report.state, report.error.as_ref().unwrap().code.as_str()),
        (State::Failed, "PolicyNotReady")
    );
}
