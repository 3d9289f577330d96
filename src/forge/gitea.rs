//! Gitea, and Forgejo, which has the same API.
//!
//! A draft is a title that begins with `WIP: `. Labels of unknown names are dropped silently, so missing ones are created. The
//! listing has no filter for the head branch, and `pulls/BASE/HEAD` returns any one pull request, also a closed one; so those of
//! many heads are found by one listing. A pull
//! request does not say if it is scheduled for a merge: a second request to schedule it is refused, and counts as scheduled.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::api::Forge;
use super::client::{Client, Endpoint, newest_first, path};
use super::error::ForgeError;
use super::exchange::{ApiRequest, ApiResponse, Method, Transport};
use super::listing::Listing;
use super::paging::Pages;
use super::pull_request::{
    Merge, MergeAnswer, MergeMethod, MergeTime, NewPullRequest, Opened, PullRequest, PullRequestEdit,
    PullRequestState,
};
use super::reading::{Defect, branch, commit, flag, list, message, number, page_url, text, texts};
use crate::git::BranchName;

/// The prefix by which a title marks a draft.
const DRAFT_PREFIX: &str = "WIP: ";

/// The prefixes that a server recognizes, unless its administrator set others.
const DRAFT_PREFIXES: [&str; 2] = ["wip:", "[wip]"];

/// The entries of a page; servers have the same maximum by default.
const PAGE_SIZE: usize = 50;

/// The maximum number of pull requests among which closed ones are searched.
const MAX_CLOSED: usize = 1_000;

/// The color of a label that is created.
const LABEL_COLOR: &str = "#6a7d90";

/// The pull requests of a repository on Gitea or Forgejo.
#[derive(Debug)]
pub struct Gitea<T> {
    client: Client<T>,
    repository: GiteaRepository,
}

/// A repository on Gitea or Forgejo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GiteaRepository {
    /// The user or organization.
    pub owner: String,
    /// The name.
    pub name: String,
}

impl<T: Transport> Gitea<T> {
    /// Makes the client of a repository.
    pub fn new(transport: T, endpoint: Endpoint, repository: GiteaRepository) -> Self {
        Self { client: Client::new(transport, endpoint), repository }
    }

