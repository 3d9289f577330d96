//! The reasons why the wanted image is not there, and the failures of appliers.

use super::super::testing::Scene;
use super::{
    APP, GIT, KUSTOMIZED, NEW, OLD, RELEASED, SCANNED, application, condition, deployment, helm_release,
    insert, kustomization, named_deployment, of_app, scene,
};

fn ready() -> String {
    condition("Ready", "True", "ReconciliationSucceeded")
}

/// A policy with a place, objects, and the reason and the message of the component.
pub(super) type ReasonRow = (String, Vec<String>, &'static str, &'static str);

/// Returns a row for each cause why the wanted image is not there.
pub(super) fn reasons() -> Vec<ReasonRow> {
    let kustomized = named_deployment("apps/app", OLD, KUSTOMIZED);
    let released = named_deployment("apps/app", OLD, RELEASED);
    let tracked = named_deployment(
        "apps/app",
        OLD,
        "annotations: {argocd.argoproj.io/tracking-id: 'app:apps/Deployment:apps/app'}",
    );
    let at = |revision: &str| kustomization("", revision, &ready());
    let value = |value: &str| APP.replace("former:", &format!("value: \"{value}\", former:"));
    let none = APP.replace("\"ghcr.io/org/app:2\"}", "null}");
    let before = "main@sha1:0000000";
    vec![
        (
            none.replace("reference,", "reference, value: x,"),
            vec![deployment(OLD)],
            "NotChosen",
            "ImagePolicy apps/app has selected no image",
        ),
        (
            value(OLD),
            vec![deployment(OLD)],
            "NotCommitted",
            "ImageUpdateAutomation apps/fleet has not committed the image yet",
        ),
        (
            value(OLD).replace("name: fleet", "name: fleet\n    suspend: true"),
            vec![deployment(OLD)],
            "NotCommitted",
            "ImageUpdateAutomation apps/fleet is suspended",
        ),
        (
            value(OLD).replace("former:", "proposed: \"ghcr.io/org/app:2\", former:"),
            vec![deployment(OLD)],
            "AwaitingMerge",
            "commit 2222222 on branch main is not merged into branch main",
        ),
        (
            value(OLD),
            vec![],
            "NotCommitted",
            "ImageUpdateAutomation apps/fleet has not committed the image yet",
        ),
        (APP.to_owned(), vec![], "NotFound", "the object does not exist"),
        (
            APP.to_owned(),
            vec![kustomization("suspend: true", before, &ready())],
            "NotApplied",
            "Kustomization/flux-system/apps is suspended",
        ),
        (APP.to_owned(), vec![at(SCANNED)], "NotFound", "the object does not exist"),
        (APP.to_owned(), vec![deployment(OLD)], "NotApplied", "the object has the image ghcr.io/org/app:1"),
        (
            APP.to_owned(),
            vec![kustomized.clone(), at(before)],
            "NotApplied",
            "Kustomization/flux-system/apps has applied revision main@sha1:0000000",
        ),
        (
            APP.to_owned(),
            vec![kustomized.clone(), at("")],
            "NotApplied",
            "Kustomization/flux-system/apps has applied no revision yet",
        ),
        (
            APP.to_owned(),
            vec![kustomized.clone(), at(SCANNED)],
            "NotApplied",
            "the object has the image ghcr.io/org/app:1",
        ),
        (
            APP.to_owned(),
            vec![kustomized.clone(), at("main@sha1:2222222")],
            "NotApplied",
            "the object has the image ghcr.io/org/app:1",
        ),
        (
            APP.to_owned(),
            vec![kustomized, kustomization("suspend: true", SCANNED, &ready())],
            "NotApplied",
            "Kustomization/flux-system/apps is suspended",
        ),
        (
            APP.to_owned(),
            vec![released.clone(), helm_release("", "suspend: true", &ready())],
            "NotApplied",
            "HelmRelease/apps/app is suspended",
        ),
        (
            APP.to_owned(),
            vec![released.clone(), helm_release(KUSTOMIZED, "", &ready()), at(before)],
            "NotApplied",
            "Kustomization/flux-system/apps has applied revision main@sha1:0000000",
        ),
        (
            APP.to_owned(),
            vec![
                released.clone(),
                helm_release(KUSTOMIZED, "", &ready()),
                kustomization("suspend: true", before, &ready()),
            ],
            "NotApplied",
            "Kustomization/flux-system/apps is suspended",
        ),
        (
            APP.to_owned(),
            vec![released, helm_release(RELEASED, "", &ready())],
            "NotApplied",
            "HelmRelease/apps/app refers to itself",
        ),
        (
            APP.to_owned(),
            vec![tracked.clone(), application("", "sync: {status: OutOfSync, revision: '1111111'}")],
            "NotApplied",
            "Application/argocd/app is out of sync and has no automated sync",
        ),
        (
            APP.to_owned(),
            vec![
                tracked.clone(),
                application(
                    "syncPolicy: {automated: {}}",
                    "sync: {status: OutOfSync, revision: '1111111'}, history: [{revision: '0000000'}]",
                ),
            ],
            "NotApplied",
            "Application/argocd/app has applied revision 0000000",
        ),
        (
            APP.to_owned(),
            vec![tracked, application("", "sync: {status: Synced, revision: '1111111'}")],
            "NotApplied",
            "the object has the image ghcr.io/org/app:1",
        ),
    ]
}

