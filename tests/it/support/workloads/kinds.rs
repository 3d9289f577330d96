//! The kinds of Flux, Argo and Flagger, and DeploymentStatus.

use std::path::Path;

use crate::support::api_server::{ApiServer, documents};

/// Installs the kinds, and waits until their objects can be listed.
pub(crate) fn install_kinds(server: &ApiServer) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/rollout/kinds.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let kinds = documents(&text).into_iter().map(|kind| serde_json::from_value(kind).unwrap());
    let kinds: Vec<_> = kinds.chain([tagboat_api::crds::rollout()]).collect();
    server.install(&kinds);
}
