//! The tags that were found: in memory, and on disk for the time after a restart.

mod file;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use tagboat_api::Reason;

use super::manifest::ImageFacts;
use crate::directory;
use crate::failing::Failing;
use crate::reference::TagList;
use crate::tenancy::SizedCache;

/// The bounds of a store, in bytes for all objects together. The list that was stored last is kept even if it alone is
/// larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// Tags that stay in memory beside the disk.
    pub memory: u64,
    /// Tags on disk.
    pub disk: u64,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self { memory: 32 * 1024 * 1024, disk: 2 * 1024 * 1024 * 1024 }
    }
}

/// How many images of a repository are remembered.
const IMAGES: usize = 1024;

/// After how long a file is old that nobody has written anew.
const OLD: Duration = Duration::from_secs(7 * 24 * 3600);

/// The bytes that a tag takes in a file at least: quotes, a comma and three letters, and a digit and a comma for when it
/// was first seen. There are few shorter ones.
const LEAST_BYTES_OF_TAG: u64 = 8;

/// The ending of files.
const ENDING: &str = "tags";

/// The tags of repositories, each by the object that scans it.
#[derive(Debug)]
pub struct TagStore {
    root: Option<PathBuf>,
    is_rehearsal: bool,
    limits: StoreLimits,
    memory: Mutex<SizedCache<StoreKey, Arc<StoredTags>>>,
    /// The files, once the directory was listed.
    disk: Mutex<Option<SizedCache<StoreKey, ()>>>,
    /// Locked from reading what is kept of an object to keeping what follows from it, so that no scan is lost. Those of
    /// others go on meanwhile.
    objects: Mutex<HashMap<StoreKey, Arc<Mutex<()>>>>,
    /// Written by a sweep, which takes files for left over that are being written.
    sweeping: RwLock<()>,
}

/// The object that scans.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StoreKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// What the last scan found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTags {
    /// The repository's full name. What was found in one is never taken for another's.
    pub canonical: String,
    /// When the scan was made.
    pub scanned: Timestamp,
    /// How the registry calls that state of its list.
    pub etag: Option<String>,
    /// The tags.
    pub tags: TagList,
    /// When each was first there, in seconds; `0` where it was there before the first scan.
    first_seen: Box<[u32]>,
    /// When the first scan was.
    begun: Timestamp,
    /// The images that were looked at for their age, by their tags.
    images: BTreeMap<String, KnownImage>,
}

/// The identity of a stored list, without its tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredHead {
    /// The repository's full name.
    pub canonical: String,
    /// The `ETag` that the registry gave to this state of its list.
    pub etag: Option<String>,
}

/// The size of a stored list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredSize {
    /// Its bytes, in memory or on disk.
    pub bytes: u64,
    /// The number of its tags at most.
    pub tags: u64,
}

/// An image that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownImage {
    /// The digest that the tag had.
    pub digest: String,
    /// When the image was made, as far as it says so.
    pub created: Option<Timestamp>,
}

/// Why tags cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The name of an object that cannot be one of a file.
    #[error("{name:?} is no name of an object")]
    Name {
        /// The name.
        name: String,
    },
    /// The file system refuses.
    #[error("cannot {doing} {}", path.display())]
    Refused {
        /// What was to be done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
}

/// A disk may have room again.
impl Failing for StoreError {
    fn reason(&self) -> Reason {
        Reason::Failed
    }

    fn is_retryable(&self) -> bool {
        true
    }
}

impl StoredTags {
    /// When a tag was first there. Nothing is known of one that was there before the first scan.
    pub fn first_seen(&self, tag: &str) -> Option<Timestamp> {
        let seconds = self.first_seen[self.tags.position(tag)?];
        (seconds > 0).then(|| Timestamp::from_second(i64::from(seconds)).ok())?
    }

    /// When the first scan was, of a tag that was there already.
    pub fn listed_since(&self, tag: &str) -> Option<Timestamp> {
        let seconds = self.first_seen[self.tags.position(tag)?];
        (seconds == 0).then_some(self.begun)
    }

