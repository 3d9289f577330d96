//! Tests of the manifests in `deploy`.
//! They are up to date, complete, accepted by a real API server, and have the least permissions.

mod chart;
mod grafana;
mod kustomizations;
mod migration;
mod rendering;
mod roles;

use std::path::{Path, PathBuf};

/// The folder `deploy`.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

/// Reads a file in `deploy`.
pub(crate) fn read(path: &str) -> String {
    let file = folder().join(path);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
