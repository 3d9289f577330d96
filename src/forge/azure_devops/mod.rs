//! Azure DevOps.
//!
//! Reviewers are ids, and there are no assignees. A body has at most 4,000 characters. A listing cuts bodies after 400, so longer
//! ones are read one by one: those of wanted heads in each listing, and any other once, to see if it has a mark. Auto-complete is set in the name of the user who created the pull request.
//!
//! | files | contents |
//! |---|---|
//! | `requests` | a repository, and requests to it |
//! | `reading` | the values in responses |

mod reading;
mod requests;
#[cfg(test)]
mod tests;

pub use requests::AzureRepository;

use serde_json::{Value, json};

use super::api::Forge;
use super::client::{Client, Endpoint, newest_first, path};
use super::error::ForgeError;
use super::exchange::{ApiRequest, Method, Transport};
use super::listing::Listing;
use super::paging::Pages;
use super::pull_request::{
    Edited, Merge, MergeAnswer, MergeTime, NewPullRequest, Opened, PullRequest, PullRequestEdit,
};
use super::reading::{Defect, list, number, text, texts};
use crate::git::BranchName;
use reading::{is_id, is_required, merge_answer};
use requests::{VERSION, edit_body, merge_body};

/// The number of entries of a page.
const PAGE_SIZE: usize = 100;

/// The id of no user, which ends auto-complete.
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// The number of characters after which a listing cuts a body.
const CUT: usize = 400;

/// The pull requests of a repository on Azure DevOps.
#[derive(Debug)]
pub struct AzureDevops<T> {
    client: Client<T>,
    repository: AzureRepository,
}

impl<T: Transport> AzureDevops<T> {
    /// Makes the client of a repository; the base URL of the transport includes the organization.
    pub fn new(transport: T, endpoint: Endpoint, repository: AzureRepository) -> Self {
        Self { client: Client::new(transport, endpoint), repository }
    }

