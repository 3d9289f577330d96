//! The tags that were found: in memory, and on disk for the time after a restart.

mod file;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tagboat_api::Reason;

use crate::failing::Failing;
use crate::reference::TagList;

/// How many bytes of tags stay in memory where the disk has them too.
const MEMORY: usize = 32 * 1024 * 1024;

/// The ending of files.
const ENDING: &str = "tags";

/// The tags of repositories, each by the object that scans it.
#[derive(Debug)]
pub struct TagStore {
    root: Option<PathBuf>,
    memory: Mutex<Memory>,
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
}

#[derive(Debug, Default)]
struct Memory {
    slots: HashMap<StoreKey, Slot>,
    size: usize,
    clock: u64,
    most: usize,
}

#[derive(Debug)]
struct Slot {
    tags: Arc<StoredTags>,
    used: u64,
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

    /// The tags of a scan, after those of the one before.
    fn after(before: Option<&Self>, scan: Scan) -> Self {
        let now = u32::try_from(scan.scanned.as_second()).unwrap_or_default();
        let before = before.filter(|before| before.canonical == scan.canonical);
        let first_seen = scan.tags.iter().map(|tag| match before {
            None => 0,
            Some(before) => before.tags.position(tag).map_or(now, |index| before.first_seen[index]),
        });
        let first_seen = first_seen.collect();
        let Scan { canonical, scanned, etag, tags } = scan;
        Self { canonical, scanned, etag, tags, first_seen }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.tags.size() + size_of_val(&*self.first_seen) + self.canonical.len()
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

impl TagStore {
    /// A store in a directory, or in memory only.
    pub fn new(root: Option<PathBuf>) -> Self {
        let most = if root.is_some() { MEMORY } else { usize::MAX };
        Self { root, memory: Mutex::new(Memory { most, ..Memory::default() }) }
    }

    /// What the last scan of an object found in this repository, if that is known. A file that is damaged is as good
    /// as none.
    ///
    /// # Errors
    ///
    /// When a file that is there cannot be read.
    pub fn read(&self, key: &StoreKey, canonical: &str) -> Result<Option<Arc<StoredTags>>, StoreError> {
        // Not in the match: the lock would be held until its end, and loading takes it too.
        let known = self.memory().find(key);
        let found = match known {
            Some(known) => Some(known),
            None => self.load(key)?,
        };
        Ok(found.filter(|found| found.canonical == canonical))
    }

    /// Keeps what a scan found, with the times at which tags were first there.
    ///
    /// # Errors
    ///
    /// When it cannot be written; what was there before stays.
    pub fn keep(&self, key: &StoreKey, scan: Scan) -> Result<Arc<StoredTags>, StoreError> {
        let before = self.read(key, &scan.canonical)?;
        let tags = Arc::new(StoredTags::after(before.as_deref(), scan));
        if let Some(path) = self.path(key)? {
            file::write(&path, &tags).map_err(|cause| refused("write", &path, cause))?;
        }
        self.memory().put(key, &tags);
        Ok(tags)
    }

    /// Forgets what an object found.
    ///
    /// # Errors
    ///
    /// When the file cannot be removed.
    pub fn delete(&self, key: &StoreKey) -> Result<(), StoreError> {
        self.memory().take(key);
        let Some(path) = self.path(key)? else { return Ok(()) };
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(refused("remove", &path, cause)),
            _ => Ok(()),
        }
    }

    /// Forgets all objects but these. What cannot be removed stays for the next time.
    pub fn sweep(&self, is_there: impl Fn(&StoreKey) -> bool) {
        let gone: Vec<StoreKey> = self.memory().slots.keys().filter(|key| !is_there(key)).cloned().collect();
        for key in gone {
            self.memory().take(&key);
        }
        let Some(root) = &self.root else { return };
        for directory in entries(root) {
            for path in entries(&directory) {
                let Some(key) = key_of(&path) else { continue };
                if !is_there(&key) {
                    let _ = fs::remove_file(&path);
                }
            }
            // Only an empty one goes.
            let _ = fs::remove_dir(&directory);
        }
    }

    fn load(&self, key: &StoreKey) -> Result<Option<Arc<StoredTags>>, StoreError> {
        let Some(path) = self.path(key)? else { return Ok(None) };
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(refused("read", &path, cause)),
        };
        let Some(tags) = file::decode(&bytes) else { return Ok(None) };
        let tags = Arc::new(tags);
        self.memory().put(key, &tags);
        Ok(Some(tags))
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

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn find(&mut self, key: &StoreKey) -> Option<Arc<StoredTags>> {
        self.clock += 1;
        let slot = self.slots.get_mut(key)?;
        slot.used = self.clock;
        Some(Arc::clone(&slot.tags))
    }

    /// Puts tags in, and lets those go that were not used for longest where there are too many.
    fn put(&mut self, key: &StoreKey, tags: &Arc<StoredTags>) {
        self.take(key);
        self.clock += 1;
        self.size += tags.size();
        self.slots.insert(key.clone(), Slot { tags: Arc::clone(tags), used: self.clock });
        while self.size > self.most && self.slots.len() > 1 {
            let oldest = self.slots.iter().min_by_key(|(_, slot)| slot.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { return };
            self.take(&oldest);
        }
    }

    fn take(&mut self, key: &StoreKey) {
        if let Some(slot) = self.slots.remove(key) {
            self.size -= slot.tags.size();
        }
    }
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
