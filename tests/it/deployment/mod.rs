//! What `deploy` holds: fresh, complete, taken by a real API server, and allowed no more than is needed.

mod chart;
mod kustomizations;
mod migration;
mod rendering;
mod roles;

use std::path::{Path, PathBuf};

/// The folder.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

/// A file in it.
fn read(path: &str) -> String {
    let file = folder().join(path);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