    /// Lists those pull requests of a choice, among the first `most`.
    async fn list(
        &self,
        query: &[(&'static str, &str)],
        most: usize,
        listing: &mut Listing,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        const OPERATION: &str = "list pull requests";
        let (mut pages, mut found) = (Pages::of(PAGE_SIZE), Vec::new());
        while pages.offset() < most {
            let mut request = self.repository.request(Method::Get, &["pulls"], OPERATION);
            for (name, value) in query {
                request = request.with_query(name, value);
            }
            let request = request.with_query("limit", &pages.size()).with_query("page", &pages.number());
            let request = request.essential_if(listing.is_urgent);
            let Some(response) = pages.admit(self.client.call(request).await)? else { continue };
            let entries = self.client.checked(OPERATION, pull_requests(&response.body))?;
            let all = list(&response.body, "");
            let numbers = all.iter().filter_map(|entry| number(entry, "/number"));
            self.client.checked(OPERATION, pages.count(numbers))?;
            found.extend(entries.into_iter().filter(|one| listing.keeps(one)));
            let total = response.header("x-total-count").and_then(|total| total.parse::<u64>().ok());
            if all.is_empty() || total.is_some_and(|total| pages.entries() >= total) {
                break;
            }
            pages.go_on();
        }
        Ok(newest_first(found))
    }

    async fn read(&self, number: u64, is_essential: bool) -> Result<(PullRequest, Value), ForgeError> {
        const OPERATION: &str = "read a pull request";
        let request = self.repository.request(Method::Get, &["pulls", &number.to_string()], OPERATION);
        let response = self.client.call(request.essential_if(is_essential)).await?;
        let read = own_pull_request(&response.body);
        Ok((self.client.checked(OPERATION, read)?, response.body))
    }

    /// Adds labels, and creates those that the repository and its organization lack.
    async fn add_labels(
        &self,
        number: u64,
        names: &[String],
        is_essential: bool,
    ) -> Result<Vec<String>, ForgeError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let add = |names: &[String]| self.repository.add_labels(number, names).essential_if(is_essential);
        let response = self.client.call(add(names)).await?;
        let present = texts(list(&response.body, ""), "/name");
        let missing: Vec<_> = names.iter().filter(|name| !present.contains(name)).cloned().collect();
        if missing.is_empty() {
            return Ok(present);
        }
        for name in &missing {
            let body = json!({"name": name, "color": LABEL_COLOR});
            let request = self.repository.request(Method::Post, &["labels"], "create a label");
            self.client.call(request.with_body(body).essential_if(is_essential)).await?;
        }
        let response = self.client.call(add(&missing)).await?;
        Ok(texts(list(&response.body, ""), "/name"))
    }

    async fn remove_labels(&self, number: u64, edit: &PullRequestEdit) -> Result<(), ForgeError> {
        const OPERATION: &str = "remove a label";
        let names = &edit.removed_labels;
        if names.is_empty() {
            return Ok(());
        }
        let (_, document) = self.read(number, edit.is_closed).await?;
        for label in list(&document, "/labels") {
            let id = super::reading::number(label, "/id");
            let (Some(name), Some(id)) = (text(label, "/name"), id) else { continue };
            if names.iter().any(|wanted| wanted == name) {
                let path = ["issues", &number.to_string(), "labels", &id.to_string()];
                let request = self.repository.request(Method::Delete, &path, OPERATION);
                let response = self.client.send(request.essential_if(edit.is_closed)).await?;
                if !response.is_success() && response.status != 404 {
                    return Err(self.client.failure(OPERATION, &response));
                }
            }
        }
        Ok(())
    }

    /// Requests reviews; returns a sentence for each reviewer that is refused.
    async fn request_reviews(&self, number: u64, reviewers: &[String]) -> Result<Vec<String>, ForgeError> {
        const OPERATION: &str = "request reviews";
        let mut refused = Vec::new();
        if reviewers.is_empty() {
            return Ok(refused);
        }
        let response = self.client.send(self.repository.request_reviews(number, reviewers)).await?;
        if response.is_success() {
            return Ok(refused);
        }
        // One that is unknown makes the forge refuse all.
        for reviewer in reviewers {
            let one = std::slice::from_ref(reviewer);
            let response = self.client.send(self.repository.request_reviews(number, one)).await?;
            if !response.is_success() {
                let reason = self.client.refused_part(OPERATION, &response)?;
                refused.push(format!("reviewer {reviewer:?} is refused: {reason}"));
            }
        }
        Ok(refused)
    }

    /// Assigns users beside those of others, and sets a text, if there is one.
    ///
    /// Returns a sentence for each user that is refused.
    async fn assign(
        &self,
        number: u64,
        assignees: &[String],
        text: Map<String, Value>,
    ) -> Result<Vec<String>, ForgeError> {
        const OPERATION: &str = "edit a pull request";
        let edit = |change| self.repository.edit(number, Value::Object(change)).essential();
        let (mut change, mut accepted) = (text.clone(), Vec::new());
        if !assignees.is_empty() {
            // An edit replaces all.
            let (_, document) = self.read(number, true).await?;
            accepted = texts(list(&document, "/assignees"), "/login");
        }
        let added: Vec<_> = assignees.iter().filter(|name| !is_among(&accepted, name)).cloned().collect();
        if !added.is_empty() {
            let all = [accepted.as_slice(), added.as_slice()].concat();
            change.insert("assignees".to_owned(), json!(all));
        }
        if change.is_empty() || self.client.send(edit(change)).await?.is_success() {
            return Ok(Vec::new());
        }
        let mut refused = Vec::new();
        for assignee in added {
            accepted.push(assignee.clone());
            let change = Map::from_iter([("assignees".to_owned(), json!(accepted))]);
            let response = self.client.send(edit(change)).await?;
            if !response.is_success() {
                accepted.pop();
                let reason = self.client.refused_part(OPERATION, &response)?;
                refused.push(format!("assignee {assignee:?} is refused: {reason}"));
            }
        }
        if !text.is_empty() {
            self.client.call(edit(text)).await?;
        }
        Ok(refused)
    }

    /// Finds all pull requests of heads and a base, newest first.
    ///
    /// The pull requests of the base are listed once, unless no head has one.
    async fn find_each(
        &self,
        heads: &BTreeSet<BranchName>,
        base: &BranchName,
    ) -> Result<BTreeMap<BranchName, Vec<PullRequest>>, ForgeError> {
        let (mut found, mut used) = (Vec::new(), BTreeSet::new());
        for head in heads {
            if let Some(any) = self.find_any(head, base).await? {
                used.insert(head.clone());
                found.extend(any);
            }
        }
        if !used.is_empty() {
            let query = [("state", "all"), ("base_branch", base.as_str()), ("sort", "recentupdate")];
            found.extend(self.list(&query, MAX_CLOSED, &mut Listing::of_heads(used)).await?);
        }
        let mut by_head: BTreeMap<_, _> = heads.iter().map(|head| (head.clone(), Vec::new())).collect();
        for one in newest_first(found).into_iter().filter(|one| one.base == *base) {
            if let Some(of_head) = by_head.get_mut(&one.head) {
                of_head.push(one);
            }
        }
        Ok(by_head)
    }

    /// Finds any one pull request with these branches, unless its head is elsewhere.
    async fn find_any(
        &self,
        head: &BranchName,
        base: &BranchName,
    ) -> Result<Option<Option<PullRequest>>, ForgeError> {
        const OPERATION: &str = "find a pull request";
        let path = ["pulls", base.as_str(), head.as_str()];
        let request = self.repository.request(Method::Get, &path, OPERATION).essential();
        let response = self.client.send(request).await?;
        match response.status {
            404 => Ok(None),
            200..=299 => self.client.checked(OPERATION, pull_request(&response.body)).map(Some),
            _ => Err(self.client.failure(OPERATION, &response)),
        }
    }

    /// Finds the open pull request with these branches.
    async fn find_open(
        &self,
        head: &BranchName,
        base: &BranchName,
    ) -> Result<Option<PullRequest>, ForgeError> {
        let query = [("state", "open"), ("base_branch", base.as_str())];
        let found = self.list(&query, usize::MAX, &mut Listing::of_head(head)).await?;
        Ok(found.into_iter().find(|one| one.base == *base && one.state == PullRequestState::Open))
    }

    /// Returns true if the base requires a check or an approval.
    async fn is_anything_required(&self, base: &BranchName) -> Result<bool, ForgeError> {
        let path = ["branches", base.as_str()];
        let response = self.client.call(self.repository.request(Method::Get, &path, "read a branch")).await?;
        Ok(requires_anything(&response.body))
    }

    async fn style(&self, method: Option<MergeMethod>) -> Result<String, ForgeError> {
        let style = match method {
            Some(MergeMethod::Commit) => "merge",
            Some(MergeMethod::Squash) => "squash",
            Some(MergeMethod::Rebase) => "rebase",
            None => {
                let request = self.repository.request(Method::Get, &[], "read the repository");
                let response = self.client.call(request).await?;
                return Ok(default_style(&response.body).to_owned());
            }
        };
        Ok(style.to_owned())
    }
}

impl<T: Transport> Forge for Gitea<T> {
    async fn open_pull_requests(&self, listing: &mut Listing) -> Result<Vec<PullRequest>, ForgeError> {
        self.list(&[("state", "open")], usize::MAX, listing).await
    }

