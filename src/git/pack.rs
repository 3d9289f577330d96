//! Objects made here, written to the disk as packs.
//!
//! Mirrors have no loose objects: one file takes the place of hundreds, and libgit2 1.9 reads a truncated loose object
//! for ever, where it refuses a truncated pack.

use git2::{Error, Mempack, ObjectType, Odb, Oid, Repository};

/// Before any other place for objects.
const FIRST: i32 = 1_000;

/// The bytes of new objects that are held in memory before they are written as a pack.
const PACK_AFTER: usize = 16 * 1024 * 1024;

/// New objects of a repository, in memory until there are many: an update of any size takes no more memory than one
/// of a few files.
pub(super) struct NewObjects<'o> {
    repository: &'o Repository,
    objects: &'o Odb<'o>,
    memory: Mempack<'o>,
    /// The objects that are in memory only.
    unpacked: Vec<Oid>,
    unpacked_bytes: usize,
    /// The number of all objects that were made.
    #[cfg(test)]
    pub(super) count: usize,
}

impl<'o> NewObjects<'o> {
    /// Lets objects be added to `objects`, the database of `repository`. What is not packed is gone when that is
    /// opened anew.
    pub(super) fn new(repository: &'o Repository, objects: &'o Odb<'o>) -> Result<Self, Error> {
        let memory = objects.add_new_mempack_backend(FIRST)?;
        Ok(Self {
            repository,
            objects,
            memory,
            unpacked: Vec::new(),
            unpacked_bytes: 0,
            #[cfg(test)]
            count: 0,
        })
    }

    /// The database with all objects, new and old.
    pub(super) fn database(&self) -> &'o Odb<'o> {
        self.objects
    }

    /// The repository.
    pub(super) fn repository(&self) -> &'o Repository {
        self.repository
    }

    /// Adds an object.
    pub(super) fn write(&mut self, kind: ObjectType, content: &[u8]) -> Result<Oid, Error> {
        let id = self.objects.write(kind, content)?;
        self.unpacked.push(id);
        self.unpacked_bytes += content.len();
        #[cfg(test)]
        {
            self.count += 1;
        }
        if self.unpacked_bytes > PACK_AFTER {
            self.pack()?;
        }
        Ok(id)
    }

    /// Writes what is in memory to the disk.
    pub(super) fn pack(&mut self) -> Result<(), Error> {
        if self.unpacked.is_empty() {
            return Ok(());
        }
        let mut pack = self.repository.packbuilder()?;
        for object in self.unpacked.drain(..) {
            pack.insert_object(object, None)?;
        }
        let place = self.repository.path().join("objects/pack");
        pack.write(&place, 0)?;
        self.unpacked_bytes = 0;
        self.memory.reset()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_objects_go_to_the_disk_and_are_still_there() {
        let place = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(place.path()).unwrap();
        let database = repository.odb().unwrap();
        let mut objects = NewObjects::new(&repository, &database).unwrap();
        let large = |byte: u8| vec![byte; PACK_AFTER / 2];
        let ids = [1, 2, 3, 4].map(|byte| {
            let id = objects.write(ObjectType::Blob, &large(byte)).unwrap();
            assert!(objects.unpacked_bytes <= PACK_AFTER);
            id
        });
        let packs = || std::fs::read_dir(place.path().join("objects/pack")).unwrap().count() / 2;
        assert_eq!((packs(), objects.unpacked.len()), (1, 1));
        for (id, byte) in ids.iter().zip(1..) {
            assert_eq!(database.read(*id).unwrap().data(), large(byte));
        }
        objects.pack().unwrap();
        objects.pack().unwrap();
        assert_eq!(packs(), 2);
        let anew = Repository::open_bare(place.path()).unwrap();
        assert!(ids.iter().all(|id| anew.find_blob(*id).is_ok()));
    }
}
