//! The tags that were found: in memory, and on disk for the time after a restart.

mod file;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tagboat_api::Reason;

use super::manifest::ImageFacts;
use crate::failing::Failing;
use crate::reference::TagList;

/// How many bytes of tags stay in memory where the disk has them too.
const MEMORY: usize = 32 * 1024 * 1024;

/// How many images of a repository are remembered.
const IMAGES: usize = 1024;

/// After how long a file is old that nobody has written anew.
const OLD: Duration = Duration::from_secs(7 * 24 * 3600);

/// The ending of files.
const ENDING: &str = "tags";

/// The tags of repositories, each by the object that scans it.
#[derive(Debug)]
pub struct TagStore {
    root: Option<PathBuf>,
    is_rehearsal: bool,
    memory: Mutex<Memory>,
    /// Held from reading what is kept to keeping what follows from it, so that no scan is lost.
    turn: Mutex<()>,
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

/// An image that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownImage {
    /// The digest that the tag had.
    pub digest: String,
    /// When the image was made, as far as it says so.
    pub created: Option<Timestamp>,
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

    fn size(&self) -> usize {
        let image = |(tag, image): (&String, &KnownImage)| {
            tag.len() + image.digest.len() + size_of::<(String, KnownImage)>()
        };
        let images: usize = self.images.iter().map(image).sum();
        size_of::<Self>() + self.tags.size() + size_of_val(&*self.first_seen) + self.canonical.len() + images
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
        let most = if root.is_some() { MEMORY } else { usize::MAX };
        let memory = Mutex::new(Memory { most, ..Memory::default() });
        Self { root, is_rehearsal: false, memory, turn: Mutex::default() }
    }

    /// A store that knows what is in a directory, and writes nothing there: what is found since is in memory only.
    pub fn rehearsal(root: PathBuf) -> Self {
        let memory = Mutex::new(Memory { most: usize::MAX, ..Memory::default() });
        Self { root: Some(root), is_rehearsal: true, memory, turn: Mutex::default() }
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

    /// The tags that the last scan of an object found, if they are in memory.
    pub fn in_memory(&self, key: &StoreKey) -> Option<Arc<StoredTags>> {
        self.memory().find(key)
    }

    /// Keeps what a scan found, with the times at which tags were first there. A file that cannot be read is as good as
    /// a damaged one: another takes its place.
    ///
    /// # Errors
    ///
    /// When an object of that name can have no tags.
    pub fn keep(&self, key: &StoreKey, scan: Scan) -> Result<Kept, StoreError> {
        let _turn = self.turn();
        let path = self.path(key)?;
        let before = self.read(key, &scan.canonical).unwrap_or_default();
        let tags = Arc::new(StoredTags::after(before.as_deref(), scan));
        self.memory().put(key, &tags);
        let Some(path) = path else { return Ok(Kept { tags, trouble: None }) };
        let trouble = self.write(&path, &tags).err();
        Ok(Kept { tags, trouble })
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
        let _turn = self.turn();
        let Some(known) = self.read(key, canonical)? else { return Ok(()) };
        let tags = Arc::new(known.with(learned));
        self.memory().put(key, &tags);
        self.path(key)?.map_or(Ok(()), |path| self.write(&path, &tags))
    }

    fn write(&self, path: &Path, tags: &StoredTags) -> Result<(), StoreError> {
        if self.is_rehearsal {
            return Ok(());
        }
        file::write(path, tags).map_err(|cause| refused("write", path, cause))
    }

    /// Forgets what an object found.
    ///
    /// # Errors
    ///
    /// When the file cannot be removed.
    pub fn delete(&self, key: &StoreKey) -> Result<(), StoreError> {
        let _turn = self.turn();
        self.memory().take(key);
        let Some(path) = self.path(key)?.filter(|_| !self.is_rehearsal) else { return Ok(()) };
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(refused("remove", &path, cause)),
            _ => Ok(()),
        }
    }

    /// Forgets all objects but these, and removes what a process left that was killed. What cannot be removed stays for
    /// the next time.
    pub fn sweep(&self, is_there: impl Fn(&StoreKey) -> bool) {
        let _turn = self.turn();
        let gone: Vec<StoreKey> = self.memory().slots.keys().filter(|key| !is_there(key)).cloned().collect();
        for key in gone {
            self.memory().take(&key);
        }
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
        let _turn = self.turn();
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
    }

    fn load(&self, key: &StoreKey) -> Result<Option<Arc<StoredTags>>, StoreError> {
        let Some(path) = self.path(key)? else { return Ok(None) };
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(refused("read", &path, cause)),
        };
        let Some(tags) = file::decode(&bytes) else { return Ok(None) };
        let mut memory = self.memory();
        // A scan that has ended since the file was read knows better.
        let tags = memory.find(key).unwrap_or_else(|| Arc::new(tags));
        memory.put(key, &tags);
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

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
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
