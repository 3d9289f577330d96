//! The signing of branches' commits by a forge, before they are pushed.

use std::collections::BTreeSet;
use std::sync::Arc;

use git2::ObjectType;

use super::attempt::BranchAttempt;
use super::branch::{Branch, Built, BuiltCommit};
use super::model::BranchAction;
use crate::error::chain as error_chain;
use crate::git::attempt::context::AttemptContext;
use crate::git::attempt::deadline::PlanDeadline;
use crate::git::attempt::forge_signing::{Chain, Unsigned, signed_commit, tree_of};
use crate::git::commit::{rewrite_commit, stated_parents};
use crate::git::commit_error::CommitError;
use crate::git::commit_signer::{ForgeSigningError, MAX_SIGNED_COMMITS};
use crate::git::error::SyncError;
use crate::git::name::{BranchName, CommitId};
use crate::git::object;
use crate::git::pack::NewObjects;
use crate::git::proposal::Proposer;
use crate::git::push_journal::PushJournal;

impl<P: Proposer> BranchAttempt<P> {
    /// Puts off the branches with more commits than a forge signs for one push.
    ///
    /// The next attempt of the transaction makes them. A branch with more commits than that fails.
    pub(super) fn put_off(&mut self, branches: &mut [Branch]) -> BTreeSet<BranchName> {
        let (mut signed, mut later) = (0, BTreeSet::new());
        for branch in branches.iter_mut() {
            let Some(built) = &branch.built else { continue };
            let own = built.commits.iter().filter(|commit| self.is_to_be_signed(commit)).count();
            if own > MAX_SIGNED_COMMITS {
                branch.built = None;
                let message = format!(
                    "{own} automations share the branch, and the forge signs at most {MAX_SIGNED_COMMITS} commits for a push: \
                     let fewer share it"
                );
                self.fail_branch(&branch.name, &message);
            } else if own > 0 && (signed > 0 && signed + own > MAX_SIGNED_COMMITS) {
                branch.built = None;
                later.insert(branch.name.clone());
            } else {
                signed += own;
            }
        }
        later
    }

    /// Has the commits of branches signed by the forge.
    ///
    /// If it does not sign one, our own commit stays, or the branch fails.
    ///
    /// # Errors
    ///
    /// If the mirror has an error, or the work was cancelled.
    pub(super) fn sign(
        &mut self,
        branches: &mut [Branch],
        context: &AttemptContext<'_>,
        base: CommitId,
        journal: &PushJournal,
    ) -> Result<(), SyncError> {
        let mut all = branches.iter().filter_map(|branch| branch.built.as_ref());
        if !all.any(|built| built.commits.iter().any(|commit| self.is_to_be_signed(commit))) {
            return Ok(());
        }
        let repository = &context.mirror.repository;
        let database = repository.odb()?;
        let mut objects = NewObjects::new(repository, &database)?;
        let known_tree = tree_of(repository, base)?;
        for branch in branches {
            let Some(mut built) = branch.built.take() else { continue };
            let mut chain = Chain { tip: base, known_tree, failure: self.forge_failure.clone() };
            let failure =
                self.sign_branch(&mut built, branch, (context, &mut objects), &mut chain, journal)?;
            self.forge_failure = chain.failure.filter(|failure| !failure.is_of_commit());
            match failure {
                None => {
                    built.tip = chain.tip;
                    branch.built = Some(built);
                }
                Some(failure) => {
                    let message = error_chain(&SyncError::from(CommitError::from(failure)));
                    self.fail_branch(&branch.name, &message);
                }
            }
        }
        let mut deadline = PlanDeadline::new(context.mirror, context.remote.timeout);
        self.packs.append(objects.finish(&mut |_| deadline.check())?);
        Ok(())
    }

    fn is_to_be_signed(&self, commit: &BuiltCommit) -> bool {
        self.states[commit.proposal].proposal.signing.is_some()
    }

    /// Has the commits of a branch signed, or writes them again.
    ///
    /// Returns the failure of a commit that must be signed.
    fn sign_branch(
        &mut self,
        built: &mut Built,
        branch: &Branch,
        (context, objects): (&AttemptContext<'_>, &mut NewObjects<'_>),
        chain: &mut Chain,
        journal: &PushJournal,
    ) -> Result<Option<Arc<ForgeSigningError>>, SyncError> {
        let reference = branch.name.reference();
        for commit in &mut built.commits {
            let mut deadline = PlanDeadline::new(context.mirror, context.remote.timeout);
            let state = &mut self.states[commit.proposal];
            if let Some(signing) = &state.proposal.signing {
                let pending = journal.pending_branches.get(&state.proposal.name).into_iter().flatten();
                let earlier = pending
                    .filter(|push| push.is_signed_by_forge && push.reference == reference)
                    .find_map(|push| {
                        Some(object::read_commit(objects.database(), push.commit).ok()?.data().to_vec())
                    });
                let known = [state.signed.remove(&branch.name), earlier];
                let signed = match chain.failure.clone() {
                    Some(failure) => Err(Unsigned::Forge(failure)),
                    None => signed_commit(context, &*signing.signer, (commit.id, chain), known),
                };
                match signed {
                    Ok(content) => {
                        let id =
                            objects.write(ObjectType::Commit, content.clone(), &mut |_| deadline.check())?;
                        chain.tip = id.into();
                        chain.known_tree = tree_of(objects.repository(), commit.id)?;
                        (commit.id, commit.is_signed_by_forge) = (chain.tip, true);
                        state.signed.insert(branch.name.clone(), content);
                        state.proposal.proposer.observe_signing(Ok(()));
                        continue;
                    }
                    Err(Unsigned::Sync(error)) => return Err(error),
                    Err(Unsigned::Forge(error)) => {
                        if signing.is_required {
                            chain.failure.get_or_insert_with(|| Arc::clone(&error));
                            return Ok(Some(error));
                        }
                        let rest = if error.is_of_commit() {
                            Arc::new(ForgeSigningError::UnknownParent)
                        } else {
                            Arc::clone(&error)
                        };
                        chain.failure.get_or_insert(rest);
                        state.proposal.proposer.observe_signing(Err(error));
                    }
                }
            }
            let raw = object::read_commit(objects.database(), commit.id)?.data().to_vec();
            if stated_parents(&raw) != [chain.tip] {
                let draft = &state.drafts[commit.draft].commit;
                let signing = (draft.signer.as_ref(), draft.time);
                commit.id =
                    rewrite_commit(objects, commit.id, chain.tip, signing, &mut |_| deadline.check())?;
            }
            chain.tip = commit.id;
        }
        Ok(None)
    }

    /// Sets the outcome of a branch that is not pushed.
    fn fail_branch(&mut self, branch: &BranchName, message: &str) {
        for state in self.open() {
            if let Some(outcome) = state.outcomes.get_mut(branch) {
                outcome.action = BranchAction::Failed { message: message.to_owned(), is_deletion: false };
            }
        }
    }
}