    async fn find(&self, head: &BranchName, base: &BranchName) -> Result<Vec<PullRequest>, ForgeError> {
        Ok(self.find_each(&BTreeSet::from([head.clone()]), base).await?.remove(head).unwrap_or_default())
    }

    async fn find_many(
        &self,
        heads: &BTreeSet<BranchName>,
        base: &BranchName,
    ) -> Result<Option<BTreeMap<BranchName, Vec<PullRequest>>>, ForgeError> {
        self.find_each(heads, base).await.map(Some)
    }

    async fn open(&self, new: &NewPullRequest) -> Result<Opened, ForgeError> {
        const OPERATION: &str = "open a pull request";
        let response = self.client.send(self.repository.open(new)).await?;
        if !response.is_success() {
            let failure = self.client.failure(OPERATION, &response);
            if matches!(response.status, 409 | 422)
                && let Some(pull_request) = self.find_open(&new.head, &new.base).await?
            {
                return Ok(Opened { pull_request, is_new: false, refused: Vec::new() });
            }
            return Err(failure);
        }
        let mut pull_request = self.client.checked(OPERATION, own_pull_request(&response.body))?;
        // It is open from here on: a failure is told, and not returned.
        let (mut refused, mut may_pass) = (Vec::new(), false);
        match self.add_labels(pull_request.number, &new.labels, true).await {
            Ok(labels) => pull_request.labels = labels,
            Err(error) => {
                may_pass = !error.is_final();
                refused.push(format!("labels are missing: {error}"));
            }
        }
        match self.request_reviews(pull_request.number, &new.reviewers).await {
            Ok(sentences) => refused.extend(sentences),
            Err(error) => {
                may_pass |= !error.is_final();
                refused.push(error.to_string());
            }
        }
        // The body says that the parts are there, unless a later round adds them.
        let body = new.completed_body.as_deref().filter(|_| !may_pass);
        let text = body.map(|body| body_members(body, pull_request.version)).unwrap_or_default();
        match self.assign(pull_request.number, &new.assignees, text).await {
            Ok(sentences) => {
                refused.extend(sentences);
                body.into_iter().for_each(|body| body.clone_into(&mut pull_request.body));
            }
            Err(error) => refused.push(error.to_string()),
        }
        Ok(Opened { pull_request, is_new: true, refused })
    }