    /// The image of a tag, as it was when it was looked at.
    pub fn image(&self, tag: &str) -> Option<&KnownImage> {
        self.images.get(tag)
    }

    /// The same with what was learned of images. Of too many, those are forgotten that stand first in the order of bytes.
    fn with(&self, learned: Vec<(String, ImageFacts)>) -> Self {
        let mut whole = self.clone();
        for (tag, facts) in learned.into_iter().filter(|(tag, _)| self.tags.position(tag).is_some()) {
            let image = KnownImage { digest: facts.digest.to_string(), created: facts.created };
            whole.images.insert(tag, image);
        }
        while whole.images.len() > IMAGES {
            whole.images.pop_first();
        }
        whole
    }

    /// The tags of a scan, after those of the one before.
    fn after(before: Option<&Self>, scan: Scan) -> Self {
        let now = u32::try_from(scan.scanned.as_second()).unwrap_or_default();
        let before = before.filter(|before| before.canonical == scan.canonical);
        let first_seen = scan.tags.iter().map(|tag| match before {
            None => 0,
            Some(before) => before.tags.position(tag).map_or(now, |index| before.first_seen[index]),
        });
        let first_seen = first_seen.collect();
        let begun = before.map_or(scan.scanned, |before| before.begun);
        let is_there = |tag: &str| scan.tags.position(tag).is_some();
        let images = before.map(|before| &before.images).into_iter().flatten();
        let images = images.filter(|(tag, _)| is_there(tag));
        let images = images.map(|(tag, image)| (tag.clone(), image.clone())).collect();
        let Scan { canonical, scanned, etag, tags } = scan;
        Self { canonical, scanned, etag, tags, first_seen, begun, images }
    }

    /// The identity of this list.
    pub fn head(&self) -> StoredHead {
        StoredHead { canonical: self.canonical.clone(), etag: self.etag.clone() }
    }

    /// The bytes of memory that this takes.
    fn size(&self) -> u64 {
        let image = |(tag, image): (&String, &KnownImage)| {
            tag.len() + image.digest.len() + size_of::<(String, KnownImage)>()
        };
        let images: usize = self.images.iter().map(image).sum();
        let own =
            size_of::<Self>() + self.tags.size() + size_of_val(&*self.first_seen) + self.canonical.len();
        u64::try_from(own + images).unwrap_or(u64::MAX)
    }
}

/// What a scan found.
#[derive(Debug, Clone)]
pub struct Scan {
    /// The repository's full name.
    pub canonical: String,
    /// When it was made.
    pub scanned: Timestamp,
    /// How the registry calls that state of its list.
    pub etag: Option<String>,
    /// The tags.
    pub tags: TagList,
}

/// What was kept of a scan.
#[derive(Debug)]
pub struct Kept {
    /// The tags.
    pub tags: Arc<StoredTags>,
    /// Why they are known only as long as this process lasts, if that is so.
    pub trouble: Option<StoreError>,
}

impl TagStore {
    /// A store in a directory, or in memory only.
    pub fn new(root: Option<PathBuf>) -> Self {
        match root {
            Some(root) => Self::limited(root, StoreLimits::default()),
            None => Self::with(None, false, StoreLimits { memory: u64::MAX, disk: 0 }),
        }
    }

    /// A store in a directory, with these bounds.
    pub fn limited(root: PathBuf, limits: StoreLimits) -> Self {
        Self::with(Some(root), false, limits)
    }

    /// A store that knows what is in a directory, and writes nothing there: what is found since is in memory only.
    pub fn rehearsal(root: PathBuf) -> Self {
        Self::with(Some(root), true, StoreLimits { memory: u64::MAX, disk: 0 })
    }

    fn with(root: Option<PathBuf>, is_rehearsal: bool, limits: StoreLimits) -> Self {
        Self {
            root,
            is_rehearsal,
            limits,
            memory: Mutex::new(SizedCache::new(limits.memory)),
            disk: Mutex::default(),
            objects: Mutex::default(),
            sweeping: RwLock::default(),
        }
    }

