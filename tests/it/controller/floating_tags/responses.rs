//! Answers of registries by login and image, and the places that get the digest.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::fleet::{Fleet, TAG, TICK, is_lookup};
use crate::controller::reflector::{Reflector, chosen, requested};
use crate::controller::scene::{Kind, condition};
use crate::support::http_front::Reply;
use crate::support::registry::{PASSWORD, TokenServer, USER};

/// Replaces the login for a host.
async fn log_in(fleet: &Fleet, name: &str, host: &str, password: &str) {
    let config = json!({"auths": {host: {"username": USER, "password": password}}});
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": config.to_string()},
    });
    let api: Api<Secret> = Api::namespaced(fleet.scene.cluster.client(), fleet.scene.cluster.namespace());
    api.patch(name, &PatchParams::apply("tests").force(), &Patch::Apply(secret)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logins_are_used_for_their_registry_only() {
    let fleet = Fleet::new().await;
    let tokens = TokenServer::start();
    let (basic, bearer, strict) = (
        fleet.registry.guarded_by_password(),
        fleet.registry.guarded_by(&tokens),
        fleet.registry.guarded_by_password(),
    );
    let digest = fleet.push("web", TAG);
    let open = fleet.registry.address();
    let places = [
        ("open", open),
        ("basic", basic.address()),
        ("bearer", bearer.address()),
        ("wrong", strict.address()),
    ];
    for (name, host) in &places {
        let mut spec = json!({"image": format!("{host}/web"), "interval": "1h"});
        if *name != "open" {
            log_in(&fleet, name, host, if *name == "wrong" { "a guess" } else { PASSWORD }).await;
            spec["secretRef"] = json!({"name": name});
        }
        fleet.scene.create(Kind::Repository, name, &spec).await;
        fleet.follow_as(name, name, &json!({"tagboat.dev/poll-interval": "500ms"})).await;
    }
    let reflector = Reflector::of(&fleet.scene).start();
    let follow = async |digest: &str| {
        for (name, host) in &places[..3] {
            let image = json!({"name": format!("{host}/web"), "tag": TAG, "digest": digest});
            let status = chosen(&fleet.scene, name, &image).await;
            assert_eq!(condition(&status, "Stale"), None, "{name}");
        }
    };
    follow(&digest).await;
    let status = fleet.stale("wrong", "AuthenticationFailed").await;
    assert_eq!(status["latestRef"], Value::Null);

    // A login is revoked: the digest that it brought stays, and the other policies go on.
    log_in(&fleet, "basic", &basic.address(), "a guess").await;
    let status = fleet.stale("basic", "AuthenticationFailed").await;
    assert_eq!(status["latestRef"]["digest"], json!(digest));
    let moved = fleet.push("web", TAG);
    for name in ["open", "bearer"] {
        let host = &places.iter().find(|place| place.0 == name).unwrap().1;
        chosen(&fleet.scene, name, &json!({"name": format!("{host}/web"), "tag": TAG, "digest": moved}))
            .await;
    }
    log_in(&fleet, "basic", &basic.address(), PASSWORD).await;
    follow(&moved).await;
    reflector.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_11_without_the_header_the_manifest_itself_has_the_digest() {
    let fleet = Fleet::new().await;
    let digest = fleet.push("web", TAG);
    fleet.front.answer(|request| {
        let kind = "application/vnd.oci.image.manifest.v1+json";
        if is_lookup(request) { Reply::status(200).with("Content-Type", kind) } else { Reply::Forward }
    });
    fleet.follow("web", TICK).await;
    let reflector = Reflector::of(&fleet.scene).start();
    fleet.has("web", &digest).await;
    let moved = fleet.push("web", TAG);
    fleet.has("web", &moved).await;
    let requests = fleet.front.requests();
    assert!(requests.iter().any(|request| request.method == "GET" && request.path.contains("/manifests/")));
    reflector.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_12_of_an_image_for_several_platforms_the_digest_is_that_of_the_index() {
    let fleet = Fleet::new().await;
    let platform = fleet.push("web", "platform");
    let index = fleet.registry.push_index("web", TAG, &platform);
    fleet.follow("web", TICK).await;
    let reflector = Reflector::of(&fleet.scene).start();
    assert_ne!(index, platform);
    fleet.has("web", &index).await;
    let other = fleet.push("web", "platform");
    let moved = fleet.registry.push_index("web", TAG, &other);
    fleet.has("web", &moved).await;
    reflector.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_14_an_annotation_with_a_digest_marker_changes_alone() {
    let fleet = Fleet::new().await;
    let first = fleet.push("web", TAG);
    let template = |digest: &str| {
        format!(
            "spec:\n  template:\n    metadata:\n      annotations:\n        online-digest: {digest} {}\n    spec:\n      \
             containers:\n        - image: {}:{TAG}\n",
            fleet.marker("web:digest"),
            fleet.image("web"),
        )
    };
    fleet.write(&template("none-yet"));
    fleet.follow("web", TICK).await;
    fleet.automate().await;
    let (controller, reflector) = (fleet.scene.controller().start(), Reflector::of(&fleet.scene).start());
    fleet.lands(&first).await;
    assert_eq!(fleet.file(), template(&first));
    let second = fleet.push("web", TAG);
    fleet.lands(&second).await;
    assert_eq!(fleet.file(), template(&second));
    fleet.scene.ready("all").await;
    assert_eq!(fleet.commits().len(), 2);
    reflector.end().await;
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_09_if_not_present_waits_for_another_tag_and_never_does_no_lookup() {
    let fleet = Fleet::new().await;
    let first = fleet.push("web", "1.0.0");
    fleet.scan("web").await;
    for (name, digests) in [("if-not-present", "IfNotPresent"), ("never", "Never")] {
        let spec = json!({
            "imageRepositoryRef": {"name": "web"},
            "policy": {"semver": {"range": "*"}},
            "digestReflectionPolicy": digests,
        });
        fleet.create_policy(name, &spec, &json!({})).await;
    }
    let reflector = Reflector::of(&fleet.scene).start();
    let image = fleet.image("web");
    let with = |tag: &str, digest: &str| json!({"name": image, "tag": tag, "digest": digest});
    chosen(&fleet.scene, "if-not-present", &with("1.0.0", &first)).await;
    chosen(&fleet.scene, "never", &json!({"name": image, "tag": "1.0.0"})).await;
    assert_eq!(fleet.front.lookups().len(), 1, "one for the policy that wants a digest");

    // The tag moves, and a reconcile of every object is requested.
    let version = async |name: &str| fleet.policy(name).await.data["status"]["latestRef"].clone();
    fleet.push("web", "1.0.0");
    let scans = async || {
        let answered = |object: &kube::core::DynamicObject| {
            object.data["status"]["lastHandledReconcileAt"]
                == object.metadata.annotations.as_ref().map_or(Value::Null, |annotations| {
                    json!(annotations.get("reconcile.fluxcd.io/requestedAt"))
                })
        };
        for (kind, name) in
            [(Kind::Repository, "web"), (Kind::Policy, "if-not-present"), (Kind::Policy, "never")]
        {
            fleet.scene.patch(kind, name, &requested(&format!("{:?}", std::time::Instant::now()))).await;
            crate::controller::reflector::until(&fleet.scene, kind, name, answered).await;
        }
    };
    scans().await;
    assert_eq!(version("if-not-present").await, with("1.0.0", &first));
    assert_eq!(version("never").await, json!({"name": image, "tag": "1.0.0"}));
    assert_eq!(fleet.front.lookups().len(), 1, "nobody looked at a tag that is known");

    // Another tag has a digest of its own.
    let other = fleet.push("web", "1.1.0");
    scans().await;
    chosen(&fleet.scene, "if-not-present", &with("1.1.0", &other)).await;
    chosen(&fleet.scene, "never", &json!({"name": image, "tag": "1.1.0"})).await;
    assert_eq!(reflector.next_poll("if-not-present"), None, "nothing is polled");
    assert_eq!(reflector.next_poll("never").map_or(Duration::ZERO, |wait| wait), Duration::ZERO);
    reflector.end().await;
}
