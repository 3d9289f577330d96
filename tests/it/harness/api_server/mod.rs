//! The API server of the tests, and the properties that the other tests rely on.

mod calls;
mod clients;
mod faults;
mod life;
mod namespaces;
mod programs;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ObjectMeta};

/// A config map, as a simple object.
fn config_map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    ConfigMap {
        metadata,
        data: Some(BTreeMap::from([("key".to_owned(), "value".to_owned())])),
        ..ConfigMap::default()
    }
}

fn config_maps(client: kube::Client) -> Api<ConfigMap> {
    Api::default_namespaced(client)
}
