//! Several tenants in one cluster: bounds of the work, and the text of others.

use std::cell::Cell;

use super::super::testing::{NAMESPACE, Scene, name};
use super::{
    APP, GIT, KUSTOMIZED, NEW, OLD, RELEASED, SCANNED, application, condition, deployment, helm_release,
    insert, kustomization, named_deployment, of_app,
};
use crate::rollout::place::{Place, ScannedPlaces};
use crate::rollout::tie::{MAX_COMPARISONS, MAX_TIES, Stop};

/// One policy with a place in a file without objects.
fn values() -> String {
    APP.replace("apps/v1 Deployment apps/app", "")
}

/// Replaces the places of the only automation.
fn set_places(scene: &mut Scene, places: impl IntoIterator<Item = Place>) {
    let scan = scene.automations[0].1.as_mut().unwrap();
    scan.places = places.into_iter().collect();
    scan.sort();
}

fn first_place(scene: &Scene) -> Place {
    scene.automations[0].1.as_ref().unwrap().places[0].clone()
}

/// Adds Deployments that use the image.
fn add_workloads(scene: &mut Scene, number: usize) {
    let objects: Vec<String> =
        (0..number).map(|number| named_deployment(&format!("apps/w{number}"), NEW, "")).collect();
    insert(scene, &objects);
}

#[test]
fn equal_markers_of_one_file_are_matched_once() {
    let mut scene = Scene::new(&values());
    let place = first_place(&scene);
    set_places(&mut scene, (1..=10_000).map(|line| Place { line, ..place.clone() }));
    add_workloads(&mut scene, 300);
    let asked = Cell::new(0_u32);
    let count = || {
        asked.set(asked.get() + 1);
        false
    };
    let found = scene.components_until("app", Stop(&count));
    assert_eq!(found.components.len(), 300);
    let first = &found.components[0].status;
    assert_eq!(
        (first.place.as_deref(), first.state.to_string().as_str()),
        (Some("apps/app.yaml:1"), "installed")
    );
    // Before each match, and before each component.
    assert_eq!(asked.get(), 302);
}

/// Each of two containers has a marker of the same image.
#[test]
fn equal_markers_of_a_document_still_need_a_container_each() {
    let mut scene = Scene::new(APP);
    let place = first_place(&scene);
    set_places(&mut scene, [7, 9].map(|line| Place { line, ..place.clone() }));
    let both = |second: &str| {
        deployment(NEW).replace("containers: [", &format!("containers: [{{name: b, image: \"{second}\"}}, "))
    };
    insert(&mut scene, &[both(OLD)]);
    assert_eq!(scene.lines("app"), [of_app("pending NotApplied")]);
    insert(&mut scene, &[both(NEW)]);
    assert_eq!(scene.lines("app"), [of_app("installed")]);
}

#[test]
fn the_ties_of_a_policy_are_bounded_and_the_rest_is_reported() {
    let mut scene = Scene::new(&values());
    let place = first_place(&scene);
    let files = MAX_TIES / 200 + 50;
    let of_file = |number| Place { file: format!("apps/{number:05}.yaml"), ..place.clone() };
    set_places(&mut scene, (0..files).map(of_file));
    add_workloads(&mut scene, 200);
    let lines = scene.lines("app");
    assert_eq!(lines.len(), 201, "{lines:?}");
    let left_out = &scene.previous["app"].report.components[0];
    assert_eq!(
        (left_out.name.as_str(), left_out.state.to_string().as_str()),
        ("apps/00100.yaml:7", "pending")
    );
    let message = left_out.message.as_deref().unwrap();
    assert!(message.starts_with("50 markers of the policy are not matched"), "{message}");
    assert_eq!(scene.lines("app"), lines, "it is the same again");

    // Values without evidence give no ties, but cost as much.
    let others = MAX_COMPARISONS / 200 + 50;
    let other = |number| Place {
        value: format!("ghcr.io/org/app:0.{number}"),
        written: None,
        line: number,
        ..place.clone()
    };
    set_places(&mut scene, (1..=others).map(other));
    scene.previous.clear();
    let found = scene.report("app");
    let message = found
        .iter()
        .find_map(|component| component.message.as_deref().filter(|text| text.contains("not matched")));
    assert!(message.is_some(), "{found:?}");
}

/// One object with many containers cost as much as many objects.
#[test]
fn the_containers_of_an_object_count_as_comparisons() {
    let mut scene = Scene::new(&values());
    let place = first_place(&scene);
    let files = 300;
    set_places(
        &mut scene,
        (0..files).map(|number| Place { file: format!("apps/{number}.yaml"), ..place.clone() }),
    );
    let containers = 2 * MAX_COMPARISONS / files;
    let others = "{name: x, image: \"ghcr.io/other/app:1\"}, ".repeat(containers);
    insert(&mut scene, &[deployment(NEW).replace("containers: [", &format!("containers: [{others}"))]);
    let found = scene.report("app");
    let is_left_out = |text: &str| text.contains("not matched");
    assert!(found.iter().any(|found| found.message.as_deref().is_some_and(is_left_out)), "{found:?}");
}