    /// What the last scan of an object found in this repository, if that is known. A file that is damaged is as good
    /// as none.
    ///
    /// # Errors
    ///
    /// When a file that is there cannot be read.
    pub fn read(&self, key: &StoreKey, canonical: &str) -> Result<Option<Arc<StoredTags>>, StoreError> {
        // Not in the match: the lock would be held until its end, and loading takes it too.
        let known = self.memory.lock().get(key).cloned();
        let found = match known {
            Some(known) => Some(known),
            None => self.load(key)?,
        };
        Ok(found.filter(|found| found.canonical == canonical))
    }

    /// The identity of the list that is stored for an object and this repository, read without its tags.
    ///
    /// # Errors
    ///
    /// When a file that is there cannot be read.
    pub fn head(&self, key: &StoreKey, canonical: &str) -> Result<Option<StoredHead>, StoreError> {
        let known = self.in_memory(key).map(|known| known.head());
        let found = match known {
            Some(known) => Some(known),
            None => self.file(key, file::read_head)?,
        };
        Ok(found.filter(|found| found.canonical == canonical))
    }

    /// The size of what is stored for an object; nothing if that is not known.
    pub fn size(&self, key: &StoreKey) -> Option<StoredSize> {
        if let Some(size) = self.size_in_memory(key) {
            return Some(size);
        }
        let bytes = fs::metadata(self.path(key).ok()??).ok()?.len();
        Some(StoredSize { bytes, tags: bytes / LEAST_BYTES_OF_TAG })
    }

    /// The size of what is stored for an object, if that is in memory.
    pub fn size_in_memory(&self, key: &StoreKey) -> Option<StoredSize> {
        let known = self.in_memory(key)?;
        let tags = u64::try_from(known.tags.len()).unwrap_or(u64::MAX);
        Some(StoredSize { bytes: known.size(), tags })
    }

    /// The tags that the last scan of an object found, if they are in memory.
    pub fn in_memory(&self, key: &StoreKey) -> Option<Arc<StoredTags>> {
        self.memory.lock().get(key).cloned()
    }

    /// Keeps what a scan found, with the times at which tags were first there. A file that cannot be read is as good as
    /// a damaged one: another takes its place.
    ///
    /// # Errors
    ///
    /// When an object of that name can have no tags.
    pub fn keep(&self, key: &StoreKey, scan: Scan) -> Result<Kept, StoreError> {
        let path = self.path(key)?;
        let _no_sweep = self.sweeping.read();
        let lock = self.lock_of(key);
        let _guard = lock.lock();
        let before = self.read(key, &scan.canonical).unwrap_or_default();
        Ok(self.put(key, path, StoredTags::after(before.as_deref(), scan)))
    }

    /// Puts a list in memory and in its file, whose object is locked.
    fn put(&self, key: &StoreKey, path: Option<PathBuf>, tags: StoredTags) -> Kept {
        let tags = Arc::new(tags);
        self.memory.lock().insert(&key.namespace, key.clone(), tags.size(), Arc::clone(&tags));
        let trouble = path.and_then(|path| self.write(key, &path, &tags).err());
        Kept { tags, trouble }
    }

    /// Keeps a stored list as that of a scan at another time, which found it unchanged; nothing if it is not stored any
    /// more.
    ///
    /// # Errors
    ///
    /// When a file that is there cannot be read, or an object of that name can have no tags.
    pub fn renew(
        &self,
        key: &StoreKey,
        canonical: &str,
        scanned: Timestamp,
    ) -> Result<Option<Kept>, StoreError> {
        let path = self.path(key)?;
        let _no_sweep = self.sweeping.read();
        let lock = self.lock_of(key);
        let _guard = lock.lock();
        let Some(known) = self.read(key, canonical)? else { return Ok(None) };
        Ok(Some(self.put(key, path, StoredTags { scanned, ..StoredTags::clone(&known) })))
    }