    async fn edit(&self, current: &PullRequest, edit: &PullRequestEdit) -> Result<PullRequest, ForgeError> {
        if edit.depends_on_text() {
            // The version is that of the body alone, and not each server has one.
            let (found, _) = self.read(current.number, edit.is_closed).await?;
            self.client.unchanged("edit a pull request", (&found, current), edit)?;
        }
        self.remove_labels(current.number, edit).await?;
        self.add_labels(current.number, &edit.added_labels, edit.is_closed).await?;
        let mut refused = self.request_reviews(current.number, &edit.added_reviewers).await?;
        refused.extend(self.assign(current.number, &edit.added_assignees, Map::new()).await?);
        refused.iter().for_each(|sentence| tracing::warn!("pull request #{}: {sentence}", current.number));
        let Some(body) = edit_body(current, edit) else {
            return Ok(self.read(current.number, false).await?.0);
        };
        let request = self.repository.edit(current.number, body).essential_if(edit.is_closed);
        let operation = request.operation;
        let response = self.client.call(request).await?;
        self.client.checked(operation, own_pull_request(&response.body))
    }

    async fn merge(&self, current: &PullRequest, merge: &Merge) -> Result<MergeAnswer, ForgeError> {
        let (found, _) = self.read(current.number, false).await?;
        if let Some(answer) = found.obstacle(merge) {
            return Ok(answer);
        }
        if merge.time == MergeTime::WhenReady && !self.is_anything_required(&found.base).await? {
            return Ok(MergeAnswer::NothingRequired);
        }
        let style = self.style(merge.method).await?;
        let request = self.repository.merge(current.number, merge, &style);
        let operation = request.operation;
        let response = self.client.send(request).await?;
        merge_answer(&response).ok_or_else(|| self.client.failure(operation, &response))
    }
}

impl GiteaRepository {
    fn request(&self, method: Method, below: &[&str], operation: &'static str) -> ApiRequest {
        let mut segments = path(&["repos", &self.owner, &self.name]);
        segments.extend(below.iter().map(|&segment| segment.to_owned()));
        match method {
            Method::Get => ApiRequest::get(segments, operation),
            _ => ApiRequest::write(method, segments, operation),
        }
    }

    fn open(&self, new: &NewPullRequest) -> ApiRequest {
        let title = title(&new.title, new.is_draft);
        let body =
            json!({"head": new.head.as_str(), "base": new.base.as_str(), "title": title, "body": new.body});
        self.request(Method::Post, &["pulls"], "open a pull request").with_body(body).creating()
    }

    fn edit(&self, number: u64, body: Value) -> ApiRequest {
        let path = ["pulls", &number.to_string()];
        self.request(Method::Patch, &path, "edit a pull request").with_body(body)
    }

    fn add_labels(&self, number: u64, names: &[String]) -> ApiRequest {
        let path = ["issues", &number.to_string(), "labels"];
        self.request(Method::Post, &path, "add labels").with_body(json!({ "labels": names }))
    }

    fn request_reviews(&self, number: u64, reviewers: &[String]) -> ApiRequest {
        // A team of another organization cannot review here; the forge says so.
        let (teams, users): (Vec<_>, Vec<_>) = reviewers.iter().partition(|name| name.contains('/'));
        let teams: Vec<_> =
            teams.iter().map(|team| team.strip_prefix(&format!("{}/", self.owner)).unwrap_or(team)).collect();
        let path = ["pulls", &number.to_string(), "requested_reviewers"];
        let body = json!({"reviewers": users, "team_reviewers": teams});
        self.request(Method::Post, &path, "request reviews").with_body(body).creating()
    }

