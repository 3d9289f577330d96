//! Repositories that policies of other namespaces share, and listings that repositories share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use super::reflector::{CREATED, Reflector, chosen, ready, until};
use super::scene::{Kind, Scene, condition, kstatus};
use crate::support::api_server::ApiServer;
use crate::support::http_front::{Front, Reply};
use crate::support::registry::Registry;

/// A policy `app` that names a repository of another namespace.
async fn stranger(scene: &Scene, registry: &Registry) -> (Api<DynamicObject>, String) {
    registry.push("web", "2.0.0", CREATED);
    let theirs = scene.cluster.another_namespace().await;
    let resource = Kind::Repository.resource();
    let api: Api<DynamicObject> = Api::namespaced_with(scene.cluster.client(), &theirs, &resource);
    let spec = json!({"image": format!("{}/web", registry.address()), "interval": "1h"});
    let object = DynamicObject::new("shared", &resource).data(json!({"spec": spec}));
    api.create(&Default::default(), &object).await.unwrap();
    let reference = json!({"spec": {"imageRepositoryRef": {"name": "shared", "namespace": theirs}}});
    scene.patch(Kind::Policy, "app", &reference).await;
    (api, theirs)
}

async fn denied(scene: &Scene) -> Value {
    let is = |object: &DynamicObject| {
        condition(&object.data["status"], "Ready").is_some_and(|ready| ready["reason"] == "AccessDenied")
    };
    until(scene, Kind::Policy, "app", is).await
}

async fn share(api: &Api<DynamicObject>, selectors: &Value) {
    let spec = json!({"spec": {"accessFrom": {"namespaceSelectors": selectors}}});
    api.patch("shared", &PatchParams::default(), &Patch::Merge(spec)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_says_which_namespaces_may_use_it() {
    // A controller that watches all namespaces would reconcile the objects of other tests.
    let scene = Scene::on(Arc::new(ApiServer::start()), &["app"]).await;
    let registry = Registry::start();
    let (api, theirs) = stranger(&scene, &registry).await;
    let reflector = Reflector::of(&scene).in_namespace(None).start();
    let own = scene.cluster.namespace();
    let begin = format!(
        "failed to get the referred ImageRepository: access denied: '{theirs}/shared' can't be accessed due to"
    );
    let words = ready(&denied(&scene).await).1;
    assert_eq!(words, format!("{begin} missing ACL labels on 'accessFrom'"));

    // Labels that the namespace does not have, then labels that it has, then all namespaces.
    share(&api, &json!([{"matchLabels": {"tenant": "b"}}])).await;
    let mismatch = format!("{begin} ACL labels mismatch on namespace '{own}'");
    let is = |object: &DynamicObject| {
        condition(&object.data["status"], "Ready").is_some_and(|ready| ready["message"] == mismatch)
    };
    until(&scene, Kind::Policy, "app", is).await;
    let namespaces: Api<Namespace> = Api::all(scene.cluster.client());
    let labels = json!({"metadata": {"labels": {"tenant": "a", "env": "test"}}});
    namespaces.patch(own, &PatchParams::default(), &Patch::Merge(labels)).await.unwrap();
    share(&api, &json!([{"matchLabels": {"tenant": "b"}}, {"matchLabels": {"tenant": "a", "env": "test"}}]))
        .await;
    let image = json!({"name": format!("{}/web", registry.address()), "tag": "2.0.0"});
    chosen(&scene, "app", &image).await;
    share(&api, &json!([])).await;
    assert_eq!(denied(&scene).await["latestRef"], image, "what was chosen stays");
    share(&api, &json!([{}])).await;
    chosen(&scene, "app", &image).await;
    reflector.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn references_to_other_namespaces_may_be_forbidden() {
    let scene = Scene::on(Arc::new(ApiServer::start()), &["app", "own"]).await;
    let registry = Registry::start();
    let (api, theirs) = stranger(&scene, &registry).await;
    share(&api, &json!([{}])).await;
    let image = format!("{}/web", registry.address());
    scene.create(Kind::Repository, "own", &json!({"image": image, "interval": "1h"})).await;
    let reflector = Reflector::of(&scene).in_namespace(None).without_cross_namespace_references().start();
    let words = ready(&denied(&scene).await).1;
    let expected = format!(
        "failed to get the referred ImageRepository: cannot access 'ImageRepository/{theirs}/shared', cross-namespace \
         references have been blocked"
    );
    assert_eq!(words, expected);
    chosen(&scene, "own", &json!({"name": image, "tag": "2.0.0"})).await;
    reflector.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_of_one_repository_share_listings_whatever_their_timeouts() {
    const LIST: &str = "/v2/web/tags/list";
    let (scene, registry) = (Scene::new(&[]).await, Registry::start());
    registry.push("web", "2.0.0", CREATED);
    let is_open = Arc::new(AtomicBool::new(false));
    let open = is_open.clone();
    let front = Front::before(registry.port(), move |request| {
        while request.path == LIST && !open.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(10));
        }
        Reply::Forward
    });
    let names: Vec<String> = (0..10).map(|number| format!("web-{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        let timeout = format!("{}s", 120 + number);
        let spec = json!({"image": format!("{}/web", front.address()), "interval": "1h", "timeout": timeout});
        scene.create(Kind::Repository, name, &spec).await;
    }
    let reflector = Reflector::of(&scene).start();
    // A reconcile that takes long sets the condition `Reconciling`.
    let is_in_progress = |object: &DynamicObject| condition(&object.data["status"], "Reconciling").is_some();
    for name in &names {
        until(&scene, Kind::Repository, name, is_in_progress).await;
    }
    is_open.store(true, Ordering::SeqCst);
    for name in &names {
        until(&scene, Kind::Repository, name, |object| kstatus(object) == "Current").await;
    }
    // A caller that came while the first listing was in flight got the second.
    let listings = front.requests_for(LIST).len();
    assert!(listings <= 2, "{listings} listings for {} objects", names.len());
    reflector.end().await;
}