/// Returns the scene of a row.
pub(super) fn scene_of(policies: &str, objects: &[String]) -> Scene {
    let mut scene = Scene::new(policies);
    scene.insert(GIT);
    if !objects.is_empty() {
        insert(&mut scene, objects);
    }
    scene
}

#[test]
fn each_reason_is_told_with_a_sentence() {
    for (policies, objects, reason, message) in reasons() {
        let mut scene = scene_of(&policies, &objects);
        assert_eq!(scene.lines("app"), [of_app(&format!("pending {reason}"))], "{message}");
        let component = &scene.previous["app"].report.components[0];
        assert_eq!(component.message.as_deref(), Some(message), "{policies}");
        assert_eq!(component.place.as_deref(), Some("apps/app.yaml:7"));
        assert_eq!(component.automation.as_deref(), Some("fleet"));
    }
}

#[test]
fn each_code_of_an_applier_makes_the_component_failed() {
    let kustomized = |image: &str| named_deployment("apps/app", image, KUSTOMIZED);
    let released = |image: &str| named_deployment("apps/app", image, RELEASED);
    let mut table: Vec<(Vec<String>, String)> = Vec::new();
    for code in ["BuildFailed", "HealthCheckFailed", "ReconciliationFailed", "PruneFailed", "ArtifactFailed"]
    {
        let applier = kustomization("", SCANNED, &condition("Ready", "False", code));
        let source = format!("{code} of Kustomization/flux-system/apps");
        table.push((vec![kustomized(OLD), applier.clone()], format!("failed NotApplied {source}")));
        table.push((vec![applier], format!("failed NotFound {source}")));
    }
    for code in ["InstallFailed", "UpgradeFailed", "TestFailed", "RollbackFailed"] {
        let applier = helm_release("", "", &condition("Ready", "False", code));
        table.push((
            vec![released(OLD), applier],
            format!("failed NotApplied {code} of HelmRelease/apps/app"),
        ));
    }
    let applier = application("", "sync: {status: OutOfSync}, operationState: {phase: Failed, message: m}");
    let labeled = "labels: {app.kubernetes.io/instance: app}";
    table.push((
        vec![named_deployment("apps/app", OLD, labeled), applier],
        "failed NotApplied SyncFailed of Application/argocd/app".to_owned(),
    ));
    for (objects, expected) in table {
        let mut scene = scene(&objects);
        assert_eq!(scene.lines("app"), [of_app(&expected)]);
    }
}

