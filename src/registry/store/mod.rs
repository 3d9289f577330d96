//! The tag store: scanned tags in memory and on disk.
//! The disk keeps them for the time after a restart.
//!
//! | file | contents |
//! |---|---|
//! | `stored` | a list of tags as it is stored |
//! | `file` | the file format of a list |

mod file;
mod stored;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tagboat_api::ObjectName;

pub use self::stored::{KnownImage, Scan, StoredHead, StoredSize, StoredTags};
use super::manifest::ImageFacts;
use crate::directory;
use crate::tenancy::{FairCache, InUseMap};

/// The limits of a store, in bytes for all objects together.
///
/// The list that was stored last is kept even if it alone is larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// The maximum size of the tags in memory, if they are on disk as well.
    pub memory: u64,
    /// The maximum size of the tags on disk.
    pub disk: u64,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self { memory: 32 * 1024 * 1024, disk: 2 * 1024 * 1024 * 1024 }
    }
}

/// The age at which a file without an object is removed by [`TagStore::sweep_old`].
const MAX_UNUSED_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// The minimum size in bytes of a tag in a file.
///
/// It has quotes, a comma and three letters, and a digit and a comma for the time at which it was first seen; shorter
/// tags are rare.
const MIN_TAG_BYTES: u64 = 8;

/// The file name extension.
const EXTENSION: &str = "tags";

/// The tags of repositories, each by the object that scans it.
#[derive(Debug)]
pub struct TagStore {
    root: Option<PathBuf>,
    is_dry_run: bool,
    limits: StoreLimits,
    memory: Mutex<FairCache<ObjectName, Arc<StoredTags>>>,
    /// The files on disk; `None` until the directory is listed.
    disk: Mutex<Option<FairCache<ObjectName, ()>>>,
    /// The locks of objects.
    ///
    /// Each is held from reading the stored tags of an object to storing the new ones, so that no scan is lost. Other
    /// objects are not blocked meanwhile.
    objects: Mutex<InUseMap<ObjectName, Mutex<()>>>,
    /// Locked for writing by a sweep, which cannot tell left-over files from unfinished ones.
    sweeping: RwLock<()>,
}

/// Errors of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// An object's name that cannot be a file name.
    #[error("{name:?} is not an object name")]
    Name {
        /// The name.
        name: String,
    },
    /// A file operation fails.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// The operation, as a verb.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: io::Error,
    },
}

/// A stored scan.
#[derive(Debug)]
pub struct StoredScan {
    /// The tags.
    pub tags: Arc<StoredTags>,
    /// The error of writing the file, if the tags are in memory only.
    pub write_error: Option<StoreError>,
}

impl TagStore {
    /// Makes a store in a directory, or in memory only.
    pub fn new(root: Option<PathBuf>) -> Self {
        match root {
            Some(root) => Self::limited(root, StoreLimits::default()),
            None => Self::with(None, false, StoreLimits { memory: u64::MAX, disk: 0 }),
        }
    }

    /// Makes a store in a directory with these limits.
    pub fn limited(root: PathBuf, limits: StoreLimits) -> Self {
        Self::with(Some(root), false, limits)
    }

    /// Makes a store that reads a directory and writes nothing to it (dry run).
    ///
    /// New scans are kept in memory only.
    pub fn dry_run(root: PathBuf) -> Self {
        Self::with(Some(root), true, StoreLimits { memory: u64::MAX, disk: 0 })
    }

    fn with(root: Option<PathBuf>, is_dry_run: bool, limits: StoreLimits) -> Self {
        Self {
            root,
            is_dry_run,
            limits,
            memory: Mutex::new(FairCache::sized(limits.memory)),
            disk: Mutex::default(),
            objects: Mutex::default(),
            sweeping: RwLock::default(),
        }
    }

