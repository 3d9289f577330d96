//! Several clusters: with a kubeconfig, without, lost, and not listed yet.

use jiff::ToSpan;
use tagboat_api::deployment_status::{ComponentStatus, State, Tie};

use super::super::Contact;
use super::super::testing::Scene;
use super::{
    APP, NEW, OLD, RELEASED, SCANNED, application, condition, cron_job, deployment, documents, helm_release,
    insert, kustomization, named_deployment, of_app, stateful_set, version,
};
use crate::rollout::index::{ClusterIndex, Unlisted};
use crate::rollout::watched::GroupKind;

#[test]
fn an_object_in_another_cluster_has_the_name_of_the_cluster() {
    let mut scene = Scene::new(APP);
    scene.add_cluster(Some("edge"));
    scene.insert_into(1, &deployment(OLD));
    insert(&mut scene, &[deployment(NEW)]);
    assert_eq!(
        scene.lines("app"),
        ["edge/Deployment/apps/app pending NotApplied", "Deployment/apps/app installed"]
    );
}

#[test]
fn an_object_of_the_same_name_with_a_foreign_image_in_another_cluster_is_no_component() {
    let mut scene = Scene::new(APP);
    scene.add_cluster(Some("edge"));
    scene.insert_into(1, &deployment("ghcr.io/other/img:7"));
    insert(&mut scene, &[deployment(NEW)]);
    assert_eq!(scene.lines("app"), [of_app("installed")]);
    // In the own cluster, the document is enough.
    insert(&mut scene, &[deployment("ghcr.io/other/img:7")]);
    assert_eq!(scene.lines("app"), [of_app("pending NotApplied")]);
    // A mirror of the repository is evidence, too.
    scene.insert_into(1, &deployment("mirror.example/ghcr.io/org/app:2"));
    assert_eq!(
        scene.lines("app"),
        [of_app("pending NotApplied"), "edge/Deployment/apps/app installed".to_owned()]
    );
}

/// The document of the other policy is for the own cluster.
#[test]
fn a_document_claims_an_object_in_another_cluster_only_with_an_image_of_its_policy() {
    let object = |image: &str| {
        format!(
            "{{apiVersion: a.example/v1, kind: Widget, metadata: {{name: app, namespace: apps}}, spec: {{image: '{image}'}}}}"
        )
    };
    let policies = APP
        .replace("apps/v1 Deployment", "a.example/v1 Widget")
        .replace("org/app:2\"}", "org/app:2\", other: \"ghcr.io/org/other:5\"}")
        .replace("      - {policy", "      - {policy: other, at: \"apps/app.yaml:8\", document: \"a.example/v1 Widget apps/app\", field: reference}\n      - {policy");
    let mut scene = Scene::new(&policies);
    scene.add_cluster(Some("edge"));
    // Without evidence: it is neither the wanted image nor the one before.
    scene.insert_into(1, &object("ghcr.io/org/app:0"));
    assert_eq!(scene.lines("app"), ["edge/Widget/apps/app pending NotApplied"]);
    // In the own cluster, the document of the other policy is enough.
    insert(&mut scene, &[object("ghcr.io/org/app:0")]);
    assert_eq!(scene.lines("app"), ["edge/Widget/apps/app pending NotApplied"]);
}

#[test]
fn an_object_in_another_cluster_belongs_to_the_marker_of_its_release() {
    let release = "      - {policy: app, at: \"edge/release.yaml:14\", document: \"helm.toolkit.fluxcd.io/v2 HelmRelease apps/app\", field: reference}\n      - {policy";
    for (policies, place, tie) in [
        (APP.replace("      - {policy", release), "edge/release.yaml:14", Tie::Release),
        (APP.to_owned(), "apps/app.yaml:7", Tie::Object),
    ] {
        let mut scene = Scene::new(&policies);
        scene.add_cluster(Some("edge"));
        scene.insert_into(1, &named_deployment("apps/app", NEW, RELEASED));
        insert(&mut scene, &[deployment(NEW)]);
        let found = scene.report("app");
        let place_of = |component: &ComponentStatus| {
            (component.name.clone(), component.place.clone().unwrap(), component.tie.unwrap())
        };
        assert_eq!(
            found.iter().map(place_of).collect::<Vec<_>>(),
            [
                (of_app("").trim_end().to_owned(), "apps/app.yaml:7".to_owned(), Tie::Object),
                ("edge/Deployment/apps/app".to_owned(), place.to_owned(), tie)
            ]
        );
    }
}