#[test]
fn a_computation_that_is_stopped_ends() {
    let mut scene = Scene::new(&values());
    add_workloads(&mut scene, 10);
    let stopped = scene.components_until("app", Stop(&|| true));
    assert!(stopped.components.len() <= 1, "{stopped:?}");
    assert_eq!(scene.components("app").components.len(), 10);
}

/// A scene with a workload, whose document an attacker's repository has, too.
fn with_rival(namespace: &str, policies: &str) -> Scene {
    let mut scene = Scene::new(policies);
    insert(&mut scene, &[deployment(NEW)]);
    let mut rival = Scene::new(APP).automations.remove(0);
    let scan = rival.1.as_mut().unwrap();
    let policy = crate::rollout::components::testing::name("rival");
    let policy = tagboat_api::ObjectName { namespace: namespace.to_owned(), ..policy };
    scan.automation = policy.clone();
    scan.places[0].policy = policy.clone();
    rival.0.metadata.namespace = Some(namespace.to_owned());
    rival.0.metadata.name = Some("rival".to_owned());
    scene.rivals.push((policy, "ghcr.io/org/app".to_owned(), rival.1.unwrap()));
    scene
}

#[test]
fn a_policy_of_another_namespace_does_not_take_an_object_away() {
    assert_eq!(NAMESPACE, "apps");
    let absent = "apps/app.yaml pending NotFound".to_owned();
    for (namespace, expected) in [("attacker", of_app("installed")), ("apps", absent)] {
        for no_cross_namespace in [false, true] {
            let mut scene = with_rival(namespace, &values());
            scene.no_cross_namespace = no_cross_namespace;
            assert_eq!(scene.lines("app"), std::slice::from_ref(&expected), "{namespace}");
        }
    }
}

/// The namespace of the object counts as well as that of the policy.
#[test]
fn a_policy_of_the_objects_namespace_comes_before_a_match_by_image() {
    let mut scene = Scene::new(&values());
    insert(&mut scene, &[named_deployment("shop/app", NEW, "")]);
    assert_eq!(scene.lines("app"), ["Deployment/shop/app installed"]);
    let mut owned = with_rival("shop", &values());
    owned.remove(&crate::rollout::watched::GroupKind::DEPLOYMENT, "apps", "app");
    insert(&mut owned, &[named_deployment("shop/app", NEW, "")]);
    owned.rivals[0].2.places[0].document.namespace = "shop".to_owned();
    assert_eq!(owned.lines("app"), ["apps/app.yaml pending NotFound"]);
}

/// The messages of all appliers in these tests.
fn tells(scene: &Scene) -> bool {
    let report = serde_json::to_string(&scene.previous["app"].report).unwrap();
    report.contains("the message") || report.contains("secret")
}

#[test]
fn a_label_does_not_show_the_release_of_another_tenant() {
    let failed = condition("Ready", "False", "UpgradeFailed");
    let secret = helm_release("", "", &failed)
        .replace("name: app, namespace: apps", "name: secret, namespace: victim");
    let labels = "labels: {helm.toolkit.fluxcd.io/name: secret, helm.toolkit.fluxcd.io/namespace: victim}";
    for document in ["apps/v1 Deployment apps/app", ""] {
        let mut scene = Scene::new(&APP.replace("apps/v1 Deployment apps/app", document));
        insert(&mut scene, &[secret.clone(), named_deployment("apps/app", OLD, labels)]);
        assert_eq!(scene.lines("app"), [of_app("pending NotApplied")]);
        assert!(!tells(&scene), "{:?}", scene.previous["app"].report);
    }
    // A document in the own repository names it.
    let named = "helm.toolkit.fluxcd.io/v2 HelmRelease victim/secret";
    for spec in ["", "kubeConfig: {secretRef: {name: edge}}, values: {image: 'ghcr.io/org/app:2'}"] {
        let mut scene = Scene::new(&APP.replace("apps/v1 Deployment apps/app", named));
        let release = secret.replace("spec: {}", &format!("spec: {{{spec}}}"));
        assert!(spec.is_empty() || release.contains(spec));
        insert(&mut scene, &[release]);
        assert_eq!(scene.lines("app"), ["apps/app.yaml pending NotFound"]);
        assert!(!tells(&scene), "{:?}", scene.previous["app"].report);
    }
    // Its own releases are shown, and those that an own Kustomization applies.
    let own = |owner: &str| {
        helm_release(owner, "", &failed).replace("name: app, namespace: apps", "name: app, namespace: shop")
    };
    let labels = RELEASED.replace("namespace: apps", "namespace: shop");
    for (owner, expected) in [("", false), (KUSTOMIZED, true)] {
        let mut scene = Scene::new(&values());
        let workload = named_deployment("shop/app", OLD, &labels);
        insert(&mut scene, &[own(owner), workload, kustomization("", SCANNED, "")]);
        scene.report("app");
        assert_eq!(tells(&scene), expected, "{owner}");
    }
}

