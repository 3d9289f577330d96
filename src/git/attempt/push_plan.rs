//! The plan of a push.

use std::collections::BTreeMap;

use super::context::AttemptContext;
use super::proposal_state::ProposalState;
use crate::git::error::SyncError;
use crate::git::listing::Listing;
use crate::git::name::{BranchName, CommitId, RefName};
use crate::git::proposal::{Proposal, Proposer};
use crate::git::push::{PushReply, PushRequest, PushUpdate};
use crate::git::push_journal::PushJournal;
use crate::git::refspec::RefspecSource;
use crate::git::remote_error::RemoteError;

/// The references to push, and those that are left out.
#[derive(Default)]
pub(super) struct PushPlan {
    pub(super) request: PushRequest,
    /// The references that are not updated, each with the message.
    ///
    /// An update would lose commits of others, or the server refused it.
    pub(super) rejected: BTreeMap<RefName, String>,
}

/// Plans the push of the branch, if it has new commits, and of refspecs.
/// A refspec is pushed if its proposal has a new commit or the refspec is pending.
pub(super) fn plan_push<P: Proposer>(
    states: &[ProposalState<P>],
    base: CommitId,
    tip: CommitId,
    journal: &PushJournal,
    context: &AttemptContext<'_>,
) -> Result<PushPlan, SyncError> {
    let mut plan = PushPlan::default();
    for state in states.iter().filter(|state| state.is_open() && !state.is_held) {
        let Proposal { name, target, .. } = &state.proposal;
        plan.request.options.clone_from(&target.options);
        let reference = target.push.reference();
        if state.commit.is_some() && plan.request.commit_for(&reference).is_none() {
            plan.request.updates.push(PushUpdate { reference, new: Some(tip), old: context.old });
        }
        let (Some(refspec), Some(source)) = (&target.refspec, &state.source) else { continue };
        let is_owed = journal.owes_refspec(name);
        let is_there = plan.request.commit_for(&refspec.destination).is_some();
        if is_there || !(is_owed || state.commit.is_some()) {
            continue;
        }
        let (new, listed) = match refspec.source {
            RefspecSource::PushBranch => (tip, base),
            RefspecSource::Checkout => {
                let commit = context.fetch_commit(source.revision.commit)?;
                (commit, commit)
            }
        };
        let old = context.listing.get(&refspec.destination).map(|listed| listed.object);
        // If the push branch differs from the one that is checked out, Flux overwrites the destination.
        let is_forced = refspec.is_forced || target.checkout.branch().as_ref() != Some(&target.push);
        if let Some(old) = old.filter(|_| !is_forced)
            && let Some(message) = rejection_reason(context, &target.push, old, listed)?
        {
            plan.rejected.insert(refspec.destination.clone(), message);
            continue;
        }
        plan.request.updates.push(PushUpdate { reference: refspec.destination.clone(), new: Some(new), old });
    }
    // Servers print the references in this order, and the branch matters most.
    plan.request.updates.sort_by_key(|update| {
        states.iter().all(|one| one.proposal.target.push.reference() != update.reference)
    });
    Ok(plan)
}

/// Returns the reason to reject a refspec if commits of others might be lost.
///
/// They would be lost if the push branch replaced `old` without containing it; `listed` is the commit that
/// the push branch builds on. The result is `None` if nothing can be lost.
fn rejection_reason(
    context: &AttemptContext<'_>,
    branch: &BranchName,
    old: CommitId,
    listed: CommitId,
) -> Result<Option<String>, SyncError> {
    match context.is_in_history(old, listed, None) {
        Ok(true) => Ok(None),
        Ok(false) => Ok(Some(format!(
            "[rejected] (non-fast-forward): it has commits that {branch} does not have; merge them, or put + in front of the \
             refspec"
        ))),
        // This concerns this refspec alone, and must not keep the branch from being pushed.
        Err(SyncError::Remote(RemoteError::TooLarge { limit, .. })) => Ok(Some(format!(
            "a check for commits that {branch} does not have would fetch more history than a mirror of {limit} bytes \
             can hold; raise --mirror-max-size, or put + in front of the refspec"
        ))),
        Err(SyncError::ObjectTooLarge(error)) => {
            Ok(Some(format!("cannot check for commits that {branch} does not have: {error}")))
        }
        Err(error) => Err(error),
    }
}

/// Returns the references that were not updated, by the reply and the listing `after` it.
pub(super) fn missing(
    request: &PushRequest,
    reply: Option<&PushReply>,
    after: Option<&Listing>,
) -> Vec<RefName> {
    let updates = request.updates.iter().filter(|update| {
        let is_good = reply.is_some_and(|reply| reply.is_done(&update.reference));
        let listed = after.and_then(|after| after.get(&update.reference));
        !is_good && listed.map(|listed| listed.object) != update.new
    });
    updates.map(|update| update.reference.clone()).collect()
}
