//! Matching of workloads to places: keys, evidence and competing policies.
//!
//! Golden cases have the common setups.

use super::super::testing::{NAMESPACE, Scene, name};
use super::{APP, KUSTOMIZED, NEW, OLD, deployment, insert, kustomization, named_deployment, of_app};

/// A second policy with a place in the same document.
fn rivals(image: &str, value: &str) -> String {
    APP.replace("policies: {", &format!("policies: {{rival: \"{image}\", ")).replace(
        "      - {policy",
        &format!("      - {{policy: rival, at: \"rival/app.yaml:7\", document: \"apps/v1 Deployment apps/app\", field: reference, value: \"{value}\"}}\n      - {{policy"),
    )
}

#[test]
fn of_several_policies_those_with_evidence_have_the_object() {
    let (absent, pending) = (of_app("pending NotFound"), of_app("pending NotApplied"));
    let installed = of_app("installed");
    // The image of the object, then the components of both policies.
    let table = [
        (NEW, &installed, &absent),
        (OLD, &pending, &absent),
        ("ghcr.io/org/app:9", &absent, &installed),
        ("ghcr.io/org/app:5", &absent, &absent),
    ];
    for (image, app, rival) in table {
        let mut scene = Scene::new(&rivals("ghcr.io/org/app:9", "ghcr.io/org/app:9"));
        insert(&mut scene, &[deployment(image)]);
        assert_eq!(scene.lines("app"), std::slice::from_ref(app), "{image}");
        assert_eq!(scene.lines("rival"), std::slice::from_ref(rival), "{image}");
    }
}

/// A Deployment with a sidecar has markers of two policies.
#[test]
fn policies_of_different_images_do_not_compete() {
    let mut scene = Scene::new(&rivals("ghcr.io/org/proxy:3", "ghcr.io/org/proxy:3"));
    let sidecar = "containers: [{name: proxy, image: \"ghcr.io/org/proxy:1\"}, ";
    insert(&mut scene, &[deployment("ghcr.io/org/app:0").replace("containers: [", sidecar)]);
    assert_eq!(scene.lines("app"), [of_app("pending NotApplied")]);
    assert_eq!(scene.lines("rival"), [of_app("pending NotApplied")]);
    assert_eq!(scene.previous["rival"].report.components[0].image.as_deref(), Some("ghcr.io/org/proxy:1"));

    // Only the policy whose image the object has keeps it.
    insert(&mut scene, &[deployment(NEW)]);
    assert_eq!(scene.lines("app"), [of_app("installed")]);
    assert_eq!(scene.lines("rival"), [of_app("pending NotFound")]);
}

#[test]
fn former_images_are_those_of_the_commit_the_history_and_the_component() {
    let policies =
        APP.replace("apps/v1 Deployment apps/app", "").replace(", former: \"ghcr.io/org/app:1\"", "");
    let pending = ["Deployment/shop/app pending NotApplied"];
    let other = |image: &str| named_deployment("shop/app", image, "");

    let mut scene = Scene::new(&policies);
    insert(&mut scene, &[other(OLD)]);
    assert_eq!(scene.lines("app"), ["apps/app.yaml pending NotFound"], "no evidence");

    let with_commit = policies.replace("field: reference", "field: reference, former: \"ghcr.io/org/app:1\"");
    scene.set(&with_commit);
    assert_eq!(scene.lines("app"), pending, "the value that our commit replaced");

    scene.set(&policies);
    assert_eq!(scene.lines("app"), pending, "the image of the component");

    scene.previous.clear();
    scene.report("app");
    let entry = serde_json::json!({"version": "1", "objectCount": 1, "lastDeployed": "2026-11-01T00:00:00Z"});
    let history = &mut scene.previous.get_mut("app").unwrap().report.deploy_history;
    history.push(serde_json::from_value(entry).unwrap());
    assert_eq!(scene.lines("app"), pending, "an image of the history");
}

#[test]
fn the_image_counts_in_any_form_and_in_init_containers() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let policies = APP
        .replace("apps/v1 Deployment apps/app", "")
        .replace("org/app:2\"}", &format!("org/app:2@{digest}\"}}"));
    let init = deployment("busybox:1")
        .replace("containers:", "initContainers: [{name: i, image: \"ghcr.io/org/app:2\"}], containers:");
    let table = [
        (deployment("ghcr.io/org/app:2"), true),
        (deployment("mirror.example/ghcr.io/org/app:2"), true),
        (deployment(&format!("mirror.example/org/app:2@{digest}")), true),
        (deployment("mirror.example/org/app:2"), false),
        (deployment("ghcr.io/org/app2:2"), false),
        (init, true),
    ];
    for (object, expected) in table {
        let mut scene = Scene::new(&policies);
        insert(&mut scene, std::slice::from_ref(&object));
        let expected =
            if expected { of_app("installed") } else { "apps/app.yaml pending NotFound".to_owned() };
        assert_eq!(scene.lines("app"), [expected], "{object}");
    }
}

