//! Installs definitions of kinds, as in a cluster without their controllers.

use std::time::{Duration, Instant};

use axum::http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};

use super::access::Access;

/// Applies the definitions, and waits until their objects can be listed.
pub(super) fn apply(access: &Access, definitions: &[CustomResourceDefinition]) {
    access.ask(async |client| {
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        for definition in definitions {
            let parameters = PatchParams::apply("tests").force();
            api.patch(&definition.name_any(), &parameters, &Patch::Apply(definition)).await.unwrap();
        }
        for definition in definitions {
            for version in definition.spec.versions.iter().filter(|version| version.served) {
                let (group, plural) = (&definition.spec.group, &definition.spec.names.plural);
                served(&client, &format!("/apis/{group}/{}/{plural}", version.name)).await;
            }
        }
    });
}

/// Waits until a path answers, which is a moment after its definition is established.
async fn served(client: &Client, path: &str) {
    let begin = Instant::now();
    loop {
        let request = Request::get(path).body(Vec::new()).unwrap();
        match client.request_text(request).await {
            Ok(_) => return,
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(30), "{path}: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
