//! The files of the state, replaced atomically.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{StateDirectory, StateError};
use crate::directory;

/// The content of a file.
pub(super) enum Stored<T> {
    /// There is no file.
    Missing,
    /// The object.
    Valid(T),
    /// Invalid content.
    Corrupt,
}

impl StateDirectory {
    /// Reads an object.
    pub(super) fn read<T: DeserializeOwned>(&self, path: &Path) -> Result<Stored<T>, StateError> {
        let Some(content) = self.read_bytes(path)? else { return Ok(Stored::Missing) };
        let value = serde_json::from_slice::<Value>(&content);
        let object = value.ok().and_then(|value| serde_json::from_value(value).ok());
        Ok(object.map_or(Stored::Corrupt, Stored::Valid))
    }

    /// Reads a file; `None` if it does not exist.
    pub(super) fn read_bytes(&self, path: &Path) -> Result<Option<Vec<u8>>, StateError> {
        match directory::read(path) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("read", path, error)),
        }
    }

    /// Replaces a file atomically, even if the power fails.
    ///
    /// The caller holds the lock of the state, so no other process uses the temporary file.
    pub(super) fn write(&self, path: &Path, content: &[u8]) -> Result<(), StateError> {
        // A sync to disk takes much longer than a comparison.
        if directory::read(path).is_ok_and(|kept| kept == content) {
            return Ok(());
        }
        let folder = path.parent().unwrap_or(path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Names of object files never begin with a dot.
        let new = folder.join(format!(".new-{name}"));
        let replace = || {
            create_private_dir(folder)?;
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = directory::open_with(&new, &mut options)?;
            file.write_all(content)?;
            // Some file systems would persist the rename before the content. If they lose the rename, the old file
            // remains.
            file.sync_data()?;
            fs::rename(&new, path)
        };
        replace().map_err(|cause| {
            // If it cannot be removed either, the next write replaces it.
            let _ = fs::remove_file(&new);
            self.failed("save", path, cause)
        })
    }

    /// Makes an error at a path, reported at the deepest existing part of that path.
    pub(super) fn failed(&self, operation: &'static str, path: &Path, cause: io::Error) -> StateError {
        let path = path.ancestors().find(|path| fs::symlink_metadata(path).is_ok());
        // The last ancestor of a relative path is empty, which means the current directory.
        let path = path.unwrap_or(&self.root).to_owned();
        StateError { operation, root: self.root.clone(), path, cause }
    }
}

/// Makes a directory that only its owner can read: conditions quote messages of servers.
pub(super) fn create_private_dir(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
