//! A bare repository that caches the fetched objects of one remote.
//!
//! Everything in it can be fetched again, and is, once, when something in it is damaged. Each fetch brings single
//! commits without their history. One process works on a mirror at a time; the process that takes the lock removes the
//! files that a killed process left.

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use git2::Repository;

use super::command::Git;
use super::context::WriterContext;
use super::error::SyncError;
use super::mirror_error::MirrorError;
use super::mirror_files::{
    LOCK, REPOSITORY, check_user_configuration, claim, create, is_at, open, remove, remove_leftovers,
    restore_configuration, size_of,
};
use super::mirror_key::MirrorKey;
use super::mirror_store::MirrorUse;
use super::name::CommitId;
use super::object::{self, ObjectError};
use super::options::WriterOptions;
use super::pack::NewPacks;
use super::server_deadline::{NotGranted, wait_for};
use super::slots::Slot;
use crate::cancel::Cancellation;
use crate::tenancy::{Capacity, MemoryReservation, PoolPermit};

/// The interval at which a lock that another process holds is tried again.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A mirror whose lock this process holds.
pub(super) struct Mirror {
    /// The folder, for files beside the repository.
    pub(super) folder: PathBuf,
    /// The repository, opened by libgit2.
    pub(super) repository: Repository,
    /// True if this process has created the repository. Nothing in it is old then.
    pub(super) is_new: bool,
    lock: Arc<File>,
    pub(super) context: WriterContext,
    /// The slot of the transaction.
    pub(super) slot: Slot,
    /// The cancellations of the proposals that may still be cancelled.
    ///
    /// Each ends calls to the remote.
    pub(super) cancellations: Vec<Cancellation>,
    // The last field: when it is dropped, the files no longer change.
    usage: MirrorUse,
}

/// The permit to plan and commit, until it is dropped.
#[derive(Debug)]
pub(super) struct PlanningPermit {
    _memory: MemoryReservation,
    _thread: PoolPermit,
}

