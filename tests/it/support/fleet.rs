//! A directory to update and the manifests of the update.
//! They are on disk for the duration of one test.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::manifests::{marker, policy};
use super::program::{self, Run};
use super::trees::{self, Tree};

/// The image that the fleet's one policy has selected.
pub(crate) const IMAGE: &str = "ghcr.io/stefanprodan/podinfo";

/// A line whose value follows the fleet's policy: `tag: VALUE # marker`.
pub(crate) fn tag_line(value: &str) -> String {
    format!("tag: {value} {}\n", marker("default:podinfo:tag"))
}

/// The manifest of the fleet's policy `default/podinfo`, whose tag is 5.0.3.
pub(crate) fn podinfo() -> String {
    policy("default", "podinfo", IMAGE, "5.0.3")
}

/// Two directories: the tree and the manifests.
pub(crate) struct Fleet {
    root: TempDir,
}

impl Fleet {
    pub(crate) fn new<const N: usize>(files: [(&str, &str); N], manifests: &str) -> Self {
        Self::of_tree(&trees::of_texts(files), manifests)
    }

    pub(crate) fn of_tree(tree: &Tree, manifests: &str) -> Self {
        let fleet = Self { root: tempfile::tempdir().unwrap() };
        trees::write(&fleet.directory(), tree);
        std::fs::create_dir(fleet.manifests()).unwrap();
        std::fs::write(fleet.manifests().join("manifests.yaml"), manifests).unwrap();
        fleet
    }

    /// One marked file, `app.yaml`, and one policy.
    pub(crate) fn small() -> Self {
        Self::new([("app.yaml", &tag_line("4.0.6"))], &podinfo())
    }

    /// The parent directory of the tree and the manifests.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.root.path().join("fleet")
    }

    pub(crate) fn manifests(&self) -> PathBuf {
        self.root.path().join("manifests")
    }

    /// The tree as it is now.
    pub(crate) fn tree(&self) -> Tree {
        trees::read(&self.directory())
    }

    /// A file of the tree as it is now.
    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.directory().join(path)).unwrap()
    }

    /// Runs `tagboat update` on the tree.
    pub(crate) fn update<I>(&self, more: I) -> Run
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        program::update(&self.directory(), &self.manifests(), more)
    }
}
