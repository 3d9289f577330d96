//! Pull requests of a repository at GitHub.
//!
//! | file | content |
//! |---|---|
//! | `parts` | labels, assignees and reviewers |
//! | `merging` | merging at once, by auto-merge, or by a merge queue |

mod merging;
mod parts;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use self::parts::Part;
use crate::forge::api::Forge;
use crate::forge::error::ForgeError;
use crate::forge::exchange::{ApiResponse, Cost, Method, Transport};
use crate::forge::github::repository::GithubRepository;
use crate::forge::http::{Call, refusal};
use crate::forge::listing::Listing;
use crate::forge::paging::Pages;
use crate::forge::pull_request::{
    Edited, Merge, MergeAnswer, MergeTime, NewPullRequest, Opened, PullRequest, PullRequestEdit,
    PullRequestState,
};
use crate::forge::reading::{Defect, page_url};
use crate::git::BranchName;

/// The number of pull requests on a page, which is GitHub's maximum.
const PAGE: usize = 100;

const LIST: &str = "list pull requests";
const FIND: &str = "find a pull request";
const READ: &str = "read a pull request";
const OPEN: &str = "open a pull request";
const EDIT: &str = "change a pull request";
const CLOSE: &str = "close a pull request";
const LABEL: &str = "label a pull request";

/// The pull requests of a repository at GitHub.
#[derive(Clone, Debug)]
pub struct Github<T> {
    /// Sends requests to the REST API.
    rest: T,
    /// Sends requests to the GraphQL API.
    graphql: T,
    repository: GithubRepository,
    host: String,
    /// The object that has the credentials.
    owner: String,
}

impl<T: Transport> Github<T> {
    /// Makes it from transports for both APIs; `owner` is the object that has the credentials.
    pub fn new((rest, graphql): (T, T), repository: GithubRepository, host: String, owner: String) -> Self {
        Self { rest, graphql, repository, host, owner }
    }

    async fn send(
        &self,
        (method, cost): (Method, Cost),
        resource: &[&str],
        body: Option<Value>,
        operation: &'static str,
    ) -> Result<ApiResponse, ForgeError> {
        self.rest.send(self.repository.request((method, cost), resource, body, operation)).await
    }

    fn refusal(&self, operation: &'static str, response: &ApiResponse) -> ForgeError {
        refusal(Call { host: &self.host, owner: &self.owner, operation }, response)
    }

    fn malformed(&self, operation: &'static str, detail: &str) -> ForgeError {
        ForgeError::Malformed { host: self.host.clone(), operation, detail: detail.to_owned() }
    }

