//! Each test has a namespace of its own, with our kinds in it.

use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::discovery::ApiResource;
use serde_json::json;
use tagboat_api::{GitRepository, ImagePolicy, ImageRepository, ImageUpdateAutomation};

use super::{config_map, config_maps};
use crate::support::api_server::Cluster;

#[tokio::test]
async fn namespaces_are_separate() {
    let (one, other) = (Cluster::new().await, Cluster::new().await);
    assert!(one.namespace().starts_with("namespaces-are-separate-"), "{}", one.namespace());
    assert_ne!(one.namespace(), other.namespace());
    config_maps(one.client()).create(&PostParams::default(), &config_map("here")).await.unwrap();
    let there = config_maps(other.client()).list(&ListParams::default()).await.unwrap();
    assert!(there.items.is_empty());
    let further = one.another_namespace().await;
    let there: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(one.client(), &further);
    assert_eq!(there.get_opt("here").await.unwrap(), None);
    assert_eq!(config_maps(one.client()).get("here").await.unwrap().name_any(), "here");
}

#[tokio::test]
async fn an_automation_is_kept_as_our_types_have_it() {
    let cluster = Cluster::new().await;
    let api: Api<ImageUpdateAutomation> = Api::default_namespaced(cluster.client());
    let automation: ImageUpdateAutomation = serde_json::from_value(json!({
        "apiVersion": "image.toolkit.fluxcd.io/v1",
        "kind": "ImageUpdateAutomation",
        "metadata": {"name": "fleet"},
        "spec": {
            "interval": "1m30s",
            "sourceRef": {"kind": "GitRepository", "name": "fleet"},
            "git": {"commit": {"author": {"email": "bot@example.com"}}},
        },
    }))
    .unwrap();
    let made = api.create(&PostParams::default(), &automation).await.unwrap();
    assert_eq!(made.metadata.generation, Some(1));
    let mut kept = api.get("fleet").await.unwrap();
    assert_eq!(
        serde_json::to_value(&kept.spec.git).unwrap(),
        serde_json::to_value(&automation.spec.git).unwrap()
    );
    assert_eq!(kept.spec.interval, automation.spec.interval);

    // The status is a subresource: it does not change with the object, and does not change the generation.
    let status = json!({"status": {"observedGeneration": 1, "lastPushCommit": "abc"}});
    let parameters = PatchParams { field_manager: Some("tests".to_owned()), ..PatchParams::default() };
    api.patch("fleet", &parameters, &Patch::Merge(&status)).await.unwrap();
    assert_eq!(api.get("fleet").await.unwrap().status.and_then(|status| status.last_push_commit), None);
    api.patch_status("fleet", &parameters, &Patch::Merge(&status)).await.unwrap();
    kept = api.get("fleet").await.unwrap();
    assert_eq!(kept.metadata.generation, Some(1));
    assert_eq!(kept.status.and_then(|status| status.last_push_commit).as_deref(), Some("abc"));
}

#[tokio::test]
async fn every_kind_of_ours_is_served_in_both_its_versions() {
    let cluster = Cluster::new().await;
    let client = cluster.client();
    for version in ["v1", "v1beta2"] {
        for (kind, plural) in [
            ("ImagePolicy", "imagepolicies"),
            ("ImageRepository", "imagerepositories"),
            ("ImageUpdateAutomation", "imageupdateautomations"),
        ] {
            let resource = ApiResource {
                group: "image.toolkit.fluxcd.io".to_owned(),
                version: version.to_owned(),
                api_version: format!("image.toolkit.fluxcd.io/{version}"),
                kind: kind.to_owned(),
                plural: plural.to_owned(),
            };
            let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
            assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty(), "{kind} {version}");
        }
    }
    let none = ListParams::default();
    assert!(
        Api::<GitRepository>::default_namespaced(client.clone()).list(&none).await.unwrap().items.is_empty()
    );
    assert!(
        Api::<ImagePolicy>::default_namespaced(client.clone()).list(&none).await.unwrap().items.is_empty()
    );
    assert!(Api::<ImageRepository>::default_namespaced(client).list(&none).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn the_server_refuses_objects_outside_the_schema() {
    let cluster = Cluster::new().await;
    let resource = ApiResource::erase::<ImageUpdateAutomation>(&());
    let api: Api<DynamicObject> = Api::default_namespaced_with(cluster.client(), &resource);
    let spec = json!({"spec": {"interval": "soon", "sourceRef": {"kind": "GitRepository", "name": "fleet"}}});
    let object = DynamicObject::new("fleet", &resource).data(spec);
    let error = api.create(&PostParams::default(), &object).await.unwrap_err();
    let kube::Error::Api(status) = error else { panic!("{error}") };
    assert_eq!(status.code, 422, "{status:?}");
    assert!(status.message.contains("spec.interval"), "{}", status.message);
}