/// It names the victim's repository, and a longer path than the victim's own applier.
#[test]
fn the_failing_applier_of_another_tenant_neither_fails_nor_hides_a_component() {
    let attackers = kustomization("", SCANNED, &condition("Ready", "False", "BuildFailed"))
        .replace("name: apps, namespace: flux-system", "name: x, namespace: attacker")
        .replace("path: ./apps", "path: ./apps/app");
    let source = GIT.replace("namespace: flux-system", "namespace: attacker");
    let in_directory = APP.replace("apps/app.yaml", "apps/app/x.yaml");
    for no_cross_namespace in [false, true] {
        let mut scene = Scene::new(&in_directory);
        scene.no_cross_namespace = no_cross_namespace;
        insert(&mut scene, &[source.clone(), attackers.clone()]);
        assert_eq!(scene.lines("app"), [of_app("pending NotFound")]);
        assert!(!tells(&scene), "{:?}", scene.previous["app"].report);
    }
    // Found by its applier, although the attacker's path is longer.
    let mut scene = Scene::new(&in_directory.replace("apps/v1 Deployment apps/app", ""));
    let own = named_deployment("apps/app", NEW, KUSTOMIZED);
    insert(&mut scene, &[source, attackers, kustomization("", SCANNED, ""), own]);
    assert_eq!(scene.lines("app"), [of_app("installed")]);
    assert_eq!(serde_json::to_value(scene.previous["app"].report.components[0].tie).unwrap(), "applier");
}

#[test]
fn with_no_cross_namespace_refs_no_applier_of_another_namespace_counts() {
    let failed = condition("Ready", "False", "HealthCheckFailed");
    let appliers = [
        kustomization("", SCANNED, &failed),
        application("", "operationState: {phase: Failed, message: secret}"),
    ];
    for applier in appliers {
        let mut scene = Scene::new(APP);
        scene.insert(GIT);
        insert(&mut scene, &[applier.clone(), named_deployment("apps/app", OLD, KUSTOMIZED)]);
        scene.no_cross_namespace = true;
        scene.report("app");
        assert!(!tells(&scene), "{applier}");
    }
    // One in the namespace of the automation does.
    let mut scene = Scene::new(APP);
    let own = kustomization("", SCANNED, &failed).replace("namespace: flux-system", "namespace: apps");
    let own = own.replace(
        "sourceRef: {kind: GitRepository, name: fleet}",
        "sourceRef: {kind: GitRepository, name: fleet, namespace: flux-system}",
    );
    let labels = KUSTOMIZED.replace("namespace: flux-system", "namespace: apps");
    insert(&mut scene, &[own, named_deployment("apps/app", OLD, &labels)]);
    scene.no_cross_namespace = true;
    assert_eq!(
        scene.lines("app"),
        [of_app("failed NotApplied HealthCheckFailed of Kustomization/apps/apps")]
    );
}

/// A suspended automation is not scanned after a restart, at which the flag is set.
#[test]
fn with_no_cross_namespace_refs_an_unscanned_automation_loses_objects_of_other_namespaces() {
    let mut scene = Scene::new(&values());
    insert(&mut scene, &[named_deployment("shop/app", NEW, ""), deployment(NEW)]);
    assert_eq!(scene.lines("app").len(), 2);
    scene.automations[0].1 = None;
    assert_eq!(scene.lines("app").len(), 2);
    scene.no_cross_namespace = true;
    assert_eq!(scene.lines("app"), [of_app("installed")]);
}

#[test]
fn policies_of_one_image_or_document_depend_on_each_other() {
    let policies = r#"
policies: {app: "ghcr.io/org/app:2", same: "ghcr.io/org/app:1", document: "ghcr.io/org/tool:1", other: "ghcr.io/org/other:1"}
automations:
  - name: fleet
    places:
      - {policy: app, at: "apps/app.yaml:7", document: "apps/v1 Deployment apps/app", field: reference}
      - {policy: same, at: "apps/values.yaml:7", field: tag}
      - {policy: document, at: "apps/tool.yaml:7", document: "apps/v1 Deployment apps/app", field: reference}
      - {policy: other, at: "apps/other.yaml:7", document: "apps/v1 Deployment apps/other", field: reference}
"#;
    let places = Scene::new(policies).places();
    let found = places.rivals(&[name("app")].into());
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["app", "document", "same"].map(name));
    assert_eq!(places.rivals(&[name("other")].into()), [name("other")].into());
}

/// Only the marker was removed: no kind is watched for it any more.
#[test]
fn an_index_without_places_keeps_no_automation() {
    let scene = Scene::new(APP);
    let mut places = scene.places();
    let scan = scene.automations[0].1.clone().unwrap();
    assert_eq!((places.is_empty(), places.automations_in(NAMESPACE).len()), (false, 1));
    let concerned = places.insert_scan(std::sync::Arc::new(ScannedPlaces { places: Vec::new(), ..scan }));
    assert_eq!(concerned, [name("app")].into());
    assert!(places.is_empty() && places.automations_in(NAMESPACE).is_empty());
    assert!(places.other_kinds().is_empty());
}