    /// Keeps what was learned of images, as far as their tags are still there.
    ///
    /// # Errors
    ///
    /// When it cannot be written; it is known as long as this process lasts then.
    pub fn learn(
        &self,
        key: &StoreKey,
        canonical: &str,
        learned: Vec<(String, ImageFacts)>,
    ) -> Result<(), StoreError> {
        let _no_sweep = self.sweeping.read();
        let lock = self.lock_of(key);
        let _guard = lock.lock();
        let Some(known) = self.read(key, canonical)? else { return Ok(()) };
        let tags = Arc::new(known.with(learned));
        self.memory.lock().insert(&key.namespace, key.clone(), tags.size(), Arc::clone(&tags));
        self.path(key)?.map_or(Ok(()), |path| self.write(key, &path, &tags))
    }

    /// Writes a file, and removes others if all of them are too large: of the namespace with most bytes those that were
    /// used least recently. What they held is scanned again before a policy chooses by it.
    fn write(&self, key: &StoreKey, path: &Path, tags: &StoredTags) -> Result<(), StoreError> {
        if self.is_rehearsal {
            return Ok(());
        }
        let bytes = file::write(path, tags).map_err(|cause| refused("write", path, cause))?;
        let evicted = self.with_disk(|disk| disk.insert(&key.namespace, key.clone(), bytes, ()));
        for evicted in evicted.unwrap_or_default() {
            self.evict(&evicted);
        }
        Ok(())
    }

    /// Removes the file of an object that is not in the table any more, unless a scan has just put it there again.
    fn evict(&self, key: &StoreKey) {
        // The object that was written is locked too, so nothing is waited for here: one that is locked is being written,
        // or read to be written, and counts again after that.
        let lock = self.lock_of(key);
        let Some(_guard) = lock.try_lock() else { return };
        let is_back = self.with_disk(|disk| disk.get(key).is_some()).unwrap_or_default();
        if let Ok(Some(path)) = self.path(key)
            && !is_back
        {
            // One that cannot be removed is counted again by the next process.
            let _ = fs::remove_file(path);
        }
    }

    /// Does something with the table of files, which is made when it is first needed.
    fn with_disk<T>(&self, work: impl FnOnce(&mut SizedCache<StoreKey, ()>) -> T) -> Option<T> {
        let root = self.root.as_ref().filter(|_| !self.is_rehearsal)?;
        let mut disk = self.disk.lock();
        Some(work(disk.get_or_insert_with(|| files(root, self.limits.disk))))
    }

