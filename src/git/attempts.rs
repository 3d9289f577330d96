//! Attempts at a transaction, and their outcomes.

use super::error::SyncError;
use super::mirror::Mirror;
use super::proposal::{Answer, Proposal, Proposer};
use super::push_journal::PushJournal;
use super::remote::Remote;

/// The outcome of an attempt.
pub(super) enum AttemptOutcome {
    /// Every proposal has its answer.
    Done,
    /// An error was repaired, and the next attempt may succeed.
    Repaired,
    /// Another push came first.
    LostRace,
    /// The remote refuses the commits.
    Refused(SyncError),
    /// Another error.
    Failed(SyncError),
}

impl From<SyncError> for AttemptOutcome {
    fn from(error: SyncError) -> Self {
        Self::Failed(error)
    }
}

/// Proposals of one transaction, which are attempted again after a lost race.
pub(super) trait Attempts<P: Proposer>: Sized {
    /// Makes an attempt.
    fn make(&mut self, mirror: &mut Mirror, remote: &Remote, journal: &mut PushJournal) -> AttemptOutcome;

    /// Returns the answers, once all proposals have one.
    fn answers(self) -> Vec<Answer<P>>;

    /// Returns the answers after an error that concerns all proposals without one.
    fn fail(self, error: SyncError) -> Vec<Answer<P>>;

    /// Returns the proposals if each can be attempted alone after a refusal.
    fn separate(self) -> Result<Vec<Proposal<P>>, Self>;
}