    fn merge(&self, number: u64, merge: &Merge, style: &str) -> ApiRequest {
        let mut body = json!({"do": style, "head_commit_id": merge.head_commit.to_string()});
        if merge.time == MergeTime::WhenReady {
            body["merge_when_checks_succeed"] = json!(true);
        }
        let path = ["pulls", &number.to_string(), "merge"];
        self.request(Method::Post, &path, "merge a pull request").with_body(body)
    }
}

fn title(title: &str, is_draft: bool) -> String {
    if is_draft { format!("{DRAFT_PREFIX}{title}") } else { title.to_owned() }
}

/// Returns the members that set a body.
fn body_members(text: &str, version: Option<u64>) -> Map<String, Value> {
    let mut members = Map::from_iter([("body".to_owned(), json!(text))]);
    // Without it, a text that a person wrote meanwhile would be lost.
    members.extend(version.map(|version| ("content_version".to_owned(), json!(version))));
    members
}

/// Returns true if a user is among others.
fn is_among(names: &[String], name: &str) -> bool {
    names.iter().any(|other| other.eq_ignore_ascii_case(name))
}

/// Returns the members of an edit, or none if only labels change.
fn edit_body(current: &PullRequest, edit: &PullRequestEdit) -> Option<Value> {
    let mut body = Map::new();
    if let Some(text) = &edit.title {
        body.insert("title".to_owned(), json!(title(text, current.is_draft)));
    }
    if let Some(text) = &edit.body {
        body.extend(body_members(text, current.version));
    }
    if edit.is_closed {
        body.insert("state".to_owned(), json!("closed"));
    }
    (!body.is_empty()).then(|| Value::Object(body))
}

/// Reads a list of pull requests; those whose head is elsewhere are left out.
fn pull_requests(body: &Value) -> Result<Vec<PullRequest>, Defect> {
    let entries = body.as_array().ok_or(Defect("no list of pull requests"))?;
    entries.iter().filter_map(|entry| pull_request(entry).transpose()).collect()
}

fn own_pull_request(body: &Value) -> Result<PullRequest, Defect> {
    pull_request(body)?.ok_or(Defect("a pull request whose head is in another repository"))
}

/// Reads a pull request.
/// It is left out if its head is not a branch of the repository itself.
fn pull_request(body: &Value) -> Result<Option<PullRequest>, Defect> {
    let number_of = |pointer| number(body, pointer);
    let number = number_of("/number").ok_or(Defect("a pull request without a number"))?;
    let base_repository = number_of("/base/repo_id").ok_or(Defect("a pull request without a base"))?;
    // The label has the name even if the branch was deleted. Without one, the head is no branch.
    let (Some(head), Some(base)) = (branch(body, "/head/label"), branch(body, "/base/ref")) else {
        return Ok(None);
    };
    if number_of("/head/repo_id") != Some(base_repository) {
        return Ok(None);
    }
    let state = match text(body, "/state") {
        _ if flag(body, "/merged") => PullRequestState::Merged,
        Some("open") => PullRequestState::Open,
        Some("closed") => PullRequestState::Closed,
        _ => return Err(Defect("a pull request without a state")),
    };
    let (title, is_draft) = bare_title(text(body, "/title").unwrap_or_default(), body.get("draft"));
    Ok(Some(PullRequest {
        number,
        url: page_url(body, "/html_url")?,
        state,
        head,
        head_commit: commit(body, "/head/sha"),
        base,
        title,
        body: text(body, "/body").unwrap_or_default().to_owned(),
        is_draft,
        labels: texts(list(body, "/labels"), "/name"),
        is_in_merge_queue: false,
        has_auto_merge: false,
        version: number_of("/content_version"),
    }))
}

/// Splits a title into the part without a prefix, and the mark of a draft.
fn bare_title(title: &str, draft: Option<&Value>) -> (String, bool) {
    let lower = title.to_ascii_lowercase();
    let prefix = DRAFT_PREFIXES.into_iter().find(|prefix| lower.starts_with(prefix));
    // Older versions have no member for it.
    let is_draft = draft.and_then(Value::as_bool).unwrap_or(prefix.is_some());
    match prefix {
        Some(prefix) if is_draft => (title[prefix.len()..].trim_start().to_owned(), true),
        _ => (title.to_owned(), is_draft),
    }
}

fn requires_anything(branch: &Value) -> bool {
    let approvals = number(branch, "/required_approvals").unwrap_or(0);
    flag(branch, "/protected") && (flag(branch, "/enable_status_check") || approvals > 0)
}

fn default_style(repository: &Value) -> &'static str {
    match text(repository, "/default_merge_style") {
        Some("rebase") => "rebase",
        Some("rebase-merge") => "rebase-merge",
        Some("squash") => "squash",
        Some("fast-forward-only") => "fast-forward-only",
        _ => "merge",
    }
}