    /// Forgets what an object found.
    ///
    /// # Errors
    ///
    /// When the file cannot be removed.
    pub fn delete(&self, key: &StoreKey) -> Result<(), StoreError> {
        let _no_sweep = self.sweeping.read();
        let lock = self.lock_of(key);
        let _guard = lock.lock();
        self.memory.lock().remove(key);
        let Some(path) = self.path(key)?.filter(|_| !self.is_rehearsal) else { return Ok(()) };
        self.with_disk(|disk| disk.remove(key));
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(refused("remove", &path, cause)),
            _ => Ok(()),
        }
    }

    /// Forgets all objects but these, and removes what a process left that was killed. What cannot be removed stays for
    /// the next time.
    pub fn sweep(&self, is_there: impl Fn(&StoreKey) -> bool) {
        let _sweep = self.sweeping.write();
        self.memory.lock().retain(&is_there);
        self.remove(|path| {
            let is_gone = key_of(path).is_some_and(|key| !is_there(&key));
            is_gone || file::is_left_over(path)
        });
    }

    /// Removes the files of objects but these that nobody has written for a week, as of `now`, and what processes left
    /// before that. Others may use the directory at the same time, with other objects.
    pub fn sweep_old(&self, is_there: impl Fn(&StoreKey) -> bool, now: SystemTime) {
        let is_old = |path: &Path| {
            let written = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
            written.is_ok_and(|written| now.duration_since(written).is_ok_and(|age| age >= OLD))
        };
        let _sweep = self.sweeping.write();
        self.remove(|path| {
            let is_gone = key_of(path).is_some_and(|key| !is_there(&key));
            (is_gone || file::is_left_over(path)) && is_old(path)
        });
    }

    fn remove(&self, is_gone: impl Fn(&Path) -> bool) {
        let Some(root) = self.root.as_ref().filter(|_| !self.is_rehearsal) else { return };
        for directory in entries(root) {
            for path in entries(&directory).into_iter().filter(|path| is_gone(path)) {
                let _ = fs::remove_file(path);
            }
            // Only an empty one goes.
            let _ = fs::remove_dir(&directory);
        }
        // Counted anew when it is next needed.
        *self.disk.lock() = None;
    }

    fn load(&self, key: &StoreKey) -> Result<Option<Arc<StoredTags>>, StoreError> {
        let Some(tags) = self.file(key, file::read)? else { return Ok(None) };
        let mut memory = self.memory.lock();
        // A scan that has ended since the file was read knows better.
        let tags = memory.get(key).cloned().unwrap_or_else(|| Arc::new(tags));
        memory.insert(&key.namespace, key.clone(), tags.size(), Arc::clone(&tags));
        drop(memory);
        self.with_disk(|disk| {
            disk.get(key);
        });
        Ok(Some(tags))
    }

    /// Reads the file of an object, if there is one.
    fn file<T>(
        &self,
        key: &StoreKey,
        read: impl FnOnce(File) -> io::Result<Option<T>>,
    ) -> Result<Option<T>, StoreError> {
        let Some(path) = self.path(key)? else { return Ok(None) };
        match directory::open(&path).and_then(read) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map_err(|cause| refused("read", &path, cause)),
        }
    }

    /// Where the file of an object is.
    fn path(&self, key: &StoreKey) -> Result<Option<PathBuf>, StoreError> {
        for name in [&key.namespace, &key.name] {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            if name.is_empty() || name.starts_with('.') || !name.bytes().all(is_allowed) {
                return Err(StoreError::Name { name: name.clone() });
            }
        }
        let file = format!("{}.{ENDING}", key.name);
        Ok(self.root.as_ref().map(|root| root.join(&key.namespace).join(file)))
    }

    /// The lock of one object.
    fn lock_of(&self, key: &StoreKey) -> Arc<Mutex<()>> {
        let mut objects = self.objects.lock();
        objects.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(objects.entry(key.clone()).or_default())
    }
}

/// The files of a directory with their sizes; the one that was written last counts as used last.
fn files(root: &Path, max: u64) -> SizedCache<StoreKey, ()> {
    let paths = entries(root).into_iter().flat_map(|directory| entries(&directory));
    let mut found: Vec<_> = paths
        .filter_map(|path| {
            let metadata = fs::symlink_metadata(&path).ok()?;
            Some((metadata.modified().ok()?, key_of(&path)?, metadata.len()))
        })
        .collect();
    found.sort_by_key(|(written, ..)| *written);
    let mut table = SizedCache::new(max);
    for (_, key, bytes) in found {
        // Beyond the limit only until a file is written next.
        table.insert_beyond_limit(&key.namespace.clone(), key, bytes, ());
    }
    table
}

fn refused(doing: &'static str, path: &Path, cause: io::Error) -> StoreError {
    StoreError::Refused { doing, path: path.to_owned(), cause }
}

/// What is in a directory, as far as it can be read.
fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The object that a file belongs to.
fn key_of(path: &Path) -> Option<StoreKey> {
    let name = path.file_name()?.to_str()?.strip_suffix(&format!(".{ENDING}"))?;
    let namespace = path.parent()?.file_name()?.to_str()?;
    Some(StoreKey { namespace: namespace.to_owned(), name: name.to_owned() })
}

#[cfg(test)]
mod tests;
