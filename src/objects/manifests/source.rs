//! Reads manifest files from paths.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tagboat_api::settings::PREFIX;

use super::ManifestError;
use super::document::{self, Content};
use crate::directory::{self, Directory};
use crate::update::manifest_files::list_manifests;
use crate::update::{FileTree, TreeError};

/// The maximum size of a manifest file.
///
/// etcd accepts no object beyond 1.5 MiB, and a file holds many.
const MAX_FILE_SIZE: usize = 32 * 1024 * 1024;

/// The content of a file.
pub(super) struct Source {
    pub(super) file: PathBuf,
    pub(super) content: Vec<u8>,
    pub(super) origin: Origin,
}

/// The origin of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Its own path was given, so it must contain an object.
    Named,
    /// A directory, which may have files of any kind.
    ///
    /// This file has the name of a group of Flux's.
    Found,
    /// A directory; this file may only contain a Secret, a ServiceAccount or a Namespace.
    Optional,
}

/// The files of some paths.
#[derive(Default)]
pub(super) struct Sources {
    /// The files that may contain objects, without duplicates.
    pub(super) files: Vec<Source>,
    /// The YAML files of directories without a name of our groups.
    pub(super) skipped: Vec<PathBuf>,
    pub(super) notes: Vec<String>,
    seen: HashSet<PathBuf>,
    /// The canonical path of the state directory, if it exists.
    state: Option<PathBuf>,
}

impl Sources {
    /// Makes an empty collection that skips a state directory below a directory of manifests.
    pub(super) fn without(state: Option<&Path>) -> Self {
        Self { state: state.and_then(|state| fs::canonicalize(state).ok()), ..Self::default() }
    }

    /// Reads a file, the YAML and JSON files of a directory, or standard input (`-`).
    pub(super) fn collect(&mut self, path: &Path) -> Result<(), ManifestError> {
        let unreadable =
            |error: io::Error| ManifestError::Unreadable { file: path.to_owned(), cause: error.into() };
        if path == Path::new("-") {
            let content = read_bounded(io::stdin().lock()).map_err(unreadable)?;
            self.add(Source { file: path.to_owned(), content, origin: Origin::Named });
        } else if path.is_dir() {
            self.collect_directory(path)?;
        } else {
            let content = directory::open(path).and_then(read_bounded).map_err(unreadable)?;
            self.add(Source { file: path.to_owned(), content, origin: Origin::Named });
        }
        Ok(())
    }

    fn collect_directory(&mut self, path: &Path) -> Result<(), ManifestError> {
        let unreadable = |file: &Path, cause| ManifestError::Unreadable { file: file.to_owned(), cause };
        let directory = Directory::open(path).map_err(|error| unreadable(path, error.into()))?;
        let scope = list_manifests(&directory).map_err(|error| unreadable(path, error.into()))?;
        for skipped in scope.skipped {
            let file = path.join(skipped.file);
            self.notes.push(format!("{}: no manifests were read there: {}", file.display(), skipped.cause));
        }
        // Manifests may also be below the state directory, as in `--state .`.
        let root = fs::canonicalize(path).ok();
        let state =
            self.state.clone().zip(root).filter(|(state, root)| state != root && state.starts_with(root));
        let mut content = Vec::new();
        for entry in scope.files {
            let file = directory.locate(&entry.path);
            if let Some((state, _)) = &state
                && fs::canonicalize(&file).is_ok_and(|file| file.starts_with(state))
            {
                continue;
            }
            match directory.read(&entry, MAX_FILE_SIZE, &mut content) {
                Ok(()) => {
                    let origin = match document::screen(&content) {
                        Content::Objects => Origin::Found,
                        Content::CoreKinds => Origin::Optional,
                        Content::Nothing => {
                            self.skip(file);
                            continue;
                        }
                    };
                    self.add(Source { file, content: content.clone(), origin });
                }
                Err(error @ TreeError::TooLarge { .. }) => {
                    let names_group = document::GROUPS
                        .iter()
                        .chain([&PREFIX])
                        .any(|group| directory.contains(&entry, group.as_bytes()).unwrap_or(true));
                    if names_group {
                        return Err(unreadable(&file, error.into()));
                    }
                    self.skip(file);
                }
                Err(error) => return Err(unreadable(&file, error.into())),
            }
        }
        Ok(())
    }

    /// Records a file without objects.
    ///
    /// JSON files, which mostly belong to other tools, are not reported.
    pub(super) fn skip(&mut self, file: PathBuf) {
        if file.extension().is_none_or(|extension| extension != "json") {
            self.skipped.push(file);
        }
    }

    fn add(&mut self, source: Source) {
        let identity = fs::canonicalize(&source.file).unwrap_or_else(|_| source.file.clone());
        if self.seen.insert(identity) {
            self.files.push(source);
        }
    }
}

fn read_bounded(input: impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    input.take(MAX_FILE_SIZE as u64 + 1).read_to_end(&mut content)?;
    if content.len() > MAX_FILE_SIZE {
        let sentence = format!("it has more than {MAX_FILE_SIZE} bytes, the limit for a file of manifests");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, sentence));
    }
    Ok(content)
}
