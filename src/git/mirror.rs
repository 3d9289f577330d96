//! A bare repository that keeps what was fetched from one remote.
//!
//! It is a cache: everything in it can be fetched again, and is, once, when something in it is found damaged. Each
//! fetch brings single commits without their history. One process works on a mirror at a time; whoever takes the
//! lock finds out what a process that was killed left behind, and removes it.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use git2::{Oid, Repository, RepositoryInitOptions};
use serde::{Deserialize, Serialize};

use super::cancellation::Cancellation;
use super::capacity::{NotGranted, ServerDeadline, wait_for};
use super::command::{Git, GitError};
use super::commit::stated_parents;
use super::context::WriterContext;
use super::error::SyncError;
use super::mirror_store::MirrorUse;
use super::name::CommitId;
use super::object::{self, ObjectError};
use super::remote::TRANSFER_MEMORY;
use super::slots::Slot;
use super::writer::WriterOptions;
use crate::metrics::Metrics;
use crate::tenancy::{Capacity, MemoryReservation, PoolPermit};

/// References that keep fetched commits from being pruned stand below this.
const KEPT: &str = "refs/tagboat/";

/// More lines than this in git's list of cut-off commits make every fetch slow.
const SHALLOW_LINES: usize = 64;

/// More packs than this make looking for an object slow.
const PACKS: usize = 64;

/// How often a lock that another process holds is tried again.
const PACE: Duration = Duration::from_millis(50);

/// Names a mirror: the remote of one GitRepository, for one namespace. Two namespaces never share one, for they may not
/// have the same rights.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MirrorKey {
    /// The namespace of the automations that work on it.
    pub namespace: String,
    /// The name of the GitRepository, with its namespace if that is another one.
    pub name: String,
    /// Its URL, without credentials.
    pub url: String,
}

impl MirrorKey {
    /// The file within a mirror's folder that says whose it is.
    const FILE: &str = "key.json";

    /// Reads the key of the mirror in a folder, if it has one that can be read.
    pub(super) fn load(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(folder.join(Self::FILE)).ok()?).ok()
    }

    /// Writes the key into the folder of its mirror.
    pub(super) fn store(&self, folder: &Path) -> io::Result<()> {
        let content = serde_json::to_vec_pretty(self).expect("a key is plain JSON");
        let mut new = tempfile::Builder::new().prefix("tmp_").tempfile_in(folder)?;
        new.write_all(&content)?;
        new.persist(folder.join(Self::FILE)).map_err(|error| error.error)?;
        Ok(())
    }

    /// The name of the mirror's folder: readable, and hardly ever the same for different keys.
    pub(super) fn folder(&self) -> String {
        let Self { namespace, name, url } = self;
        let whole = format!("{namespace}\0{name}\0{url}");
        let hash = Oid::hash_object(git2::ObjectType::Blob, whole.as_bytes()).map(|id| id.to_string());
        let hash = hash.expect("hashing needs no repository");
        let readable = |text: &str| -> String {
            let kept = text.chars().take(40);
            kept.map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
        };
        format!("{}.{}.{}", readable(namespace), readable(name), &hash[..16])
    }
}

/// A mirror, held by this process.
pub(super) struct Mirror {
    folder: PathBuf,
    repository: Repository,
    is_new: bool,
    lock: Arc<File>,
    context: WriterContext,
    slot: Slot,
    cancellations: Vec<Cancellation>,
    // The last field: when it is dropped, all is as it will stay.
    usage: MirrorUse,
}

/// The right to plan and commit, until this is dropped.
#[derive(Debug)]
pub(super) struct PlanningPermit {
    _memory: MemoryReservation,
    _thread: PoolPermit,
}

/// Why a mirror cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// Another process has held it for too long.
    #[error("another process is working in {}; run again when it is done", folder.display())]
    Held {
        /// The mirror's folder.
        folder: PathBuf,
    },
    /// The file system refuses.
    #[error("cannot keep a mirror in {}", folder.display())]
    Refused {
        /// The mirror's folder.
        folder: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The repository cannot be opened or changed.
    #[error("the mirror in {} cannot be used", folder.display())]
    Unusable {
        /// The mirror's folder.
        folder: PathBuf,
        /// Why.
        #[source]
        cause: git2::Error,
    },
}

