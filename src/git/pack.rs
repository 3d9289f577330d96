//! Writes new objects to the disk as packs.
//!
//! Mirrors have no loose objects: one file replaces hundreds, and libgit2 1.9 loops forever on a truncated loose
//! object, but refuses a truncated pack.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use git2::{Error, Indexer, Mempack, ObjectType, Odb, Oid, Repository};

use super::commit_error::CommitError;
use crate::update::{Checkpoint, Progress};

/// The priority in front of all other backends.
const PRIORITY: i32 = 1_000;

/// The maximum size, in bytes, of new objects in memory before they are packed.
/// A larger object is held alone. Writing a pack takes about half as much in addition.
const MAX_UNPACKED_BYTES: usize = 8 * 1024 * 1024;

/// New objects of a repository, held in memory up to a size.
/// A large update takes no more memory than a small one.
///
/// Packs that are not [kept](NewPacks::keep) are removed, and so are those of a commit that was discarded.
pub(super) struct NewObjects<'o> {
    repository: &'o Repository,
    objects: &'o Odb<'o>,
    has_room: &'o dyn Fn() -> bool,
    memory: Mempack<'o>,
    /// The objects that are in memory only.
    unpacked: Vec<Oid>,
    unpacked_bytes: usize,
    packs: NewPacks,
    /// The packs of discarded commits.
    /// Objects of other commits may be read from them until the end.
    discarded: NewPacks,
    /// The number of packs that may have objects of other commits than the current one.
    shared: usize,
    /// The number of all new objects.
    #[cfg(test)]
    pub(super) count: usize,
}

/// Packs that were written, each by its file `.pack`. They are removed on drop.
#[derive(Default)]
pub(super) struct NewPacks(Vec<PathBuf>);

impl NewPacks {
    /// Keeps the packs.
    pub(super) fn keep(mut self) {
        self.0.clear();
    }

    /// Adds other packs.
    pub(super) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    /// Removes the packs; returns true if there were any.
    pub(super) fn remove(self) -> bool {
        !self.0.is_empty()
    }
}

impl Drop for NewPacks {
    fn drop(&mut self) {
        for pack in &self.0 {
            // A pack without an index is not read. One that cannot be removed disappears when the mirror is packed.
            for ending in ["idx", "pack"] {
                let _ = fs::remove_file(pack.with_extension(ending));
            }
        }
    }
}

impl<'o> NewObjects<'o> {
    /// Creates a set of objects that are added to `objects`.
    ///
    /// `objects` is the database of `repository`. Objects that are not packed are lost when the repository is
    /// opened again.
    pub(super) fn new(repository: &'o Repository, objects: &'o Odb<'o>) -> Result<Self, Error> {
        let memory = objects.add_new_mempack_backend(PRIORITY)?;
        Ok(Self {
            repository,
            objects,
            has_room: &|| true,
            memory,
            unpacked: Vec::new(),
            unpacked_bytes: 0,
            packs: NewPacks::default(),
            discarded: NewPacks::default(),
            shared: 0,
            #[cfg(test)]
            count: 0,
        })
    }

    /// Asks `has_room` after each pack whether the repository may have its size.
    pub(super) fn limited_by(self, has_room: &'o dyn Fn() -> bool) -> Self {
        Self { has_room, ..self }
    }

    /// Returns the database with all objects, new and old.
    pub(super) fn database(&self) -> &'o Odb<'o> {
        self.objects
    }