    /// Lists pull requests whose head is in the repository itself, with whole bodies.
    async fn list(
        &self,
        query: &[(&'static str, String)],
        listing: &mut Listing,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        const OPERATION: &str = "list pull requests";
        let (mut pages, mut found) = (Pages::of(PAGE_SIZE), Vec::new());
        loop {
            let mut request = self.repository.request(Method::Get, &[], OPERATION);
            request.query.extend(query.iter().cloned());
            let request = request.with_query("$top", &pages.size()).with_query("$skip", &pages.offset());
            let request = request.essential_if(listing.is_urgent);
            let Some(response) = pages.admit(self.client.call(request).await)? else { continue };
            let all = response.body.get("value").and_then(Value::as_array);
            let all = self.client.checked(OPERATION, all.ok_or(Defect("no list of pull requests")))?;
            let numbers = all.iter().filter_map(|entry| number(entry, "/pullRequestId"));
            self.client.checked(OPERATION, pages.count(numbers))?;
            let is_last = all.len() < pages.size();
            let page: Result<Vec<_>, _> =
                all.iter().filter_map(|entry| self.repository.pull_request(entry).transpose()).collect();
            let page = self.client.checked(OPERATION, page)?;
            // Its memory is not held while bodies are read.
            drop(response);
            for mut one in page {
                if one.body.chars().count() >= CUT && listing.needs_whole_body(&one) {
                    let whole = self.read(one.number, listing.is_urgent).await?.0;
                    // One that is read by its id has no labels.
                    one = PullRequest { labels: one.labels, ..whole };
                }
                self.client.checked(OPERATION, listing.keep([one], &mut found))?;
            }
            if is_last {
                return Ok(newest_first(found));
            }
            pages.go_on();
        }
    }

    async fn read(&self, number: u64, is_essential: bool) -> Result<(PullRequest, Value), ForgeError> {
        const OPERATION: &str = "read a pull request";
        let request = self.repository.request(Method::Get, &[&number.to_string()], OPERATION);
        let response = self.client.call(request.essential_if(is_essential)).await?;
        let read = self.repository.own_pull_request(&response.body);
        Ok((self.client.checked(OPERATION, read)?, response.body))
    }

    /// Adds reviewers that are not among those of a document.
    ///
    /// Returns a sentence for each that is refused, and the last failure that may pass.
    async fn add_reviewers(
        &self,
        number: u64,
        ids: &[String],
        document: &Value,
    ) -> (Vec<String>, Option<ForgeError>) {
        let (mut refused, mut passing) = (Vec::new(), None);
        let present = texts(list(document, "/reviewers"), "/id");
        // A second request would take a vote back.
        for id in ids.iter().filter(|id| !present.iter().any(|one| one.eq_ignore_ascii_case(id))) {
            let reason = if is_id(id) {
                match self.add_reviewer(number, id).await {
                    Ok(None) => continue,
                    Ok(Some(reason)) => reason,
                    Err(error) => passing.insert(error).to_string(),
                }
            } else {
                "Azure DevOps takes the ids of users and groups".to_owned()
            };
            refused.push(format!("reviewer {id:?} is refused: {reason}"));
        }
        (refused, passing)
    }

    /// Adds a reviewer; returns the forge's reason to refuse, if it does.
    ///
    /// # Errors
    ///
    /// If the failure may pass.
    async fn add_reviewer(&self, number: u64, id: &str) -> Result<Option<String>, ForgeError> {
        let request = self.repository.add_reviewer(number, id);
        let operation = request.operation;
        match self.client.send(request).await {
            Ok(response) if response.is_success() => Ok(None),
            Ok(response) => self.client.refused_part(operation, &response).map(Some),
            Err(error) if error.is_final() => Ok(Some(error.to_string())),
            Err(error) => Err(error),
        }
    }

    async fn patch(&self, number: u64, body: Value, is_essential: bool) -> Result<Value, ForgeError> {
        const OPERATION: &str = "edit a pull request";
        let request = self.repository.request(Method::Patch, &[&number.to_string()], OPERATION);
        Ok(self.client.call(request.with_body(body).essential_if(is_essential)).await?.body)
    }

    /// Completes the body of a new pull request, unless others have changed it meanwhile.
    ///
    /// Returns its body.
    async fn complete(&self, opened: &PullRequest, body: &str) -> Result<String, ForgeError> {
        let (found, _) = self.read(opened.number, true).await?;
        if found.body != opened.body {
            return Ok(found.body);
        }
        let edit = PullRequestEdit { body: Some(body.to_owned()), ..PullRequestEdit::default() };
        self.patch(opened.number, edit_body(&edit).unwrap_or_default(), true).await?;
        Ok(body.to_owned())
    }

    async fn edit_labels(&self, number: u64, edit: &PullRequestEdit) -> Result<(), ForgeError> {
        const OPERATION: &str = "remove a label";
        for name in &edit.added_labels {
            let request = self.repository.labels(Method::Post, number, &[], "add a label");
            let request = request.with_body(json!({ "name": name })).essential_if(edit.is_closed);
            self.client.call(request).await?;
        }
        for name in &edit.removed_labels {
            let request = self.repository.labels(Method::Delete, number, &[name.as_str()], OPERATION);
            let response = self.client.send(request.essential_if(edit.is_closed)).await?;
            if !response.is_success() && response.status != 404 {
                return Err(self.client.failure(OPERATION, &response));
            }
        }
        Ok(())
    }

    /// Returns true if a policy of a branch requires a check or an approval.
    async fn is_anything_required(&self, base: &BranchName, repository: &str) -> Result<bool, ForgeError> {
        const OPERATION: &str = "list the policies of the branch";
        let path = path(&[&self.repository.project, "_apis", "git", "policy", "configurations"]);
        let request = ApiRequest::get(path, OPERATION)
            .with_query("repositoryId", repository)
            .with_query("refName", &base.reference())
            .with_query("api-version", VERSION);
        let response = self.client.call(request).await?;
        let policies = response.body.get("value").and_then(Value::as_array);
        let policies = self.client.checked(OPERATION, policies.ok_or(Defect("no list of policies")))?;
        Ok(policies.iter().any(is_required))
    }
}

impl<T: Transport> Forge for AzureDevops<T> {
    async fn open_pull_requests(&self, listing: &mut Listing) -> Result<Vec<PullRequest>, ForgeError> {
        self.list(&[("searchCriteria.status", "active".to_owned())], listing).await
    }

    async fn find(&self, head: &BranchName, base: &BranchName) -> Result<Vec<PullRequest>, ForgeError> {
        let query = [
            ("searchCriteria.status", "all".to_owned()),
            ("searchCriteria.sourceRefName", head.reference().to_string()),
            ("searchCriteria.targetRefName", base.reference().to_string()),
        ];
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
        let read = self.repository.own_pull_request(&response.body);
        let mut pull_request = self.client.checked(OPERATION, read)?;
        // The response can lack them.
        pull_request.labels.clone_from(&new.labels);
        let (mut refused, passing) =
            self.add_reviewers(pull_request.number, &new.reviewers, &response.body).await;
        if let Some(body) = new.completed_body.as_ref().filter(|_| passing.is_none()) {
            match self.complete(&pull_request, body).await {
                Ok(text) => pull_request.body = text,
                Err(error) => refused.push(error.to_string()),
            }
        }
        if !new.assignees.is_empty() {
            refused.push("Azure DevOps has no assignees for pull requests".to_owned());
        }
        Ok(Opened { pull_request, is_new: true, refused })
    }

    async fn edit(&self, current: &PullRequest, edit: &PullRequestEdit) -> Result<Edited, ForgeError> {
        const OPERATION: &str = "edit a pull request";
        let mut document = Value::Null;
        if edit.needs_look() || !edit.added_reviewers.is_empty() {
            let found = self.read(current.number, edit.is_closed).await?;
            self.client.unchanged(OPERATION, (&found.0, current), edit)?;
            document = found.1;
        }
        self.edit_labels(current.number, edit).await?;
        let (refused, passing) = self.add_reviewers(current.number, &edit.added_reviewers, &document).await;
        if let Some(error) = passing {
            // The text would say that all reviewers are there.
            return Err(error);
        }
        let labels = edit.labels_after(current);
        let Some(body) = edit_body(edit) else {
            let read = self.read(current.number, false).await?.0;
            return Ok(Edited { pull_request: PullRequest { labels, ..read }, refused });
        };
        let document = self.patch(current.number, body, edit.is_closed).await?;
        let edited = self.client.checked(OPERATION, self.repository.own_pull_request(&document))?;
        Ok(Edited { pull_request: PullRequest { labels, ..edited }, refused })
    }

    async fn merge(&self, current: &PullRequest, merge: &Merge) -> Result<MergeAnswer, ForgeError> {
        const OPERATION: &str = "merge a pull request";
        let (found, document) = self.read(current.number, false).await?;
        if let Some(answer) = found.obstacle(merge) {
            return Ok(answer);
        }
        let is_later = merge.time == MergeTime::WhenReady;
        let repository = text(&document, "/repository/id").unwrap_or(&self.repository.name);
        if is_later && !self.is_anything_required(&found.base, repository).await? {
            return Ok(MergeAnswer::NothingRequired);
        }
        let creator = text(&document, "/createdBy/id");
        let creator =
            self.client.checked(OPERATION, creator.ok_or(Defect("no creator of the pull request")))?;
        let request = self.repository.request(Method::Patch, &[&current.number.to_string()], OPERATION);
        let request = request.with_body(merge_body(merge, creator));
        let response = self.client.send(request).await?;
        merge_answer(&response).ok_or_else(|| self.client.failure(OPERATION, &response))
    }

    async fn cancel_merge(&self, current: &PullRequest) -> Result<(), ForgeError> {
        let path = [&*current.number.to_string()];
        let request = self.repository.request(Method::Patch, &path, "cancel auto-complete");
        let request = request.with_body(json!({"autoCompleteSetBy": {"id": NOBODY}})).essential();
        self.client.call(request).await.map(drop)
    }
}
