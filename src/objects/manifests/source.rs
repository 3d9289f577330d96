//! From paths to the content of manifest files.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::ManifestError;
use crate::directory::Directory;
use crate::update::FileTree;
use crate::update::scope::scope;

/// A manifest file is no larger than this; etcd takes no object beyond 1.5 MiB, and a file holds many.
const FILE_SIZE: usize = 64 * 1024 * 1024;

/// One file's content.
pub(super) struct Source {
    pub(super) file: PathBuf,
    pub(super) content: Vec<u8>,
    /// Whether the file was found in a directory, where files of any kind may stand.
    pub(super) may_be_foreign: bool,
}

/// Reads what stands at `path`: a file, all YAML files of a directory, or standard input for `-`.
pub(super) fn collect(path: &Path) -> Result<Vec<Source>, ManifestError> {
    let unreadable = |cause| ManifestError::Unreadable { file: path.to_owned(), cause };
    let only = |content| vec![Source { file: path.to_owned(), content, may_be_foreign: false }];
    if path == Path::new("-") {
        let mut content = Vec::new();
        std::io::stdin().read_to_end(&mut content).map_err(|error| unreadable(error.into()))?;
        return Ok(only(content));
    }
    if !path.is_dir() {
        return fs::read(path).map(only).map_err(|error| unreadable(error.into()));
    }
    let directory = Directory::open(path).map_err(|error| unreadable(error.into()))?;
    let scope = scope(&directory, None).map_err(|error| unreadable(error.into()))?;
    let mut sources = Vec::new();
    for file in scope.files {
        let mut content = Vec::new();
        directory.read(&file.entry, FILE_SIZE, &mut content).map_err(|error| unreadable(error.into()))?;
        let file = directory.locate(&file.entry.path);
        sources.push(Source { file, content, may_be_foreign: true });
    }
    Ok(sources)
}

/// Keeps one of each file, however many of the given paths lead to it.
pub(super) fn remove_repetitions(sources: &mut Vec<Source>) {
    let mut seen = HashSet::new();
    sources.retain(|source| {
        let identity = fs::canonicalize(&source.file).unwrap_or_else(|_| source.file.clone());
        seen.insert(identity)
    });
}