/// Reads the answer to a merge.
/// There is none if the failure is about more than this one.
fn merge_answer(response: &ApiResponse) -> Option<MergeAnswer> {
    let reason = message(response);
    let says = |words: &str| reason.to_ascii_lowercase().contains(words);
    Some(match response.status {
        201 => MergeAnswer::Scheduled,
        200 | 204 => MergeAnswer::Merged,
        405 if says("already merged") => MergeAnswer::Merged,
        409 if says("already scheduled") => MergeAnswer::Scheduled,
        405 if says("not allowed") || says("work in progress") => MergeAnswer::Refused { reason },
        405 | 409 => MergeAnswer::NotYet { reason },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::script::{Script, endpoint, run};
    use super::*;

    const HEAD: &str = "1111111111111111111111111111111111111111";

    fn document(number: u64, head: &str, state: &str) -> Value {
        json!({
            "number": number, "html_url": format!("https://forge.example/team/fleet/pulls/{number}"),
            "state": state, "merged": false, "draft": false, "title": "Update web", "body": "text",
            "labels": [{"id": 7, "name": "images"}], "content_version": 3,
            "head": {"label": head, "ref": head, "sha": HEAD, "repo_id": 1},
            "base": {"label": "main", "ref": "main", "repo_id": 1},
        })
    }

    fn gitea(script: &Script) -> Gitea<&Script> {
        let repository = GiteaRepository { owner: "team".to_owned(), name: "fleet".to_owned() };
        Gitea::new(script, endpoint(), repository)
    }

    fn new() -> NewPullRequest {
        NewPullRequest {
            head: "tagboat/web".parse().unwrap(),
            base: "main".parse().unwrap(),
            title: "Update web".to_owned(),
            body: "text".to_owned(),
            is_draft: false,
            labels: Vec::new(),
            reviewers: Vec::new(),
            assignees: Vec::new(),
            completed_body: None,
        }
    }

    fn when_ready() -> Merge {
        Merge {
            time: MergeTime::WhenReady,
            method: Some(MergeMethod::Squash),
            head_commit: HEAD.parse().unwrap(),
        }
    }

    #[test]
    fn heads_elsewhere_are_left_out() {
        let changed = |pointer: &str, value: Value| {
            let mut entry = document(1, "tagboat/web", "open");
            *entry.pointer_mut(pointer).unwrap() = value;
            pull_request(&entry)
        };
        assert!(changed("/number", json!(1)).unwrap().is_some());
        for (pointer, value) in [
            ("/head/repo_id", json!(2)),
            ("/head/repo_id", json!(-1)),
            ("/head/label", json!("")),
            ("/head/label", json!("a..b")),
        ] {
            assert_eq!(changed(pointer, value.clone()), Ok(None), "{pointer} {value}");
        }
        for (pointer, value) in [
            ("/number", json!(null)),
            ("/number", json!(-1)),
            ("/base/repo_id", json!(null)),
            ("/state", json!("odd")),
            ("/html_url", json!("javascript:alert(1)")),
        ] {
            assert!(changed(pointer, value.clone()).is_err(), "{pointer} {value}");
        }
    }

    #[test]
    fn a_draft_is_a_title_with_a_prefix() {
        for (title, draft, wanted) in [
            ("WIP: Update", Some(json!(true)), ("Update", true)),
            ("[WIP] Update", None, ("Update", true)),
            ("wip:Update", None, ("Update", true)),
            ("Update", Some(json!(true)), ("Update", true)),
            ("Update", None, ("Update", false)),
            ("WIP: Update", Some(json!(false)), ("WIP: Update", false)),
        ] {
            let (bare, is_draft) = bare_title(title, draft.as_ref());
            assert_eq!((bare.as_str(), is_draft), wanted, "{title} {draft:?}");
        }
        assert_eq!(title("Update", true), "WIP: Update");
    }

    #[test]
    fn an_edit_keeps_the_draft_and_names_the_version() {
        let mut current = own_pull_request(&document(1, "tagboat/web", "open")).unwrap();
        let edit = PullRequestEdit {
            title: Some("New".to_owned()),
            body: Some("text".to_owned()),
            is_closed: true,
            ..PullRequestEdit::default()
        };
        let wanted = json!({"title": "New", "body": "text", "content_version": 3, "state": "closed"});
        assert_eq!(edit_body(&current, &edit), Some(wanted));
        (current.is_draft, current.version) = (true, None);
        let wanted = json!({"title": "WIP: New", "body": "text", "state": "closed"});
        assert_eq!(edit_body(&current, &edit), Some(wanted));
        assert_eq!(edit_body(&current, &PullRequestEdit::default()), None);
    }

    #[test]
    fn text_that_a_person_wrote_meanwhile_stays() {
        let current = own_pull_request(&document(1, "tagboat/web", "open")).unwrap();
        let edit = PullRequestEdit { title: Some("New".to_owned()), ..PullRequestEdit::default() };
        for member in ["body", "title"] {
            let mut changed = document(1, "tagboat/web", "open");
            changed[member] = json!("A person's");
            let script = Script::new([(200, changed)]);
            let error = run(gitea(&script).edit(&current, &edit)).unwrap_err();
            assert!(matches!(error, ForgeError::Refused { status: 409, .. }), "{error}");
        }
    }

    #[test]
    fn one_that_exists_already_is_found() {
        let script = Script::new([
            (409, json!({"message": "pull request already exists for these targets"})),
            (200, json!([document(4, "other", "open"), document(2, "tagboat/web", "open")])),
            (200, json!([])),
        ]);
        let opened = run(gitea(&script).open(&new())).unwrap();
        assert_eq!((opened.pull_request.number, opened.is_new), (2, false));

        let script = Script::new([(422, json!({"message": "no such branch"})), (200, json!([]))]);
        let error = run(gitea(&script).open(&new())).unwrap_err();
        assert_eq!(error.to_string(), "forge.example refuses to open a pull request: no such branch");
    }

    #[test]
    fn missing_labels_are_created() {
        let label = |name: &str| json!({"id": 1, "name": name});
        let script = Script::new([
            (201, document(1, "tagboat/web", "open")),
            (200, json!([label("images")])),
            (201, label("fleet")),
            (200, json!([label("images"), label("fleet")])),
        ]);
        let new = NewPullRequest { labels: vec!["images".to_owned(), "fleet".to_owned()], ..new() };
        let opened = run(gitea(&script).open(&new)).unwrap();
        assert_eq!(opened.pull_request.labels, ["images", "fleet"]);
        script.assert_essential();
        let sent = script.requests();
        assert_eq!(sent[1].1, json!({"labels": ["images", "fleet"]}));
        assert_eq!(
            sent[2],
            ("Post repos/team/fleet/labels".to_owned(), json!({"name": "fleet", "color": LABEL_COLOR}))
        );
        assert_eq!(sent[3].1, json!({"labels": ["fleet"]}));
    }

    #[test]
    fn find_searches_closed_ones_too() {
        let script = Script::new([
            (200, document(1, "tagboat/web", "closed")),
            (200, json!([document(9, "tagboat/web", "open"), document(8, "other", "open")])),
            (200, json!([document(1, "tagboat/web", "closed")])),
            (200, json!([])),
        ]);
        let (head, base) = ("tagboat/web".parse().unwrap(), "main".parse().unwrap());
        let found = run(gitea(&script).find(&head, &base)).unwrap();
        assert_eq!(found.iter().map(|one| one.number).collect::<Vec<_>>(), [9, 1]);
        script.assert_essential();
        assert_eq!(script.requests()[0].0, "Get repos/team/fleet/pulls/main/tagboat%2Fweb");
        let script = Script::new([(404, json!({}))]);
        assert_eq!(run(gitea(&script).find(&head, &base)), Ok(Vec::new()));
    }

    #[test]
    fn closed_ones_of_many_heads_are_listed_once() {
        let script = Script::new([
            (200, document(1, "a", "closed")),
            (200, document(2, "b", "closed")),
            (404, json!({})),
            (200, json!([document(4, "b", "closed"), document(3, "c", "open"), document(1, "a", "closed")])),
            (200, json!([document(2, "b", "closed")])),
            (200, json!([])),
        ]);
        let heads = ["a", "b", "new"].map(|name| name.parse().unwrap()).into();
        let found = run(gitea(&script).find_many(&heads, &"main".parse().unwrap())).unwrap().unwrap();
        let numbers = |of: &Vec<PullRequest>| of.iter().map(|one| one.number).collect::<Vec<_>>();
        let found: Vec<_> = found.iter().map(|(head, of)| (head.as_str(), numbers(of))).collect();
        assert_eq!(found, [("a", vec![1]), ("b", vec![4, 2]), ("new", vec![])]);

        let script = Script::new([(404, json!({})), (404, json!({})), (404, json!({}))]);
        assert!(run(gitea(&script).find_many(&heads, &"main".parse().unwrap())).is_ok());
    }

    #[test]
    fn a_page_loop_is_an_error() {
        let page = json!([document(2, "a", "open")]);
        let script = Script::new([(200, page.clone()), (200, page)]);
        let error = run(gitea(&script).open_pull_requests(&mut Listing::all())).unwrap_err();
        assert!(error.to_string().contains("repeats"), "{error}");
    }

    #[test]
    fn closing_goes_on_when_little_is_left_of_a_limit() {
        let current = own_pull_request(&document(1, "tagboat/web", "open")).unwrap();
        let removed_labels = vec!["images".to_owned()];
        let edit = PullRequestEdit { removed_labels, is_closed: true, ..PullRequestEdit::default() };
        let open = || (200, document(1, "tagboat/web", "open"));
        let script =
            Script::new([open(), open(), (204, json!(null)), (201, document(1, "tagboat/web", "closed"))]);
        assert_eq!(run(gitea(&script).edit(&current, &edit)).unwrap().state, PullRequestState::Closed);
        script.assert_essential();
    }

    #[test]
    fn a_merge_needs_a_rule_unless_it_is_immediate() {
        let current = own_pull_request(&document(1, "tagboat/web", "open")).unwrap();
        for rules in [
            json!({"protected": false, "enable_status_check": true}),
            json!({"protected": true, "enable_status_check": false, "required_approvals": 0}),
            json!({"protected": true}),
        ] {
            let script = Script::new([(200, document(1, "tagboat/web", "open")), (200, rules)]);
            let answer = run(gitea(&script).merge(&current, &when_ready()));
            assert_eq!(answer, Ok(MergeAnswer::NothingRequired));
        }
        let rules = json!({"protected": true, "enable_status_check": true});
        let script =
            Script::new([(200, document(1, "tagboat/web", "open")), (200, rules), (201, json!(null))]);
        assert_eq!(run(gitea(&script).merge(&current, &when_ready())), Ok(MergeAnswer::Scheduled));
        let body = json!({"do": "squash", "head_commit_id": HEAD, "merge_when_checks_succeed": true});
        assert_eq!(script.requests()[2], ("Post repos/team/fleet/pulls/1/merge".to_owned(), body));

        let now = Merge { time: MergeTime::Immediately, method: None, ..when_ready() };
        let script = Script::new([
            (200, document(1, "tagboat/web", "open")),
            (200, json!({"default_merge_style": "rebase-merge"})),
            (200, json!(null)),
        ]);
        assert_eq!(run(gitea(&script).merge(&current, &now)), Ok(MergeAnswer::Merged));
        assert_eq!(script.requests()[2].1, json!({"do": "rebase-merge", "head_commit_id": HEAD}));
    }

    #[test]
    fn answers_to_a_merge_are_told_apart() {
        let answer = |status, text: &str| {
            let body = json!({ "message": text });
            merge_answer(&ApiResponse { status, headers: Vec::new(), body })
        };
        let not_yet = |text: &str| Some(MergeAnswer::NotYet { reason: text.to_owned() });
        assert_eq!(answer(405, "Please try again later"), not_yet("Please try again later"));
        assert_eq!(answer(409, "head out of date"), not_yet("head out of date"));
        assert_eq!(answer(409, "x is already scheduled to auto merge"), Some(MergeAnswer::Scheduled));
        assert_eq!(answer(405, "The PR is already merged"), Some(MergeAnswer::Merged));
        assert!(matches!(answer(405, "User not allowed to merge PR"), Some(MergeAnswer::Refused { .. })));
        assert_eq!(answer(403, "no"), None);
        assert_eq!(answer(500, "no"), None);
    }
}