#[test]
fn the_components_of_a_lost_cluster_are_pending() {
    let mut scene = Scene::new(APP);
    scene.add_cluster(Some("edge"));
    scene.insert_into(1, &deployment(NEW));
    insert(&mut scene, &[deployment(NEW)]);
    let before = scene.report("app");

    scene.clusters[1].contact = Contact::Lost;
    assert_eq!(scene.lines("app"), ["edge/Deployment/apps/app pending", "Deployment/apps/app installed"]);
    let report = &scene.previous["app"].report;
    assert_eq!(report.components[0].message.as_deref(), Some("cluster edge does not respond"));
    let error = report.error.as_ref().unwrap();
    assert_eq!(
        (error.code.as_str(), error.source.as_str(), error.message.as_str()),
        ("HostUnavailable", "edge", "cluster edge does not respond")
    );
    assert_eq!(report.state, State::Failed);
    scene.clusters[1].problem = Some("its kubeconfig is not valid");
    assert_eq!(scene.lines("app"), ["edge/Deployment/apps/app pending", "Deployment/apps/app installed"]);
    let message = scene.previous["app"].report.message.as_deref();
    assert_eq!(message, Some("cluster edge is not available: its kubeconfig is not valid"));
    // Also after a restart, which first has to find out whether the cluster responds.
    scene.clusters[1].contact = Contact::Listing;
    let since = scene.previous["app"].report.since.clone();
    scene.now += 10.seconds();
    assert_eq!(scene.lines("app"), ["edge/Deployment/apps/app pending", "Deployment/apps/app installed"]);
    let report = &scene.previous["app"].report;
    assert_eq!((report.state, &report.since), (State::Failed, &since));
    scene.now -= 10.seconds();
    scene.clusters[1].contact = Contact::Watched;
    assert_eq!(scene.report("app"), before);
    assert_eq!(scene.previous["app"].report.error, None);

    scene.clusters[0].contact = Contact::Lost;
    assert_eq!(scene.lines("app"), ["Deployment/apps/app pending", "edge/Deployment/apps/app installed"]);
}

/// The pods that fail are not known before they are listed again.
#[test]
fn a_failure_lasts_through_an_outage_of_its_cluster() {
    let mut scene = Scene::new(APP);
    scene.add_cluster(Some("edge"));
    let failing = deployment(NEW).replace(
        "status: \"True\", reason: NewReplicaSetAvailable",
        "status: \"False\", reason: ProgressDeadlineExceeded",
    );
    scene.insert_into(1, &failing);
    insert(&mut scene, &[deployment(NEW)]);
    scene.report("app");
    let failed_since = scene.previous["app"].report.failed_since.clone();
    assert!(failed_since.is_some());
    scene.clusters[1].contact = Contact::Lost;
    scene.now += 60.seconds();
    assert_eq!(scene.lines("app"), ["edge/Deployment/apps/app pending", "Deployment/apps/app installed"]);
    let lost = &scene.previous["app"].report;
    assert_eq!(lost.error.as_ref().map(|error| error.code.as_str()), Some("HostUnavailable"));
    assert_eq!(lost.failed_since, failed_since);

    // Another failure than the outage is what the deployment reports.
    insert(&mut scene, std::slice::from_ref(&failing));
    let own = "Deployment/apps/app failed ProgressDeadlineExceeded of Deployment/apps/app";
    assert_eq!(scene.lines("app"), [own, "edge/Deployment/apps/app pending"]);
    let report = &scene.previous["app"].report;
    assert_eq!((report.state, &report.error), (State::Failed, &None));
    assert!(report.message.as_deref().unwrap().starts_with("Deployment/apps/app: "), "{report:?}");
    insert(&mut scene, &[deployment(NEW)]);
    scene.clusters[1].contact = Contact::Watched;
    scene.now += 60.seconds();
    scene.report("app");
    assert_eq!(scene.previous["app"].report.failed_since, failed_since);
    scene.insert_into(1, &deployment(NEW));
    scene.report("app");
    assert_eq!(scene.previous["app"].report.failed_since, None);
}

