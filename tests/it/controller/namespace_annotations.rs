//! Annotations of Namespaces, by which a controller stops and continues.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, Patch, PatchParams};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use tagboat::objects::cluster::Scope;

use super::hung_servers::{pushing, set_long_timeout};
use super::pod::Pod;
use super::scene::{Controller, Kind, Scene, condition};
use crate::support::api_server::{Call, Ending, Fault as ApiFault, Faults};
use crate::support::eventually::eventually;
use crate::support::git_host::{Fault, Operation};

/// Sets annotations of a Namespace; null removes one.
async fn annotate(scene: &Scene, namespace: &str, annotations: &Value) {
    let api: Api<Namespace> = Api::all(scene.cluster.client());
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    api.patch(namespace, &PatchParams::default(), &patch).await.unwrap();
}

/// Starts a controller of all namespaces, but not of the automations of other tests.
async fn watching_all(scene: &Scene, faults: &Faults, namespace: &str) -> Controller {
    let own = scene.cluster.namespace();
    scene.patch(Kind::Automation, "app", &json!({"metadata": {"labels": {"tenant": own}}})).await;
    let mut builder = scene.controller().through(scene.cluster.faulty_client(faults));
    builder.options.controller.scope = Scope { namespace: None, labels: Some(format!("tenant={own}")) };
    builder.options.namespace = namespace.to_owned();
    builder.start()
}

fn watches(call: &Call) -> bool {
    call.is("watch", "namespaces")
}

fn lists_or_watches(call: &Call) -> bool {
    ["list", "watch"].contains(&call.verb) && call.resource == "namespaces"
}

