//! A branch without a wanted change, compared with the base.

use std::collections::BTreeMap;

use git2::{Odb, Oid};

use crate::git::attempt::context::AttemptContext;
use crate::git::error::SyncError;
use crate::git::name::CommitId;
use crate::git::object;
use crate::git::tree::oid;
use crate::git::tree_entries::{TreeEntries, TreeEntryKind};

/// The maximum number of directories and files in which a branch may differ.
const MAX_DIFFERENCES: usize = 100_000;

/// The entries of a tree, by name.
type Entries = BTreeMap<Vec<u8>, (TreeEntryKind, Oid)>;

/// Returns true if the base has the change of a branch.
///
/// Then each file that the branch changes is the same in the base. So it is after each kind of merge, and after the same edit by hand. The branch was made on `under`. If a commit cannot be
/// read, or differs too much, the change counts as missing.
///
/// # Errors
///
/// If the mirror is damaged, or the work was cancelled.
pub(super) fn has_landed(
    context: &AttemptContext<'_>,
    under: CommitId,
    tip: CommitId,
    base: CommitId,
) -> Result<bool, SyncError> {
    match context.fetch_commit(under).and_then(|under| compare(context, [under, tip, base])) {
        Err(error) if error.is_damage() || error.is_interruption() => Err(error),
        Err(_) => Ok(false),
        found => found,
    }
}

fn compare(context: &AttemptContext<'_>, commits: [CommitId; 3]) -> Result<bool, SyncError> {
    let repository = &context.mirror.repository;
    let objects = repository.odb()?;
    let [under, tip, base] = commits.map(|commit| object::find_commit(repository, commit));
    let mut open = vec![[under?.tree_id(), tip?.tree_id(), base?.tree_id()]];
    let mut differences = 0;
    while let Some([under, tip, base]) = open.pop() {
        if under == tip || tip == base {
            continue;
        }
        let [under, tip, base] = [under, tip, base].map(|tree| entries(&objects, tree));
        let (Some(under), Some(tip), Some(base)) = (under?, tip?, base?) else { return Ok(false) };
        for name in under.keys().chain(tip.keys().filter(|name| !under.contains_key(*name))) {
            let [under, tip, base] = [&under, &tip, &base].map(|entries| entries.get(name));
            if under == tip || tip == base {
                continue;
            }
            differences += 1;
            let directory = |entry: Option<&(TreeEntryKind, Oid)>| {
                entry.filter(|(kind, _)| *kind == TreeEntryKind::Directory).map(|(_, id)| *id)
            };
            match [directory(under), directory(tip), directory(base)] {
                [Some(under), Some(tip), Some(base)] if differences <= MAX_DIFFERENCES => {
                    open.push([under, tip, base]);
                }
                _ => return Ok(false),
            }
        }
    }
    Ok(true)
}

/// Returns the entries of a tree; none if it is malformed.
fn entries(objects: &Odb<'_>, tree: Oid) -> Result<Option<Entries>, SyncError> {
    let tree = object::read_tree(objects, tree)?;
    let entries = TreeEntries::new(tree.data());
    let owned = entries.map(|entry| entry.map(|entry| (entry.name.to_vec(), (entry.kind, oid(&entry.id)))));
    Ok(owned.collect::<Result<_, _>>().ok())
}