#[test]
fn with_no_cross_namespace_only_the_namespace_of_the_automation_counts() {
    assert_eq!(NAMESPACE, "apps");
    let policies = APP.replace("Deployment apps/app", "Deployment app");
    let mut scene = Scene::new(&policies);
    insert(&mut scene, &[deployment(NEW), named_deployment("shop/app", NEW, "")]);
    assert_eq!(scene.lines("app").len(), 2);
    scene.no_cross_namespace = true;
    assert_eq!(scene.lines("app"), [of_app("installed")]);
}

/// Both documents use the same image; one object is absent.
#[test]
fn the_place_of_an_absent_object_does_not_get_that_of_another_place() {
    let both = APP.replace(
        "      - {policy",
        "      - {policy: app, at: \"apps/b.yaml:7\", document: \"apps/v1 Deployment apps/b\", field: reference}\n      - {policy",
    );
    for marks in ["", KUSTOMIZED] {
        let mut scene = Scene::new(&both);
        let applier = kustomization("", super::SCANNED, "");
        insert(&mut scene, &[applier, named_deployment("apps/b", NEW, marks)]);
        assert_eq!(scene.lines("app"), [of_app("pending NotFound").as_str(), "Deployment/apps/b installed"]);
    }
    // An object that has no place, but the same image, counts only if the document had no object before.
    let mut scene = Scene::new(APP);
    insert(&mut scene, &[deployment(NEW), named_deployment("shop/copy", NEW, "")]);
    assert_eq!(scene.lines("app"), [of_app("installed")]);
    scene.remove(&crate::rollout::watched::GroupKind::DEPLOYMENT, "apps", "app");
    for _ in 0..2 {
        assert_eq!(scene.lines("app"), [of_app("pending NotFound")]);
    }
}

/// The document of one policy is no match for the image of another one.
#[test]
fn an_object_with_a_document_of_another_policy_is_not_matched_by_its_image() {
    let policies = rivals("ghcr.io/org/app:2", NEW).replacen(
        "rival/app.yaml:7\", document: \"apps/v1 Deployment apps/app\"",
        "rival/values.yaml:7\"",
        1,
    );
    let mut scene = Scene::new(&policies);
    insert(&mut scene, &[deployment(NEW)]);
    assert_eq!(scene.lines("app"), [of_app("installed")]);
    assert_eq!(scene.lines("rival"), ["rival/values.yaml pending NotFound"]);
}

/// A suspended automation is not scanned after a restart.
#[test]
fn an_unscanned_place_wants_the_part_of_the_image_that_its_component_had() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let policies = APP.replace("org/app:2\"}", &format!("org/app:2@{digest}\"}}"));
    for (field, image) in [
        ("reference", format!("{NEW}@{digest}")),
        ("tag", NEW.to_owned()),
        ("digest", format!("ghcr.io/org/app:stable@{digest}")),
    ] {
        let mut scene = Scene::new(&policies.replace("field: reference", &format!("field: {field}")));
        insert(&mut scene, &[deployment(&image)]);
        assert_eq!(scene.lines("app"), [of_app("installed")], "{field}");
        scene.automations[0].1 = None;
        assert_eq!(scene.lines("app"), [of_app("installed")], "{field}");
        insert(&mut scene, &[deployment(&format!("{OLD}@sha256:{}", "b".repeat(64)))]);
        assert_eq!(scene.lines("app"), [of_app("pending NotApplied")], "{field}");
    }
}

#[test]
fn the_key_that_matched_is_recorded() {
    let cases = [
        ("apps/v1 Deployment apps/app", "", "object"),
        ("apps/v1 Deployment app", "", "object"),
        ("helm.toolkit.fluxcd.io/v2 HelmRelease apps/app", super::RELEASED, "release"),
        ("helm.toolkit.fluxcd.io/v2beta2 HelmRelease app", super::RELEASED, "release"),
        ("apps/v1 Deployment apps/base-app", KUSTOMIZED, "applier"),
        ("kustomize.config.k8s.io/v1beta1 Kustomization app", KUSTOMIZED, "applier"),
        ("kustomize.toolkit.fluxcd.io/v1 Kustomization flux-system/apps", KUSTOMIZED, "applier"),
        ("v1 ConfigMap apps/app", KUSTOMIZED, "applier"),
        ("v1 ConfigMap apps/app", "", "image"),
        ("", "", "image"),
    ];
    for (document, marks, expected) in cases {
        let mut scene = Scene::new(&APP.replace("apps/v1 Deployment apps/app", document));
        let objects = [kustomization("", super::SCANNED, ""), named_deployment("apps/app", NEW, marks)];
        insert(&mut scene, &objects);
        let components = scene.report("app");
        let tie = serde_json::to_value(components[0].tie).unwrap();
        assert_eq!((components.len(), tie.as_str()), (1, Some(expected)), "{document}");
    }
}

