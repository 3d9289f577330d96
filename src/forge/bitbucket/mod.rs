//! Bitbucket Cloud.
//!
//! There are no labels, no assignees and no auto-merge, and a declined pull request is final. The commits in a pull request are
//! shortened, and neither a merge nor a decline can be bound to one: the branch is read right before. A pull request is not opened
//! if one with the same branches is open, because Bitbucket might change that one.
//!
//! | files | contents |
//! |---|---|
//! | `requests` | a repository, and requests to it |
//! | `reading` | the values in responses |

mod reading;
mod requests;
#[cfg(test)]
pub(super) mod tests;

pub use requests::BitbucketRepository;

use serde_json::Value;

use super::api::Forge;
use super::client::{Client, Endpoint, newest_first, path};
use super::error::ForgeError;
use super::exchange::{ApiRequest, Method, Transport};
use super::listing::Listing;
use super::paging::Pages;
use super::pull_request::{
    Edited, Merge, MergeAnswer, MergeTime, NewPullRequest, Opened, PullRequest, PullRequestEdit,
    PullRequestState,
};
use super::reading::{commit, list, number, text, texts};
use crate::git::{BranchName, CommitId};
use reading::{merge_answer, own_pull_request, pull_requests};
use requests::{branches_filter, text_body};

/// The maximum number of entries of a page of pull requests.
const PAGE_SIZE: usize = 50;

/// The number of digits in a shortened id of a commit.
const SHORT_ID: usize = 12;

/// The states of a pull request, each of which a listing has to name.
const STATES: [&str; 4] = ["OPEN", "MERGED", "DECLINED", "SUPERSEDED"];

const NO_LABELS: &str = "Bitbucket has no labels for pull requests";

/// The pull requests of a repository on Bitbucket Cloud.
#[derive(Debug)]
pub struct Bitbucket<T> {
    client: Client<T>,
    repository: BitbucketRepository,
}

/// A change of a pull request's text and reviewers.
struct Update<'u> {
    found: &'u PullRequest,
    /// The forge's document of it.
    document: &'u Value,
    title: &'u str,
    body: &'u str,
    /// The names of users to ask for a review.
    added: &'u [String],
    is_essential: bool,
}

impl<T: Transport> Bitbucket<T> {
    /// Makes the client of a repository.
    pub fn new(transport: T, endpoint: Endpoint, repository: BitbucketRepository) -> Self {
        Self { client: Client::new(transport, endpoint), repository }
    }

