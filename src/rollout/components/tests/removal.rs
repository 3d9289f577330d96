//! Components whose file or marker was removed from git.

use jiff::ToSpan;

use super::super::Contact;
use super::super::testing::Scene;
use super::{APP, NEW, OLD, deployment, insert, named_deployment, of_app, widget};
use crate::rollout::index::{ClusterIndex, Unlisted};
use crate::rollout::watched::GroupKind;

/// Two places; the second remains, so that the deployment exists.
fn both() -> String {
    APP.replace("      - {policy", "      - {policy: app, at: \"apps/b.yaml:7\", document: \"apps/v1 Deployment apps/b\", field: reference}\n      - {policy")
}

/// The place of `app` is gone: its marker, or its file.
fn without(removed: &str) -> String {
    APP.replace("apps/app", "apps/b")
        .replace("    places:", &format!("    removed: [{removed}]\n    places:"))
}

fn scene() -> Scene {
    let mut scene = Scene::new(&both());
    insert(&mut scene, &[deployment(NEW), named_deployment("apps/b", NEW, "")]);
    assert_eq!(scene.lines("app"), [of_app("installed"), "Deployment/apps/b installed".to_owned()]);
    scene
}

const REST: &str = "Deployment/apps/b installed";

#[test]
fn a_removed_file_makes_its_object_removing_and_then_once_removed() {
    let mut scene = scene();
    scene.set(&without("apps/app.yaml"));
    assert_eq!(scene.lines("app"), [of_app("removing").as_str(), REST]);
    let since = scene.previous["app"].report.components[0].since.clone();
    scene.now += 10.minutes();
    assert_eq!(scene.lines("app"), [of_app("removing").as_str(), REST]);
    assert_eq!(scene.previous["app"].report.components[0].since, since);
    assert!(scene.components("app").next_check.unwrap() > scene.now);

    assert_eq!(scene.previous["app"].report.components[0].desired, 2);

    scene.remove(&GroupKind::DEPLOYMENT, "apps", "app");
    assert_eq!(scene.lines("app"), [of_app("removed").as_str(), REST]);
    let removed = &scene.previous["app"].report.components[0];
    let pods = (removed.desired, removed.updated, removed.ready, removed.updated_ready);
    assert_eq!(pods, (0, 0, 0, None), "it has no pods");
    assert_eq!(scene.lines("app"), [REST]);
    assert_eq!(scene.components("app").next_check, None);
}

#[test]
fn an_object_is_removing_for_at_most_one_hour() {
    let mut scene = scene();
    scene.set(&without("apps/app.yaml"));
    scene.report("app");
    scene.now += 59.minutes();
    assert_eq!(scene.lines("app"), [of_app("removing").as_str(), REST]);
    scene.now += 1.minutes();
    assert_eq!(scene.lines("app"), [REST]);
    assert_eq!(scene.lines("app"), [REST]);
}

/// The applier can be faster than the scan.
#[test]
fn an_object_that_is_gone_before_the_scan_is_removed() {
    let mut scene = scene();
    scene.remove(&GroupKind::DEPLOYMENT, "apps", "app");
    assert_eq!(scene.lines("app"), [of_app("pending NotFound").as_str(), REST]);
    scene.set(&without("apps/app.yaml"));
    assert_eq!(scene.lines("app"), [of_app("removed").as_str(), REST]);
    assert_eq!(scene.lines("app"), [REST]);
}

#[test]
fn a_component_whose_marker_only_was_removed_is_dropped() {
    for object in [NEW, OLD] {
        let mut scene = scene();
        insert(&mut scene, &[deployment(object)]);
        scene.set(&without(""));
        assert_eq!(scene.lines("app"), [REST], "{object}");
    }
}

#[test]
fn a_deleted_object_whose_marker_is_in_git_is_pending() {
    let mut scene = scene();
    insert(&mut scene, &[named_deployment("apps/app", NEW, "deletionTimestamp: '2026-11-02T10:29:00Z'")]);
    assert_eq!(scene.lines("app"), [of_app("removing").as_str(), REST]);
    scene.remove(&GroupKind::DEPLOYMENT, "apps", "app");
    assert_eq!(scene.lines("app"), [of_app("pending NotFound").as_str(), REST]);
}

#[test]
fn a_file_that_moved_keeps_its_component() {
    let mut scene = scene();
    scene.set(
        &both()
            .replace("apps/app.yaml", "moved/app.yaml")
            .replace("    places:", "    removed: [apps/app.yaml]\n    places:"),
    );
    assert_eq!(scene.lines("app"), [of_app("installed").as_str(), REST]);
}