    /// The repository.
    pub(super) fn repository(&self) -> &'o Repository {
        self.repository
    }

    /// Starts the objects of a commit.
    pub(super) fn begin_commit(&mut self) {
        self.shared = self.packs.0.len() + usize::from(!self.unpacked.is_empty());
    }

    /// Discards the commit that was started last.
    pub(super) fn discard_commit(&mut self) {
        let own = self.shared.min(self.packs.0.len());
        self.discarded.0.extend(self.packs.0.drain(own..));
    }

    /// Adds an object.
    /// `checkpoint` is called between the objects of a pack that is written to free memory.
    ///
    /// # Errors
    ///
    /// If it cannot be written, the repository has no room for it, or `checkpoint` returns an error.
    pub(super) fn write(
        &mut self,
        kind: ObjectType,
        content: Vec<u8>,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Oid, CommitError> {
        if self.unpacked_bytes + content.len() > MAX_UNPACKED_BYTES {
            self.pack(checkpoint)?;
        }
        let id = self.objects.write(kind, &content)?;
        self.unpacked.push(id);
        self.unpacked_bytes += content.len();
        #[cfg(test)]
        {
            self.count += 1;
        }
        drop(content);
        if self.unpacked_bytes > MAX_UNPACKED_BYTES {
            self.pack(checkpoint)?;
        }
        Ok(id)
    }

    /// Writes all objects to the disk, and returns their packs.
    /// Packs of discarded commits are removed. `checkpoint` is called between objects.
    ///
    /// # Errors
    ///
    /// If they cannot be written, the repository has no room for them, or `checkpoint` returns an error.
    pub(super) fn finish(mut self, checkpoint: &mut Checkpoint<'_>) -> Result<NewPacks, CommitError> {
        self.pack(checkpoint)?;
        Ok(std::mem::take(&mut self.packs))
    }

    /// Writes the objects in memory to the disk.
    /// If the write is interrupted, they stay in memory, because other commits need them.
    fn pack(&mut self, checkpoint: &mut Checkpoint<'_>) -> Result<(), CommitError> {
        if self.unpacked.is_empty() {
            return Ok(());
        }
        let folder = self.repository.path().join("objects/pack");
        let before = names(&folder);
        let written = folder.join(format!("pack-{}.pack", self.write_pack(&folder, checkpoint)?));
        self.unpacked.clear();
        self.unpacked_bytes = 0;
        self.memory.reset()?;
        // The same objects may have been packed before, here or by an earlier run.
        let others = self.discarded.0.len();
        self.discarded.0.retain(|discarded| *discarded != written);
        if self.discarded.0.len() < others || !before.contains(&written) {
            self.packs.0.push(written);
        }
        if (self.has_room)() { Ok(()) } else { Err(CommitError::NoSpace) }
    }

    /// Writes the objects in memory as a pack, and returns its name.
    fn write_pack(&self, folder: &Path, checkpoint: &mut Checkpoint<'_>) -> Result<String, CommitError> {
        let (checkpoint, interrupt) = (RefCell::new(checkpoint), Cell::new(None));
        let may_go_on = || match (checkpoint.borrow_mut())(Progress::default()) {
            Ok(()) => true,
            Err(reason) => {
                interrupt.set(Some(reason));
                false
            }
        };
        let write = || {
            let repository: &Repository = self.repository;
            let mut pack = repository.packbuilder()?;
            // Called while objects are added and compared with each other.
            pack.set_progress_callback(|_, _, _| may_go_on())?;
            for object in &self.unpacked {
                pack.insert_object(*object, None)?;
            }
            let mut indexer = Indexer::new(Some(self.objects), folder, 0, false)?;
            let mut failure = None;
            let written = pack.foreach(|piece| match may_go_on().then(|| indexer.write_all(piece)) {
                Some(Ok(())) => true,
                Some(Err(error)) => {
                    failure =
                        Some(error.downcast().unwrap_or_else(|other| Error::from_str(&other.to_string())));
                    false
                }
                None => false,
            });
            failure.map_or(written, Err)?;
            indexer.commit()
        };
        let written = write();
        match interrupt.take() {
            Some(reason) => Err(reason.into()),
            None => Ok(written?),
        }
    }
}

