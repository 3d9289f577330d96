//! Private files, one for each distinct content.
//!
//! Many repositories have the same certificates, host keys and logins. A content that several of them use at a time is
//! held in memory once, and in one file, which is removed with its last user.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::private::{PrivateDirectory, PrivateError, bases};
use crate::secrets::Secret;

/// The contents and files that are in use. Clones share them.
///
/// Neither map outlives the users of its entries: entries without users are removed by the next insertion.
#[derive(Clone, Default)]
pub struct PrivateFiles {
    /// Contents by their digest.
    contents: Arc<Mutex<HashMap<ContentDigest, Weak<Secret>>>>,
    /// Files by their name and the digest of their content.
    files: Arc<Mutex<HashMap<FileKey, Weak<PrivateFile>>>>,
}

/// The name of a file, and the digest of its content.
type FileKey = (&'static str, ContentDigest);

/// The SHA-256 of a content.
type ContentDigest = [u8; 32];

/// A file of mode 0600, removed when its last user drops it.
#[derive(Debug)]
pub struct PrivateFile {
    path: PathBuf,
    directory: PrivateDirectory,
}

impl PrivateFile {
    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the directory, which holds nothing else.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl PrivateFiles {
    /// Shares the memory of equal contents.
    pub(super) fn share(&self, content: &Arc<Secret>) -> Arc<Secret> {
        let digest = digest(content.expose());
        let mut contents = self.contents.lock();
        if let Some(known) = contents.get(&digest).and_then(Weak::upgrade) {
            return known;
        }
        contents.retain(|_, content| content.strong_count() > 0);
        contents.insert(digest, Arc::downgrade(content));
        content.clone()
    }

    /// Writes a file in memory, or in the temporary directory.
    ///
    /// The temporary directory is used if there is no room in memory. Returns the existing file if another
    /// user of the files has written the same one.
    ///
    /// # Errors
    ///
    /// If neither place accepts it.
    pub(super) fn write(&self, name: &'static str, content: &[u8]) -> Result<Arc<PrivateFile>, PrivateError> {
        self.write_below(&bases(), name, content)
    }

    fn write_below(
        &self,
        bases: &[PathBuf],
        name: &'static str,
        content: &[u8],
    ) -> Result<Arc<PrivateFile>, PrivateError> {
        let key = (name, digest(content));
        // Held while the file is written, so that it is written once.
        let mut files = self.files.lock();
        if let Some(file) = files.get(&key).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let (directory, path) = PrivateDirectory::create_with(bases, |at| at.write(name, content))?;
        let file = Arc::new(PrivateFile { path, directory });
        files.retain(|_, file| file.strong_count() > 0);
        files.insert(key, Arc::downgrade(&file));
        Ok(file)
    }
}

/// Prints no digest: one of a short secret could be searched for.
impl fmt::Debug for PrivateFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PrivateFiles")
    }
}

fn digest(content: &[u8]) -> ContentDigest {
    Sha256::digest(content).into()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn equal_contents_share_one_file_until_the_last_user_drops_it() {
        let base = tempfile::tempdir().unwrap();
        let bases = [base.path().to_owned()];
        let files = PrivateFiles::default();
        let write = |name, content: &str| files.write_below(&bases, name, content.as_bytes()).unwrap();
        let (first, second) = (write("ca.crt", "x"), write("ca.crt", "x"));
        let (other, named) = (write("ca.crt", "y"), write("known_hosts", "x"));
        assert_eq!(first.path(), second.path());
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 3);
        assert_eq!(fs::read(named.path()).unwrap(), b"x");
        drop((first, other, named));
        assert_eq!(fs::read(second.path()).unwrap(), b"x");
        drop(second);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
        // A removed file is written again, and leaves nothing in the map.
        assert!(write("ca.crt", "x").path().ends_with("ca.crt"));
        assert_eq!(files.files.lock().len(), 1);
    }

    #[test]
    fn equal_contents_share_their_memory() {
        let files = PrivateFiles::default();
        let contents = ["x", "x", "y"].map(|text| files.share(&Arc::new(Secret::new(text))));
        assert!(Arc::ptr_eq(&contents[0], &contents[1]) && !Arc::ptr_eq(&contents[0], &contents[2]));
        drop(contents);
        files.share(&Arc::new(Secret::new("z")));
        assert_eq!(files.contents.lock().len(), 1);
    }
}
