//! A forge for tests, with the pull requests that a test gives it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parking_lot::Mutex;

use crate::forge::{
    Edited, Forge, ForgeError, Listing, Merge, MergeAnswer, NewPullRequest, Opened, PullRequest,
    PullRequestEdit, PullRequestState,
};
use crate::git::BranchName;

/// A forge that opens nothing, and fails on demand.
#[derive(Default)]
pub(super) struct TestForge {
    /// The open pull requests of a listing.
    pub(super) listed: Mutex<Vec<PullRequest>>,
    /// True if the last listing was urgent.
    pub(super) is_urgent: Mutex<Option<bool>>,
    /// The numbers in the merge queue, if there is one.
    pub(super) queue: Mutex<Option<Vec<u64>>>,
    pub(super) is_queue_failing: Mutex<bool>,
    pub(super) queue_reads: Mutex<u32>,
    /// The pull requests that a search finds.
    pub(super) found: Vec<PullRequest>,
    /// The branches whose search fails.
    pub(super) errors: BTreeMap<&'static str, ForgeError>,
    pub(super) finds_many: bool,
    pub(super) searched: Mutex<Vec<String>>,
    /// The numbers of the pull requests that were read.
    pub(super) read: Mutex<Vec<u64>>,
    /// True if reads of single ones meet a rate limit.
    pub(super) is_limited: bool,
    /// The numbers of those whose labels the login may not change.
    pub(super) labels_kept: Mutex<Vec<u64>>,
    /// True if a person closes each before it is edited.
    pub(super) is_closed_meanwhile: bool,
    /// The answers to merges, the last one first; then each is merged.
    pub(super) answers: Mutex<Vec<MergeAnswer>>,
    /// True if no pull request says whether it has an auto-merge.
    pub(super) hides_auto_merge: bool,
    /// True if the next cancellation of an auto-merge fails.
    pub(super) is_cancel_failing: Mutex<bool>,
    /// The edits, merges and cancellations, by name.
    pub(super) changes: Mutex<Vec<&'static str>>,
    /// The numbers of those that were closed.
    pub(super) closed: Mutex<Vec<u64>>,
}

impl TestForge {
    /// Returns a forge with open pull requests.
    pub(super) fn with(listed: impl IntoIterator<Item = PullRequest>) -> Self {
        Self { listed: Mutex::new(listed.into_iter().collect()), ..Self::default() }
    }
}

/// Returns an open pull request.
pub(super) fn open(number: u64, head: &str) -> PullRequest {
    PullRequest {
        number,
        url: String::new(),
        state: PullRequestState::Open,
        head: head.parse().unwrap(),
        head_commit: None,
        lacks_branch: false,
        base: "main".parse().unwrap(),
        title: String::new(),
        body: String::new(),
        is_draft: false,
        labels: Vec::new(),
        is_in_merge_queue: false,
        has_auto_merge: false,
        version: None,
    }
}

impl Forge for TestForge {
    async fn open_pull_requests(&self, listing: &mut Listing) -> Result<Vec<PullRequest>, ForgeError> {
        *self.is_urgent.lock() = Some(listing.is_urgent);
        Ok(self.listed.lock().clone())
    }

    async fn merge_queue(&self, _: &BranchName) -> Result<Option<BTreeSet<u64>>, ForgeError> {
        *self.queue_reads.lock() += 1;
        if *self.is_queue_failing.lock() {
            return Err(ForgeError::Unavailable { host: String::new(), detail: String::new() });
        }
        Ok(self.queue.lock().clone().map(BTreeSet::from_iter))
    }

    async fn find(&self, head: &BranchName, _: &BranchName) -> Result<Vec<PullRequest>, ForgeError> {
        self.searched.lock().push(head.to_string());
        let found = self.found.iter().filter(|one| one.head == *head).cloned().collect();
        self.errors.get(head.as_str()).cloned().map_or(Ok(found), Err)
    }

    async fn find_many(
        &self,
        heads: &BTreeSet<BranchName>,
        _: &BranchName,
    ) -> Result<Option<BTreeMap<BranchName, Vec<PullRequest>>>, ForgeError> {
        if !self.finds_many {
            return Ok(None);
        }
        let names: Vec<&str> = heads.iter().map(BranchName::as_str).collect();
        self.searched.lock().push(names.join("+"));
        if let Some(error) = names.iter().find_map(|name| self.errors.get(name)) {
            return Err(error.clone());
        }
        Ok(Some(heads.iter().map(|head| (head.clone(), Vec::new())).collect()))
    }

    async fn get(&self, number: u64) -> Result<PullRequest, ForgeError> {
        self.read.lock().push(number);
        if self.is_limited {
            return Err(ForgeError::RateLimited { host: String::new(), retry_after: Duration::from_secs(9) });
        }
        let (host, operation, detail) = (String::new(), "read a pull request", String::new());
        let found = self.found.iter().find(|one| one.number == number).cloned();
        found.ok_or(ForgeError::Forbidden { host, operation, detail })
    }

    async fn open(&self, _: &NewPullRequest) -> Result<Opened, ForgeError> {
        unreachable!("no test opens one")
    }

    async fn edit(&self, one: &PullRequest, edit: &PullRequestEdit) -> Result<Edited, ForgeError> {
        let changes_labels = !(edit.added_labels.is_empty() && edit.removed_labels.is_empty());
        if changes_labels && self.labels_kept.lock().contains(&one.number) {
            let (host, detail) = (String::new(), "no permission".to_owned());
            return Err(ForgeError::Forbidden { host, operation: "change labels", detail });
        }
        self.changes.lock().push(if edit.is_text_recent { "edit at once" } else { "edit" });
        let body = edit.body.clone().unwrap_or_else(|| one.body.clone());
        let mut after = PullRequest { body, ..one.clone() };
        after.labels.retain(|label| !edit.removed_labels.contains(label));
        self.listed.lock().iter_mut().filter(|other| other.number == one.number).for_each(|other| {
            other.labels.clone_from(&after.labels);
        });
        if self.is_closed_meanwhile {
            after.state = PullRequestState::Closed;
        }
        if edit.is_closed {
            self.closed.lock().push(one.number);
            self.listed.lock().retain(|other| other.number != one.number);
            after.state = PullRequestState::Closed;
        }
        Ok(Edited { pull_request: after, refused: Vec::new() })
    }

    async fn merge(&self, _: &PullRequest, _: &Merge) -> Result<MergeAnswer, ForgeError> {
        self.changes.lock().push("merge");
        Ok(self.answers.lock().pop().unwrap_or(MergeAnswer::Merged))
    }

    fn tells_auto_merge(&self) -> bool {
        !self.hides_auto_merge
    }

    async fn cancel_merge(&self, _: &PullRequest) -> Result<(), ForgeError> {
        self.changes.lock().push("cancel");
        if std::mem::take(&mut *self.is_cancel_failing.lock()) {
            return Err(ForgeError::Unavailable { host: String::new(), detail: String::new() });
        }
        Ok(())
    }
}
