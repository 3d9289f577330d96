//! Facts about pull requests that no listing shows.
//!
//! These are branches that were handed back, the times of ends, and branches to delete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use super::super::delivery::{OpenPullRequest, PastPullRequest};
use crate::forge::{PullRequest, PullRequestState};
use crate::git::{BranchName, CommitId};

/// The maximum number of closed pull requests whose branches git still has to delete.
///
/// The bodies at the forge say that we closed them. So one that is forgotten is neither refused nor opened again, and its
/// branch stays.
const MAX_CLOSED: usize = 1_000;

/// The maximum memory in bytes of these.
const MAX_CLOSED_SIZE: usize = 4 * 1024 * 1024;

/// The maximum memory in bytes of a pull request that is recorded as lost.
///
/// A usual one takes some hundred bytes.
const MAX_LOST_SIZE: usize = 4 * 1024;

/// A base and the head branch of a pull request.
pub(super) type Branches = (BranchName, BranchName);

/// Facts about pull requests that no listing shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    /// The head that each branch had when it was handed back to Tagboat.
    handed_back: BTreeMap<Branches, CommitId>,
    /// The newest pull request of each branch without an open one.
    ///
    /// The time is that since which it is known to have ended.
    ended: BTreeMap<Branches, (u64, Instant)>,
    /// The pull requests that we closed, of branches that no policy renders: git deletes these.
    closed: BTreeMap<Branches, Arc<PastPullRequest>>,
    /// The pull requests that a report has as open and no listing, by number.
    ///
    /// There is none for one of which nothing is to be told.
    lost: BTreeMap<u64, Option<Arc<PastPullRequest>>>,
}

impl Records {
    /// Returns the memory in bytes that the pull requests take.
    pub(super) fn size(&self) -> usize {
        let (closed, lost) = (self.closed.values(), self.lost.values().flatten());
        closed.chain(lost).map(|one| one.size()).sum()
    }

    /// Records that a branch was handed back with this head.
    pub(super) fn hand_back(&mut self, branches: Branches, head: CommitId) {
        self.handed_back.insert(branches, head);
    }

    /// Returns the head with which a branch was handed back.
    pub(super) fn handed_back(&self, branches: &Branches) -> Option<CommitId> {
        self.handed_back.get(branches).copied()
    }

    /// Records the newest pull request of a branch without an open one.
    ///
    /// Its end is dated once.
    pub(super) fn end(&mut self, branches: Branches, number: u64, now: Instant) {
        let known = self.ended.entry(branches).or_insert((number, now));
        if known.0 != number {
            *known = (number, now);
        }
    }

    /// Returns the time since which the newest pull request has ended.
    pub(super) fn ended(&self, branches: &Branches) -> Option<Instant> {
        self.ended.get(branches).map(|(_, at)| *at)
    }

    /// Records a pull request that we closed, whose branch no policy renders.
    pub(super) fn close(&mut self, branches: Branches, closed: PastPullRequest) {
        self.closed.insert(branches, Arc::new(closed));
        let size = |records: &Self| records.closed.values().map(|one| one.size()).sum::<usize>();
        while self.closed.len() > MAX_CLOSED || size(self) > MAX_CLOSED_SIZE {
            let oldest =
                self.closed.iter().min_by_key(|(_, one)| one.number).map(|(branches, _)| branches.clone());
            self.closed.remove(&oldest.expect("it has more than none"));
        }
    }

    /// Records a pull request that a report has as open, unless its number is recorded.
    ///
    /// Nothing is told of one that takes too much memory.
    pub(super) fn lose(&mut self, number: u64, lost: Option<PastPullRequest>) {
        let lost = lost.map(|lost| PastPullRequest { memory: None, ..lost });
        let lost = lost.filter(|lost| lost.size() <= MAX_LOST_SIZE);
        self.lost.entry(number).or_insert_with(|| lost.map(Arc::new));
    }

    /// Returns the record of a pull request that was open in a report.
    pub(super) fn lost(&self, number: u64) -> Option<&Option<Arc<PastPullRequest>>> {
        self.lost.get(&number)
    }

