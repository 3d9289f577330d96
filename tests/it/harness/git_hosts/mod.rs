//! The git servers of the tests, tested with the git program itself.

mod faults;
mod http;
mod repositories;
mod ssh;

use tempfile::TempDir;

use crate::support::bare_repository::BareRepository;
use crate::support::content::file;

/// A directory with one repository to serve, `fleet.git`.
struct Fleet {
    root: TempDir,
    repository: BareRepository,
}

impl Fleet {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let files = [file("app.yaml", "tag: 1\n")];
        let repository = BareRepository::with_files(&root.path().join("fleet.git"), &files);
        Self { root, repository }
    }
}
