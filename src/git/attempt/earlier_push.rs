//! The search for a push of an earlier run or attempt whose result is unknown.

use std::iter;

use super::context::AttemptContext;
use crate::git::error::SyncError;
use crate::git::name::RefName;
use crate::git::push_journal::PendingPush;

/// The result of the search.
#[derive(Debug)]
pub(super) enum EarlierPush {
    /// The branch has it, or had it.
    Arrived(Box<PendingPush>),
    /// It has not arrived, but it may: the server may be working on it.
    Awaited,
    /// It has not arrived and never will.
    Lost,
}

/// Searches for the newest of some pushes, or an earlier one, on a branch.
///
/// # Errors
///
/// If the search was ended or the remote did not answer, which says nothing of the pushes.
pub(super) fn find_earlier(
    newest: &PendingPush,
    branch: &RefName,
    context: &AttemptContext<'_>,
) -> Result<EarlierPush, SyncError> {
    if newest.reference != *branch {
        return Ok(EarlierPush::Lost);
    }
    if newest.is_branch_done {
        return Ok(EarlierPush::Arrived(Box::new(newest.clone())));
    }
    // All of them were made on the same tip.
    let is_on_old_tip = newest.old == context.old;
    for push in iter::successors(Some(newest), |push| push.earlier.as_deref()) {
        if !push.is_branch_done && context.has_arrived((push.new, push.old), context.old)? {
            let arrived = PendingPush { is_branch_done: true, ..push.clone() };
            return Ok(EarlierPush::Arrived(Box::new(arrived)));
        }
    }
    if was_removed(newest, context)? {
        // The removed commit is not pushed elsewhere either.
        let removed = PendingPush { is_branch_done: true, refspec: None, earlier: None, ..newest.clone() };
        return Ok(EarlierPush::Arrived(Box::new(removed)));
    }
    Ok(match newest.done_before() {
        _ if is_on_old_tip => EarlierPush::Awaited,
        Some(done) => EarlierPush::Arrived(Box::new(done.clone())),
        None => EarlierPush::Lost,
    })
}

/// Returns true if others removed a push from its branch before its result was known.
///
/// That is so if the server has the commit and no listing after the push was without it: the process was killed. A server that
/// refused the push then looks the same if it keeps the commits of a refused push. Of the two mistakes, a value that is held
/// until the next image is the smaller one: one that is written again is what the setting excludes.
///
/// Of several pushes only the newest is searched, because the listing before it was without the others. Without the branch there
/// is nothing that could have been removed, and only a proposer with a note needs to know.
fn was_removed(newest: &PendingPush, context: &AttemptContext<'_>) -> Result<bool, SyncError> {
    let PendingPush { was_missing, note, new, .. } = newest;
    let may_be = !was_missing && note.is_some() && context.old.is_some();
    Ok(may_be && context.is_at_server(*new)?)
}