impl Mirror {
    /// Takes the mirror of `key`, made anew where there is none, for a transaction that has a slot.
    ///
    /// # Errors
    ///
    /// When another process holds it until `deadline` or until `is_over` says that it is not wanted any more, or the file
    /// system refuses.
    pub(super) fn open(
        options: &WriterOptions,
        key: &MirrorKey,
        slot: Slot,
        deadline: Instant,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Self, MirrorError> {
        let context = options.context.clone();
        let folder = options.mirrors.directory().join(key.folder());
        let refused = |cause| MirrorError::Refused { folder: folder.clone(), cause };
        let lock = loop {
            DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(refused)?;
            let lock = File::create(folder.join(LOCK)).map_err(refused)?;
            match lock.try_lock() {
                // One that was removed while we waited for it locks nothing.
                Ok(()) if is_at(&lock, &folder.join(LOCK)) => break lock,
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < deadline && !is_over() => {
                    std::thread::sleep(PACE);
                }
                Err(TryLockError::WouldBlock) => return Err(MirrorError::Held { folder }),
                Err(TryLockError::Error(cause)) => return Err(refused(cause)),
            }
        };
        // Those that nobody uses are found by it.
        lock.set_modified(SystemTime::now()).map_err(refused)?;
        claim(&folder, key).map_err(refused)?;
        remove_left_overs(&folder, &folder.join(REPOSITORY)).map_err(refused)?;
        restore_configuration(&folder.join(REPOSITORY)).map_err(refused)?;
        let (repository, is_new) = match Repository::open_bare(folder.join(REPOSITORY)) {
            Ok(repository) => (repository, false),
            Err(_) => (create(&folder)?, true),
        };
        let usage = options.mirrors.start_use(&folder, key);
        Ok(Self {
            folder,
            repository,
            is_new,
            usage,
            lock: Arc::new(lock),
            context,
            slot,
            cancellations: Vec::new(),
        })
    }

    /// Throws the repository away and begins an empty one.
    ///
    /// # Errors
    ///
    /// When the file system refuses.
    pub(super) fn begin_anew(&mut self) -> Result<(), MirrorError> {
        // What was read of damaged objects may be wrong.
        remove(&self.index()).map_err(|cause| MirrorError::Refused { folder: self.folder.clone(), cause })?;
        self.repository = create(&self.folder)?;
        self.is_new = true;
        self.usage.may_have(0);
        Ok(())
    }

    /// Releases the memory in which libgit2 holds new objects, and packs that were read.
    ///
    /// # Errors
    ///
    /// When the repository cannot be opened any more.
    pub(super) fn release_objects(&mut self) -> Result<(), MirrorError> {
        let unusable = |cause| MirrorError::Unusable { folder: self.folder.clone(), cause };
        self.repository = Repository::open_bare(self.folder.join(REPOSITORY)).map_err(unusable)?;
        Ok(())
    }

    /// Whether this process has begun the repository, so that nothing in it is old.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// The folder, for what is kept beside the repository.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file that keeps the marker index of what is in the repository.
    pub(super) fn index(&self) -> PathBuf {
        self.folder.join("index")
    }

    /// The repository as libgit2 has it.
    pub(super) fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Git on the repository.
    pub(super) fn git(&self) -> Git {
        Git::on_repository(&self.folder.join(REPOSITORY), self.lock.clone(), self.context.clone())
    }

    /// The slot of the transaction.
    pub(super) fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Ends what is asked of the remote as soon as one of these is cancelled.
    pub(super) fn work_for(&mut self, cancellations: Vec<Cancellation>) {
        self.cancellations = cancellations;
    }

    /// The proposals that may be cancelled meanwhile.
    pub(super) fn cancellations(&self) -> &[Cancellation] {
        &self.cancellations
    }

    /// Whether one of the proposals was cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancellations.iter().any(Cancellation::is_cancelled)
    }

    /// Makes sure that the work is still to be done.
    ///
    /// # Errors
    ///
    /// When a proposal was cancelled, or all work is to end.
    pub(super) fn check_cancelled(&self) -> Result<(), SyncError> {
        match (self.is_cancelled(), self.context.stop.is_given()) {
            (true, _) => Err(SyncError::Cancelled),
            (_, true) => Err(SyncError::Interrupted),
            _ => Ok(()),
        }
    }

