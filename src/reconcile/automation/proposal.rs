//! An update as a proposal to git.

use tagboat_api::Reason;

use crate::failing::Failing;
use crate::git::{Author, CommitDraft, CommitTime, Proposer, SigningKey};
use crate::update::{FileTree, MarkerIndex, ScopeError, TreeError, UpdatePlan, UpdateRequest, diff, plan};

/// Updates a tree and proposes the result as a commit.
#[derive(Debug)]
pub struct UpdateProposal {
    /// What to update.
    pub update: UpdateRequest,
    /// Who commits.
    pub author: Author,
    /// The message of the commit.
    pub message: String,
    /// When the commit is made.
    pub time: CommitTime,
    /// What signs the commit.
    pub signer: Option<SigningKey>,
    /// Whether the changes are to be shown as a diff too.
    pub wants_diff: bool,
    /// What the last look at a tree found.
    pub plan: Option<UpdatePlan>,
    /// The changes of the last look as a unified diff.
    pub diff: Option<String>,
}

/// Why an update cannot be proposed.
#[derive(Debug, thiserror::Error)]
pub enum ProposalError {
    /// The tree cannot be looked through.
    #[error(transparent)]
    Scope(#[from] ScopeError),
    /// A file cannot be read again to show what changes in it.
    #[error("cannot show the changes")]
    Diff(#[source] TreeError),
}

impl Failing for ProposalError {
    fn reason(&self) -> Reason {
        match self {
            Self::Scope(error) => error.reason(),
            Self::Diff(error) => error.reason(),
        }
    }

    fn is_retryable(&self) -> bool {
        match self {
            Self::Scope(error) => error.is_retryable(),
            Self::Diff(error) => error.is_retryable(),
        }
    }
}

impl Proposer for UpdateProposal {
    type Error = ProposalError;

    fn propose(
        &mut self,
        tree: &dyn FileTree,
        index: &mut MarkerIndex,
    ) -> Result<Option<CommitDraft>, ProposalError> {
        let mut plan = plan(tree, &self.update, index, &mut |_| {})?;
        if self.wants_diff {
            self.diff = Some(diff::unified(tree, &plan.edits).map_err(ProposalError::Diff)?);
        }
        let edits = std::mem::take(&mut plan.edits);
        self.plan = Some(plan);
        let (message, author, time) = (self.message.clone(), self.author.clone(), self.time);
        let signer = self.signer.clone();
        Ok((!edits.is_empty()).then_some(CommitDraft { edits, message, author, time, signer }))
    }
}
