//! The directory of all mirrors, and the limit on their size.
//!
//! The sizes are read from the disk once, and kept up to date by the transactions of this process. A mirror that
//! another process holds is not evicted.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use super::mirror_eviction::{StoredMirror, choose_evictions, is_largest};
use super::mirror_files::{LOCK, size_on_disk};
use super::mirror_key::MirrorKey;
use super::push_journal::PushJournal;

/// The time after which an unused mirror is removed.
/// A mirror that is needed again is fetched again.
const MAX_UNUSED: Duration = Duration::from_secs(7 * 24 * 3600);

/// The prefix of folders that are being removed.
const EVICTED: &str = ".evicted-";

/// The excess over the limit for small namespaces, as a divisor of the limit.
/// Small namespaces may exceed the limit while a larger one has no mirror to evict.
const MARGIN: u64 = 8;

/// All mirrors below a directory, with a limit on their total size.
/// Clones share their state.
#[derive(Clone, Debug)]
pub struct MirrorStore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    limit: u64,
    /// The known mirrors, by the name of their folder; `None` before the first scan.
    /// There is an entry for each folder; the limit on the size also limits the number of folders.
    mirrors: Mutex<Option<BTreeMap<OsString, StoredMirror>>>,
}

/// The use of a mirror by a transaction, which ends on drop.
#[derive(Debug)]
pub(super) struct MirrorUse {
    store: MirrorStore,
    folder: OsString,
}

impl MirrorStore {
    /// Creates the store below `directory`, which may take `limit` bytes.
    pub fn new(directory: PathBuf, limit: u64) -> Self {
        Self(Arc::new(Shared { directory, limit, mirrors: Mutex::default() }))
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.0.directory
    }

    /// Returns the maximum size of all mirrors together, in bytes.
    pub(super) fn limit(&self) -> u64 {
        self.0.limit
    }

    /// Starts a use of the mirror in `folder`, whose lock the caller holds.
    pub(super) fn start_use(&self, folder: &Path, key: &MirrorKey) -> MirrorUse {
        let name = folder.file_name().unwrap_or_default().to_owned();
        let mirror = StoredMirror {
            namespace: key.namespace.clone(),
            bytes: size_on_disk(folder),
            last_used: SystemTime::now(),
            is_in_use: true,
            has_open_push: true,
        };
        if let Some(mirrors) = self.0.mirrors.lock().as_mut() {
            mirrors.insert(name.clone(), mirror);
        }
        MirrorUse { store: self.clone(), folder: name }
    }

    /// Removes the mirrors that were unused for a week, as of `now`.
    /// Then it evicts others until the limit is met.
    ///
    /// # Errors
    ///
    /// If the file system refuses; the other mirrors are processed all the same.
    pub fn sweep(&self, now: SystemTime) -> io::Result<()> {
        let mut result = Ok(());
        for folder in folders(self.directory())? {
            result = result.and(remove_if_unused(&folder, now));
        }
        let mut mirrors = self.0.mirrors.lock();
        let known = mirrors.take().unwrap_or_default();
        let mut found = scan(self.directory());
        // The entry of a transaction of this process is newer.
        found.extend(known.into_iter().filter(|(_, mirror)| mirror.is_in_use));
        *mirrors = Some(found);
        drop(mirrors);
        result.and(self.evict())
    }

    /// Evicts mirrors until all fit, or none is left that may be evicted.
    fn evict(&self) -> io::Result<()> {
        let mut doomed = Vec::new();
        let mut mirrors = self.0.mirrors.lock();
        let known = mirrors.get_or_insert_with(|| scan(self.directory()));
        let mut held = Vec::new();
        loop {
            let chosen = choose_evictions(known.iter(), self.limit());
            let Some(name) = chosen.into_iter().next().cloned() else { break };
            match hide(self.directory(), &name) {
                Ok(Some(folder)) => {
                    known.remove(&name);
                    doomed.push(folder);
                }
                // Another process holds it, or the file system refuses to remove it.
                Ok(None) | Err(_) => {
                    if let Some(mirror) = known.get_mut(&name) {
                        mirror.is_in_use = true;
                        held.push(name);
                    }
                }
            }
        }
        for name in held {
            if let Some(mirror) = known.get_mut(&name) {
                mirror.is_in_use = false;
            }
        }
        // Removing takes time, and needs nothing that others wait for.
        drop(mirrors);
        doomed.iter().map(fs::remove_dir_all).fold(Ok(()), Result::and)
    }
}