/// The address of the automation's own GitRepository need not be known.
#[test]
fn an_applier_of_another_repository_does_not_count() {
    let policies = APP.replace("apps/v1 Deployment apps/app", "");
    for (source, expected) in [("fleet", "applier"), ("other", "image")] {
        let mut scene = Scene::new(&policies);
        let applier =
            kustomization("", super::SCANNED, "").replace("name: fleet", &format!("name: {source}"));
        insert(&mut scene, &[applier, named_deployment("apps/app", NEW, KUSTOMIZED)]);
        let tie = serde_json::to_value(scene.report("app")[0].tie).unwrap();
        assert_eq!(tie, expected, "{source}");
    }
}

#[test]
fn a_workload_of_another_watched_object_is_no_component() {
    let owner = |api_version: &str, kind: &str| {
        format!(
            "ownerReferences: [{{apiVersion: {api_version}, kind: {kind}, name: app, uid: u, controller: true}}]"
        )
    };
    let policies = APP.replace("apps/v1 Deployment apps/app", "infra.example/v1 App apps/app");
    let custom = "{apiVersion: infra.example/v1, kind: App, metadata: {name: app, namespace: apps}, spec: {image: 'ghcr.io/org/app:2'}}";
    let mut scene = Scene::new(&policies);
    scene.insert(custom);
    let owned = named_deployment("apps/app", NEW, &owner("infra.example/v1", "App"));
    insert(&mut scene, std::slice::from_ref(&owned));
    assert_eq!(scene.lines("app"), ["App/apps/app installed"]);

    // An owner that is not watched does not count.
    let mut scene = Scene::new(&APP.replace("apps/v1 Deployment apps/app", ""));
    insert(&mut scene, std::slice::from_ref(&owned));
    assert_eq!(scene.lines("app"), [of_app("installed")]);
    insert(&mut scene, &[named_deployment("apps/app", NEW, &owner("batch/v1", "CronJob"))]);
    assert_eq!(scene.lines("app"), ["apps/app.yaml pending NotFound"]);
}

#[test]
fn several_places_of_one_object_are_one_component() {
    let tag = "      - {policy: app, at: \"overlay/app.yaml:3\", document: \"apps/v1 Deployment apps/app\", field: tag, value: \"1\"}\n      - {policy";
    let mut scene = Scene::new(&APP.replace("      - {policy", tag));
    insert(&mut scene, &[deployment(OLD)]);
    let components = scene.report("app");
    assert_eq!(components.len(), 1);
    insert(&mut scene, &[deployment(NEW)]);
    assert_eq!(scene.lines("app"), [of_app("installed")]);
}

#[test]
fn a_changed_object_concerns_the_policies_that_it_can_change() {
    let policies = r#"
policies: {app: "ghcr.io/org/app:2", chart: "ghcr.io/org/chart:1", other: "ghcr.io/org/other:1"}
automations:
  - name: fleet
    places:
      - {policy: app, at: "apps/app.yaml:7", document: "apps/v1 Deployment app", field: reference}
      - {policy: chart, at: "charts/app.yaml:7", document: "helm.toolkit.fluxcd.io/v2 HelmRelease apps/app", field: tag}
      - {policy: other, at: "other/values.yaml:7", field: tag}
"#;
    let mut scene = Scene::new(policies);
    let released = named_deployment("apps/cache", "docker.io/library/redis:7", super::RELEASED);
    let owned = named_deployment("apps/third", "ghcr.io/org/other:1", KUSTOMIZED);
    insert(&mut scene, &[released.clone(), owned.clone()]);
    let canary = "{apiVersion: flagger.app/v1beta1, kind: Canary, metadata: {name: canary, namespace: apps}, spec: {targetRef: {kind: Deployment, name: third}}}";
    let table = [
        (deployment("ghcr.io/a/b:1"), vec!["app"]),
        (named_deployment("apps/fourth", NEW, ""), vec!["app"]),
        (named_deployment("apps/fourth", "mirror.example/ghcr.io/org/other:7", ""), vec!["other"]),
        (named_deployment("apps/fourth", "ghcr.io/a/b:1", ""), vec![]),
        (released, vec!["chart"]),
        (super::helm_release("", "", ""), vec!["chart"]),
        (kustomization("", super::SCANNED, ""), vec!["app", "other"]),
        (canary.to_owned(), vec!["other"]),
        (application_of("charts"), vec!["chart"]),
        (application_of(""), vec!["app", "chart", "other"]),
    ];
    let places = scene.places();
    for (object, expected) in table {
        scene.insert(super::GIT);
        insert(&mut scene, std::slice::from_ref(&object));
        let changed = super::super::testing::watched(serde_saphyr::from_str(&object).unwrap());
        let found = places.concerned(&scene.clusters[0].index, &changed);
        let expected: Vec<_> = expected.into_iter().map(name).collect();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected, "{object}");
    }
}

fn application_of(path: &str) -> String {
    super::application("", "").replace("path: apps", &format!("path: \"{path}\""))
}