    /// Reads the last scan of an object, if it is one of this repository.
    ///
    /// A damaged file is treated as missing.
    ///
    /// # Errors
    ///
    /// If an existing file cannot be read.
    pub fn read(&self, key: &ObjectName, canonical: &str) -> Result<Option<Arc<StoredTags>>, StoreError> {
        // Not in the match: the lock would be held until its end, and loading takes it too.
        let known = self.memory.lock().get(key).cloned();
        let found = match known {
            Some(known) => Some(known),
            None => self.load(key)?,
        };
        Ok(found.filter(|found| found.canonical == canonical))
    }

    /// Reads the identity of an object's stored list in this repository, without its tags.
    ///
    /// # Errors
    ///
    /// If an existing file cannot be read.
    pub fn head(&self, key: &ObjectName, canonical: &str) -> Result<Option<StoredHead>, StoreError> {
        let known = self.in_memory(key).map(|known| known.head());
        let found = match known {
            Some(known) => Some(known),
            None => self.file(key, file::read_head)?,
        };
        Ok(found.filter(|found| found.canonical == canonical))
    }

    /// Returns the size of the stored list of an object, if there is one.
    pub fn size(&self, key: &ObjectName) -> Option<StoredSize> {
        if let Some(size) = self.size_in_memory(key) {
            return Some(size);
        }
        let bytes = fs::metadata(self.path(key).ok()??).ok()?.len();
        Some(StoredSize { bytes, tags: bytes / MIN_TAG_BYTES })
    }

    /// Returns the size of the list of an object, if it is in memory.
    pub fn size_in_memory(&self, key: &ObjectName) -> Option<StoredSize> {
        let known = self.in_memory(key)?;
        let tags = u64::try_from(known.tags.len()).unwrap_or(u64::MAX);
        Some(StoredSize { bytes: known.size(), tags })
    }

    /// Returns the tags of an object's last scan, if they are in memory.
    pub fn in_memory(&self, key: &ObjectName) -> Option<Arc<StoredTags>> {
        self.memory.lock().get(key).cloned()
    }

    /// Stores a scan, with the times at which tags were first seen.
    ///
    /// An unreadable file is treated like a damaged one: it is replaced.
    ///
    /// # Errors
    ///
    /// If the object's name cannot be a file name.
    pub fn save_scan(&self, key: &ObjectName, scan: Scan) -> Result<StoredScan, StoreError> {
        let path = self.path(key)?;
        let _no_sweep = self.sweeping.read();
        let lock = self.object_lock(key);
        let _guard = lock.lock();
        let before = self.read(key, &scan.canonical).unwrap_or_default();
        Ok(self.put(key, path, StoredTags::merge(before.as_deref(), scan)))
    }

    /// Stores a list in memory and in its file. The object's lock is held.
    fn put(&self, key: &ObjectName, path: Option<PathBuf>, tags: StoredTags) -> StoredScan {
        let tags = Arc::new(tags);
        self.memory.lock().insert_sized(&key.namespace, key.clone(), tags.size(), Arc::clone(&tags));
        let write_error = path.and_then(|path| self.write(key, &path, &tags).err());
        StoredScan { tags, write_error }
    }

    /// Stores the time of another scan that found the list unchanged.
    ///
    /// Returns `None` if the list is not stored any more.
    ///
    /// # Errors
    ///
    /// If an existing file cannot be read, or the object's name cannot be a file name.
    pub fn save_unchanged(
        &self,
        key: &ObjectName,
        canonical: &str,
        scanned: Timestamp,
    ) -> Result<Option<StoredScan>, StoreError> {
        let path = self.path(key)?;
        let _no_sweep = self.sweeping.read();
        let lock = self.object_lock(key);
        let _guard = lock.lock();
        let Some(known) = self.read(key, canonical)? else { return Ok(None) };
        Ok(Some(self.put(key, path, StoredTags { scanned, ..StoredTags::clone(&known) })))
    }

