//! Bitbucket Data Center.
//!
//! Each change names the version of the pull request that it is made to, which rises with each change. An update without
//! reviewers removes them, so it names them. There are no labels and no assignees. A declined pull request can be reopened.
//!
//! | files | contents |
//! |---|---|
//! | `requests` | a repository, and requests to it |
//! | `reading` | the values in responses |

mod reading;
mod requests;
#[cfg(test)]
pub(super) mod tests;

pub use requests::DataCenterRepository;

use serde_json::Value;

use super::api::Forge;
use super::client::{Client, Endpoint, newest_first};
use super::error::ForgeError;
use super::exchange::{Method, Transport};
use super::listing::Listing;
use super::paging::Pages;
use super::pull_request::{
    Edited, Merge, MergeAnswer, MergeTime, NewPullRequest, Opened, PullRequest, PullRequestEdit,
    PullRequestState,
};
use super::reading::{commit, flag, list, number};
use crate::git::BranchName;
use reading::{merge_answer, own_pull_request, pull_requests, requires_anything};
use requests::edit_body;

/// The entries of a page.
const PAGE_SIZE: usize = 100;

/// The pull requests of a repository on Bitbucket Data Center.
#[derive(Debug)]
pub struct BitbucketDataCenter<T> {
    client: Client<T>,
    repository: DataCenterRepository,
}

impl<T: Transport> BitbucketDataCenter<T> {
    /// Makes the client of a repository.
    /// The base URL of the transport includes the context path.
    pub fn new(transport: T, endpoint: Endpoint, repository: DataCenterRepository) -> Self {
        Self { client: Client::new(transport, endpoint), repository }
    }