    /// Forgets lost pull requests that are open in no report any more.
    pub(super) fn retain_lost(&mut self, is_reported: impl Fn(u64) -> bool) {
        self.lost.retain(|number, _| is_reported(*number));
    }

    /// Returns the pull request that we closed, of a branch that no policy renders.
    pub(super) fn closed(&self, branches: &Branches) -> Option<&PastPullRequest> {
        self.closed.get(branches).map(Arc::as_ref)
    }

    /// Returns the pull requests that we closed, with their branches, which no policy renders.
    pub(super) fn all_closed(&self) -> impl Iterator<Item = (&Branches, &PastPullRequest)> {
        self.closed.iter().map(|(branches, one)| (branches, one.as_ref()))
    }

    /// Forgets what the open pull requests of a new listing contradict.
    ///
    /// A branch that was handed back has got its head of that time, or is not handed back any more. It is handed back after the
    /// end of its pull request too, until git has deleted it.
    pub(super) fn compare(&mut self, open: &BTreeMap<Branches, Arc<OpenPullRequest>>) {
        self.handed_back
            .retain(|branches, head| open.get(branches).is_none_or(|one| one.head_commit == Some(*head)));
        self.ended.retain(|branches, _| !open.contains_key(branches));
        self.closed.retain(|branches, _| !open.contains_key(branches));
    }

    /// Forgets the end of a branch whose pull request has ended anew.
    pub(super) fn forget_end(&mut self, branches: &Branches) {
        self.ended.remove(branches);
    }

    /// Takes what another state has about a branch.
    pub(super) fn take(&mut self, branches: &Branches, other: &Self) {
        let head = other.handed_back.get(branches);
        self.handed_back.extend(head.map(|head| (branches.clone(), *head)));
        let ended = other.ended.get(branches);
        self.ended.extend(ended.map(|ended| (branches.clone(), *ended)));
    }

    /// Takes what another state has and this one has not.
    ///
    /// Of vanished branches, it is not known when their pull requests have ended.
    pub(super) fn join(&mut self, other: &Self, vanished: &BTreeSet<Branches>) {
        for (branches, head) in &other.handed_back {
            self.handed_back.entry(branches.clone()).or_insert(*head);
        }
        for (branches, ended) in other.ended.iter().filter(|(branches, _)| !vanished.contains(*branches)) {
            self.ended.entry(branches.clone()).or_insert(*ended);
        }
        for (branches, closed) in &other.closed {
            self.closed.entry(branches.clone()).or_insert_with(|| Arc::clone(closed));
        }
        for (number, lost) in &other.lost {
            self.lost.entry(*number).or_insert_with(|| lost.clone());
        }
    }

    /// Forgets what is not in use, or git has dealt with.
    ///
    /// `open` are the open pull requests.
    pub(super) fn retain(
        &mut self,
        open: &BTreeMap<Branches, Arc<OpenPullRequest>>,
        is_used: impl Fn(&Branches) -> bool,
        is_dealt_with: impl Fn(&Branches) -> bool,
    ) {
        self.ended.retain(|branches, _| is_used(branches));
        self.closed.retain(|branches, _| !is_used(branches) && !is_dealt_with(branches));
        let closed = &self.closed;
        self.handed_back.retain(|branches, _| {
            is_used(branches) || open.contains_key(branches) || closed.contains_key(branches)
        });
    }

    /// Returns the branches that were handed back, and whose pull requests have ended.
    pub(super) fn given_up<'r>(&'r self, base: &'r BranchName) -> impl Iterator<Item = &'r BranchName> {
        let is_ended = |branches: &&Branches| branches.0 == *base && self.ended.contains_key(*branches);
        self.handed_back.keys().filter(is_ended).map(|(_, head)| head)
    }
}

/// Returns base and head of a pull request.
pub(super) fn key(pull_request: &PullRequest) -> Branches {
    (pull_request.base.clone(), pull_request.head.clone())
}

/// Returns true for a pull request that is open.
pub(super) fn is_open(pull_request: &PullRequest) -> bool {
    pull_request.state == PullRequestState::Open
}
