//! Connections to a cluster by kubeconfig and proxy, and the permissions that one namespace takes.

use kube::api::{Api, PostParams};
use serde_json::json;
use tagboat::permissions::{EVERYWHERE, OWN_NAMESPACE, lease_name};

use super::pod::Pod;
use super::scene::Scene;
use crate::support::api_server::Audited;
use crate::support::proxy_host::ProxyHost;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_reached_through_the_proxy_of_the_environment() {
    let scene = Scene::new(&["app"]).await;
    let token = scene.cluster.token_with_the_roles().await;
    let (kubeconfig, proxy) = (scene.cluster.kubeconfig(&token), ProxyHost::start());
    let flags = ["--watch-all-namespaces=false"];
    let mut pod = Pod::start_in(&scene, &kubeconfig, &[("HTTPS_PROXY", &proxy.url())], &flags);
    scene.ready("app").await;
    let requests = proxy.requests();
    assert!(requests.iter().any(|request| request.line.starts_with("CONNECT 127.0.0.1:")), "{requests:?}");
    assert_eq!(pod.terminate().0, Some(0));
    // An address that is exempt from the proxy is reached without it.
    scene.choose("app", "2.0.0").await;
    let nowhere = [("HTTPS_PROXY", "http://127.0.0.1:1"), ("NO_PROXY", "127.0.0.1")];
    let mut pod = Pod::start_in(&scene, &kubeconfig, &nowhere, &flags);
    scene.lands("app", "2.0.0").await;
    assert_eq!(pod.terminate().0, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_namespace_needs_no_more_than_a_role_in_it() {
    let scene = Scene::new(&["app"]).await;
    let namespace = scene.cluster.namespace();
    let token = scene.cluster.token("tagboat").await;
    let rules = EVERYWHERE.iter().chain(OWN_NAMESPACE).map(|permission| {
        let verbs: Vec<&str> = permission.verbs.iter().map(|verb| verb.name()).collect();
        let leases: Vec<String> = permission.leases.iter().map(|name| lease_name(name, None)).collect();
        json!({
            "apiGroups": [permission.group],
            "resources": permission.resources,
            "resourceNames": leases,
            "verbs": verbs,
        })
    });
    let role = json!({"metadata": {"name": "tagboat"}, "rules": rules.collect::<Vec<_>>()});
    let binding = json!({
        "metadata": {"name": "tagboat"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tagboat"},
        "subjects": [{"kind": "ServiceAccount", "name": "tagboat", "namespace": namespace}],
    });
    let parameters = PostParams::default();
    let roles: Api<k8s_openapi::api::rbac::v1::Role> = Api::namespaced(scene.cluster.client(), namespace);
    roles.create(&parameters, &serde_json::from_value(role).unwrap()).await.unwrap();
    let bindings: Api<k8s_openapi::api::rbac::v1::RoleBinding> =
        Api::namespaced(scene.cluster.client(), namespace);
    bindings.create(&parameters, &serde_json::from_value(binding).unwrap()).await.unwrap();
    let flags = ["--watch-all-namespaces=false", "--enable-leader-election"];
    let mut pod = Pod::start_with(&scene, &token, &flags);
    scene.ready("app").await;
    scene.choose("app", "2.0.0").await;
    scene.lands("app", "2.0.0").await;
    scene.ready("app").await;
    assert_eq!(pod.terminate().0, Some(0), "{:#?}", pod.lines());
    let audit = scene.cluster.audit("tagboat");
    // Every account may review its own access.
    let is_own = |request: &&Audited| request.resource != "selfsubjectaccessreviews";
    assert!(audit.iter().filter(is_own).all(|request| request.namespace == namespace), "{audit:?}");
}