    /// Waits for so many bytes of memory and for a thread of the pool, to plan and commit.
    ///
    /// # Errors
    ///
    /// When a proposal is cancelled meanwhile, all work is to end, or nothing is free for too long.
    pub(super) fn enter_pool(&self, bytes: u64) -> Result<PlanningPermit, SyncError> {
        let (Capacity { pool, memory }, namespace) = (&self.context.capacity, self.slot.namespace());
        let permit = wait_for(&self.context, &self.cancellations, async {
            let memory = memory.reserve(namespace, bytes).await;
            PlanningPermit { _memory: memory, _thread: pool.enter(namespace).await }
        });
        permit.map_err(|reason| match reason {
            NotGranted::Cancelled => self.check_cancelled().err().unwrap_or(SyncError::Interrupted),
            NotGranted::TooLong => SyncError::NoCapacity,
        })
    }

    /// Counts what is done on it.
    pub(super) fn metrics(&self) -> &Metrics {
        &self.context.metrics
    }

    /// Whether the mirror has a commit.
    pub(super) fn has(&self, commit: CommitId) -> bool {
        object::has_commit(&self.repository, commit)
    }

    /// The commit behind an object that may be a tag.
    pub(super) fn peel(&self, object: CommitId) -> Result<CommitId, ObjectError> {
        object::peel(&self.repository, object)
    }

    /// The name under which a commit arrives whose id was not known before.
    pub(super) const ARRIVED: &str = "refs/tagboat/arrived";

    /// The commit that arrived last under that name.
    pub(super) fn arrived(&self) -> Option<CommitId> {
        let arrived = self.repository.find_reference(Self::ARRIVED).ok()?.target()?;
        self.peel(arrived.into()).ok()
    }

    /// The name under which a fetched commit is kept.
    pub(super) fn kept_name(commit: CommitId) -> String {
        format!("{KEPT}{commit}")
    }

    /// Keeps `commits`, those of them that are here, and lets go of all others.
    pub(super) fn keep(&self, commits: &[CommitId]) -> Result<(), git2::Error> {
        let wanted: Vec<String> = commits.iter().map(|commit| Self::kept_name(*commit)).collect();
        let mut kept = Vec::new();
        for reference in self.repository.references_glob(&format!("{KEPT}*"))? {
            let mut reference = reference?;
            match wanted.iter().position(|wanted| wanted.as_bytes() == reference.name_bytes()) {
                Some(place) => kept.push(place),
                None => reference.delete()?,
            }
        }
        for (place, commit) in commits.iter().enumerate().filter(|(place, _)| !kept.contains(place)) {
            if self.has(*commit) {
                self.repository.reference(&wanted[place], commit.oid(), true, "")?;
            }
        }
        Ok(())
    }

    /// Packs the mirror and prunes what is not kept, where it has become slow; one that cannot be packed is begun
    /// anew.
    ///
    /// # Errors
    ///
    /// When the file system refuses.
    pub(super) fn tidy(&mut self, deadline: &ServerDeadline) -> Result<(), MirrorError> {
        let place = self.folder.join(REPOSITORY);
        let shallow = fs::read(place.join(SHALLOW)).unwrap_or_default();
        let lines = shallow.iter().filter(|&&byte| byte == b'\n').count();
        let has_few_packs = packs(&place) <= PACKS;
        if lines <= SHALLOW_LINES && has_few_packs {
            return Ok(());
        }
        let Ok(kept) = self.kept() else { return self.begin_anew() };
        // What is kept needs a line each in any case.
        if lines <= SHALLOW_LINES + kept.len() && has_few_packs {
            return Ok(());
        }
        match self.pack(&kept, deadline) {
            Ok(()) => Ok(()),
            Err(_) => self.begin_anew(),
        }
    }

    /// The commits that are kept.
    fn kept(&self) -> Result<Vec<CommitId>, ObjectError> {
        let mut kept = Vec::new();
        for reference in self.repository.references_glob(&format!("{KEPT}*"))? {
            if let Some(target) = reference?.target() {
                kept.push(self.peel(target.into())?);
            }
        }
        Ok(kept)
    }