    /// Stores images whose tags are still in the list.
    ///
    /// # Errors
    ///
    /// If the file cannot be written; the images are in memory only then.
    pub fn save_images(
        &self,
        key: &ObjectName,
        canonical: &str,
        images: Vec<(String, ImageFacts)>,
    ) -> Result<(), StoreError> {
        let _no_sweep = self.sweeping.read();
        let lock = self.object_lock(key);
        let _guard = lock.lock();
        let Some(known) = self.read(key, canonical)? else { return Ok(()) };
        let tags = Arc::new(known.with_images(images));
        self.memory.lock().insert_sized(&key.namespace, key.clone(), tags.size(), Arc::clone(&tags));
        self.path(key)?.map_or(Ok(()), |path| self.write(key, &path, &tags))
    }

    /// Writes a file, and evicts others if all of them are too large.
    ///
    /// The least recently used files of the namespace with most bytes are evicted. Their repositories are scanned
    /// again before a policy selects from them.
    fn write(&self, key: &ObjectName, path: &Path, tags: &StoredTags) -> Result<(), StoreError> {
        if self.is_dry_run {
            return Ok(());
        }
        let bytes = file::write(path, tags).map_err(|cause| io_error("write", path, cause))?;
        let evicted = self.with_file_index(|disk| disk.insert_sized(&key.namespace, key.clone(), bytes, ()));
        for evicted in evicted.unwrap_or_default() {
            self.evict(&evicted);
        }
        Ok(())
    }

    /// Removes the file of an evicted object, unless a scan has just stored it again.
    fn evict(&self, key: &ObjectName) {
        // Only `try_lock`, because the lock of the written object is held: an object whose lock is taken is being
        // written, or read to be written, and is counted again after that.
        let lock = self.object_lock(key);
        let Some(_guard) = lock.try_lock() else { return };
        let is_back = self.with_file_index(|disk| disk.get(key).is_some()).unwrap_or_default();
        if let Ok(Some(path)) = self.path(key)
            && !is_back
        {
            // A file that cannot be removed is counted again by the next process.
            let _ = fs::remove_file(path);
        }
    }

    /// Runs a function on the table of files, which is made at the first use.
    fn with_file_index<T>(&self, work: impl FnOnce(&mut FairCache<ObjectName, ()>) -> T) -> Option<T> {
        let root = self.root.as_ref().filter(|_| !self.is_dry_run)?;
        let mut disk = self.disk.lock();
        Some(work(disk.get_or_insert_with(|| index_files(root, self.limits.disk))))
    }

