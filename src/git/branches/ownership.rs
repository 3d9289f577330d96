//! Verifies that the commits of a branch change only what the proposals may change.

use git2::{MergeOptions, Odb, Oid, Repository};

use super::beyond::{Beyond, OwnCommit};
use super::model::{CommitPeople, FileChange};
use crate::git::error::SyncError;
use crate::git::name::CommitId;
use crate::git::object;
use crate::git::tree::oid;
use crate::git::tree_entries::{TreeEntries, TreeEntryKind};
use crate::update::TreePath;
use crate::yaml::Limits;

/// The maximum number of directories and files in which a commit may differ.
const MAX_DIFFERENCES: usize = 100_000;

/// Calls `with` with the names and addresses in a commit.
pub(in crate::git) fn with_people<T>(
    repository: &Repository,
    commit: CommitId,
    with: impl FnOnce(CommitPeople<'_>) -> T,
) -> Result<T, SyncError> {
    let commit = object::find_commit(repository, commit)?;
    let (author, committer) = (commit.author(), commit.committer());
    Ok(with(CommitPeople {
        author_name: author.name_bytes(),
        author_email: author.email_bytes(),
        committer_name: committer.name_bytes(),
        committer_email: committer.email_bytes(),
    }))
}

/// Returns the newest commit that changes something else than `owns` permits, if there is one.
pub(super) fn foreign_commit(
    repository: &Repository,
    beyond: &Beyond,
    owns: &dyn Fn(FileChange<'_>) -> bool,
) -> Result<Option<CommitId>, SyncError> {
    let (mut base_below, mut foreign) = (beyond.root, None);
    for own in beyond.commits.iter().rev() {
        let (commit, is_own) = match *own {
            OwnCommit::Change { commit, parent } => {
                (commit, is_own_change(repository, parent, commit, owns)?)
            }
            OwnCommit::Merge { commit, parent, base } => {
                let is_own = is_plain_merge(repository, (base_below, parent, base), commit)?;
                base_below = base;
                (commit, is_own)
            }
        };
        if !is_own {
            foreign = Some(commit);
        }
    }
    Ok(foreign)
}

/// Returns true if there is a commit that changes only what `owns` permits.
pub(super) fn has_own_commit(
    repository: &Repository,
    beyond: &Beyond,
    owns: &dyn Fn(FileChange<'_>) -> bool,
) -> Result<bool, SyncError> {
    for own in &beyond.commits {
        if let OwnCommit::Change { commit, parent } = *own
            && is_own_change(repository, parent, commit, owns)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if a merge has the tree that git makes of its parents.
fn is_plain_merge(
    repository: &Repository,
    (ancestor, ours, theirs): (CommitId, CommitId, CommitId),
    merge: CommitId,
) -> Result<bool, SyncError> {
    let expected = object::find_commit(repository, merge)?.tree_id();
    Ok(merged_tree(repository, (ancestor, ours, theirs))? == Some(expected))
}

/// Returns the tree of a merge of two commits; none on a conflict.
pub(super) fn merged_tree(
    repository: &Repository,
    (ancestor, ours, theirs): (CommitId, CommitId, CommitId),
) -> Result<Option<Oid>, SyncError> {
    let tree = |commit| -> Result<_, SyncError> { Ok(object::find_commit(repository, commit)?.tree()?) };
    let options = MergeOptions::new();
    let merged = repository.merge_trees(&tree(ancestor)?, &tree(ours)?, &tree(theirs)?, Some(&options));
    match merged {
        Ok(mut merged) if !merged.has_conflicts() => Ok(Some(merged.write_tree_to(repository)?)),
        _ => Ok(None),
    }
}

/// Returns true if a commit changes contents of files only, and each as `owns` permits.
fn is_own_change(
    repository: &Repository,
    parent: CommitId,
    commit: CommitId,
    owns: &dyn Fn(FileChange<'_>) -> bool,
) -> Result<bool, SyncError> {
    let objects = repository.odb()?;
    let root = |commit| -> Result<Oid, SyncError> { Ok(object::find_commit(repository, commit)?.tree_id()) };
    let mut open = vec![(TreePath::root(), root(parent)?, root(commit)?)];
    let mut differences = 0;
    while let Some((path, old, new)) = open.pop() {
        let (old, new) = (object::read_tree(&objects, old)?, object::read_tree(&objects, new)?);
        let (mut before, mut after) = (TreeEntries::new(old.data()), TreeEntries::new(new.data()));
        loop {
            let (old, new) = match (before.next(), after.next()) {
                (None, None) => break,
                (Some(Ok(old)), Some(Ok(new))) if (old.name, old.kind) == (new.name, new.kind) => (old, new),
                _ => return Ok(false),
            };
            if old.id == new.id {
                continue;
            }
            differences += 1;
            if differences > MAX_DIFFERENCES {
                return Ok(false);
            }
            let (path, ids) = (path.join(old.name), (oid(&old.id), oid(&new.id)));
            match old.kind {
                TreeEntryKind::Directory => open.push((path, ids.0, ids.1)),
                TreeEntryKind::File | TreeEntryKind::Executable
                    if is_own_file(&objects, &path, ids, owns)? => {}
                _ => return Ok(false),
            }
        }
    }
    Ok(true)
}

fn is_own_file(
    objects: &Odb<'_>,
    path: &TreePath,
    (old, new): (Oid, Oid),
    owns: &dyn Fn(FileChange<'_>) -> bool,
) -> Result<bool, SyncError> {
    let limit = Limits::default().file_size;
    for blob in [old, new] {
        if objects.read_header(blob)?.0 > limit {
            return Ok(false);
        }
    }
    let (old, new) = (objects.read(old)?, objects.read(new)?);
    Ok(owns(FileChange { path: path.as_bytes(), old: old.data(), new: new.data() }))
}
