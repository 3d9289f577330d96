//! What makes an automation due, and what does not.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use tagboat::controller::lease_name;

use super::scene::{Kind, Scene, condition, eventually};
use crate::support::content::file;
use crate::support::git_host::Operation;

/// When the last run of an automation began. A second later it shows whether there was another.
async fn last_run(scene: &Scene, name: &str) -> Value {
    scene.status(name).await["lastAutomationRunTime"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_looks_at_the_files_again_and_is_answered() {
    let scene = Scene::new(&["app"]).await;
    let controller = scene.controller().start();
    scene.ready("app").await;
    let before = scene.status("app").await;
    scene.request("app", "now").await;
    let after = scene
        .until("app", "answered", |object| object.data["status"]["lastHandledReconcileAt"] == "now")
        .await;
    assert_eq!(after["conditions"], before["conditions"]);
    scene.ready("app").await;
    // It is one event that happened twice: first as news, then only for the record.
    assert_eq!(scene.events("app").await, ["Normal Succeeded: repository up-to-date"]);
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_changed_is_looked_at_even_if_nothing_else_is_new() {
    let scene = Scene::new(&["app"]).await;
    let other = super::scene::line(scene.cluster.namespace(), "app", "1.0.0");
    scene.repository.commit("main", "More", &[file("sub/fleet.yaml", other)]);
    scene.patch(Kind::Automation, "app", &json!({"spec": {"update": {"path": "./sub"}}})).await;
    scene.choose("app", "2.0.0").await;
    let controller = scene.controller().start();
    eventually("a commit", async || scene.commits().len() == 1).await;
    scene.ready("app").await;
    // The same policies, the same remote, another path.
    scene.patch(Kind::Automation, "app", &json!({"spec": {"update": {"path": "./"}}})).await;
    scene.lands("app", "2.0.0").await;
    scene.ready("app").await;
    // A setting that is none stalls at once, and is forgiven.
    let setting =
        |value: Value| json!({"metadata": {"annotations": {"tagboat.dev/template-langauge": value}}});
    scene.patch(Kind::Automation, "app", &setting(json!("go"))).await;
    let status = scene.not_ready("app", "InvalidSettings").await;
    let message = condition(&status, "Stalled").unwrap()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("did you mean tagboat.dev/template-language?"), "{message}");
    scene.patch(Kind::Automation, "app", &setting(Value::Null)).await;
    scene.ready("app").await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_wakes_those_who_follow_it_and_nobody_else() {
    let scene = Scene::new(&["one", "two"]).await;
    let controller = scene.controller().start();
    for name in ["one", "two"] {
        scene.ready(name).await;
    }
    let policies = |object: &DynamicObject| object.data["status"]["observedPolicies"].clone();
    // Times in a status have whole seconds.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let rested = last_run(&scene, "two").await;
    // Its label is taken away, and given back; it goes, and comes back.
    let label = |value: Value| json!({"metadata": {"labels": {"app": value}}});
    scene.patch(Kind::Policy, "one", &label(json!("other"))).await;
    scene.until("one", "without its policy", |object| policies(object).is_null()).await;
    scene.patch(Kind::Policy, "one", &label(json!("one"))).await;
    scene.until("one", "with its policy", |object| policies(object)["one"]["tag"] == "1.0.0").await;
    scene.delete(Kind::Policy, "one").await;
    scene.until("one", "without its policy", |object| policies(object).is_null()).await;
    scene.create_policy("one", "1.5.0").await;
    scene.lands("one", "1.5.0").await;
    assert_eq!(last_run(&scene, "two").await, rested, "nothing concerned it");
    // A selection that changes is a changed spec.
    let selector = json!({"spec": {"policySelector": {"matchLabels": {"app": "two"}}}});
    scene.patch(Kind::Automation, "one", &selector).await;
    scene.until("one", "with the other policy", |object| policies(object)["two"]["tag"] == "1.0.0").await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_repository_wakes_those_who_use_it() {
    let scene = Scene::new(&["app"]).await;
    let controller = scene.controller().start();
    scene.ready("app").await;
    let nowhere = json!({"spec": {"ref": {"branch": "nowhere"}}});
    scene.patch(Kind::Source, "fleet", &nowhere).await;
    scene.patch(Kind::Automation, "app", &json!({"spec": {"git": {"push": {"branch": null}}}})).await;
    let status = scene.not_ready("app", "GitOperationFailed").await;
    let message = condition(&status, "Ready").unwrap()["message"].as_str().unwrap();
    assert!(message.starts_with("failed to checkout source: unable to clone '"), "{message}");
    scene.patch(Kind::Source, "fleet", &json!({"spec": {"ref": {"branch": "main"}}})).await;
    scene.ready("app").await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_rest_share_one_listing_an_interval() {
    let members = ["a", "b", "c", "d"];
    let scene = Scene::new(&members).await;
    for member in members {
        scene.patch(Kind::Automation, member, &json!({"spec": {"interval": "2s"}})).await;
    }
    let controller = scene.controller().start();
    for member in members {
        scene.ready(member).await;
    }
    let count = || scene.host.requests_for(Operation::ListForFetch).len();
    // After the first interval all go together.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let before = count();
    tokio::time::sleep(Duration::from_secs(8)).await;
    let listings = count() - before;
    assert!((2..=5).contains(&listings), "{listings} listings in four intervals");
    controller.end().await;
}

/// The kind as a cluster may have it whose schema says nothing.
fn loose_definition(group: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("imageupdateautomations.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "ImageUpdateAutomation", "plural": "imageupdateautomations"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema, "status": schema}}},
            }],
        },
    })
}

/// One that cannot even be read is named, and costs nobody else anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_cannot_be_understood_stops_nobody() {
    // The definition is the server's, so the server is the test's own.
    let server = std::sync::Arc::new(crate::support::api_server::ApiServer::start());
    let scene = Scene::on(server, &["app"]).await;
    let client = scene.cluster.client();
    let definitions: Api<DynamicObject> = Api::all_with(
        client,
        &ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
            "customresourcedefinitions",
        ),
    );
    let name = "imageupdateautomations.image.toolkit.fluxcd.io";
    let loose = loose_definition("image.toolkit.fluxcd.io");
    definitions.patch(name, &PatchParams::apply("tests").force(), &Patch::Apply(&loose)).await.unwrap();
    let schema = json!([{"op": "replace", "path": "/spec/versions", "value": loose["spec"]["versions"]}]);
    let patch: Patch<()> = Patch::Json(serde_json::from_value(schema).unwrap());
    definitions.patch(name, &PatchParams::default(), &patch).await.unwrap();
    eventually("an object that makes no sense", async || {
        let object = json!({"spec": {"interval": 5, "sourceRef": "fleet"}});
        let object = DynamicObject::new(
            "bad",
            &ApiResource::from_gvk_with_plural(
                &GroupVersionKind::gvk("image.toolkit.fluxcd.io", "v1", "ImageUpdateAutomation"),
                "imageupdateautomations",
            ),
        )
        .data(object);
        scene.api(Kind::Automation).create(&PostParams::default(), &object).await.is_ok()
    })
    .await;
    // As long as another leads, it is the other's to speak of it.
    let leases: Api<Lease> = Api::namespaced(scene.cluster.client(), scene.cluster.namespace());
    let held = json!({"metadata": {"name": lease_name("image-automation-controller", None)}, "spec": {"holderIdentity": "flux", "leaseDurationSeconds": 3600}});
    leases.create(&PostParams::default(), &serde_json::from_value(held).unwrap()).await.unwrap();
    let controller = scene.controller().standing_as("tagboat").start();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(scene.events("bad").await.is_empty());
    let free = Patch::Merge(json!({"spec": {"holderIdentity": ""}}));
    leases
        .patch(&lease_name("image-automation-controller", None), &PatchParams::default(), &free)
        .await
        .unwrap();
    scene.ready("app").await;
    eventually("an event about it", async || !scene.events("bad").await.is_empty()).await;
    let events = scene.events("bad").await;
    assert!(events[0].starts_with("Warning InvalidObject: the object cannot be understood"), "{events:?}");
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    controller.end().await;
}