    /// Deletes the tags of an object.
    ///
    /// # Errors
    ///
    /// If the file cannot be removed.
    pub fn delete(&self, key: &ObjectName) -> Result<(), StoreError> {
        let _no_sweep = self.sweeping.read();
        let lock = self.object_lock(key);
        let _guard = lock.lock();
        self.memory.lock().remove(key);
        let Some(path) = self.path(key)?.filter(|_| !self.is_dry_run) else { return Ok(()) };
        self.with_file_index(|disk| disk.remove(key));
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(io_error("remove", &path, cause)),
            _ => Ok(()),
        }
    }

    /// Deletes the tags of all other objects, and files that killed processes left over.
    ///
    /// Files that cannot be removed stay until the next sweep.
    pub fn sweep(&self, is_there: impl Fn(&ObjectName) -> bool) {
        let _sweep = self.sweeping.write();
        self.memory.lock().retain(|key, _| is_there(key));
        self.remove(|path| {
            let is_gone = key_of(path).is_some_and(|key| !is_there(&key));
            is_gone || file::is_leftover(path)
        });
    }

    /// Deletes files of other objects, and left-over files, that are a week old at `now`.
    ///
    /// Other processes may use the directory at the same time, with other objects.
    pub fn sweep_old(&self, is_there: impl Fn(&ObjectName) -> bool, now: SystemTime) {
        let is_old = |path: &Path| {
            let written = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
            written.is_ok_and(|written| now.duration_since(written).is_ok_and(|age| age >= MAX_UNUSED_AGE))
        };
        let _sweep = self.sweeping.write();
        self.remove(|path| {
            let is_gone = key_of(path).is_some_and(|key| !is_there(&key));
            (is_gone || file::is_leftover(path)) && is_old(path)
        });
    }

    fn remove(&self, is_gone: impl Fn(&Path) -> bool) {
        let Some(root) = self.root.as_ref().filter(|_| !self.is_dry_run) else { return };
        for directory in list(root) {
            for path in list(&directory).into_iter().filter(|path| is_gone(path)) {
                let _ = fs::remove_file(path);
            }
            // Fails unless it is empty.
            let _ = fs::remove_dir(&directory);
        }
        // Counted again at the next use.
        *self.disk.lock() = None;
    }

    fn load(&self, key: &ObjectName) -> Result<Option<Arc<StoredTags>>, StoreError> {
        let Some(tags) = self.file(key, file::read)? else { return Ok(None) };
        let mut memory = self.memory.lock();
        // A scan that ended while the file was read is newer.
        let tags = memory.get(key).cloned().unwrap_or_else(|| Arc::new(tags));
        memory.insert_sized(&key.namespace, key.clone(), tags.size(), Arc::clone(&tags));
        drop(memory);
        self.with_file_index(|disk| {
            disk.get(key);
        });
        Ok(Some(tags))
    }

    /// Reads the file of an object, if there is one.
    fn file<T>(
        &self,
        key: &ObjectName,
        read: impl FnOnce(File) -> io::Result<Option<T>>,
    ) -> Result<Option<T>, StoreError> {
        let Some(path) = self.path(key)? else { return Ok(None) };
        match directory::open(&path).and_then(read) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map_err(|cause| io_error("read", &path, cause)),
        }
    }

    /// Returns the path of an object's file.
    fn path(&self, key: &ObjectName) -> Result<Option<PathBuf>, StoreError> {
        for name in [&key.namespace, &key.name] {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            if name.is_empty() || name.starts_with('.') || !name.bytes().all(is_allowed) {
                return Err(StoreError::Name { name: name.clone() });
            }
        }
        let file = format!("{}.{EXTENSION}", key.name);
        Ok(self.root.as_ref().map(|root| root.join(&key.namespace).join(file)))
    }

    /// Returns the lock of an object.
    fn object_lock(&self, key: &ObjectName) -> Arc<Mutex<()>> {
        self.objects.lock().get(key.clone())
    }
}

/// Lists the files with their sizes.
/// The file that was written last counts as used last.
fn index_files(root: &Path, max: u64) -> FairCache<ObjectName, ()> {
    let paths = list(root).into_iter().flat_map(|directory| list(&directory));
    let mut found: Vec<_> = paths
        .filter_map(|path| {
            let metadata = fs::symlink_metadata(&path).ok()?;
            Some((metadata.modified().ok()?, key_of(&path)?, metadata.len()))
        })
        .collect();
    found.sort_by_key(|(written, ..)| *written);
    let mut table = FairCache::sized(max);
    for (_, key, bytes) in found {
        // Exceeds the limit only until the next file is written.
        table.insert_beyond_limit(&key.namespace.clone(), key, bytes, ());
    }
    table
}

fn io_error(operation: &'static str, path: &Path, cause: io::Error) -> StoreError {
    StoreError::Io { operation, path: path.to_owned(), cause }
}

/// Lists a directory, as far as it can be read.
fn list(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Returns the object that a file belongs to.
fn key_of(path: &Path) -> Option<ObjectName> {
    let name = path.file_name()?.to_str()?.strip_suffix(&format!(".{EXTENSION}"))?;
    let namespace = path.parent()?.file_name()?.to_str()?;
    Some(ObjectName { namespace: namespace.to_owned(), name: name.to_owned() })
}

#[cfg(test)]
mod tests;
