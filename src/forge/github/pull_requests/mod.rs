//! Pull requests of a repository at GitHub.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::forge::api::Forge;
use crate::forge::error::ForgeError;
use crate::forge::exchange::{ApiRequest, ApiResponse, Cost, Method, Transport};
use crate::forge::github::graphql::{self, MergeState};
use crate::forge::github::repository::GithubRepository;
use crate::forge::http::{Call, refusal};
use crate::forge::listing::Listing;
use crate::forge::paging::Pages;
use crate::forge::pull_request::{
    Merge, MergeAnswer, MergeMethod, MergeTime, NewPullRequest, Opened, PullRequest, PullRequestEdit,
    PullRequestState,
};
use crate::forge::reading::{Defect, page_url};
use crate::git::BranchName;

/// The number of pull requests on a page, which is GitHub's maximum.
const PAGE: usize = 100;

const LIST: &str = "list pull requests";
const FIND: &str = "find a pull request";
const OPEN: &str = "open a pull request";
const EDIT: &str = "change a pull request";
const CLOSE: &str = "close a pull request";
const LABEL: &str = "label a pull request";
const REVIEW: &str = "ask for a review";
const ASSIGN: &str = "assign a pull request";
const COMPLETE: &str = "complete a pull request";
const MERGE: &str = "merge a pull request";

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
            for item in items {
                found.extend(self.read(item, operation)?.filter(|one| listing.keeps(one)));
            }
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

    /// Adds labels, reviewers or assignees; those of others stay.
    ///
    /// Returns GitHub's answer.
    async fn add(&self, number: u64, part: &Part<'_>) -> Result<Value, ForgeError> {
        let (resource, cost, operation) = part.call();
        let number = number.to_string();
        let path = [resource[0], &number, resource[1]];
        let response = self.send((Method::Post, cost), &path, Some(part.body()), operation).await?;
        match response.status {
            200 | 201 => Ok(response.body),
            _ => Err(self.refusal(operation, &response)),
        }
    }

    /// Sets the body of a new pull request, which says that all parts are there.
    async fn set_body(&self, number: u64, body: &str) -> Result<(), ForgeError> {
        let path = ["pulls", &number.to_string()];
        let body = json!({ "body": body });
        let response = self.send((Method::Patch, Cost::Essential), &path, Some(body), COMPLETE).await?;
        match response.status {
            200 => Ok(()),
            _ => Err(self.refusal(COMPLETE, &response)),
        }
    }

    /// Adds what a new pull request has beside its text.
    ///
    /// Returns a sentence for each part that is missing.
    ///
    /// It is open already, so a failure is told, and is no error. The completed body comes last. After a failure that may pass, or
    /// if a person has changed the text meanwhile, the body stays as it is, and a later round completes it.
    async fn complete(&self, opened: &PullRequest, new: &NewPullRequest, is_new: bool) -> Vec<String> {
        let (mut missing, mut is_changed) = (Missing::default(), false);
        // Each request notifies the reviewers.
        let reviewers = if is_new { new.reviewers.as_slice() } else { &[] };
        for part in [Part::Labels(&new.labels), Part::Assignees(&new.assignees), Part::Reviewers(reviewers)] {
            if part.names().is_empty() {
                continue;
            }
            match self.add(opened.number, &part).await {
                Ok(answer) => {
                    missing.sentences.extend(part.left_out(&answer));
                    let text = answer.get("body").map(|body| body.as_str().unwrap_or_default());
                    is_changed |= text.is_some_and(|text| text != opened.body);
                }
                Err(error) => missing.note(&error),
            }
        }
        let body = new.completed_body.as_ref().filter(|_| is_new && !is_changed && !missing.may_pass);
        if let Some(body) = body
            && let Err(error) = self.set_body(opened.number, body).await
        {
            missing.note(&error);
        }
        missing.sentences
    }

    /// Adds labels, reviewers and assignees before a change of the text.
    ///
    /// One that is refused stays away.
    async fn add_missing(&self, number: u64, edit: &PullRequestEdit) -> Result<(), ForgeError> {
        for part in [
            Part::Labels(&edit.added_labels),
            Part::Assignees(&edit.added_assignees),
            Part::Reviewers(&edit.added_reviewers),
        ] {
            if part.names().is_empty() {
                continue;
            }
            match self.add(number, &part).await {
                Err(error) if error.is_final() => tracing::warn!("pull request #{number}: {error}"),
                added => drop(added?),
            }
        }
        Ok(())
    }

    /// Refuses a change that follows from another state than the one at the forge.
    async fn verify(
        &self,
        (known, edit): (&PullRequest, &PullRequestEdit),
        path: &[&str],
        (cost, operation): (Cost, &'static str),
    ) -> Result<(), ForgeError> {
        let response = self.send((Method::Get, cost), path, None, operation).await?;
        if response.status != 200 {
            return Err(self.refusal(operation, &response));
        }
        match self.read_own(&response.body, operation)?.admits(edit, known) {
            true => Ok(()),
            false => Err(ForgeError::changed_meanwhile(&self.host, operation)),
        }
    }

    /// Merges a pull request at once.
    async fn merge_now(&self, number: u64, merge: &Merge) -> Result<MergeAnswer, ForgeError> {
        let mut body = json!({"sha": merge.head_commit.to_string()});
        if let Some(method) = merge.method {
            body["merge_method"] = match method {
                MergeMethod::Commit => "merge",
                MergeMethod::Squash => "squash",
                MergeMethod::Rebase => "rebase",
            }
            .into();
        }
        let path = ["pulls", &number.to_string(), "merge"];
        let response = self.send((Method::Put, Cost::Write), &path, Some(body), MERGE).await?;
        let reason = || self.refusal(MERGE, &response).to_string();
        match response.status {
            200 => Ok(MergeAnswer::Merged),
            // It cannot be merged now, or its head is another commit.
            405 | 409 => Ok(MergeAnswer::NotYet { reason: reason() }),
            422 => Ok(MergeAnswer::Refused { reason: reason() }),
            _ => Err(self.refusal(MERGE, &response)),
        }
    }

    /// Has the pull request merged when its checks have passed.
    async fn merge_when_ready(&self, number: u64, merge: &Merge) -> Result<MergeAnswer, ForgeError> {
        let state = self.merge_state(number, Cost::Read).await?;
        if state.head != merge.head_commit.to_string() {
            return Ok(MergeAnswer::NotYet {
                reason: "the head of the pull request is another commit".to_owned(),
            });
        }
        if state.is_in_queue || state.has_auto_merge {
            return Ok(MergeAnswer::Scheduled);
        }
        if !state.requires_something {
            return Ok(match state.unknown {
                Some(reason) => MergeAnswer::Refused { reason },
                None => MergeAnswer::NothingRequired,
            });
        }
        if state.has_queue {
            return self.mutate(graphql::enqueue(&state.id, merge)).await;
        }
        if state.is_ready {
            return self.merge_now(number, merge).await;
        }
        self.mutate(graphql::enable_auto_merge(&state.id, merge)).await
    }

    async fn merge_state(&self, number: u64, cost: Cost) -> Result<MergeState, ForgeError> {
        let answer = self.query(graphql::merge_state(&self.repository, number, cost)).await?;
        match (MergeState::read(&answer.body), answer.missing()) {
            (Some(state), missing) => Ok(MergeState { unknown: missing, ..state }),
            (None, Some(detail)) => {
                Err(ForgeError::Forbidden { host: self.host.clone(), operation: MERGE, detail })
            }
            (None, None) => Err(self.malformed(MERGE, "a response without the pull request's state")),
        }
    }

    /// Sends a query; parts that cannot be read are null.
    async fn query(&self, request: ApiRequest) -> Result<graphql::Answer, ForgeError> {
        let operation = request.operation;
        let response = self.graphql.send(request).await?;
        let refused = match (response.status, self.refusal(operation, &response)) {
            (200, _) => None,
            // Not each token is accepted here.
            (403, ForgeError::Forbidden { detail, .. }) => Some(detail),
            (_, refusal) => return Err(refusal),
        };
        let (host, status) = (self.host.clone(), response.status);
        let answer = graphql::Answer::of(response.body, refused);
        answer.map_err(|detail| ForgeError::Refused { host, operation, status, detail })
    }

    /// Returns the numbers in the merge queue of a base, as each pull request says.
    ///
    /// This needs no permission for merge queues.
    async fn queued(&self, base: &BranchName, reason: &str) -> Result<Option<BTreeSet<u64>>, ForgeError> {
        let (mut queued, mut after) = (graphql::Queued::default(), None);
        for _ in 0..graphql::MAX_PAGES {
            let answer = self.query(graphql::open_of_base(&self.repository, base, after.as_deref())).await?;
            let Some(page) = queued.read(&answer.body) else {
                return self.unknown_queue(&queued, base, answer.missing().as_deref().unwrap_or(reason));
            };
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(queued.numbers())
    }

    /// Returns that a base has no known merge queue.
    ///
    /// # Errors
    ///
    /// If earlier pages tell that it has one: a rebuild would remove pull requests from it.
    fn unknown_queue(
        &self,
        queued: &graphql::Queued,
        base: &BranchName,
        reason: &str,
    ) -> Result<Option<BTreeSet<u64>>, ForgeError> {
        if queued.has_queue() {
            let (host, detail) = (self.host.clone(), reason.to_owned());
            return Err(ForgeError::Forbidden { host, operation: "list the merge queue", detail });
        }
        let GithubRepository { owner, name } = &self.repository;
        tracing::warn!(
            "{owner}/{name}: it is not known which pull requests are in the merge queue of {base}, if it has one: {reason}; give \
             the token read access to pull requests"
        );
        Ok(None)
    }

    /// Sends a mutation; an error among its results is GitHub's reason to refuse.
    async fn mutate(&self, request: ApiRequest) -> Result<MergeAnswer, ForgeError> {
        let response = self.graphql.send(request).await?;
        if response.status != 200 {
            return Err(self.refusal(MERGE, &response));
        }
        Ok(match graphql::errors(&response.body) {
            Some(reason) => MergeAnswer::Refused { reason },
            None => MergeAnswer::Scheduled,
        })
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
        let (mut queued, mut after) = (BTreeSet::new(), None);
        for _ in 0..graphql::MAX_PAGES {
            let answer = self.query(graphql::merge_queue(&self.repository, base, after.as_deref())).await?;
            if let Some(reason) = &answer.forbidden {
                return self.queued(base, reason).await;
            }
            let Some(page) = graphql::read_merge_queue(&answer.body) else { return Ok(None) };
            queued.extend(page.numbers);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(Some(queued))
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
                let found = self.find(&new.head, &new.base).await?;
                let open = found.into_iter().find(|one| one.state == PullRequestState::Open);
                (open.ok_or_else(|| self.refusal(OPEN, &response))?, false)
            }
            _ => return Err(self.refusal(OPEN, &response)),
        };
        refused.extend(self.complete(&pull_request, new, is_new).await);
        Ok(Opened { pull_request, is_new, refused })
    }

    async fn edit(&self, current: &PullRequest, edit: &PullRequestEdit) -> Result<PullRequest, ForgeError> {
        let PullRequestEdit { title, body, added_labels, removed_labels, is_closed, .. } = edit;
        let number = current.number.to_string();
        let (cost, operation) = if *is_closed { (Cost::Essential, CLOSE) } else { (Cost::Write, EDIT) };
        let mut changed = current.clone();
        if edit.depends_on_text() {
            let path = ["pulls", number.as_str()];
            self.verify((current, edit), &path, (read_cost(*is_closed), operation)).await?;
            self.add_missing(current.number, edit).await?;
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
        Ok(PullRequest { labels: edit.labels_after(current), ..changed })
    }

    async fn merge(&self, current: &PullRequest, merge: &Merge) -> Result<MergeAnswer, ForgeError> {
        match merge.time {
            MergeTime::Immediately => self.merge_now(current.number, merge).await,
            MergeTime::WhenReady => self.merge_when_ready(current.number, merge).await,
        }
    }
}

/// A part of a pull request beside its text.
enum Part<'p> {
    Labels(&'p [String]),
    Assignees(&'p [String]),
    Reviewers(&'p [String]),
}

impl Part<'_> {
    fn names(&self) -> &[String] {
        match self {
            Self::Labels(names) | Self::Assignees(names) | Self::Reviewers(names) => names,
        }
    }

    fn call(&self) -> ([&'static str; 2], Cost, &'static str) {
        match self {
            Self::Labels(_) => (["issues", "labels"], Cost::Essential, LABEL),
            Self::Assignees(_) => (["issues", "assignees"], Cost::Essential, ASSIGN),
            Self::Reviewers(_) => (["pulls", "requested_reviewers"], Cost::Create, REVIEW),
        }
    }

    /// Returns a sentence for each name that GitHub has dropped silently.
    fn left_out(&self, answer: &Value) -> Vec<String> {
        let (Self::Assignees(names), Some(assigned)) = (self, answer["assignees"].as_array()) else {
            return Vec::new();
        };
        let is_assigned = |name: &&String| {
            assigned
                .iter()
                .any(|user| user["login"].as_str().is_some_and(|login| login.eq_ignore_ascii_case(name)))
        };
        let left_out = names.iter().filter(|name| !is_assigned(name));
        left_out.map(|name| format!("assignee {name:?} is left out by GitHub")).collect()
    }

    fn body(&self) -> Value {
        match self {
            Self::Labels(names) => json!({"labels": names}),
            Self::Assignees(names) => json!({"assignees": names}),
            Self::Reviewers(names) => {
                let (teams, users): (Vec<&String>, Vec<&String>) =
                    names.iter().partition(|name| name.contains('/'));
                let teams: Vec<&str> =
                    teams.iter().filter_map(|team| Some(team.rsplit_once('/')?.1)).collect();
                json!({"reviewers": users, "team_reviewers": teams})
            }
        }
    }
}

/// The parts that a new pull request lacks.
#[derive(Default)]
struct Missing {
    sentences: Vec<String>,
    /// True if one of the failures may pass.
    may_pass: bool,
}

impl Missing {
    fn note(&mut self, error: &ForgeError) {
        self.may_pass |= !error.is_final();
        self.sentences.push(error.to_string());
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