    /// Lists those pull requests of a choice that are not of forks.
    async fn list(
        &self,
        query: &[(&'static str, String)],
        listing: &mut Listing,
        operation: &'static str,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        let (mut pages, mut found) = (Pages::of(PAGE), Vec::new());
        loop {
            let call = (Method::Get, read_cost(listing.is_urgent));
            let mut request = self.repository.request(call, &["pulls"], None, operation);
            request.query = query.to_vec();
            let place = [("per_page", pages.size().to_string()), ("page", pages.number().to_string())];
            request.query.extend(place);
            let Some(response) = pages.admit(self.rest.send(request).await)? else { continue };
            if response.status != 200 {
                return Err(self.refusal(operation, &response));
            }
            let items = response.body.as_array();
            let items = items.ok_or_else(|| self.malformed(operation, "a response that is no list"))?;
            let numbers = items.iter().filter_map(|item| item["number"].as_u64());
            pages.count(numbers).map_err(|Defect(detail)| self.malformed(operation, detail))?;
            let page: Result<Vec<_>, _> = items.iter().map(|item| self.read(item, operation)).collect();
            let kept = listing.keep(page?.into_iter().flatten(), &mut found);
            kept.map_err(|Defect(detail)| self.malformed(operation, detail))?;
            if items.len() < pages.size() {
                return Ok(found);
            }
            pages.go_on();
        }
    }

    /// Reads a pull request, unless its head is in another repository.
    fn read(&self, item: &Value, operation: &'static str) -> Result<Option<PullRequest>, ForgeError> {
        let full_name = format!("{}/{}", self.repository.owner, self.repository.name);
        // A fork that was deleted is null. A repository that was renamed has its new name on both sides.
        let head = &item["head"]["repo"]["full_name"];
        let base = item["base"]["repo"]["full_name"].as_str().unwrap_or(&full_name);
        if !head.as_str().is_some_and(|head| head.eq_ignore_ascii_case(base)) {
            return Ok(None);
        }
        let missing = |name: &str| self.malformed(operation, &format!("a pull request without {name}"));
        let branch = |side: &str| -> Result<BranchName, ForgeError> {
            item[side]["ref"].as_str().and_then(|name| name.parse().ok()).ok_or_else(|| missing("branches"))
        };
        let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        let labels = item["labels"].as_array().map(Vec::as_slice).unwrap_or_default();
        let state = match (item["state"].as_str(), item["merged_at"].is_null()) {
            (Some("open"), _) => PullRequestState::Open,
            (Some("closed"), true) => PullRequestState::Closed,
            (Some("closed"), false) => PullRequestState::Merged,
            _ => return Err(missing("a known state")),
        };
        Ok(Some(PullRequest {
            number: item["number"].as_u64().ok_or_else(|| missing("a number"))?,
            url: page_url(item, "/html_url").map_err(|Defect(detail)| self.malformed(operation, detail))?,
            state,
            head: branch("head")?,
            head_commit: item["head"]["sha"].as_str().and_then(|id| id.parse().ok()),
            lacks_branch: false,
            base: branch("base")?,
            title: text("title"),
            body: text("body"),
            is_draft: item["draft"] == Value::Bool(true),
            labels: labels.iter().filter_map(|label| label["name"].as_str().map(str::to_owned)).collect(),
            is_in_merge_queue: false,
            has_auto_merge: !item["auto_merge"].is_null(),
            version: None,
        }))
    }

    /// Reads a pull request of ours from the response to a change.
    fn read_own(&self, item: &Value, operation: &'static str) -> Result<PullRequest, ForgeError> {
        self.read(item, operation)?
            .ok_or_else(|| self.malformed(operation, "a pull request of another repository"))
    }

    async fn get_one(
        &self,
        path: &[&str],
        (cost, operation): (Cost, &'static str),
    ) -> Result<PullRequest, ForgeError> {
        let response = self.send((Method::Get, cost), path, None, operation).await?;
        match response.status {
            200 => self.read_own(&response.body, operation),
            _ => Err(self.refusal(operation, &response)),
        }
    }

    /// Refuses a change that follows from another state than the one at the forge.
    async fn verify(
        &self,
        (known, edit): (&PullRequest, &PullRequestEdit),
        path: &[&str],
        (cost, operation): (Cost, &'static str),
    ) -> Result<(), ForgeError> {
        match self.get_one(path, (cost, operation)).await?.admits(edit, known) {
            true => Ok(()),
            false => Err(ForgeError::changed_meanwhile(&self.host, operation)),
        }
    }
}

impl<T: Transport> Forge for Github<T> {
    async fn open_pull_requests(&self, listing: &mut Listing) -> Result<Vec<PullRequest>, ForgeError> {
        let query =
            [("state", "open".to_owned()), ("sort", "created".to_owned()), ("direction", "asc".to_owned())];
        self.list(&query, listing, LIST).await
    }

    async fn find(&self, head: &BranchName, base: &BranchName) -> Result<Vec<PullRequest>, ForgeError> {
        let query = [
            ("state", "all".to_owned()),
            ("head", format!("{}:{head}", self.repository.owner)),
            ("base", base.to_string()),
            ("sort", "created".to_owned()),
            ("direction", "desc".to_owned()),
        ];
        let mut found = self.list(&query, &mut Listing::of_head(head), FIND).await?;
        // GitHub ignores a head that it does not understand.
        found.retain(|one| one.head == *head && one.base == *base);
        for one in found.iter_mut().filter(|one| one.state == PullRequestState::Open) {
            match self.merge_state(one.number, Cost::EssentialRead).await {
                Ok(state) => {
                    one.is_in_merge_queue = state.is_in_queue;
                    one.has_auto_merge |= state.has_auto_merge;
                }
                Err(error @ ForgeError::Forbidden { .. }) => {
                    tracing::warn!(
                        "pull request #{}: it is not known if it is in a merge queue: {error}",
                        one.number
                    );
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    async fn merge_queue(&self, base: &BranchName) -> Result<Option<BTreeSet<u64>>, ForgeError> {
        self.numbers_in_queue(base).await
    }

    async fn get(&self, number: u64) -> Result<PullRequest, ForgeError> {
        self.get_one(&["pulls", &number.to_string()], (Cost::Read, READ)).await
    }

    async fn open(&self, new: &NewPullRequest) -> Result<Opened, ForgeError> {
        let mut body = json!({
            "title": new.title,
            "head": new.head.to_string(),
            "base": new.base.to_string(),
            "body": new.body,
            "draft": new.is_draft,
        });
        let mut refused = Vec::new();
        let open = (Method::Post, Cost::Create);
        let mut response = self.send(open, &["pulls"], Some(body.clone()), OPEN).await?;
        if response.status == 422 && new.is_draft && says(&response, "draft") {
            refused.push(self.refusal(OPEN, &response).to_string());
            body["draft"] = false.into();
            response = self.send(open, &["pulls"], Some(body), OPEN).await?;
        }
        let (pull_request, is_new) = match response.status {
            201 => (self.read_own(&response.body, OPEN)?, true),
            422 if says(&response, "already exists") => {
                let open = Opened::among(self.find(&new.head, &new.base).await?);
                (open.ok_or_else(|| self.refusal(OPEN, &response))?.pull_request, false)
            }
            _ => return Err(self.refusal(OPEN, &response)),
        };
        refused.extend(self.complete(&pull_request, new, is_new).await);
        Ok(Opened { pull_request, is_new, refused })
    }

    async fn edit(&self, current: &PullRequest, edit: &PullRequestEdit) -> Result<Edited, ForgeError> {
        let PullRequestEdit { title, body, added_labels, removed_labels, is_closed, .. } = edit;
        let number = current.number.to_string();
        let (cost, operation) = if *is_closed { (Cost::Essential, CLOSE) } else { (Cost::Write, EDIT) };
        let (mut changed, mut refused) = (current.clone(), Vec::new());
        if edit.depends_on_text() {
            let path = ["pulls", number.as_str()];
            if edit.needs_look() {
                self.verify((current, edit), &path, (read_cost(*is_closed), operation)).await?;
            }
            refused = self.add_missing(current.number, edit).await?;
            let mut change = json!({});
            for (name, text) in [("title", title), ("body", body)] {
                if let Some(text) = text {
                    change[name] = text.as_str().into();
                }
            }
            if *is_closed {
                change["state"] = "closed".into();
            }
            let response = self.send((Method::Patch, cost), &path, Some(change), operation).await?;
            if response.status != 200 {
                return Err(self.refusal(operation, &response));
            }
            changed = self.read_own(&response.body, operation)?;
        }
        if !edit.depends_on_text() && !added_labels.is_empty() {
            self.add(current.number, &Part::Labels(added_labels)).await?;
        }
        for label in removed_labels {
            let path = ["issues", number.as_str(), "labels", label.as_str()];
            let response = self.send((Method::Delete, cost), &path, None, LABEL).await?;
            // 404: it is gone already.
            if !matches!(response.status, 200 | 404) {
                return Err(self.refusal(LABEL, &response));
            }
        }
        Ok(Edited { pull_request: PullRequest { labels: edit.labels_after(current), ..changed }, refused })
    }

    async fn merge(&self, current: &PullRequest, merge: &Merge) -> Result<MergeAnswer, ForgeError> {
        match merge.time {
            MergeTime::Immediately => self.merge_now(current.number, merge).await,
            MergeTime::WhenReady => self.merge_when_ready(current.number, merge).await,
        }
    }

    async fn cancel_merge(&self, current: &PullRequest) -> Result<(), ForgeError> {
        self.disable_auto_merge(current.number).await
    }
}

/// Returns the cost of a call that reads.
fn read_cost(is_essential: bool) -> Cost {
    if is_essential { Cost::EssentialRead } else { Cost::Read }
}

/// Returns true if a refusal has a word in its message or errors.
fn says(response: &ApiResponse, word: &str) -> bool {
    let (message, errors) = (response.body["message"].to_string(), response.body["errors"].to_string());
    [message, errors].iter().any(|text| text.to_ascii_lowercase().contains(word))
}

#[cfg(test)]
mod tests;
