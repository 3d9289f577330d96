//! The operations on pull requests that every forge has.

use std::collections::{BTreeMap, BTreeSet};

use super::error::ForgeError;
use super::listing::Listing;
use super::pull_request::{Edited, Merge, MergeAnswer, NewPullRequest, Opened, PullRequest, PullRequestEdit};
use crate::git::BranchName;

/// The pull requests of one repository at a forge.
///
/// Values go in and values come out; no call keeps anything. Each call can be repeated.
pub trait Forge: Send + Sync {
    /// Lists those open pull requests of a choice whose head is in the repository itself.
    ///
    /// One that is too large to be read alone is left out.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    fn open_pull_requests(
        &self,
        listing: &mut Listing,
    ) -> impl Future<Output = Result<Vec<PullRequest>, ForgeError>> + Send;

    /// Returns the beginnings of titles by which the forge marks drafts, in lower case.
    fn draft_prefixes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the numbers of the pull requests in the merge queue of a base.
    ///
    /// There is none without a queue, and none if the lists of pull requests say which ones are in a queue.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    fn merge_queue(
        &self,
        _base: &BranchName,
    ) -> impl Future<Output = Result<Option<BTreeSet<u64>>, ForgeError>> + Send {
        async { Ok(None) }
    }

    /// Finds all pull requests of a head branch and a base, newest first.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    fn find(
        &self,
        head: &BranchName,
        base: &BranchName,
    ) -> impl Future<Output = Result<Vec<PullRequest>, ForgeError>> + Send;

    /// Finds all pull requests of several head branches and a base.
    ///
    /// There is none if it takes fewer calls to find those of each head.
    ///
    /// There is an entry for each head, with the newest first.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    fn find_many(
        &self,
        _heads: &BTreeSet<BranchName>,
        _base: &BranchName,
    ) -> impl Future<Output = Result<Option<BTreeMap<BranchName, Vec<PullRequest>>>, ForgeError>> + Send {
        async { Ok(None) }
    }

    /// Reads the pull request of a number, open or not.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses, also because there is none.
    fn get(&self, number: u64) -> impl Future<Output = Result<PullRequest, ForgeError>> + Send;

    /// Opens a pull request, or finds the open one with the same branches.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    fn open(&self, new: &NewPullRequest) -> impl Future<Output = Result<Opened, ForgeError>> + Send;

    /// Changes a pull request.
    ///
    /// A reviewer or an assignee that is refused stays away, and stops no other change.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    fn edit(
        &self,
        current: &PullRequest,
        edit: &PullRequestEdit,
    ) -> impl Future<Output = Result<Edited, ForgeError>> + Send;

    /// Merges a pull request, or has the forge merge it when it is ready.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses for a reason that is not of this pull request.
    fn merge(
        &self,
        current: &PullRequest,
        merge: &Merge,
    ) -> impl Future<Output = Result<MergeAnswer, ForgeError>> + Send;

    /// Returns true if each pull request says whether it has an auto-merge.
    fn tells_auto_merge(&self) -> bool {
        true
    }

    /// Cancels an auto-merge that the forge has accepted; none being there is fine.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    fn cancel_merge(&self, current: &PullRequest) -> impl Future<Output = Result<(), ForgeError>> + Send;
}
