//! A branch without a wanted change, compared with the base.

use super::ownership::merged_tree;
use crate::git::attempt::context::AttemptContext;
use crate::git::error::SyncError;
use crate::git::name::CommitId;
use crate::git::object;

/// Returns true unless a merge of a branch would change the base.
///
/// The base has the change after each kind of merge, and after the same edit by hand, also if people have edited the files
/// since. The branch was made on `under`. If a commit cannot be read, or git cannot merge without a conflict, the base may
/// have the change.
///
/// # Errors
///
/// If the mirror is damaged, or the work was cancelled.
pub(super) fn may_have_landed(
    context: &AttemptContext<'_>,
    under: CommitId,
    tip: CommitId,
    base: CommitId,
) -> Result<bool, SyncError> {
    let merged = context.fetch_commit(under).and_then(|under| {
        let repository = &context.mirror.repository;
        let expected = object::find_commit(repository, base)?.tree_id();
        Ok(merged_tree(repository, (under, base, tip))?.is_none_or(|merged| merged == expected))
    });
    match merged {
        Err(error) if error.is_damage() || error.is_interruption() => Err(error),
        Err(_) => Ok(true),
        found => found,
    }
}