/// After a restart during an outage, nothing waits more than a minute for lists.
#[test]
fn the_error_of_a_lost_cluster_stays_while_a_list_is_expected() {
    let mut scene = Scene::new(APP);
    scene.add_cluster(Some("edge"));
    scene.insert_into(1, &deployment(NEW));
    let before = scene.report("app");
    scene.clusters[1].contact = Contact::Lost;
    scene.report("app");
    let lost = scene.previous["app"].clone();
    assert_eq!(lost.report.state, State::Failed);

    scene.clusters[1].index = ClusterIndex::default();
    scene.clusters[1].index.set_unlisted(&GroupKind::DEPLOYMENT, Some(Unlisted::Expected));
    for contact in [Contact::Listing, Contact::Watched] {
        scene.clusters[1].contact = contact;
        scene.report("app");
        assert_eq!(scene.previous["app"], lost, "{contact:?}");
    }
    scene.clusters[1].index.set_unlisted(&GroupKind::DEPLOYMENT, Some(Unlisted::Skipped));
    assert_eq!(scene.lines("app"), ["edge/Deployment/apps/app pending"]);
    assert_eq!(scene.previous["app"].report.error, None, "it answers");
    scene.clusters[1].index.set_unlisted(&GroupKind::DEPLOYMENT, None);
    scene.insert_into(1, &deployment(NEW));
    assert_eq!(scene.report("app"), before);
}

/// Its automation is suspended, and was not scanned since a restart.
#[test]
fn the_components_of_a_removed_cluster_are_reported_no_more() {
    for (kind, namespace) in [("Deployment", "apps"), ("ClusterApp", "")] {
        let object = deployment(NEW).replace("kind: Deployment", &format!("kind: {kind}"));
        let object = object.replace("namespace: apps, ", &format!("namespace: '{namespace}', "));
        let document = format!("apps/v1 {kind} {}", if namespace.is_empty() { "app" } else { "apps/app" });
        let mut scene = Scene::new(&APP.replace("apps/v1 Deployment apps/app", &document));
        insert(&mut scene, std::slice::from_ref(&object));
        scene.add_cluster(Some("edge"));
        scene.insert_into(1, &object);
        let [own, edge] = &scene.lines("app")[..] else { panic!("{kind}") };
        assert_eq!(*edge, format!("edge/{own}"));
        let own = own.clone();
        scene.forget_scans();
        scene.clusters.pop();
        assert_eq!(scene.lines("app"), [own]);
    }
}

/// It has no object of the policy, so another one does not fail for it.
#[test]
fn a_lost_cluster_without_components_is_no_error() {
    let mut scene = Scene::new(APP);
    scene.add_cluster(Some("edge"));
    scene.clusters[1].contact = Contact::Lost;
    insert(&mut scene, &[deployment(NEW)]);
    assert_eq!(scene.lines("app"), [of_app("installed")]);
    assert_eq!(scene.previous["app"].report.error, None);
}

#[test]
fn before_the_first_lists_of_a_cluster_nothing_is_told_to_be_absent() {
    let mut scene = Scene::new(APP);
    scene.clusters[0].contact = Contact::Listing;
    assert_eq!(scene.lines("app"), [of_app("pending")]);
    let component = &scene.previous["app"].report.components[0];
    assert_eq!(component.message.as_deref(), Some("the cluster has not listed its objects yet"));
}

const REMOTE: &str = "kubeConfig: {secretRef: {name: edge}}";

#[test]
fn a_kustomization_of_another_cluster_is_judged_by_ready_and_its_revision() {
    let (ready, before) = (condition("Ready", "True", "ReconciliationSucceeded"), "main@sha1:0000000");
    let failed = condition("Ready", "False", "HealthCheckFailed");
    let running = condition("Ready", "Unknown", "Progressing");
    let at = |revision: &str, condition: &str| kustomization(REMOTE, revision, condition);
    let name = |state: &str| format!("Kustomization/flux-system/apps {state}");
    let table = [
        (at(before, &ready), name("pending NotApplied")),
        (at(SCANNED, &ready), name("installed")),
        (at("main@sha1:2222222", &ready), name("installed")),
        (at(SCANNED, &running), name("installing")),
        (at(SCANNED, &failed), name("failed HealthCheckFailed of Kustomization/flux-system/apps")),
        (at(before, &failed), name("failed NotApplied HealthCheckFailed of Kustomization/flux-system/apps")),
        (kustomization(&format!("{REMOTE}, suspend: true"), before, &ready), name("pending NotApplied")),
    ];
    for (object, expected) in table {
        let mut scene = Scene::new(APP);
        insert(&mut scene, std::slice::from_ref(&object));
        assert_eq!(scene.lines("app"), [expected], "{object}");
    }
    // Another commit does not take the image away.
    let mut scene = Scene::new(APP);
    insert(&mut scene, &[at(SCANNED, &ready)]);
    scene.report("app");
    insert(&mut scene, &[at("main@sha1:3333333", &ready)]);
    assert_eq!(scene.lines("app"), [name("installed")]);
    let component = &scene.previous["app"].report.components[0];
    assert_eq!(component.applied_revision.as_deref(), Some("main@sha1:3333333"));
    // Neither does a later commit that fails, nor one after that.
    let failure = name("failed HealthCheckFailed of Kustomization/flux-system/apps");
    for _ in 0..2 {
        insert(&mut scene, &[at("main@sha1:3333333", &failed)]);
        assert_eq!(scene.lines("app"), std::slice::from_ref(&failure));
    }
    insert(&mut scene, &[at("main@sha1:4444444", &ready)]);
    assert_eq!(scene.lines("app"), [name("installed")]);
    assert_eq!(scene.previous["app"].report.deploy_history, []);
}

