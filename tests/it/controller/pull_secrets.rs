//! Logins of ImageRepositories: secrets, pull secrets of service accounts, clouds.

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::pod::Pod;
use super::scene::{Kind, Scene, condition};
use crate::support::eventually::eventually;
use crate::support::registry::{PASSWORD, Registry, USER};

/// Waits until an object is ready or not for a reason, and returns the message.
async fn message(scene: &Scene, name: &str, reason: &str) -> String {
    let status = async || scene.api(Kind::Repository).get(name).await.unwrap().data["status"].clone();
    let is = |status: &Value| condition(status, "Ready").is_some_and(|ready| ready["reason"] == reason);
    eventually(&format!("{name} has the reason {reason}"), async || is(&status().await)).await;
    condition(&status().await, "Ready").unwrap()["message"].as_str().unwrap().to_owned()
}

async fn account(scene: &Scene, name: &str, secrets: &[&str]) {
    let secrets: Vec<Value> = secrets.iter().map(|secret| json!({"name": secret})).collect();
    let object = json!({"metadata": {"name": name}, "imagePullSecrets": secrets});
    let api: Api<ServiceAccount> = Api::namespaced(scene.cluster.client(), scene.cluster.namespace());
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_account_brings_its_pull_secrets() {
    let scene = Scene::new(&[]).await;
    let namespace = scene.cluster.namespace();
    let registry = Registry::start();
    registry.push("app/web", "1.0.0", "2026-01-02T03:04:05Z");
    let guarded = registry.guarded_by_password();
    let image = format!("{}/app/web", guarded.address());
    let config = |server: &str, password: &str| {
        json!({"auths": {server: {"username": USER, "password": password}}}).to_string()
    };
    for (name, server, password) in [
        ("good", guarded.address(), PASSWORD),
        ("wrong", guarded.address(), "hunter3"),
        ("other", "other.example".to_owned(), "hunter3"),
    ] {
        let config = config(&server, password);
        scene.create_secret(namespace, name, &[(".dockerconfigjson", &config)]).await;
    }
    account(&scene, "puller", &["other", "good"]).await;
    account(&scene, "confused", &["wrong", "good"]).await;
    account(&scene, "poor", &[]).await;
    account(&scene, "broken", &["good", "missing"]).await;
    let create = async |name: &str, more: Value| {
        let mut spec = json!({"image": image, "interval": "10m"});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        scene.create(Kind::Repository, name, &spec).await;
    };
    create("by-account", json!({"serviceAccountName": "puller"})).await;
    create("by-both", json!({"serviceAccountName": "confused", "secretRef": {"name": "good"}})).await;
    create("by-first", json!({"serviceAccountName": "confused"})).await;
    create("by-secret-first", json!({"serviceAccountName": "puller", "secretRef": {"name": "wrong"}})).await;
    create("nobody", json!({"serviceAccountName": "poor"})).await;
    create("missing-account", json!({"serviceAccountName": "nobody"})).await;
    create("missing-secret", json!({"serviceAccountName": "broken"})).await;
    create("cloud", json!({"provider": "aws", "secretRef": {"name": "good"}})).await;
    create("cloud-as-account", json!({"provider": "gcp", "serviceAccountName": "puller"})).await;
    let pod =
        Pod::start(&scene, &["controller", "--watch-all-namespaces=false", "--controllers=reflector"]).await;
    for name in ["by-account", "by-both"] {
        let words = message(&scene, name, "Succeeded").await;
        assert!(words.starts_with("successful scan: found 1 tags"), "{name}: {words}");
    }
    for name in ["by-first", "by-secret-first", "nobody"] {
        let words = message(&scene, name, "ReadOperationFailed").await;
        assert!(words.contains("UNAUTHORIZED") && !words.contains("hunter3"), "{name}: {words}");
    }
    let begin = "failed to configure authentication options: ";
    for (name, expected) in [
        ("missing-account", format!("serviceaccount '{namespace}/nobody' not found")),
        (
            "missing-secret",
            format!(
                "failed to get image pull secret for serviceaccount '{namespace}/broken': secret '{namespace}/missing' \
                 not found"
            ),
        ),
    ] {
        assert_eq!(message(&scene, name, "AuthenticationFailed").await, format!("{begin}{expected}"));
    }
    // The login is made when the registry asks for one, so the scan fails, and no Secret is used instead.
    let words = message(&scene, "cloud", "ReadOperationFailed").await;
    let expected = format!("scan failed: invalid AWS registry: '{}'. must match ^", guarded.address());
    assert!(words.starts_with(&expected), "{words}");
    let words = message(&scene, "cloud-as-account", "FeatureGateDisabled").await;
    assert!(words.starts_with("to use spec.serviceAccountName for provider authentication"), "{words}");
    drop(pod);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_the_gate_an_object_acts_as_a_service_account_of_its_namespace() {
    let scene = Scene::new(&[]).await;
    let namespace = scene.cluster.namespace();
    let registry = Registry::start();
    let guarded = registry.guarded_by_password();
    let image = format!("{}/app/web", guarded.address());
    account(&scene, "puller", &[]).await;
    for (name, more) in [
        ("named", json!({"provider": "aws", "serviceAccountName": "puller"})),
        ("missing", json!({"provider": "azure", "serviceAccountName": "nobody"})),
        ("unnamed", json!({"provider": "gcp"})),
    ] {
        let mut spec = json!({"image": image, "interval": "10m"});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        scene.create(Kind::Repository, name, &spec).await;
    }
    let arguments = [
        "controller",
        "--watch-all-namespaces=false",
        "--controllers=reflector",
        "--feature-gates=ObjectLevelWorkloadIdentity=true",
        "--default-service-account=tenant",
    ];
    let pod = Pod::start(&scene, &arguments).await;
    let words = message(&scene, "named", "ReadOperationFailed").await;
    assert!(words.starts_with("scan failed: invalid AWS registry: "), "{words}");
    let words = message(&scene, "missing", "ReadOperationFailed").await;
    assert_eq!(
        words,
        format!(
            "scan failed: cannot log in as the service account '{namespace}/nobody': serviceaccount '{namespace}/nobody' \
             not found"
        )
    );
    let words = message(&scene, "unnamed", "ReadOperationFailed").await;
    let end = "the specified default service account does not exist in the object namespace. your cluster is subject to \
               multi-tenant workload identity lockdown, reach out to your cluster administrator for help";
    assert!(words.starts_with("scan failed: ") && words.ends_with(end), "{words}");
    drop(pod);
}