    /// Lists those pull requests of a choice whose head is in the repository itself.
    async fn list(
        &self,
        query: &[(&'static str, String)],
        listing: &mut Listing,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        const OPERATION: &str = "list pull requests";
        let (mut pages, mut found) = (Pages::of(PAGE_SIZE), Vec::new());
        loop {
            let mut request = self.repository.request(Method::Get, &["pullrequests"], OPERATION);
            request.query.extend(query.iter().cloned());
            let request = request.with_query("pagelen", &pages.size()).with_query("page", &pages.number());
            let request = request.essential_if(listing.is_urgent);
            let Some(response) = pages.admit(self.client.call(request).await)? else { continue };
            let entries = self.client.checked(OPERATION, pull_requests(&response.body))?;
            let numbers = list(&response.body, "/values").iter().filter_map(|entry| number(entry, "/id"));
            self.client.checked(OPERATION, pages.count(numbers))?;
            self.client.checked(OPERATION, listing.keep(entries, &mut found))?;
            if text(&response.body, "/next").is_none() {
                return Ok(newest_first(found));
            }
            pages.go_on();
        }
    }

    async fn read(&self, number: u64, is_essential: bool) -> Result<(PullRequest, Value), ForgeError> {
        const OPERATION: &str = "read a pull request";
        let path = ["pullrequests", &number.to_string()];
        let request = self.repository.request(Method::Get, &path, OPERATION).essential_if(is_essential);
        let response = self.client.call(request).await?;
        let read = own_pull_request(&response.body);
        Ok((self.client.checked(OPERATION, read)?, response.body))
    }

    /// Finds the ids of members of the workspace by nickname, account id or id.
    async fn user_ids(&self, names: &[String]) -> Result<Vec<Option<String>>, ForgeError> {
        const OPERATION: &str = "list the members of the workspace";
        let mut ids: Vec<_> = names.iter().map(|name| name.starts_with('{').then(|| name.clone())).collect();
        let mut pages = Pages::of(100);
        for page in 1u64.. {
            if ids.iter().all(Option::is_some) {
                break;
            }
            let path = path(&["workspaces", &self.repository.workspace, "members"]);
            let request = ApiRequest::get(path, OPERATION)
                .with_query("pagelen", &100)
                .with_query("page", &page)
                .essential();
            let response = self.client.call(request).await?;
            self.client.checked(OPERATION, pages.count([page]))?;
            for member in list(&response.body, "/values") {
                let Some(id) = text(member, "/user/uuid") else { continue };
                for (name, found) in names.iter().zip(&mut ids) {
                    let known = [text(member, "/user/nickname"), text(member, "/user/account_id")];
                    if known.contains(&Some(name.as_str())) {
                        *found = Some(id.to_owned());
                    }
                }
            }
            if text(&response.body, "/next").is_none() {
                break;
            }
        }
        Ok(ids)
    }

    /// Sets a text and adds reviewers, in one call if all are accepted.
    ///
    /// Returns a sentence for each reviewer that is refused.
    async fn update(&self, update: Update<'_>) -> Result<(PullRequest, Vec<String>), ForgeError> {
        const OPERATION: &str = "edit a pull request";
        let Update { found, document, title, body, added, is_essential } = update;
        let mut refused = Vec::new();
        let ids = match self.user_ids(added).await {
            Err(error) if error.is_final() => {
                refused.push(format!("reviewers are missing: {error}"));
                Vec::new()
            }
            ids => ids?,
        };
        // An update without those that are there would remove them.
        let mut accepted = texts(list(document, "/reviewers"), "/uuid");
        let mut users = Vec::new();
        for (name, id) in added.iter().zip(ids) {
            match id {
                Some(id) if accepted.contains(&id) => {}
                Some(id) => users.push((name, id)),
                None => refused.push(format!("reviewer {name:?} is refused: no member has this name")),
            }
        }
        let send = async |reviewers: &[String]| {
            let request = self.repository.update(found.number, &text_body(found, title, body, reviewers));
            self.client.send(request.essential_if(is_essential)).await
        };
        let mut all = accepted.clone();
        all.extend(users.iter().map(|(_, id)| id.clone()));
        let mut response = send(&all).await?;
        if !response.is_success() && !users.is_empty() {
            // One that may not read the repository makes the forge refuse all.
            self.client.refused_part(OPERATION, &response)?;
            for (name, id) in users {
                accepted.push(id);
                let one = send(&accepted).await?;
                if !one.is_success() {
                    accepted.pop();
                    let reason = self.client.refused_part(OPERATION, &one)?;
                    refused.push(format!("reviewer {name:?} is refused: {reason}"));
                }
            }
            response = send(&accepted).await?;
        }
        if !response.is_success() {
            return Err(self.client.failure(OPERATION, &response));
        }
        Ok((self.client.checked(OPERATION, own_pull_request(&response.body))?, refused))
    }

    /// Adds reviewers to a new pull request, and completes its body.
    ///
    /// The text that a person wrote meanwhile stays.
    async fn complete(
        &self,
        opened: &PullRequest,
        new: &NewPullRequest,
    ) -> Result<(PullRequest, Vec<String>), ForgeError> {
        let (found, document) = self.read(opened.number, true).await?;
        let completed = new.completed_body.as_ref().filter(|_| found.body == opened.body);
        let body = completed.unwrap_or(&found.body);
        let (title, added) = (&found.title, &new.reviewers);
        let update = Update { found: &found, document: &document, title, body, added, is_essential: true };
        self.update(update).await
    }

    /// Returns the tip of a branch, if there is one.
    async fn tip(&self, branch: &BranchName, is_essential: bool) -> Result<Option<CommitId>, ForgeError> {
        const OPERATION: &str = "read a branch";
        let path = ["refs", "branches", branch.as_str()];
        let request = self.repository.request(Method::Get, &path, OPERATION).essential_if(is_essential);
        let response = self.client.send(request).await?;
        match response.status {
            404 => Ok(None),
            200..=299 => Ok(commit(&response.body, "/target/hash")),
            _ => Err(self.client.failure(OPERATION, &response)),
        }
    }

    /// Refuses a decline if the branch has another tip than the judged one.
    ///
    /// A branch that is gone has no commit of others.
    async fn verify_tip(&self, branch: &BranchName, judged: Option<CommitId>) -> Result<(), ForgeError> {
        let Some(judged) = judged else { return Ok(()) };
        match self.tip(branch, true).await? {
            Some(tip) if tip != judged => Err(self.client.changed_meanwhile("decline a pull request")),
            _ => Ok(()),
        }
    }
}

impl<T: Transport> Forge for Bitbucket<T> {
    async fn open_pull_requests(&self, listing: &mut Listing) -> Result<Vec<PullRequest>, ForgeError> {
        self.list(&[("state", "OPEN".to_owned())], listing).await
    }

    async fn find(&self, head: &BranchName, base: &BranchName) -> Result<Vec<PullRequest>, ForgeError> {
        let mut query: Vec<_> = STATES.iter().map(|state| ("state", (*state).to_owned())).collect();
        query.push(("q", branches_filter(head, base)));
        query.push(("sort", "-created_on".to_owned()));
        let mut found = self.list(&query, &mut Listing::of_head(head)).await?;
        found.retain(|one| one.head == *head && one.base == *base);
        Ok(found)
    }

    async fn get(&self, number: u64) -> Result<PullRequest, ForgeError> {
        Ok(self.read(number, false).await?.0)
    }

    async fn open(&self, new: &NewPullRequest) -> Result<Opened, ForgeError> {
        const OPERATION: &str = "open a pull request";
        let query = [("state", "OPEN".to_owned()), ("q", branches_filter(&new.head, &new.base))];
        let open = self.list(&query, &mut Listing::of_head(&new.head)).await?;
        if let Some(pull_request) = open.into_iter().find(|one| one.head == new.head && one.base == new.base)
        {
            return Ok(Opened { pull_request, is_new: false, refused: Vec::new() });
        }
        let response = self.client.call(self.repository.open(new)).await?;
        let mut pull_request = self.client.checked(OPERATION, own_pull_request(&response.body))?;
        let mut refused = Vec::new();
        if !new.reviewers.is_empty() {
            // It is open: a failure is told, and not returned.
            match self.complete(&pull_request, new).await {
                Ok(completed) => (pull_request, refused) = completed,
                Err(error) => refused.push(format!("reviewers are missing: {error}")),
            }
        }
        if !new.labels.is_empty() {
            refused.push(NO_LABELS.to_owned());
        }
        if !new.assignees.is_empty() {
            refused.push("Bitbucket has no assignees for pull requests".to_owned());
        }
        Ok(Opened { pull_request, is_new: true, refused })
    }

    async fn edit(&self, current: &PullRequest, edit: &PullRequestEdit) -> Result<Edited, ForgeError> {
        const OPERATION: &str = "edit a pull request";
        let (mut found, document) = self.read(current.number, edit.is_closed).await?;
        let mut refused = Vec::new();
        if edit.depends_on_text() {
            self.client.unchanged(OPERATION, (&found, current), edit)?;
        }
        if edit.is_closed {
            self.verify_tip(&found.head, edit.judged).await?;
        }
        if edit.title.is_some() || edit.body.is_some() || !edit.added_reviewers.is_empty() {
            (found, refused) = self
                .update(Update {
                    title: edit.title.as_ref().unwrap_or(&found.title),
                    body: edit.body.as_ref().unwrap_or(&found.body),
                    found: &found,
                    document: &document,
                    added: &edit.added_reviewers,
                    is_essential: edit.is_closed,
                })
                .await?;
        }
        if edit.is_closed && found.state == PullRequestState::Open {
            let path = ["pullrequests", &current.number.to_string(), "decline"];
            let request = self.repository.request(Method::Post, &path, "decline a pull request").essential();
            let operation = request.operation;
            let response = self.client.call(request).await?;
            found = self.client.checked(operation, own_pull_request(&response.body))?;
        }
        Ok(Edited { pull_request: found, refused })
    }

    async fn merge(&self, current: &PullRequest, merge: &Merge) -> Result<MergeAnswer, ForgeError> {
        if merge.time == MergeTime::WhenReady {
            return Ok(MergeAnswer::Refused { reason: "Bitbucket has no auto-merge".to_owned() });
        }
        let (found, document) = self.read(current.number, false).await?;
        if let Some(answer) = found.obstacle(merge) {
            return Ok(answer);
        }
        let wanted = merge.head_commit.to_string();
        let short = text(&document, "/source/commit/hash").unwrap_or_default();
        if short.len() < SHORT_ID
            || !wanted.starts_with(short)
            || self.tip(&found.head, false).await? != Some(merge.head_commit)
        {
            let reason = format!("its head is not {}", merge.head_commit.short());
            return Ok(MergeAnswer::NotYet { reason });
        }
        let request = self.repository.merge(current.number, merge.method);
        let operation = request.operation;
        let response = self.client.send(request).await?;
        merge_answer(&response).ok_or_else(|| self.client.failure(operation, &response))
    }

    /// Does nothing: there is no auto-merge.
    async fn cancel_merge(&self, _: &PullRequest) -> Result<(), ForgeError> {
        Ok(())
    }
}
