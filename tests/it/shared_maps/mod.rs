//! Tests that every shared map, set or cache has a key and a bound.
//!
//! They are those that several tasks share. Because of key and bound, a tenant can neither fill them for
//! others nor read entries of others.
//!
//! `scan.rs` reads the sources of all crates and finds the fields and statics whose type holds a map, set or
//! cache behind a lock. `inventory.rs` has a row for each: its key, its bound, and its eviction. A field
//! without a row fails the test, and so does a row without a field.

mod inventory;
mod scan;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use inventory::INVENTORY;
use scan::{Source, shared_maps};

use crate::support::sources::rust_files;

/// The directories with code that ships.
const ROOTS: [&str; 6] = [
    "src",
    "api/src",
    "crates/fuzzing/src",
    "crates/versions/src",
    "crates/go-text/src",
    "crates/go-template/src",
];

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ROOTS.iter().flat_map(|directory| rust_files(&root.join(directory)));
    let read = |path: PathBuf| {
        let name = path.strip_prefix(root).unwrap().to_str().unwrap();
        Source::parse(name, &fs::read_to_string(&path).unwrap())
    };
    files.map(read).collect()
}

#[test]
fn every_crate_of_the_workspace_is_read() {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let line = manifest.lines().find(|line| line.starts_with("members = ")).unwrap();
    let members: BTreeSet<String> =
        line.split('"').skip(1).step_by(2).map(|name| format!("{name}/src")).collect();
    let read: BTreeSet<String> =
        ROOTS.iter().filter(|root| **root != "src").map(|root| (*root).to_owned()).collect();
    assert_eq!(members, read);
}

#[test]
fn every_shared_map_has_a_key_and_a_bound() {
    let found = shared_maps(&sources());
    let listed: BTreeSet<String> =
        INVENTORY.iter().map(|row| format!("{} {}", row.file, row.place)).collect();
    assert_eq!(listed.len(), INVENTORY.len(), "a place is listed twice");
    let new: Vec<&String> = found.difference(&listed).collect();
    assert!(
        new.is_empty(),
        "these hold a map, set or cache behind a lock and are not in tests/it/shared_maps/inventory.rs; add a row with the \
         key (which of namespace, route and login it has) and the bound: {new:#?}"
    );
    let gone: Vec<&String> = listed.difference(&found).collect();
    assert!(
        gone.is_empty(),
        "these rows of tests/it/shared_maps/inventory.rs name nothing any more: {gone:#?}"
    );
}

#[test]
fn every_row_has_a_key_and_a_bound() {
    for row in INVENTORY {
        assert!(row.key.len() > 3 && row.bound.len() > 10, "{} {}", row.file, row.place);
    }
}