impl MirrorUse {
    /// Returns the maximum size of all mirrors together, in bytes.
    pub(super) fn limit(&self) -> u64 {
        self.store.limit()
    }

    /// Returns true if the mirror may have this size; others are evicted for it.
    ///
    /// If that is not enough, namespaces that have less than another one may go a little beyond the limit, so that a
    /// namespace whose mirrors are all in use does not block them.
    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        if self.record(bytes) {
            return true;
        }
        // Mirrors that cannot be removed still count.
        let _ = self.store.evict();
        let mirrors = self.store.0.mirrors.lock();
        let Some(known) = mirrors.as_ref() else { return true };
        let (total, limit) = (known.values().map(|mirror| mirror.bytes).sum::<u64>(), self.store.limit());
        let Some(own) = known.get(&self.folder) else { return total <= limit };
        total <= limit || total <= limit + limit / MARGIN && !is_largest(known.values(), &own.namespace)
    }

    /// Records the size, and returns true if all mirrors are within their limit.
    fn record(&self, bytes: u64) -> bool {
        let mut mirrors = self.store.0.mirrors.lock();
        let known = mirrors.get_or_insert_with(|| scan(self.store.directory()));
        if let Some(own) = known.get_mut(&self.folder) {
            own.bytes = bytes;
            own.is_in_use = true;
        }
        known.values().map(|mirror| mirror.bytes).sum::<u64>() <= self.store.limit()
    }
}

impl Drop for MirrorUse {
    fn drop(&mut self) {
        let folder = self.store.directory().join(&self.folder);
        let (bytes, has_open_push) = (size_on_disk(&folder), has_open_push(&folder));
        if let Some(own) = self.store.0.mirrors.lock().as_mut().and_then(|known| known.get_mut(&self.folder))
        {
            *own = StoredMirror {
                namespace: std::mem::take(&mut own.namespace),
                bytes,
                last_used: SystemTime::now(),
                is_in_use: false,
                has_open_push,
            };
        }
        let is_known = self.store.0.mirrors.lock().is_some();
        if is_known {
            // Mirrors that cannot be evicted now are tried again by the next use.
            let _ = self.store.evict();
        }
    }
}

/// Returns the folders in a directory; none if it does not exist.
fn folders(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listing => listing?.map(|item| Ok(item?.path())).collect(),
    }
}

/// Reads the entries of all mirrors; unreadable ones are left out.
fn scan(directory: &Path) -> BTreeMap<OsString, StoredMirror> {
    let folders = folders(directory).unwrap_or_default().into_iter();
    folders.filter_map(|folder| Some((folder.file_name()?.to_owned(), read_entry(&folder)?))).collect()
}

/// Reads the entry of a mirror from its folder, if it is one.
fn read_entry(folder: &Path) -> Option<StoredMirror> {
    let last_used = fs::metadata(folder.join(LOCK)).and_then(|lock| lock.modified()).ok()?;
    Some(StoredMirror {
        namespace: MirrorKey::load(folder).map(|key| key.namespace).unwrap_or_default(),
        bytes: size_on_disk(folder),
        last_used,
        is_in_use: false,
        has_open_push: has_open_push(folder),
    })
}

/// Returns true if the result of a push is still unknown.
fn has_open_push(folder: &Path) -> bool {
    let journal = PushJournal::load(folder);
    !journal.pending.is_empty() || !journal.pending_branches.is_empty()
}

/// Renames an idle mirror, to be removed, and returns the new path.
fn hide(directory: &Path, name: &OsStr) -> io::Result<Option<PathBuf>> {
    let folder = directory.join(name);
    let lock = File::options().write(true).open(folder.join(LOCK))?;
    if lock.try_lock().is_err() {
        return Ok(None);
    }
    let mut hidden = OsString::from(EVICTED);
    hidden.push(name);
    let hidden = directory.join(hidden);
    // A killed process may have left a folder of that name.
    match fs::remove_dir_all(&hidden) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::rename(&folder, &hidden)?,
    }
    Ok(Some(hidden))
}