    /// Lists those pull requests of a choice whose head is in the repository itself.
    async fn list(
        &self,
        query: &[(&'static str, &str)],
        listing: &mut Listing,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        const OPERATION: &str = "list pull requests";
        // The server says where the next page starts.
        let (mut pages, mut found, mut start) = (Pages::of(PAGE_SIZE), Vec::new(), 0);
        loop {
            let mut request = self.repository.request(Method::Get, &["pull-requests"], OPERATION);
            for (name, value) in query {
                request = request.with_query(name, value);
            }
            let request = request.with_query("limit", &pages.size()).with_query("start", &start);
            let request = request.essential_if(listing.is_urgent);
            let before = pages.offset();
            let Some(response) = pages.admit(self.client.call(request).await)? else {
                // One that is too large alone is skipped.
                start += (pages.offset() - before) as u64;
                continue;
            };
            let entries = self.client.checked(OPERATION, pull_requests(&response.body))?;
            let numbers = list(&response.body, "/values").iter().filter_map(|entry| number(entry, "/id"));
            self.client.checked(OPERATION, pages.count(numbers))?;
            self.client.checked(OPERATION, listing.keep(entries, &mut found))?;
            pages.go_on();
            match number(&response.body, "/nextPageStart") {
                Some(next) if !flag(&response.body, "/isLastPage") && next > start => start = next,
                _ => return Ok(newest_first(found)),
            }
        }
    }

    async fn read(&self, number: u64, is_essential: bool) -> Result<(PullRequest, Value), ForgeError> {
        const OPERATION: &str = "read a pull request";
        let path = ["pull-requests", &number.to_string()];
        let request = self.repository.request(Method::Get, &path, OPERATION).essential_if(is_essential);
        let response = self.client.call(request).await?;
        let read = own_pull_request(&response.body);
        Ok((self.client.checked(OPERATION, read)?, response.body))
    }

    /// Adds reviewers, beside those that are there.
    ///
    /// Returns a sentence for each that is refused.
    async fn add_reviewers(&self, number: u64, names: &[String]) -> Result<Vec<String>, ForgeError> {
        let mut refused = Vec::new();
        for name in names {
            let request = self.repository.add_reviewer(number, name);
            let operation = request.operation;
            let response = self.client.send(request).await?;
            if !response.is_success() {
                let reason = self.client.refused_part(operation, &response)?;
                refused.push(format!("reviewer {name:?} is refused: {reason}"));
            }
        }
        Ok(refused)
    }

    /// Adds reviewers to a new pull request, and completes its body.
    ///
    /// The text that a person wrote meanwhile stays.
    async fn complete(
        &self,
        opened: &PullRequest,
        new: &NewPullRequest,
    ) -> Result<(PullRequest, Vec<String>), ForgeError> {
        let refused = self.add_reviewers(opened.number, &new.reviewers).await?;
        // Each reviewer may have raised the version.
        let (found, document) = self.read(opened.number, true).await?;
        let Some(body) = new.completed_body.as_ref().filter(|_| found.body == opened.body) else {
            return Ok((found, refused));
        };
        let edit = PullRequestEdit { body: Some(body.clone()), ..PullRequestEdit::default() };
        Ok((self.update((&found, &document), &edit, true).await?, refused))
    }

    /// Sets title and body of a known version.
    async fn update(
        &self,
        (found, document): (&PullRequest, &Value),
        edit: &PullRequestEdit,
        is_essential: bool,
    ) -> Result<PullRequest, ForgeError> {
        let body = edit_body(found, document, edit, found.version.unwrap_or_default());
        let path = ["pull-requests", &found.number.to_string()];
        let request = self.repository.request(Method::Put, &path, "edit a pull request").with_body(body);
        let request = request.essential_if(is_essential);
        let operation = request.operation;
        let response = self.client.call(request).await?;
        self.client.checked(operation, own_pull_request(&response.body))
    }

    /// Returns true if the auto-merge of a commit was asked for already.
    ///
    /// Versions without it, and pull requests without one, have no such resource.
    async fn is_scheduled(&self, number: u64, merge: &Merge) -> Result<bool, ForgeError> {
        const OPERATION: &str = "read the auto-merge";
        let path = ["pull-requests", &number.to_string(), "auto-merge"];
        let response = self.client.send(self.repository.request(Method::Get, &path, OPERATION)).await?;
        match response.status {
            200..=299 => Ok(commit(&response.body, "/fromHash") == Some(merge.head_commit)),
            404 => Ok(false),
            _ => Err(self.client.failure(OPERATION, &response)),
        }
    }

    /// Returns true if a merge needs a check or an approval.
    ///
    /// The settings have the numbers of approvals and builds; other checks are known only while they forbid the merge.
    async fn is_anything_required(&self, number: u64) -> Result<bool, ForgeError> {
        let request =
            self.repository.request(Method::Get, &["settings", "pull-requests"], "read the settings");
        if requires_anything(&self.client.call(request).await?.body) {
            return Ok(true);
        }
        let path = ["pull-requests", &number.to_string(), "merge"];
        let request = self.repository.request(Method::Get, &path, "test a merge");
        Ok(!list(&self.client.call(request).await?.body, "/vetoes").is_empty())
    }
}

impl<T: Transport> Forge for BitbucketDataCenter<T> {
    async fn open_pull_requests(&self, listing: &mut Listing) -> Result<Vec<PullRequest>, ForgeError> {
        self.list(&[("state", "OPEN"), ("order", "NEWEST")], listing).await
    }

    async fn find(&self, head: &BranchName, base: &BranchName) -> Result<Vec<PullRequest>, ForgeError> {
        let reference = head.reference().to_string();
        let query =
            [("state", "ALL"), ("direction", "OUTGOING"), ("at", reference.as_str()), ("order", "NEWEST")];
        let mut found = self.list(&query, &mut Listing::of_head(head)).await?;
        found.retain(|one| one.head == *head && one.base == *base);
        Ok(found)
    }

    async fn get(&self, number: u64) -> Result<PullRequest, ForgeError> {
        Ok(self.read(number, false).await?.0)
    }

    async fn open(&self, new: &NewPullRequest) -> Result<Opened, ForgeError> {
        const OPERATION: &str = "open a pull request";
        let response = self.client.send(self.repository.open(new)).await?;
        if !response.is_success() {
            let failure = self.client.failure(OPERATION, &response);
            if response.status == 409
                && let Some(opened) = Opened::among(self.find(&new.head, &new.base).await?)
            {
                return Ok(opened);
            }
            return Err(failure);
        }
        let mut pull_request = self.client.checked(OPERATION, own_pull_request(&response.body))?;
        let mut refused = Vec::new();
        if !new.reviewers.is_empty() {
            // It is open: a failure is told, and not returned.
            match self.complete(&pull_request, new).await {
                Ok((completed, sentences)) => (pull_request, refused) = (completed, sentences),
                Err(error) => refused.push(format!("reviewers are missing: {error}")),
            }
        }
        if new.is_draft && !pull_request.is_draft {
            refused.push("this version of Bitbucket has no drafts".to_owned());
        }
        if !new.labels.is_empty() {
            refused.push("Bitbucket has no labels for pull requests".to_owned());
        }
        if !new.assignees.is_empty() {
            refused.push("Bitbucket has no assignees for pull requests".to_owned());
        }
        Ok(Opened { pull_request, is_new: true, refused })
    }

    async fn edit(&self, current: &PullRequest, edit: &PullRequestEdit) -> Result<Edited, ForgeError> {
        let (mut found, mut document) = self.read(current.number, edit.is_closed).await?;
        let mut refused = Vec::new();
        if edit.is_closed {
            self.client.unchanged("decline a pull request", (&found, current), edit)?;
        }
        // The version that the caller knows: an edit by a person meanwhile makes the server refuse.
        found.version = current.version.or(found.version);
        if !edit.added_reviewers.is_empty() {
            refused = self.add_reviewers(current.number, &edit.added_reviewers).await?;
            // Each reviewer may have raised the version.
            (found, document) = self.read(current.number, edit.is_closed).await?;
            self.client.unchanged("edit a pull request", (&found, current), edit)?;
        }
        if edit.title.is_some() || edit.body.is_some() {
            found = self.update((&found, &document), edit, edit.is_closed).await?;
        }
        if edit.is_closed && found.state == PullRequestState::Open {
            let request = self.repository.decline(current.number, found.version.unwrap_or_default());
            let operation = request.operation;
            let response = self.client.call(request).await?;
            found = self.client.checked(operation, own_pull_request(&response.body))?;
        }
        Ok(Edited { pull_request: found, refused })
    }

    async fn merge(&self, current: &PullRequest, merge: &Merge) -> Result<MergeAnswer, ForgeError> {
        let (found, _) = self.read(current.number, false).await?;
        if let Some(answer) = found.obstacle(merge) {
            return Ok(answer);
        }
        let is_later = merge.time == MergeTime::WhenReady;
        if is_later && self.is_scheduled(current.number, merge).await? {
            return Ok(MergeAnswer::Scheduled);
        }
        if is_later && !self.is_anything_required(current.number).await? {
            return Ok(MergeAnswer::NothingRequired);
        }
        // This version is of the state that was verified above.
        let request = self.repository.merge(current.number, merge, found.version.unwrap_or_default());
        let operation = request.operation;
        let response = self.client.send(request).await?;
        merge_answer(&response, is_later).ok_or_else(|| self.client.failure(operation, &response))
    }

    fn tells_auto_merge(&self) -> bool {
        false
    }

    async fn cancel_merge(&self, current: &PullRequest) -> Result<(), ForgeError> {
        const OPERATION: &str = "cancel an auto-merge";
        let path = ["pull-requests", &current.number.to_string(), "auto-merge"];
        let request = self.repository.request(Method::Delete, &path, OPERATION).essential();
        let response = self.client.send(request).await?;
        match response.status {
            200..=299 | 404 => Ok(()),
            _ => Err(self.client.failure(OPERATION, &response)),
        }
    }
}