#[test]
fn a_release_of_another_cluster_is_judged_by_ready_and_its_values() {
    let policies = APP.replace("apps/v1 Deployment", "helm.toolkit.fluxcd.io/v2 HelmRelease");
    let (ready, failed) =
        (condition("Ready", "True", "UpgradeSucceeded"), condition("Ready", "False", "UpgradeFailed"));
    let with = |image: &str, condition: &str| {
        helm_release("", &format!("{REMOTE}, values: {{image: '{image}'}}"), condition)
    };
    let name = |state: &str| format!("HelmRelease/apps/app {state}");
    let table = [
        (with(OLD, &ready), name("pending NotApplied")),
        (with(NEW, &ready), name("installed")),
        (with(NEW, &failed), name("failed UpgradeFailed of HelmRelease/apps/app")),
        (with(NEW, &condition("Ready", "Unknown", "Progressing")), name("installing")),
    ];
    for (object, expected) in table {
        let mut scene = Scene::new(&policies);
        insert(&mut scene, std::slice::from_ref(&object));
        assert_eq!(scene.lines("app"), [expected], "{object}");
    }
    // In a cluster with a kubeconfig, the workload is the component.
    let mut scene = Scene::new(&policies);
    insert(&mut scene, &[with(NEW, &ready)]);
    scene.add_cluster(Some("edge"));
    scene.insert_into(1, &documents(&[named_deployment("apps/app", NEW, RELEASED)]));
    assert_eq!(scene.lines("app"), ["edge/Deployment/apps/app installed"]);
    let component = &scene.previous["app"].report.components[0];
    assert_eq!(component.applier.as_deref(), Some("HelmRelease/apps/app"));
}

#[test]
fn an_application_of_another_cluster_is_judged_by_its_images_and_health() {
    let with = |image: &str, health: &str| {
        application(
            "destination: {server: 'https://edge.example'}",
            &format!(
                "sync: {{status: Synced, revision: '1111111'}}, health: {{status: {health}}}, summary: {{images: ['{image}', 'redis:7']}}"
            ),
        )
    };
    let name = |state: &str| format!("Application/argocd/app {state}");
    let table = [
        (with(OLD, "Healthy"), name("pending NotApplied")),
        (with(NEW, "Healthy"), name("installed")),
        (with(NEW, "Progressing"), name("installing")),
        (with(NEW, "Degraded"), name("failed Degraded of Application/argocd/app")),
        (with("redis:7", "Healthy"), name("pending NotApplied")),
    ];
    for (object, expected) in table {
        let mut scene = Scene::new(APP);
        insert(&mut scene, std::slice::from_ref(&object));
        assert_eq!(scene.lines("app"), [expected], "{object}");
    }
}

/// The file is in a base, outside of the paths of all Applications.
#[test]
fn an_application_of_another_cluster_is_found_by_its_images() {
    let mut scene = Scene::new(&APP.replace("apps/app.yaml", "base/app.yaml"));
    let status = |image: &str| format!("health: {{status: Healthy}}, summary: {{images: ['{image}']}}");
    let spec = "destination: {name: edge}";
    insert(&mut scene, &[application(spec, &status(OLD))]);
    assert_eq!(scene.lines("app"), ["Application/argocd/app pending NotApplied"]);
    insert(&mut scene, &[application(spec, &status("ghcr.io/org/app:0"))]);
    assert_eq!(scene.lines("app"), [of_app("pending NotFound")], "without evidence");
}

