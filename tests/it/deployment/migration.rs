//! The patches of `docs/migrate-from-flux.md`, tried on Deployments in a real API server.

use axum::http::Request;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::Api;
use serde_json::{Value, json};

use super::read;
use crate::support::api_server::{Cluster, apply, documents};

/// The manifest in the document that begins with this title.
fn manifest(title: &str) -> Value {
    let text = read("../docs/migrate-from-flux.md");
    let begin = format!("```yaml\n# patch: {title}\n");
    let (_, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("no manifest begins {begin:?}"));
    documents(rest.split_once("```").expect("a manifest has an end").0).remove(0)
}

/// Applies a manifest's only patch of a Deployment to that, as kustomize does, and gives both states.
async fn patched(cluster: &Cluster, patches: &Value) -> [Value; 2] {
    let patches = patches.as_array().unwrap().iter();
    let [patch] = patches.filter(|patch| patch["target"]["kind"] == "Deployment").collect::<Vec<_>>()[..]
    else {
        panic!("a Deployment is patched once")
    };
    let (target, patch) = (&patch["target"], patch["patch"].as_str().unwrap());
    let name = target["name"].as_str().unwrap();
    // Flux's own has this shape, too.
    let mut deployment = documents(&read("deployment.yaml")).remove(0);
    deployment["metadata"] = json!({"name": name, "namespace": cluster.namespace()});
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] =
        json!("ghcr.io/fluxcd/controller:v1.2.1");
    apply(&cluster.client(), &deployment, false).await.unwrap();
    let api: Api<Deployment> = Api::default_namespaced(cluster.client());
    let before = api.get(name).await.unwrap();
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/{name}", cluster.namespace());
    let body = serde_json::to_vec(&documents(patch)[0]).unwrap();
    let request =
        Request::patch(path).header("Content-Type", "application/json-patch+json").body(body).unwrap();
    let after: Deployment = cluster.client().request(request).await.unwrap();
    [before, after].map(|state| serde_json::to_value(state.spec).unwrap())
}

#[tokio::test]
async fn each_route_changes_the_image_and_nothing_else() {
    for (title, path) in
        [("bootstrap", "/patches"), ("FluxInstance", "/spec/kustomize/patches"), ("manifests", "/patches")]
    {
        let cluster = Cluster::new().await;
        let manifest = manifest(title);
        let patches = manifest.pointer(path).unwrap_or_else(|| panic!("{title}: no patches"));
        assert_eq!(patches.as_array().unwrap().len(), 1, "{title}");
        assert_eq!(patches[0]["target"]["name"], "image-automation-controller", "{title}");
        let [mut before, after] = patched(&cluster, patches).await;
        before["template"]["spec"]["containers"][0]["image"] =
            json!(format!("registry.example.com/tagboat:{}", env!("CARGO_PKG_VERSION")));
        assert_eq!(after, before, "{title}");
    }
}

#[tokio::test]
async fn the_shadow_gets_one_more_flag_and_may_only_read() {
    let cluster = Cluster::new().await;
    let manifest = manifest("shadow");
    assert_eq!(manifest["images"][0]["newTag"], env!("CARGO_PKG_VERSION"));
    let [mut before, after] = patched(&cluster, &manifest["patches"]).await;
    before["template"]["spec"]["containers"][0]["args"].as_array_mut().unwrap().push(json!("--dry-run"));
    assert_eq!(after, before);
    for patch in &manifest["patches"].as_array().unwrap()[1..] {
        let operation = &documents(patch["patch"].as_str().unwrap())[0][0];
        assert_eq!((&operation["op"], &operation["path"]), (&json!("replace"), &json!("/rules")));
        let rules = operation["value"].as_array().unwrap().iter();
        let verbs = rules.flat_map(|rule| rule["verbs"].as_array().unwrap());
        assert!(verbs.into_iter().all(|verb| ["get", "list", "watch"].iter().any(|read| verb == read)));
    }
}
