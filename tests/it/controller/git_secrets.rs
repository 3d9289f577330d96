//! Logins from Secrets of the cluster, and places in which they must not show.

use futures::future::join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use tagboat::objects::Objects;
use tagboat::objects::cluster::ClusterObjects;

use super::scene::{Kind, Scene};
use crate::support::api_server::Faults;
use crate::support::git_host::{Access, Settings};

const PASSWORD: &str = "planted-hunter2";

async fn create_secret(scene: &Scene, namespace: &str, password: &str) {
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "login"},
        "stringData": {"username": "robot", "password": password},
    }))
    .unwrap();
    let api: Api<Secret> = Api::namespaced(scene.cluster.client(), namespace);
    api.create(&PostParams::default(), &secret).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_read_in_its_namespace_once_for_a_batch() {
    let members = ["a", "b", "c", "d"];
    let settings = Settings { access: Access::basic("robot", PASSWORD), ..Settings::default() };
    let scene = Scene::with_host(settings, &members).await;
    // A Secret of the same name in another namespace is not used.
    let elsewhere = scene.cluster.another_namespace().await;
    create_secret(&scene, &elsewhere, "another").await;
    scene.patch(Kind::Source, "fleet", &json!({"spec": {"secretRef": {"name": "login"}}})).await;
    let faults = Faults::default();
    let mut builder = scene.controller().through(scene.cluster.faulty_client(&faults));
    builder.options.controller.scope.namespace = Some(scene.cluster.namespace().to_owned());
    let controller = builder.start();
    let status = scene.not_ready("a", "SourceManagerFailed").await;
    let message = status["conditions"][1]["message"].as_str().unwrap().to_owned();
    let namespace = scene.cluster.namespace();
    let words = format!(
        "failed configuring source manager: failed to get auth secret '{namespace}/login': secrets \"login\" not found"
    );
    assert_eq!(message, words);
    create_secret(&scene, namespace, "wrong").await;
    let status = scene.not_ready("a", "GitOperationFailed").await;
    assert!(!status.to_string().contains("wrong\""), "{status:#}");
    let api: Api<Secret> = Api::namespaced(scene.cluster.client(), namespace);
    let right = Patch::Merge(json!({"stringData": {"password": PASSWORD}}));
    api.patch("login", &PatchParams::default(), &right).await.unwrap();
    for member in members {
        scene.request(member, "now").await;
    }
    for member in members {
        scene.ready(member).await;
    }
    faults.forget_calls();
    join_all(members.iter().map(|member| scene.choose(member, "2.0.0"))).await;
    for member in members {
        scene.lands(member, "2.0.0").await;
        scene.ready(member).await;
    }
    controller.end().await;
    let asked: Vec<_> = faults.calls().into_iter().filter(|call| call.resource == "secrets").collect();
    assert!(asked.len() < members.len(), "{asked:?}");
    assert!(asked.iter().all(|call| call.verb == "get" && call.namespace.as_deref() == Some(namespace)));
    let mut all = scene.events("a").await.join("\n");
    for member in members {
        all += &scene.status(member).await.to_string();
    }
    assert!(!all.contains(PASSWORD), "{all}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_keeps_small_secrets_and_reads_large_ones_again() {
    let scene = Scene::new(&[]).await;
    let namespace = scene.cluster.namespace();
    let large = "x".repeat(16 * 1024);
    scene.create_secret(namespace, "small", &[("password", PASSWORD)]).await;
    scene.create_secret(namespace, "large", &[("ca.crt", &large)]).await;
    let keys: Vec<String> = (0..1_025).map(|number| format!("key{number}")).collect();
    let many: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "")).collect();
    scene.create_secret(namespace, "many", &many).await;
    let faults = Faults::default();
    let objects = ClusterObjects::new(scene.cluster.faulty_client(&faults)).with_secret_cache();
    for name in ["small", "large", "small", "large"] {
        assert!(objects.secret(namespace, name).await.is_ok());
    }
    let reads = |name: &str| faults.calls().iter().filter(|call| call.name.as_deref() == Some(name)).count();
    assert_eq!((reads("small"), reads("large")), (1, 2));
    let error = objects.secret(namespace, "many").await.unwrap_err().to_string();
    let words = "has 1025 keys, and 1024 are allowed: remove those that are not needed";
    assert_eq!(error, format!("secret '{namespace}/many' {words}"));
}
