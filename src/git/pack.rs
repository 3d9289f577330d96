//! Objects made here, written to the disk as one pack.
//!
//! Mirrors have no loose objects: one file takes the place of hundreds, and libgit2 1.9 reads a truncated loose object
//! for ever, where it refuses a truncated pack.

use git2::{ObjectType, Oid, Repository, Tree};

use super::name::CommitId;

/// Before any other place for objects.
const FIRST: i32 = 1_000;

/// Lets the objects that are made in `repository` stay in memory until [`write`] is called.
pub(super) fn keep_in_memory(repository: &Repository) -> Result<(), git2::Error> {
    repository.odb()?.add_new_mempack_backend(FIRST)?;
    Ok(())
}

/// Writes commits that were made on top of `base`, each on the one before it, and of their trees and files what is not
/// there.
pub(super) fn write(
    repository: &Repository,
    base: CommitId,
    commits: &[CommitId],
) -> Result<(), git2::Error> {
    let mut objects = Vec::new();
    let mut before = repository.find_commit(base.oid())?.tree()?;
    for commit in commits {
        objects.push(commit.oid());
        let tree = repository.find_commit(commit.oid())?.tree()?;
        collect(repository, Some(&before), &tree, &mut objects)?;
        before = tree;
    }
    let mut pack = repository.packbuilder()?;
    for object in objects {
        pack.insert_object(object, None)?;
    }
    let place = repository.path().join("objects/pack");
    pack.write(&place, 0)
}

/// Collects a tree and what stands in it and not in `base`.
///
/// What is new stands where an edit was made, and no path that is edited is deep, so neither is this recursion.
fn collect(
    repository: &Repository,
    base: Option<&Tree<'_>>,
    tree: &Tree<'_>,
    objects: &mut Vec<Oid>,
) -> Result<(), git2::Error> {
    objects.push(tree.id());
    for entry in tree {
        let before = base.and_then(|base| base.get_name_bytes(entry.name_bytes())).map(|before| before.id());
        if before == Some(entry.id()) {
            continue;
        }
        match entry.kind() {
            Some(ObjectType::Tree) => {
                let base = before.and_then(|before| repository.find_tree(before).ok());
                collect(repository, base.as_ref(), &repository.find_tree(entry.id())?, objects)?;
            }
            Some(ObjectType::Blob) => objects.push(entry.id()),
            // The commit of a submodule is in another repository.
            _ => {}
        }
    }
    Ok(())
}
