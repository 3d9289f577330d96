//! Tests that the reconcile engine exists only once.
//! It knows no kind, and no kind has a copy of one of its parts.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::sources::{code_of, rust_files};

/// The modules of `controller` that know kinds.
const KINDS: [&str; 6] = ["automation", "nodes", "policy", "reflector.rs", "repository", "rollout"];

/// Words that a part of the engine requires, each with the file of that part.
const PARTS: [(&str, &str); 15] = [
    ("coordination::v1", "lease.rs"),
    ("Observation::Changed", "watch.rs"),
    ("SelfSubjectAccessReview", "preflight.rs"),
    ("TokenBucket", "queue/mod.rs"),
    ("BTreeSet<(Instant", "queue/mod.rs"),
    ("UnboundedReceiver", "dispatcher.rs"),
    ("impl Drop for InFlight", "in_flight.rs"),
    ("Message::Done", "in_flight.rs"),
    ("info_span!", "kind.rs"),
    ("add_finalizer", "reconcile_steps.rs"),
    ("remove_finalizer", "reconcile_steps.rs"),
    (".patch_status(", "reconcile_steps.rs"),
    ("deletion_timestamp", "reconcile_steps.rs"),
    ("watch_objects", "watch.rs"),
    ("mpsc::", "dispatcher.rs"),
];

/// Words of another implementation of a part, each with the file of that part.
const ALTERNATIVES: [(&str, &str); 3] =
    [("BinaryHeap", "queue/mod.rs"), ("DelayQueue", "queue/mod.rs"), ("watcher(", "watch.rs")];

/// Words that would make the engine depend on a kind.
const OF_KINDS: [&str; 12] = [
    "ImageUpdateAutomation",
    "ImagePolicy",
    "ImageRepository",
    "GitRepository",
    "DeploymentStatus",
    "NodePool",
    "controller::automation",
    "controller::nodes",
    "controller::policy",
    "controller::reflector",
    "controller::repository",
    "controller::rollout",
];

fn controller() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/controller")
}

/// Reads the code of a file without its tests and comments.
fn code(path: &Path) -> String {
    code_of(&fs::read_to_string(path).unwrap())
}

#[test]
fn the_engine_names_no_kind() {
    for path in rust_files(&controller().join("engine")) {
        let code = code(&path);
        let named: Vec<_> = OF_KINDS.iter().filter(|word| code.contains(**word)).collect();
        assert!(named.is_empty(), "{} names {named:?}", path.display());
    }
}

#[test]
fn no_kind_has_a_copy_of_a_part_of_the_engine() {
    let files: Vec<PathBuf> = KINDS
        .iter()
        .map(|kind| controller().join(kind))
        .flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] })
        .collect();
    assert!(files.len() > KINDS.len());
    for (word, part) in PARTS {
        assert!(code(&controller().join("engine").join(part)).contains(word), "{part} without {word}");
    }
    for (word, part) in PARTS.into_iter().chain(ALTERNATIVES) {
        for path in &files {
            assert!(!code(path).contains(word), "{} has {word}, which is for engine/{part}", path.display());
        }
    }
}

/// A module that this test does not know would escape it.
#[test]
fn each_module_of_the_controller_is_the_engine_a_kind_or_the_process() {
    let mut modules: Vec<String> = fs::read_dir(controller())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    modules.sort();
    let mut expected: Vec<&str> = KINDS.into_iter().chain(["engine", "mod.rs", "process.rs"]).collect();
    expected.sort_unstable();
    assert_eq!(modules, expected);
}