impl Mirror {
    /// Opens the mirror of `key`, or creates it, for a transaction that has a slot.
    ///
    /// # Errors
    ///
    /// If another process holds it until `deadline` or until `is_over` is true, or the file system refuses.
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
                // A lock file that was removed during the wait locks nothing.
                Ok(()) if is_at(&lock, &folder.join(LOCK)) => break lock,
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < deadline && !is_over() => {
                    std::thread::sleep(POLL_INTERVAL);
                }
                Err(TryLockError::WouldBlock) => return Err(MirrorError::Held { folder }),
                Err(TryLockError::Error(cause)) => return Err(refused(cause)),
            }
        };
        // The time by which unused mirrors are found.
        lock.set_modified(SystemTime::now()).map_err(refused)?;
        claim(&folder, key).map_err(refused)?;
        remove_leftovers(&folder, &folder.join(REPOSITORY)).map_err(refused)?;
        restore_configuration(&folder.join(REPOSITORY)).map_err(refused)?;
        let (repository, is_new) = match open(&folder.join(REPOSITORY)) {
            Ok(repository) => (repository, false),
            Err(_) => {
                // Then the mirror is not the cause.
                check_user_configuration()?;
                (create(&folder)?, true)
            }
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

    /// Deletes the repository and creates an empty one.
    ///
    /// # Errors
    ///
    /// If the file system refuses.
    pub(super) fn recreate(&mut self) -> Result<(), MirrorError> {
        // Entries from damaged objects may be wrong.
        remove(&self.index()).map_err(|cause| MirrorError::Refused { folder: self.folder.clone(), cause })?;
        self.repository = create(&self.folder)?;
        self.is_new = true;
        self.usage.has_room_for(0);
        Ok(())
    }

    /// Keeps the packs of an attempt, or removes them with the memory of their objects.
    pub(super) fn end_packs(&mut self, packs: NewPacks, are_needed: bool) {
        if are_needed {
            packs.keep();
        } else if packs.remove() {
            // A mirror that cannot be opened fails the next attempt.
            let _ = self.release_objects();
        }
    }

    /// Releases the memory in which libgit2 holds new objects, and packs that were read.
    ///
    /// # Errors
    ///
    /// If the repository cannot be opened any more.
    pub(super) fn release_objects(&mut self) -> Result<(), MirrorError> {
        let unusable = |cause| MirrorError::Unusable { folder: self.folder.clone(), cause };
        self.repository = open(&self.folder.join(REPOSITORY)).map_err(unusable)?;
        Ok(())
    }

    /// Returns the path of the file with the marker index of the repository.
    pub(super) fn index(&self) -> PathBuf {
        self.folder.join("index")
    }

    /// Returns a git that runs on the repository.
    pub(super) fn git(&self) -> Git {
        Git::on_repository(&self.folder.join(REPOSITORY), self.lock.clone(), self.context.clone())
    }

    /// Returns true if one of the proposals was cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancellations.iter().any(Cancellation::is_cancelled)
    }

    /// Checks that the work is still needed.
    ///
    /// # Errors
    ///
    /// If a proposal was cancelled, or all work is being stopped.
    pub(super) fn check_cancelled(&self) -> Result<(), SyncError> {
        match (self.is_cancelled(), self.context.stop.is_cancelled()) {
            (true, _) => Err(SyncError::Cancelled),
            (_, true) => Err(SyncError::Interrupted),
            _ => Ok(()),
        }
    }

    /// Waits for the memory, in bytes, and the pool thread to plan and commit.
    ///
    /// # Errors
    ///
    /// If a proposal is cancelled meanwhile, all work is being stopped, or nothing is free for too long.
    pub(super) fn enter_pool(&self, bytes: u64) -> Result<PlanningPermit, SyncError> {
        let (Capacity { pool, memory, .. }, namespace) = (&self.context.capacity, self.slot.namespace());
        let permit = wait_for(&self.context, &self.cancellations, async {
            let memory = memory.reserve(namespace, bytes).await;
            PlanningPermit { _memory: memory, _thread: pool.enter(namespace).await }
        });
        permit.map_err(|reason| match reason {
            NotGranted::Cancelled => self.check_cancelled().err().unwrap_or(SyncError::Interrupted),
            NotGranted::TooLong => SyncError::NoCapacity,
        })
    }

    /// Reserves that many bytes of memory if that needs no wait.
    pub(super) fn try_reserve(&self, bytes: u64) -> Option<MemoryReservation> {
        self.context.capacity.memory.try_reserve(self.slot.namespace(), bytes)
    }

    /// Returns true if the mirror has a commit.
    pub(super) fn has(&self, commit: CommitId) -> bool {
        object::has_commit(&self.repository, commit)
    }

    /// Returns the commit behind an object that may be a tag.
    pub(super) fn peel(&self, object: CommitId) -> Result<CommitId, ObjectError> {
        object::peel(&self.repository, object)
    }

    /// The reference for a fetched commit whose id was not known before.
    pub(super) const FETCHED: &str = "refs/tagboat/fetched";

    /// Returns the commit that was fetched last under that reference.
    pub(super) fn fetched(&self) -> Option<CommitId> {
        let fetched = self.repository.find_reference(Self::FETCHED).ok()?.target()?;
        self.peel(fetched.into()).ok()
    }

    /// Returns the size of the mirror's files in bytes.
    pub(super) fn size(&self) -> u64 {
        size_of(&self.folder.join(REPOSITORY))
    }

    /// Returns true if the mirror may have a size of `bytes`.
    /// Other mirrors are evicted for it if necessary.
    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        self.usage.has_room_for(bytes)
    }

    /// Returns the maximum size of all mirrors together, in bytes.
    pub(super) fn total_limit(&self) -> u64 {
        self.usage.limit()
    }
}
