//! Compares the files below `deploy/crds`, `deploy/rollout/crds` and `deploy/nodes/crds` with the CRDs of the types.
//!
//! With the environment variable `TAGBOAT_REGENERATE=1` the test writes them instead.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tagboat_api::crds::{self, CrdFile};

const STALE: &str = "run: make crds";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds")
}

#[test]
fn committed_files_are_up_to_date() {
    if std::env::var_os("TAGBOAT_REGENERATE").is_some_and(|value| value == "1") {
        regenerate();
    }
    for file in crds::files() {
        let committed = std::fs::read_to_string(folder().join(&file.path)).unwrap_or_default();
        assert!(committed == file.text, "deploy/crds/{} is stale; {STALE}", file.path);
    }
}

/// Clusters with Flux need the CRDs of our own kinds, too.
#[test]
fn our_own_kinds_have_directories_of_their_own() {
    for (file, name, below) in [
        (crds::rollout_file(), "tagboat.dev_deploymentstatuses.yaml", "rollout"),
        (crds::nodes_file(), "tagboat.dev_nodepools.yaml", "nodes"),
    ] {
        let own = folder().join("..").join(below).join("crds");
        if std::env::var_os("TAGBOAT_REGENERATE").is_some_and(|value| value == "1") {
            write(&own, &file);
        }
        assert_eq!(file.path, name);
        let committed = std::fs::read_to_string(own.join(name)).unwrap_or_default();
        assert!(committed == file.text, "deploy/{below}/crds/{name} is stale; {STALE}");
        assert!(!folder().join(name).exists());
    }
}

#[test]
fn all_committed_files_are_generated() {
    let generated: BTreeSet<String> = crds::files().into_iter().map(|file| file.path).collect();
    let mut committed = BTreeSet::new();
    for below in ["", "source/"] {
        for entry in std::fs::read_dir(folder().join(below)).expect("the folder of the CRDs exists") {
            let name = entry.expect("the folder of the CRDs can be read").file_name();
            let name = name.into_string().expect("the files of the CRDs have plain names");
            if Path::new(&name).extension().is_some_and(|extension| extension == "yaml") {
                committed.insert(format!("{below}{name}"));
            }
        }
    }
    // The directory may contain other files, such as a kustomization, but no CRDs without a type.
    committed.retain(|path| path.contains("toolkit.fluxcd.io_"));
    assert_eq!(committed, generated, "{STALE}");
}

fn regenerate() {
    crds::files().iter().for_each(|file| write(&folder(), file));
}

fn write(folder: &Path, file: &CrdFile) {
    let path = folder.join(&file.path);
    let parent = path.parent().expect("the path ends in a file name");
    std::fs::create_dir_all(parent).expect("the folder of the CRDs can be made");
    std::fs::write(path, &file.text).expect("the file can be written");
}