/// Removes a mirror that was unused for a week, or one that was being removed.
fn remove_if_unused(folder: &Path, now: SystemTime) -> io::Result<()> {
    // A folder without a lock is no mirror.
    let Ok(lock) = File::options().write(true).open(folder.join(LOCK)) else { return Ok(()) };
    if lock.try_lock().is_err() {
        return Ok(());
    }
    let is_evicted =
        folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(EVICTED.as_bytes()));
    let age = now.duration_since(lock.metadata()?.modified()?).unwrap_or_default();
    if age >= MAX_UNUSED || is_evicted { fs::remove_dir_all(folder) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn key(namespace: &str, name: &str) -> MirrorKey {
        MirrorKey { namespace: namespace.to_owned(), name: name.to_owned(), url: "https://h/x".to_owned() }
    }

    /// Creates a mirror of `kib` KiB, last used `days` days before `now`.
    fn mirror(directory: &Path, key: &MirrorKey, kib: usize, days: u32, now: SystemTime) -> PathBuf {
        let folder = directory.join(key.folder());
        fs::create_dir_all(folder.join("repository.git")).unwrap();
        fs::write(folder.join("repository.git/pack"), vec![0; kib << 10]).unwrap();
        key.store(&folder).unwrap();
        File::create(folder.join(LOCK)).unwrap().set_modified(now - DAY * days).unwrap();
        folder
    }

    fn left(directory: &Path) -> Vec<String> {
        let mut left: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|item| item.unwrap().file_name().into_string().unwrap())
            .map(|name| name.splitn(3, '.').take(2).collect::<Vec<_>>().join("/"))
            .collect();
        left.sort();
        left
    }

    #[test]
    fn only_unused_mirrors_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let (at, now) = (directory.path(), SystemTime::now());
        for (name, days) in [("old", 8), ("new", 6), ("held", 8)] {
            mirror(at, &key("n", name), 1, days, now);
        }
        fs::create_dir(at.join("other")).unwrap();
        let held = File::options().write(true).open(at.join(key("n", "held").folder()).join(LOCK)).unwrap();
        held.lock().unwrap();
        MirrorStore::new(at.to_owned(), u64::MAX).sweep(now).unwrap();
        MirrorStore::new(at.join("missing"), 0).sweep(now).unwrap();
        assert_eq!(left(at), ["n/held", "n/new", "other"]);
    }

    #[test]
    fn a_sweep_evicts_until_the_limit_is_met() {
        let directory = tempfile::tempdir().unwrap();
        let (at, now) = (directory.path(), SystemTime::now());
        mirror(at, &key("victim", "a"), 100, 6, now);
        for (name, days) in [("a", 1), ("b", 2), ("c", 3)] {
            mirror(at, &key("evil", name), 400, days, now);
        }
        let pushing = at.join(key("evil", "c").folder());
        fs::write(pushing.join("push-journal.json"), OPEN_PUSH).unwrap();
        let hidden = at.join(format!("{EVICTED}left"));
        fs::create_dir(&hidden).unwrap();
        File::create(hidden.join(LOCK)).unwrap();
        MirrorStore::new(at.to_owned(), 1000 << 10).sweep(now).unwrap();
        assert_eq!(left(at), ["evil/a", "evil/c", "victim/a"]);
    }

    const OPEN_PUSH: &str = r#"{"pending": {"n/a": {
        "reference": "refs/heads/main", "source": [null, "0123456789012345678901234567890123456789"], "old": null,
        "new": "0123456789012345678901234567890123456789", "commit": "0123456789012345678901234567890123456789",
        "message": "", "time": {"seconds": 0, "offset": 0}, "refspec": null, "isBranchDone": false
    }}}"#;

    #[test]
    fn a_growing_mirror_displaces_others_and_then_its_own_namespace_stops() {
        let directory = tempfile::tempdir().unwrap();
        let (at, now) = (directory.path(), SystemTime::now());
        let idle = mirror(at, &key("evil", "idle"), 400, 1, now);
        let (first, second) = (key("evil", "first"), key("victim", "second"));
        let folders = [mirror(at, &first, 1, 1, now), mirror(at, &second, 1, 1, now)];
        let store = MirrorStore::new(at.to_owned(), 1000 << 10);
        let evil = store.start_use(&folders[0], &first);
        assert!(evil.has_room_for(500 << 10) && idle.exists());
        assert!(evil.has_room_for(900 << 10) && !idle.exists());
        assert!(!evil.has_room_for(1001 << 10));
        // The victim may go a little beyond the limit, and not far.
        let victim = store.start_use(&folders[1], &second);
        assert!(evil.has_room_for(990 << 10));
        assert!(
            victim.has_room_for(100 << 10)
                && !evil.has_room_for(990 << 10)
                && !victim.has_room_for(400 << 10)
        );
        drop(evil);
        // The size of an idle mirror is that on the disk.
        assert!(victim.has_room_for(400 << 10) && folders[0].exists());
    }
}
