//! Objects made here, written to the disk as one pack.
//!
//! Mirrors have no loose objects: one file takes the place of hundreds, and libgit2 1.9 reads a truncated loose object
//! for ever, where it refuses a truncated pack.

use git2::{Oid, Repository};

/// Before any other place for objects.
const FIRST: i32 = 1_000;

/// Lets the objects that are made in `repository` stay in memory until [`write`] is called.
pub(super) fn keep_in_memory(repository: &Repository) -> Result<(), git2::Error> {
    repository.odb()?.add_new_mempack_backend(FIRST)?;
    Ok(())
}

/// Writes objects that were made in memory.
pub(super) fn write(repository: &Repository, objects: &[Oid]) -> Result<(), git2::Error> {
    let mut pack = repository.packbuilder()?;
    for object in objects {
        pack.insert_object(*object, None)?;
    }
    let place = repository.path().join("objects/pack");
    pack.write(&place, 0)
}
