//! Pull requests with the last line of their body, which is read once.

use std::collections::BTreeSet;
use std::ops::Deref;

use super::memory::{Memory, OwnerHash};
use crate::forge::{PullRequest, PullRequestState};
use crate::git::CommitId;

/// An open pull request, with our last line of its body.
///
/// The line is read when the pull request is listed: a body may be long, and many decisions follow from the line alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenPullRequest {
    pull_request: PullRequest,
    memory: Option<Memory>,
}

impl OpenPullRequest {
    /// Reads the last line of a pull request.
    pub fn new(pull_request: PullRequest) -> Self {
        Self { memory: Memory::of_body(&pull_request.body), pull_request }
    }

    /// Returns the content of the last line, if it has one of ours.
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// Returns true if it is one of some automations.
    pub fn is_of_any(&self, owners: &BTreeSet<OwnerHash>) -> bool {
        self.memory.as_ref().is_some_and(|memory| !memory.is_of_others(owners))
    }

    /// Returns true if it is one of an automation.
    pub fn is_of(&self, owner: &OwnerHash) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.owners.contains(owner))
    }

    /// Returns the memory in bytes that it takes.
    pub fn size(&self) -> usize {
        self.pull_request.size() + self.memory.as_ref().map_or(0, Memory::size)
    }

    /// Marks it as one that is in a merge queue.
    pub fn enter_merge_queue(&mut self) {
        self.pull_request.is_in_merge_queue = true;
    }
}

impl Deref for OpenPullRequest {
    type Target = PullRequest;

    fn deref(&self) -> &PullRequest {
        &self.pull_request
    }
}

/// A pull request that has ended, with our last line of its body.
///
/// Its body is not kept: no decision and no report needs more of it than the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastPullRequest {
    /// The number.
    pub number: u64,
    /// The address of its page.
    pub url: String,
    /// The title.
    pub title: String,
    /// The state.
    pub state: PullRequestState,
    /// The last tip of its branch, as far as the forge knows it.
    pub head_commit: Option<CommitId>,
    /// The content of the last line, if it has one of ours.
    pub memory: Option<Memory>,
}

impl PastPullRequest {
    /// Takes what is kept of a pull request.
    pub fn of(pull_request: &PullRequest) -> Self {
        Self {
            number: pull_request.number,
            url: pull_request.url.clone(),
            title: pull_request.title.clone(),
            state: pull_request.state,
            head_commit: pull_request.head_commit,
            memory: Memory::of_body(&pull_request.body),
        }
    }

    /// Returns the memory in bytes that it takes.
    pub fn size(&self) -> usize {
        let line = self.memory.as_ref().map_or(0, Memory::size);
        size_of::<Self>() + self.url.len() + self.title.len() + line
    }
}
