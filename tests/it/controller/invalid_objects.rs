//! Objects that cannot be decoded.

use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use tagboat::controller::lease_name;
use tagboat::objects::cluster::REFLECTOR;
use tagboat_api::FINALIZER;

use super::reflector::Reflector;
use super::scene::{Kind, Scene};
use crate::support::api_server::{ApiServer, Faults};
use crate::support::eventually::eventually;

/// The definition of a kind with a schema that allows everything.
fn loose_definition(kind: &ApiResource) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", kind.plural, kind.group)},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": kind.kind, "plural": kind.plural},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema, "status": schema}}},
            }],
        },
    })
}

/// Replaces the schema of a kind by one that allows everything.
/// The test needs a server of its own for it.
async fn loosen(scene: &Scene, kind: Kind) {
    let definitions: Api<DynamicObject> = Api::all_with(
        scene.cluster.client(),
        &ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
            "customresourcedefinitions",
        ),
    );
    let loose = loose_definition(&kind.resource());
    let name = loose["metadata"]["name"].as_str().unwrap();
    definitions.patch(name, &PatchParams::apply("tests").force(), &Patch::Apply(&loose)).await.unwrap();
    let schema = json!([{"op": "replace", "path": "/spec/versions", "value": loose["spec"]["versions"]}]);
    let patch: Patch<()> = Patch::Json(serde_json::from_value(schema).unwrap());
    definitions.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// Creates an object that cannot be decoded, as soon as the server accepts it.
async fn create_invalid(scene: &Scene, kind: Kind, name: &str) {
    eventually("an object that makes no sense", async || {
        let spec = json!({"interval": 5, "sourceRef": "fleet", "image": 5});
        let mut object = DynamicObject::new(name, &kind.resource()).data(json!({"spec": spec}));
        object.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
        scene.api(kind).create(&PostParams::default(), &object).await.is_ok()
    })
    .await;
}

/// An object that cannot be decoded stops no other object.
/// It is named in the log, and other objects are reconciled as before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_object_stops_no_other_object() {
    // A definition belongs to the whole server, so the test has one of its own.
    let server = std::sync::Arc::new(crate::support::api_server::ApiServer::start());
    let scene = Scene::on(server, &["app"]).await;
    loosen(&scene, Kind::Automation).await;
    create_invalid(&scene, Kind::Automation, "bad").await;
    // As long as another instance leads, that one reports the object.
    let leases: Api<Lease> = Api::namespaced(scene.cluster.client(), scene.cluster.namespace());
    let held = json!({"metadata": {"name": lease_name("image-automation-controller", None)}, "spec": {"holderIdentity": "flux", "leaseDurationSeconds": 3600}});
    leases.create(&PostParams::default(), &serde_json::from_value(held).unwrap()).await.unwrap();
    let faults = Faults::default();
    let client = scene.cluster.faulty_client(&faults);
    let controller = scene.controller().through(client).standing_as("tagboat").start();
    let calls =
        |verb: &str, resource: &str| faults.calls().iter().filter(|call| call.is(verb, resource)).count();
    let has_found_it = async || calls("watch", "imageupdateautomations") > 0 && calls("get", "leases") >= 5;
    eventually("the controller watches, and does not lead", has_found_it).await;
    assert!(scene.events("bad").await.is_empty());
    let free = Patch::Merge(json!({"spec": {"holderIdentity": ""}}));
    leases
        .patch(&lease_name("image-automation-controller", None), &PatchParams::default(), &free)
        .await
        .unwrap();
    scene.ready("app").await;
    eventually("an event about it", async || !scene.events("bad").await.is_empty()).await;
    let events = scene.events("bad").await;
    assert!(events[0].starts_with("Warning InvalidObject: the object is invalid"), "{events:?}");
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    // No other program would remove its finalizer.
    scene.delete(Kind::Automation, "bad").await;
    eventually("its end", async || scene.api(Kind::Automation).get_opt("bad").await.unwrap().is_none()).await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_reports_an_invalid_repository_once() {
    let scene = Scene::on(Arc::new(ApiServer::start()), &["app"]).await;
    loosen(&scene, Kind::Repository).await;
    create_invalid(&scene, Kind::Repository, "bad").await;
    let first = Reflector::of(&scene).standing_as("first").start();
    let reports = async |name: &str| {
        let events: Api<Event> = Api::default_namespaced(scene.cluster.client());
        let found = events.list(&ListParams::default()).await.unwrap().items;
        let own = found.into_iter().filter(|event| {
            event.reason.as_deref() == Some("InvalidObject")
                && event.involved_object.name.as_deref() == Some(name)
        });
        own.map(|event| event.count.unwrap_or_default()).sum::<i32>()
    };
    eventually("it is reported", async || reports("bad").await == 1).await;

    // An instance that does not lead reports nothing, and a change of another part of the object is not reported
    // again.
    let faults = Faults::default();
    let client = scene.cluster.faulty_client(&faults);
    let second = Reflector::of(&scene).through(client).standing_as("second").start();
    let is_watching = async || faults.calls().iter().any(|call| call.is("watch", "imagerepositories"));
    eventually("the second watches", is_watching).await;
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    scene.patch(Kind::Repository, "bad", &label).await;
    create_invalid(&scene, Kind::Repository, "worse").await;
    eventually("the other one is reported", async || reports("worse").await == 1).await;
    assert!(faults.calls().iter().all(|call| !call.writes() || call.resource == "leases"));
    assert_eq!(reports("bad").await, 1);
    first.end().await;
    let is_second = async || {
        let leases: Api<Lease> = Api::namespaced(scene.cluster.client(), scene.cluster.namespace());
        let lease = leases.get(&lease_name(REFLECTOR, None)).await.unwrap();
        lease.spec.and_then(|spec| spec.holder_identity).as_deref() == Some("second")
    };
    eventually("the second leads", is_second).await;
    // An object that is deleted loses its finalizer, though it was reported before.
    scene.delete(Kind::Repository, "bad").await;
    eventually("its end", async || scene.api(Kind::Repository).get_opt("bad").await.unwrap().is_none()).await;
    second.end().await;
    // A report of the first instance is not repeated.
    assert_eq!((reports("bad").await, reports("worse").await), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_controllers_make_one_event_of_an_invalid_policy() {
    let scene = Scene::on(Arc::new(ApiServer::start()), &["app"]).await;
    loosen(&scene, Kind::Policy).await;
    create_invalid(&scene, Kind::Policy, "bad").await;
    let faults = Faults::default();
    let client = || scene.cluster.faulty_client(&faults);
    let (controller, reflector) =
        (scene.controller().through(client()).start(), Reflector::of(&scene).through(client()).start());
    let attempts = || faults.calls().iter().filter(|call| call.is("create", "events")).count();
    eventually("both have reported it", async || attempts() >= 2).await;
    controller.end().await;
    reflector.end().await;
    let events = scene.events("bad").await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].starts_with("Warning InvalidObject: the object is invalid"), "{events:?}");
}