/// A Kustomization fails for any of its objects.
#[test]
fn an_applier_that_fails_does_not_change_a_complete_rollout() {
    let kustomized = named_deployment("apps/app", NEW, KUSTOMIZED);
    let installing = kustomized.replace("NewReplicaSetAvailable", "ReplicaSetUpdated");
    let released = named_deployment("apps/app", NEW, RELEASED);
    let failed = kustomization("", SCANNED, &condition("Ready", "False", "HealthCheckFailed"));
    let release = |code: &str| helm_release("", "", &condition("Ready", "False", code));
    let table = [
        (vec![kustomized, failed.clone()], "installed"),
        (vec![installing, failed], "failed HealthCheckFailed of Kustomization/flux-system/apps"),
        (vec![released.clone(), release("UpgradeFailed")], "installed"),
        (vec![released, release("TestFailed")], "failed TestFailed of HelmRelease/apps/app"),
    ];
    for (objects, expected) in table {
        assert_eq!(scene(&objects).lines("app"), [of_app(expected)]);
    }
}

#[test]
fn the_failure_of_an_applier_stays_until_its_retry_has_ended() {
    let object = named_deployment("apps/app", OLD, KUSTOMIZED);
    let at = |condition: &str| kustomization("", "main@sha1:0000000", condition);
    let mut scene = scene(&[object, at(&condition("Ready", "False", "BuildFailed"))]);
    let failed = [of_app("failed NotApplied BuildFailed of Kustomization/flux-system/apps")];
    assert_eq!(scene.lines("app"), failed);
    insert(&mut scene, &[at(&condition("Ready", "Unknown", "Progressing"))]);
    assert_eq!(scene.lines("app"), failed);
    insert(&mut scene, &[at(&ready())]);
    assert_eq!(scene.lines("app"), [of_app("pending NotApplied")]);
    insert(&mut scene, &[at(&condition("Ready", "Unknown", "Progressing"))]);
    assert_eq!(scene.lines("app"), [of_app("pending NotApplied")]);
}

/// The release of this cluster belongs to another environment.
#[test]
fn the_release_of_another_policy_is_no_reason() {
    let policies = r#"
policies: {dev: "ghcr.io/org/app:2-dev", prod: "ghcr.io/org/app:1"}
automations:
  - name: fleet
    places:
      - {policy: dev, at: "dev/app.yaml:7", document: "helm.toolkit.fluxcd.io/v2 HelmRelease apps/app", field: tag}
      - {policy: prod, at: "prod/app.yaml:7", document: "helm.toolkit.fluxcd.io/v2 HelmRelease apps/app", field: tag}
"#;
    let mut scene = Scene::new(policies);
    let failed = helm_release("", "", &condition("Ready", "False", "UpgradeFailed"));
    insert(&mut scene, &[named_deployment("apps/app", "ghcr.io/org/app:2-dev", RELEASED), failed]);
    assert_eq!(scene.lines("dev"), [of_app("installed")]);
    assert_eq!(scene.lines("prod"), ["prod/app.yaml pending NotFound"]);
}

/// A release without objects: its first install failed.
#[test]
fn a_release_without_objects_is_a_component_with_the_name_of_its_file() {
    let policies = APP.replace("apps/v1 Deployment", "helm.toolkit.fluxcd.io/v2 HelmRelease");
    for (reason, expected) in [
        ("InstallFailed", "apps/app.yaml failed NotFound InstallFailed of HelmRelease/apps/app"),
        ("DependencyNotReady", "apps/app.yaml pending NotFound"),
    ] {
        let mut scene = Scene::new(&policies);
        insert(&mut scene, &[helm_release("", "", &condition("Ready", "False", reason))]);
        assert_eq!(scene.lines("app"), [expected]);
        assert!(scene.previous["app"].report.components[0].message.is_some());
    }
}