/// After a restart, a suspended automation is not scanned.
#[test]
fn an_automation_that_was_not_scanned_keeps_its_components() {
    let mut scene = scene();
    let before = scene.report("app");
    scene.automations[0].1 = None;
    assert_eq!(scene.report("app"), before, "nothing changed");

    insert(&mut scene, &[deployment(NEW).replace("NewReplicaSetAvailable", "ReplicaSetUpdated")]);
    assert_eq!(scene.lines("app"), [of_app("installing").as_str(), REST], "the objects are observed");
    insert(&mut scene, &[deployment(OLD)]);
    for _ in 0..2 {
        assert_eq!(scene.lines("app"), [of_app("pending NotApplied").as_str(), REST]);
    }
    scene.remove(&GroupKind::DEPLOYMENT, "apps", "app");
    assert_eq!(scene.lines("app"), [of_app("pending NotFound").as_str(), REST]);

    insert(&mut scene, &[deployment(NEW)]);
    scene.set(
        &both()
            .replace("org/app:2\"}", "org/app:3\"}")
            .replace("    places:", "    suspend: true\n    places:"),
    );
    scene.automations[0].1 = None;
    assert_eq!(
        scene.lines("app"),
        [of_app("pending NotCommitted"), "Deployment/apps/b pending NotCommitted".to_owned()],
        "another image"
    );

    scene.automations.clear();
    assert_eq!(scene.lines("app"), [] as [&str; 0], "the automation is gone");
}

/// A suspended automation is not scanned after a restart.
#[test]
fn after_a_restart_an_object_whose_file_was_removed_stays_removing_for_at_most_one_hour() {
    for has_outage in [false, true] {
        let mut scene = scene();
        scene.set(&without("apps/app.yaml"));
        let before = scene.report("app");
        scene.forget_scans();
        if has_outage {
            scene.clusters[0].contact = Contact::Lost;
            assert_eq!(scene.lines("app"), [of_app("removing").as_str(), "Deployment/apps/b pending"]);
            scene.now += 30.minutes();
            scene.report("app");
            scene.clusters[0].contact = Contact::Watched;
        }
        assert_eq!(scene.report("app"), before);
        scene.now += if has_outage { 29.minutes() } else { 59.minutes() };
        assert_eq!(scene.lines("app"), [of_app("removing").as_str(), REST]);
        if has_outage {
            scene.now += 1.minutes();
        } else {
            scene.remove(&GroupKind::DEPLOYMENT, "apps", "app");
            assert_eq!(scene.lines("app"), [of_app("removed").as_str(), REST]);
        }
        assert_eq!(scene.lines("app"), [REST]);
    }
}

/// A named change of a scene.
type Change<'c> = (&'c str, &'c dyn Fn(&mut Scene));

/// Nothing tells whether the object still exists.
#[test]
fn an_object_that_is_not_known_is_removing_for_at_most_one_hour_and_never_removed() {
    let lose = |scene: &mut Scene| scene.clusters[0].contact = Contact::Lost;
    let skip = |scene: &mut Scene| {
        let kind = GroupKind::new("a.example/v1", "Widget");
        scene.remove(&kind, "apps", "app");
        scene.clusters[0].index.set_unlisted(&kind, Some(Unlisted::Skipped));
    };
    let restart = |scene: &mut Scene| {
        scene.clusters[0].index = ClusterIndex::default();
        insert(scene, &[named_deployment("apps/b", NEW, "")]);
    };
    let changes: [Change<'_>; 3] = [("lost", &lose), ("skipped", &skip), ("restart", &restart)];
    for (name, change) in changes {
        for is_suspended in [false, true] {
            let mut scene =
                Scene::new(&both().replace("apps/v1 Deployment apps/app", "a.example/v1 Widget apps/app"));
            insert(&mut scene, &[widget(), named_deployment("apps/b", NEW, "")]);
            assert_eq!(scene.lines("app"), [REST, "Widget/apps/app installed"]);
            scene.set(&without("apps/app.yaml"));
            scene.report("app");
            if is_suspended {
                scene.forget_scans();
            }
            change(&mut scene);
            let rest = if name == "lost" { "Deployment/apps/b pending" } else { REST };
            for minutes in [0, 59] {
                scene.now += minutes.minutes();
                assert_eq!(scene.lines("app"), ["Widget/apps/app removing", rest], "{name}");
            }
            scene.now += 1.minutes();
            assert_eq!(scene.lines("app"), [rest], "{name}");
        }
    }
}