    fn pack(&self, kept: &[CommitId], deadline: &ServerDeadline) -> Result<(), PackError> {
        // Of commits made here the parents are here too, and would be for good: cut them off as a fetch does.
        let mut shallow = tempfile::Builder::new().prefix("tmp_").tempfile_in(&self.folder)?;
        let objects = self.repository.odb()?;
        for commit in kept {
            if !stated_parents(object::read_commit(&objects, *commit)?.data()).is_empty() {
                writeln!(shallow, "{commit}")?;
            }
        }
        shallow.persist(self.folder.join(REPOSITORY).join(SHALLOW)).map_err(|error| error.error)?;
        // What nothing that is kept leads to is left out.
        self.git()
            .call("repack")
            .arguments(["-a", "-d", "-q"])
            .slot(&self.slot)
            .memory(TRANSFER_MEMORY)
            .deadline(deadline)
            .run()?;
        Ok(())
    }

    /// How many bytes the mirror's files have.
    pub(super) fn size(&self) -> u64 {
        size_of(&self.folder.join(REPOSITORY))
    }

    /// Whether the mirror may have that size within what all mirrors may have, others being evicted for it.
    pub(super) fn may_have(&self, bytes: u64) -> bool {
        self.usage.may_have(bytes)
    }

    /// The size that all mirrors may have together, in bytes.
    pub(super) fn total_limit(&self) -> u64 {
        self.usage.limit()
    }
}

