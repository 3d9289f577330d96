//! The operations on pull requests that every forge has.

use super::error::ForgeError;
use super::pull_request::{Merge, MergeAnswer, NewPullRequest, Opened, PullRequest, PullRequestEdit};
use crate::git::BranchName;

/// The pull requests of one repository at a forge.
///
/// Values go in and values come out; no call keeps anything. Each call can be repeated.
pub trait Forge: Send + Sync {
    /// Lists the open pull requests whose head is in the repository itself.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    fn open_pull_requests(&self) -> impl Future<Output = Result<Vec<PullRequest>, ForgeError>> + Send;

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

    /// Opens a pull request, or finds the open one with the same branches.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    fn open(&self, new: &NewPullRequest) -> impl Future<Output = Result<Opened, ForgeError>> + Send;

    /// Changes a pull request.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    fn edit(
        &self,
        current: &PullRequest,
        edit: &PullRequestEdit,
    ) -> impl Future<Output = Result<PullRequest, ForgeError>> + Send;

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
}