/// An API server that starts refuses requests, and a long list arrives late.
#[test]
fn as_long_as_a_list_of_a_kind_is_expected_its_components_stay() {
    let mut scene = Scene::new(APP);
    insert(&mut scene, &[deployment(NEW)]);
    let before = scene.report("app");
    scene.remove(&GroupKind::DEPLOYMENT, "apps", "app");
    scene.clusters[0].index.set_unlisted(&GroupKind::DEPLOYMENT, Some(Unlisted::Expected));
    assert_eq!(scene.report("app"), before);

    insert(&mut scene, &[deployment(OLD)]);
    assert_eq!(scene.lines("app"), [of_app("pending NotApplied")], "a part of the list has arrived");
}

#[test]
fn components_of_a_kind_that_is_not_watched_are_pending_without_a_deployment_afterwards() {
    let mut scene = Scene::new(APP);
    insert(&mut scene, &[deployment(NEW)]);
    let before = scene.report("app");
    scene.remove(&GroupKind::DEPLOYMENT, "apps", "app");
    scene.clusters[0].index.set_unlisted(&GroupKind::DEPLOYMENT, Some(Unlisted::Skipped));
    assert_eq!(scene.lines("app"), [of_app("pending")]);
    let report = &scene.previous["app"].report;
    let text = Some("objects of the kind Deployment are not watched");
    assert_eq!((report.components[0].message.as_deref(), report.error.as_ref()), (text, None));

    scene.clusters[0].index.set_unlisted(&GroupKind::DEPLOYMENT, None);
    insert(&mut scene, &[deployment(NEW)]);
    assert_eq!(scene.report("app"), before);
}

#[test]
fn in_an_outage_a_component_has_the_reason_of_its_own_marker() {
    let second = format!(
        "      - {{policy: app, at: \"apps/app.yaml:3\", document: \"apps/v1 Deployment apps/b\", field: reference, value: \"{OLD}\"}}\n      - {{policy"
    );
    let policies = APP.replace("      - {policy", &second);
    let mut scene = Scene::new(&policies);
    insert(&mut scene, &[deployment(NEW), named_deployment("apps/b", OLD, "")]);
    let second = "Deployment/apps/b pending NotCommitted";
    assert_eq!(scene.lines("app"), [second, &of_app("installed")]);
    scene.clusters[0].contact = Contact::Lost;
    assert_eq!(scene.lines("app"), [&of_app("pending"), second]);
    // Its line has moved.
    scene.set(&policies.replace("apps/app.yaml:7", "apps/app.yaml:8"));
    assert_eq!(scene.lines("app"), [&of_app("pending NotCommitted"), second]);
}

/// Tagboat could not observe the rollout.
#[test]
fn an_object_of_a_kind_that_is_watched_later_was_not_deployed() {
    let mut scene = Scene::new(APP);
    scene.clusters[0].index.set_unlisted(&GroupKind::DEPLOYMENT, Some(Unlisted::Skipped));
    assert_eq!(scene.lines("app"), [of_app("pending")]);
    scene.clusters[0].index.set_unlisted(&GroupKind::DEPLOYMENT, None);
    insert(&mut scene, &[deployment(NEW)]);
    assert_eq!(scene.lines("app"), [of_app("installed")]);
    assert_eq!(scene.previous["app"].report.deploy_history, []);
}

/// A CronJob and a StatefulSet do not report the end of their rollout.
#[test]
fn an_outage_is_no_deployment_of_an_object_that_ran_before() {
    for (kind, object) in [("CronJob", cron_job(NEW)), ("StatefulSet", stateful_set(NEW, 2))] {
        let mut scene = Scene::new(&APP.replace("apps/v1 Deployment", &format!("{} {kind}", version(kind))));
        scene.add_cluster(Some("edge"));
        scene.insert_into(1, &object);
        let before = scene.report("app");
        assert_eq!(scene.lines("app"), [format!("edge/{kind}/apps/app installed")]);
        scene.now = "2026-11-02T10:40:00Z".parse().unwrap();
        scene.clusters[1].contact = Contact::Lost;
        assert_eq!(scene.lines("app"), [format!("edge/{kind}/apps/app pending")]);
        scene.now = "2026-11-02T10:50:00Z".parse().unwrap();
        scene.clusters[1].contact = Contact::Watched;
        assert_eq!(scene.report("app"), before, "{kind}");
        assert_eq!(scene.previous["app"].report.deploy_history, [], "{kind}");
    }
}
