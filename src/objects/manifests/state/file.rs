//! The files of the state: read as they are, replaced wholly or not at all.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{StateDirectory, StateError};
use crate::directory;

/// What a file has of an object.
pub(super) enum Kept<T> {
    /// There is no file.
    Nothing,
    /// The object.
    Whole(T),
    /// Something that nobody can understand.
    Damaged,
}

impl StateDirectory {
    /// Reads an object.
    pub(super) fn read<T: DeserializeOwned>(&self, place: &Path) -> Result<Kept<T>, StateError> {
        match directory::read(place) {
            Ok(content) => {
                let value = serde_json::from_slice::<Value>(&content);
                let object = value.ok().and_then(|value| serde_json::from_value(value).ok());
                Ok(object.map_or(Kept::Damaged, Kept::Whole))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kept::Nothing),
            Err(error) => Err(self.failed("read", place, error)),
        }
    }

    /// Replaces a file, wholly or not at all, be it that the power fails. A run holds the state meanwhile, so the other file
    /// is of no other process.
    pub(super) fn write(&self, place: &Path, content: &[u8]) -> Result<(), StateError> {
        // To wait for the disk takes much longer than to look.
        if directory::read(place).is_ok_and(|kept| kept == content) {
            return Ok(());
        }
        let folder = place.parent().unwrap_or(place);
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        // No object's file begins with a dot.
        let new = folder.join(format!(".new-{name}"));
        let replace = || {
            private_folder(folder)?;
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = directory::open_with(&new, &mut options)?;
            file.write_all(content)?;
            // Some file systems would keep the new name before they keep the content. Should they lose the name, the file
            // that was here before is still here.
            file.sync_data()?;
            fs::rename(&new, place)
        };
        replace().map_err(|cause| {
            // What cannot be removed either is overwritten by the next who writes.
            let _ = fs::remove_file(&new);
            self.failed("keep", place, cause)
        })
    }

    /// A failure at `place`, which is put down to as much of that path as there is.
    pub(super) fn failed(&self, deed: &'static str, place: &Path, cause: io::Error) -> StateError {
        let culprit = place.ancestors().find(|path| fs::symlink_metadata(path).is_ok());
        // A relative path ends in an empty one, which stands for the current directory.
        let culprit = culprit.unwrap_or(&self.root).to_owned();
        StateError { deed, root: self.root.clone(), culprit, cause }
    }
}

/// Makes a folder that only we can read: conditions quote what servers say.
pub(super) fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