/// Waits until the automation is frozen, and its message has a text.
async fn is_frozen_by(scene: &Scene, text: &str) {
    let is_waiting =
        |status: &Value| condition(status, "UpdatesWaiting").is_some_and(|found| found["status"] == "True");
    let status = scene.until("app", "waiting", |object| is_waiting(&object.data["status"])).await;
    let found = condition(&status, "UpdatesWaiting").unwrap();
    assert_eq!(found["reason"], "Frozen", "{found}");
    assert!(found["message"].as_str().unwrap().contains(text), "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_freeze_cancels_the_push_in_flight_and_its_end_continues() {
    for (annotation, is_own) in [("tagboat.dev/freeze", false), ("tagboat.dev/freeze-all", true)] {
        let scene = Scene::new(&["app"]).await;
        set_long_timeout(&scene).await;
        let own = scene.cluster.another_namespace().await;
        let controller = watching_all(&scene, &Faults::default(), &own).await;
        scene.ready("app").await;
        scene.host.once(Operation::Push, Fault::Hang);
        scene.choose("app", "2.0.0").await;
        pushing(&scene).await;
        let frozen = if is_own { &own } else { scene.cluster.namespace() };
        annotate(&scene, frozen, &json!({annotation: "incident 4711"})).await;
        // The hanging push is killed, which its server notices.
        annotate(&scene, frozen, &json!({annotation: null})).await;
        scene.lands("app", "2.0.0").await;
        controller.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_annotation_of_ours_starts_a_reconcile() {
    let scene = Scene::new(&["app"]).await;
    let faults = Faults::default();
    let controller = watching_all(&scene, &faults, "none").await;
    scene.ready("app").await;
    eventually("namespaces are watched", async || faults.calls().iter().any(watches)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    faults.forget_calls();
    let has_begun = || faults.calls().iter().any(|call| call.is("patch", "imageupdateautomations/status"));
    annotate(&scene, scene.cluster.namespace(), &json!({"example.com/note": "x"})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!has_begun(), "{:?}", faults.calls());
    // The interval is ten minutes.
    annotate(&scene, scene.cluster.namespace(), &json!({"tagboat.dev/windows": "[]"})).await;
    eventually("a reconcile begins", async || has_begun()).await;
    controller.end().await;
}

/// Only the automations of the controller's own Namespace learned that the misspelt freeze was gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_misspelt_freeze_of_all_namespaces_ends_for_all_automations_when_it_is_removed() {
    let scene = Scene::new(&["app"]).await;
    let own = scene.cluster.another_namespace().await;
    let controller = watching_all(&scene, &Faults::default(), &own).await;
    scene.ready("app").await;
    annotate(&scene, &own, &json!({"tagboat.dev/freezeall": "incident 4711"})).await;
    let is_seen = |status: &Value| condition(status, "UpdatesWaiting").is_some();
    scene.until("app", "the annotation is seen", |object| is_seen(&object.data["status"])).await;
    scene.choose("app", "2.0.0").await;
    is_frozen_by(&scene, "tagboat.dev/freezeall").await;
    // The interval is ten minutes.
    annotate(&scene, &own, &json!({"tagboat.dev/freezeall": null})).await;
    scene.lands("app", "2.0.0").await;
    controller.end().await;
}

/// For a minute, the annotations that the watch had shown last counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_watch_fails_namespaces_are_read_before_each_push() {
    let scene = Scene::new(&["app"]).await;
    let faults = Faults::default();
    let controller = watching_all(&scene, &faults, "none").await;
    scene.ready("app").await;
    eventually("namespaces are watched", async || faults.calls().iter().any(watches)).await;
    faults.next(usize::MAX, ApiFault::Broken, lists_or_watches);
    faults.forget_calls();
    faults.end_watches(Ending::Reset, watches);
    eventually("the watch fails", async || faults.calls().iter().any(lists_or_watches)).await;
    let namespace = scene.cluster.namespace();
    annotate(&scene, namespace, &json!({"tagboat.dev/freeze": "incident 4711"})).await;
    scene.choose("app", "2.0.0").await;
    is_frozen_by(&scene, "incident 4711").await;
    annotate(&scene, namespace, &json!({"tagboat.dev/freeze": null})).await;
    faults.heal();
    scene.lands("app", "2.0.0").await;
    controller.end().await;
}

/// A request to watch ends after some seconds, so that a dead connection is noticed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_watch_begins_again_in_short_intervals_without_a_list() {
    let scene = Scene::new(&["app"]).await;
    let faults = Faults::default();
    let controller = watching_all(&scene, &faults, "none").await;
    // A busy API server may refuse a watch, after which the list is repeated.
    let continues = || {
        let calls: Vec<_> = faults.calls().into_iter().filter(|call| call.resource == "namespaces").collect();
        calls.windows(2).any(|pair| pair.iter().all(watches))
    };
    eventually("a watch continues another one", async || continues()).await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_watch_is_logged_once_and_keeps_nothing_from_working() {
    let scene = Scene::new(&["app"]).await;
    let faults = Faults::default();
    faults.next(usize::MAX, ApiFault::Forbidden, lists_or_watches);
    let kubeconfig = scene.cluster.faulty_kubeconfig(&faults).await;
    let label = json!({"metadata": {"labels": {"tenant": scene.cluster.namespace()}}});
    scene.patch(Kind::Automation, "app", &label).await;
    let selector = format!("--watch-label-selector=tenant={}", scene.cluster.namespace());
    let mut pod = Pod::start_by(&scene, &kubeconfig, &["controller", "--controllers=automation", &selector]);
    scene.ready("app").await;
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    // The second attempt is refused as well.
    let lists = || faults.calls().iter().filter(|call| call.is("list", "namespaces")).count();
    eventually("a second attempt", async || lists() >= 2).await;
    // An API server that starts does not know roles yet.
    faults.heal();
    eventually("namespaces are watched", async || faults.calls().iter().any(watches)).await;
    assert_eq!(pod.terminate().0, Some(0));
    let lines = pod.lines();
    let is_refusal = |line: &&Value| {
        line["msg"].as_str().is_some_and(|text| text.starts_with("namespaces are not watched"))
    };
    assert_eq!(lines.iter().filter(is_refusal).count(), 1, "{lines:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_of_one_namespace_watches_no_namespaces() {
    let scene = Scene::new(&["app"]).await;
    let faults = Faults::default();
    let controller = scene.controller().through(scene.cluster.faulty_client(&faults)).start();
    scene.ready("app").await;
    assert!(!faults.calls().iter().any(lists_or_watches), "{:?}", faults.calls());
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_watch_namespaces_are_read_before_each_push() {
    let scene = Scene::new(&["app"]).await;
    let faults = Faults::default();
    faults.next(usize::MAX, ApiFault::Forbidden, lists_or_watches);
    let own = scene.cluster.another_namespace().await;
    let controller = watching_all(&scene, &faults, &own).await;
    scene.ready("app").await;
    let pushes = || scene.host.requests_for(Operation::Push).len();
    let freezes = [
        (scene.cluster.namespace(), "tagboat.dev/freeze", "2.0.0"),
        (own.as_str(), "tagboat.dev/freeze-all", "3.0.0"),
    ];
    for (frozen, annotation, tag) in freezes {
        annotate(&scene, frozen, &json!({annotation: "incident 4711"})).await;
        // An answer of the last half second is used again.
        tokio::time::sleep(Duration::from_millis(600)).await;
        let before = pushes();
        scene.choose("app", tag).await;
        is_frozen_by(&scene, "incident 4711").await;
        assert_eq!(pushes(), before);
        // No watch tells the end, so the next run finds it.
        annotate(&scene, frozen, &json!({annotation: null})).await;
        scene.request("app", tag).await;
        scene.lands("app", tag).await;
    }
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_any_permission_for_namespaces_one_line_says_that_freezes_are_not_seen() {
    let scene = Scene::new(&["app"]).await;
    let faults = Faults::default();
    faults.next(usize::MAX, ApiFault::Forbidden, |call| call.resource == "namespaces");
    let kubeconfig = scene.cluster.faulty_kubeconfig(&faults).await;
    let label = json!({"metadata": {"labels": {"tenant": scene.cluster.namespace()}}});
    scene.patch(Kind::Automation, "app", &label).await;
    annotate(&scene, scene.cluster.namespace(), &json!({"tagboat.dev/freeze": "not seen"})).await;
    let selector = format!("--watch-label-selector=tenant={}", scene.cluster.namespace());
    let mut pod = Pod::start_by(&scene, &kubeconfig, &["controller", "--controllers=automation", &selector]);
    for tag in ["2.0.0", "3.0.0"] {
        scene.choose("app", tag).await;
        scene.lands("app", tag).await;
    }
    assert_eq!(pod.terminate().0, Some(0));
    let lines = pod.lines();
    let is_warning = |line: &&Value| line["msg"] == "freezes and windows of namespaces are not seen";
    assert_eq!(lines.iter().filter(is_warning).count(), 1, "{lines:#?}");
}

/// The first write waited for 15 seconds, and was reported as frozen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_without_namespaces_delays_no_write() {
    let scene = Scene::new(&["app"]).await;
    let resources = [
        "imageupdateautomations",
        "imageupdateautomations/status",
        "imagepolicies",
        "gitrepositories",
        "secrets",
        "events",
        "leases",
    ];
    let rule = json!({
        "apiGroups": ["", "image.toolkit.fluxcd.io", "source.toolkit.fluxcd.io", "coordination.k8s.io"],
        "resources": resources,
        "verbs": ["*"],
    });
    scene.cluster.grant("writer", rule).await;
    let token = scene.cluster.token("writer").await;
    let own = scene.cluster.client_with(&token).await;
    let permitted = Api::<DynamicObject>::default_namespaced_with(own, &Kind::Automation.resource());
    eventually("the role counts", async || permitted.get("app").await.is_ok()).await;
    scene.choose("app", "2.0.0").await;
    let arguments = ["controller", "--controllers=automation", "--watch-all-namespaces=false"];
    let mut pod = Pod::start_with(&scene, &token, &arguments);
    scene.lands("app", "2.0.0").await;
    let status = scene.ready("app").await;
    assert_eq!(condition(&status, "UpdatesWaiting"), None, "{status}");
    assert_eq!(pod.terminate().0, Some(0));
    let lines = pod.lines();
    let count = |text: &str| {
        let is_it = |line: &&Value| line["msg"].as_str().is_some_and(|message| message.contains(text));
        lines.iter().filter(is_it).count()
    };
    let found = ["freezes and windows of namespaces are not seen", "cannot be read"].map(count);
    assert_eq!(found, [1, 0], "{lines:#?}");
}