/// Why a mirror could not be packed.
#[derive(Debug, thiserror::Error)]
enum PackError {
    #[error(transparent)]
    Objects(#[from] git2::Error),
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Git(#[from] GitError),
}

/// The configuration of every mirror.
///
/// The second section bounds the memory for finding similar objects when a pack is made.
const CONFIGURATION: &[u8] = b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n\
    [pack]\n\twindowMemory = 16m\n\tdeltaCacheSize = 1m\n";

/// The file within a mirror's folder that whoever works on it has locked.
pub(super) const LOCK: &str = "lock";

/// Whether a file is the one at `place`.
fn is_at(file: &File, place: &Path) -> bool {
    let (Ok(own), Ok(there)) = (file.metadata(), fs::metadata(place)) else { return false };
    (own.dev(), own.ino()) == (there.dev(), there.ino())
}

/// The repository within a mirror's folder.
const REPOSITORY: &str = "repository.git";

/// Git's list of commits whose parents are not here, within the repository.
const SHALLOW: &str = "shallow";

/// Makes a folder that of a key: what another one left there is removed, be it by a chance of the folder's name.
fn claim(folder: &Path, key: &MirrorKey) -> io::Result<()> {
    match MirrorKey::load(folder) {
        Some(found) if found == *key => return Ok(()),
        Some(_) => {
            for item in fs::read_dir(folder)? {
                let item = item?;
                if item.file_name() != LOCK {
                    remove(&item.path())?;
                }
            }
        }
        // An earlier version wrote none.
        None => {}
    }
    key.store(folder)
}

fn create(folder: &Path) -> Result<Repository, MirrorError> {
    let place = folder.join(REPOSITORY);
    let refused = |cause| MirrorError::Refused { folder: folder.to_owned(), cause };
    remove(&place).map_err(refused)?;
    let mut options = RepositoryInitOptions::new();
    options.bare(true).external_template(false).initial_head("none");
    let repository = Repository::init_opts(&place, &options);
    restore_configuration(&place).map_err(refused)?;
    repository.map_err(|cause| MirrorError::Unusable { folder: folder.to_owned(), cause })
}

/// Sees to it that a repository has the configuration that it began with: git obeys it in much, addresses included.
fn restore_configuration(repository: &Path) -> io::Result<()> {
    let place = repository.join("config");
    if repository.is_dir() && fs::read(&place).ok().as_deref() != Some(CONFIGURATION) {
        remove(&place)?;
        fs::write(place, CONFIGURATION)?;
    }
    Ok(())
}

/// Removes whatever stands at `place`, if anything does.
fn remove(place: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(place) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(place),
        Ok(_) => fs::remove_file(place),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Removes locks and unfinished files of processes that were killed, and loose objects, which are not ours.
fn remove_left_overs(folder: &Path, repository: &Path) -> io::Result<()> {
    remove_from(folder, &is_unfinished)?;
    remove_from(repository, &is_unfinished)?;
    remove_from(&repository.join("objects"), &|name| {
        is_unfinished(name) || (name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit))
    })?;
    remove_from(&repository.join("objects/pack"), &|name| {
        // With the last, git marks a pack that it has not yet referred to; nothing would ever remove it, nor what
        // libgit2 writes a pack to.
        let is_of_libgit2 = name.starts_with(b"pack_git2_");
        is_unfinished(name) || is_of_libgit2 || name.starts_with(b".tmp-") || name.ends_with(b".keep")
    })?;
    let mut directories = vec![repository.join("refs")];
    while let Some(directory) = directories.pop() {
        remove_from(&directory, &is_unfinished)?;
        let Ok(listing) = fs::read_dir(&directory) else { continue };
        let is_directory = |item: &fs::DirEntry| item.file_type().is_ok_and(|kind| kind.is_dir());
        directories.extend(listing.flatten().filter(is_directory).map(|item| item.path()));
    }
    Ok(())
}

/// Whether a file is one of those that git, libgit2 or we rename when they are written.
fn is_unfinished(name: &[u8]) -> bool {
    name.ends_with(b".lock") || name.starts_with(b"tmp_") || name.starts_with(b"shallow_")
}

fn remove_from(directory: &Path, is_left_over: &dyn Fn(&[u8]) -> bool) -> io::Result<()> {
    let listing = match fs::read_dir(directory) {
        // What is no directory, but should be, is found out when it is opened.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(());
        }
        listing => listing?,
    };
    for item in listing {
        let item = item?;
        if is_left_over(item.file_name().as_bytes()) {
            remove(&item.path())?;
        }
    }
    Ok(())
}

/// How many packs there are.
fn packs(repository: &Path) -> usize {
    let Ok(listing) = fs::read_dir(repository.join("objects/pack")) else { return 0 };
    listing.flatten().filter(|item| item.path().extension().is_some_and(|is| is == "pack")).count()
}

fn size_of(directory: &Path) -> u64 {
    sum_of(directory, &|metadata| metadata.len())
}

/// How many bytes of the disk a directory takes, in whole blocks: a mirror of nothing takes some, too.
pub(super) fn size_on_disk(directory: &Path) -> u64 {
    sum_of(directory, &|metadata| metadata.len().next_multiple_of(BLOCK)) + BLOCK
}

/// The block of most file systems, in bytes.
const BLOCK: u64 = 4096;

/// The sum over all files below a directory.
fn sum_of(directory: &Path, size: &dyn Fn(&fs::Metadata) -> u64) -> u64 {
    let Ok(listing) = fs::read_dir(directory) else { return 0 };
    let sizes = listing.flatten().map(|item| match item.metadata() {
        Ok(metadata) if metadata.is_dir() => sum_of(&item.path(), size),
        Ok(metadata) => size(&metadata),
        Err(_) => 0,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_another_key_is_emptied() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path();
        let key = |name: &str| MirrorKey { namespace: "n".into(), name: name.to_owned(), url: "u".into() };
        fs::write(folder.join(LOCK), "").unwrap();
        fs::create_dir(folder.join(REPOSITORY)).unwrap();
        for (name, wanted) in [("a", true), ("a", true), ("b", false), ("b", false)] {
            claim(folder, &key(name)).unwrap();
            assert_eq!(MirrorKey::load(folder), Some(key(name)));
            assert_eq!(folder.join(REPOSITORY).exists(), wanted, "{name}");
            assert!(folder.join(LOCK).exists());
        }
        // One that cannot be read is that of an earlier version.
        fs::write(folder.join(MirrorKey::FILE), "{").unwrap();
        fs::create_dir(folder.join(REPOSITORY)).unwrap();
        claim(folder, &key("c")).unwrap();
        assert!(folder.join(REPOSITORY).exists() && MirrorKey::load(folder) == Some(key("c")));
    }

    #[test]
    fn every_key_has_a_folder_of_its_own() {
        let key = |namespace: &str, name: &str, url: &str| {
            MirrorKey { namespace: namespace.to_owned(), name: name.to_owned(), url: url.to_owned() }.folder()
        };
        let folders = [
            key("a", "b", "u"),
            key("a", "b", "v"),
            key("c", "b", "u"),
            key("a/../b", "b", "u"),
            key("a", "b.", "u"),
        ];
        for (index, folder) in folders.iter().enumerate() {
            assert!(!folders[..index].contains(folder) && !folder.contains('/'), "{folder}");
        }
    }
}