/// Returns the files in a directory.
fn names(directory: &Path) -> HashSet<PathBuf> {
    let listing = fs::read_dir(directory).into_iter().flatten().flatten();
    listing.map(|item| item.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::update::Interrupt;

    fn proceed(_: Progress) -> Result<(), Interrupt> {
        Ok(())
    }

    #[test]
    fn large_objects_are_written_to_disk_and_stay_readable() {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(directory.path()).unwrap();
        let database = repository.odb().unwrap();
        let mut objects = NewObjects::new(&repository, &database).unwrap();
        let large = |byte: u8| vec![byte; MAX_UNPACKED_BYTES / 2];
        let ids = [1, 2, 3, 4].map(|byte| {
            let id = objects.write(ObjectType::Blob, large(byte), &mut proceed).unwrap();
            assert!(objects.unpacked_bytes <= MAX_UNPACKED_BYTES);
            id
        });
        let packs = || std::fs::read_dir(directory.path().join("objects/pack")).unwrap().count() / 2;
        assert_eq!((packs(), objects.unpacked.len()), (1, 2));
        for (id, byte) in ids.iter().zip(1..) {
            assert_eq!(database.read(*id).unwrap().data(), large(byte));
        }
        objects.finish(&mut proceed).unwrap().keep();
        assert_eq!(packs(), 2);
        let anew = Repository::open_bare(directory.path()).unwrap();
        assert!(ids.iter().all(|id| anew.find_blob(*id).is_ok()));
    }

    /// A file larger than the limit was held in addition to everything before it.
    #[test]
    fn an_object_above_the_bound_is_held_alone() {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(directory.path()).unwrap();
        let database = repository.odb().unwrap();
        let mut objects = NewObjects::new(&repository, &database).unwrap();
        objects.write(ObjectType::Blob, vec![1; MAX_UNPACKED_BYTES], &mut proceed).unwrap();
        assert_eq!((objects.packs.0.len(), objects.unpacked_bytes), (0, MAX_UNPACKED_BYTES));
        objects.write(ObjectType::Blob, vec![2; MAX_UNPACKED_BYTES + 1], &mut proceed).unwrap();
        assert_eq!((objects.packs.0.len(), objects.unpacked_bytes), (2, 0));
    }

    /// Commits that failed, and dry runs, left up to 512 MiB in the mirror.
    #[test]
    fn packs_of_discarded_commits_are_removed_unless_shared_with_other_commits() {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(directory.path()).unwrap();
        let large = |byte: u8| vec![byte; MAX_UNPACKED_BYTES + 1];
        let packs = || std::fs::read_dir(directory.path().join("objects/pack")).unwrap().count() / 2;
        let write = |objects: &mut NewObjects<'_>, bytes: &[u8]| {
            objects.begin_commit();
            bytes
                .iter()
                .map(|byte| objects.write(ObjectType::Blob, large(*byte), &mut proceed).unwrap())
                .collect::<Vec<_>>()
        };
        let database = repository.odb().unwrap();
        let mut objects = NewObjects::new(&repository, &database).unwrap();
        let kept = write(&mut objects, &[1]);
        let gone = write(&mut objects, &[2, 3]);
        objects.discard_commit();
        let shared = write(&mut objects, &[2, 4]);
        assert_eq!(packs(), 4);
        objects.finish(&mut proceed).unwrap().keep();
        assert_eq!(packs(), 3);
        let anew = Repository::open_bare(directory.path()).unwrap();
        assert!(kept.iter().chain(&shared).all(|id| anew.find_blob(*id).is_ok()));
        assert!(anew.find_blob(gone[1]).is_err());
        // A dry run finishes nothing, and a refused push does not keep its packs. Earlier packs stay.
        for is_dry_run in [true, false] {
            let anew = Repository::open_bare(directory.path()).unwrap();
            let database = anew.odb().unwrap();
            let mut objects = NewObjects::new(&anew, &database).unwrap();
            write(&mut objects, &[1, 5]);
            if !is_dry_run {
                assert!(objects.finish(&mut proceed).unwrap().remove());
            }
        }
        assert_eq!(packs(), 3);
        let again = Repository::open_bare(directory.path()).unwrap();
        assert!(kept.iter().chain(&shared).all(|id| again.find_blob(*id).is_ok()));
    }

    #[test]
    fn a_repository_without_space_accepts_no_further_pack() {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(directory.path()).unwrap();
        let database = repository.odb().unwrap();
        let calls = std::cell::Cell::new(0);
        let has_room = || calls.replace(calls.get() + 1) < 1;
        let mut objects = NewObjects::new(&repository, &database).unwrap().limited_by(&has_room);
        objects.write(ObjectType::Blob, vec![1; MAX_UNPACKED_BYTES + 1], &mut proceed).unwrap();
        let error =
            objects.write(ObjectType::Blob, vec![2; MAX_UNPACKED_BYTES + 1], &mut proceed).unwrap_err();
        assert!(matches!(error, CommitError::NoSpace), "{error}");
    }

    /// Packing many files checks the deadline and the cancellation of a plan.
    /// Formerly, neither was checked while thousands of files were packed.
    #[test]
    fn packing_ends_between_two_objects_and_keeps_them_for_other_commits() {
        const OBJECTS: u8 = 50;
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(directory.path()).unwrap();
        let database = repository.odb().unwrap();
        let mut objects = NewObjects::new(&repository, &database).unwrap();
        let content = |number: u8| [vec![number; 1000], b"the same in all".repeat(10)].concat();
        let ids: Vec<_> = (0..OBJECTS)
            .map(|number| objects.write(ObjectType::Blob, content(number), &mut proceed).unwrap())
            .collect();
        let files = || std::fs::read_dir(directory.path().join("objects/pack")).unwrap().count();
        let mut may_be_called = 0;
        loop {
            let mut calls = 0;
            let result = objects.pack(&mut |_| {
                calls += 1;
                if calls > may_be_called { Err(Interrupt::Cancelled) } else { Ok(()) }
            });
            let Err(error) = result else { break };
            assert!(matches!(error, CommitError::Interrupted(Interrupt::Cancelled)), "{error}");
            assert_eq!((files(), calls), (0, may_be_called + 1));
            may_be_called += 1;
        }
        assert!(may_be_called > usize::from(OBJECTS), "{may_be_called}");
        objects.finish(&mut proceed).unwrap().keep();
        let anew = Repository::open_bare(directory.path()).unwrap();
        for (id, number) in ids.iter().zip(0..) {
            assert_eq!(anew.find_blob(*id).unwrap().content(), content(number));
        }
    }
}
