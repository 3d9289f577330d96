//! Gitea, and Forgejo, which has the same API.
//!
//! A draft is a title that begins with `WIP: `. Labels of unknown names are dropped silently, so missing ones are created. The
//! listing has no filter for the head branch, and `pulls/BASE/HEAD` returns any one pull request, also a closed one; so those of
//! many heads are found by one listing. A single closed one is told with the tip that its branch has now. A pull
//! request does not say if it is scheduled for a merge: a second request to schedule it is refused, and counts as scheduled. A
//! schedule keeps the method and the message with which it was made, and merges later commits as well.
//!
//! | files | contents |
//! |---|---|
//! | `requests` | a repository, and requests to it |
//! | `reading` | the values in responses |

mod reading;
mod requests;
#[cfg(test)]
mod tests;

pub use requests::GiteaRepository;

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use serde_json::{Value, json};

use super::api::Forge;
use super::client::{Client, Endpoint, newest_first};
use super::error::ForgeError;
use super::exchange::{Method, Transport};
use super::listing::Listing;
use super::paging::Pages;
use super::pull_request::{
    Edited, Merge, MergeAnswer, MergeMethod, MergeTime, NewPullRequest, Opened, PullRequest, PullRequestEdit,
    PullRequestState,
};
use super::reading::{list, number, text, texts};
use crate::git::BranchName;
use reading::{
    DRAFT_PREFIXES, default_style, is_of_others, merge_answer, own_pull_request, permits, pull_request,
    pull_requests, requires_anything,
};
use requests::{body_members, edit_body};

/// The entries of a page; servers have the same maximum by default.
const PAGE_SIZE: usize = 50;

/// The maximum number of pull requests among which closed ones are searched.
const MAX_CLOSED: usize = 1_000;

/// The number of searches that wait for their turn at the same time.
///
/// The rate limiter admits fewer.
const SEARCHES: usize = 16;

/// The color of a label that is created.
const LABEL_COLOR: &str = "#6a7d90";

/// The pull requests of a repository on Gitea or Forgejo.
#[derive(Debug)]
pub struct Gitea<T> {
    client: Client<T>,
    repository: GiteaRepository,
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
            self.client.checked(OPERATION, listing.keep(entries, &mut found))?;
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
        let mut accepted = Vec::new();
        let response = self.client.send(self.repository.request_reviews(number, reviewers)).await?;
        if response.is_success() {
            accepted.push((reviewers, response));
        } else {
            // One that is unknown makes the forge refuse all.
            for reviewer in reviewers {
                let one = std::slice::from_ref(reviewer);
                let response = self.client.send(self.repository.request_reviews(number, one)).await?;
                if response.is_success() {
                    accepted.push((one, response));
                } else {
                    let reason = self.client.refused_part(OPERATION, &response)?;
                    refused.push(format!("reviewer {reviewer:?} is refused: {}", reason_in_words(&reason)));
                }
            }
        }
        let mut dropped: Vec<&String> = accepted
            .iter()
            .flat_map(|(asked, answer)| teams_missing(asked, list(&answer.body, "")))
            .collect();
        if !dropped.is_empty() {
            // A team that was asked before is in no answer.
            let (_, document) = self.read(number, true).await?;
            let present = texts(list(&document, "/requested_reviewers_teams"), "/name");
            dropped.retain(|team| !is_among(&present, team_name(team)));
        }
        refused.extend(dropped.iter().map(|team| {
            format!("reviewer {team:?} is refused: it is no team of an organization that owns the repository")
        }));
        Ok(refused)
    }

    /// Assigns users beside those of others.
    ///
    /// Returns a sentence for each user that is refused.
    async fn assign(&self, number: u64, assignees: &[String]) -> Result<Vec<String>, ForgeError> {
        const OPERATION: &str = "edit a pull request";
        let assign =
            |names: &[String]| self.repository.edit(number, json!({ "assignees": names })).essential();
        if assignees.is_empty() {
            return Ok(Vec::new());
        }
        // An edit replaces all.
        let (_, document) = self.read(number, true).await?;
        let mut accepted = texts(list(&document, "/assignees"), "/login");
        let added: Vec<_> = assignees.iter().filter(|name| !is_among(&accepted, name)).cloned().collect();
        let all = [accepted.as_slice(), added.as_slice()].concat();
        let refusal = async |names: &[String]| -> Result<Option<String>, ForgeError> {
            let response = self.client.send(assign(names)).await?;
            match response.is_success() {
                true => Ok(None),
                false => self.client.refused_part(OPERATION, &response).map(Some),
            }
        };
        if added.is_empty() {
            return Ok(Vec::new());
        }
        match refusal(&all).await {
            Ok(None) => return Ok(Vec::new()),
            Ok(Some(_)) => {}
            Err(ForgeError::Failed { .. }) => {}
            Err(error) => return Err(error),
        }
        let mut refused = Vec::new();
        for assignee in added {
            let names = [accepted.as_slice(), std::slice::from_ref(&assignee)].concat();
            let reason = match refusal(&names).await {
                Ok(None) => {
                    accepted = names;
                    continue;
                }
                Ok(Some(reason)) => reason_in_words(&reason),
                // The server answers 500 about a user without access, and about an organization. Only to administrators does
                // it say why, so it is asked whether it works without that one.
                Err(error @ ForgeError::Failed { .. }) => match refusal(&accepted).await {
                    Ok(None) => {
                        "the server cannot assign it, as one without access to the repository".to_owned()
                    }
                    _ => return Err(error),
                },
                Err(error) => return Err(error),
            };
            refused.push(format!("assignee {assignee:?} is refused: {reason}"));
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
        let heads: Vec<&BranchName> = heads.iter().collect();
        for heads in heads.chunks(SEARCHES) {
            let searches = join_all(heads.iter().map(|head| self.find_any(head, base))).await;
            for (head, any) in heads.iter().zip(searches) {
                if let Some(any) = any? {
                    used.insert(BranchName::clone(head));
                    found.extend(any);
                }
            }
        }
        if !used.is_empty() {
            let query = [("state", "all"), ("base_branch", base.as_str()), ("sort", "recentupdate")];
            // Of one that is found twice, the first counts.
            let listed = self.list(&query, MAX_CLOSED, &mut Listing::of_heads(used)).await?;
            found.splice(..0, listed);
        }
        let mut by_head: BTreeMap<_, _> = heads.into_iter().map(|head| (head.clone(), Vec::new())).collect();
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
            200..=299 => {
                let found = self.client.checked(OPERATION, pull_request(&response.body))?;
                // Of a closed one, the tip that the branch has now is told, and only a list has its own.
                Ok(Some(found.map(|one| match one.state {
                    PullRequestState::Open => one,
                    _ => PullRequest { head_commit: None, ..one },
                })))
            }
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
    fn draft_prefixes(&self) -> &'static [&'static str] {
        &DRAFT_PREFIXES
    }

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

    async fn get(&self, number: u64) -> Result<PullRequest, ForgeError> {
        Ok(self.read(number, false).await?.0)
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
                may_pass = error.delays_labels();
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
        match self.assign(pull_request.number, &new.assignees).await {
            Ok(sentences) => refused.extend(sentences),
            Err(error) => {
                may_pass |= !error.is_final();
                refused.push(error.to_string());
            }
        }
        // The body says that the parts are there, unless a later round adds them. It comes last: the server makes an edit with
        // assignees in steps, the text first.
        let mut body = new.completed_body.as_deref().filter(|_| !may_pass);
        if body.is_some() && pull_request.version.is_none() {
            // Forgejo has no versions, and would overwrite the text that a person wrote meanwhile.
            match self.read(pull_request.number, true).await {
                Ok((found, _)) => body = body.filter(|_| found.body == pull_request.body),
                Err(error) => {
                    body = None;
                    refused.push(error.to_string());
                }
            }
        }
        if let Some(body) = body {
            let text = Value::Object(body_members(body, pull_request.version));
            let request = self.repository.edit(pull_request.number, text).essential();
            match self.client.call(request).await {
                Ok(_) => body.clone_into(&mut pull_request.body),
                Err(error) => refused.push(error.to_string()),
            }
        }
        Ok(Opened { pull_request, is_new: true, refused })
    }

    async fn edit(&self, current: &PullRequest, edit: &PullRequestEdit) -> Result<Edited, ForgeError> {
        if edit.depends_on_text() {
            // Always: the version is that of the body alone, not each server has one, and there is no limit of calls.
            let (found, _) = self.read(current.number, edit.is_closed).await?;
            self.client.unchanged("edit a pull request", (&found, current), edit)?;
        }
        self.remove_labels(current.number, edit).await?;
        self.add_labels(current.number, &edit.added_labels, edit.is_closed).await?;
        let mut refused = self.request_reviews(current.number, &edit.added_reviewers).await?;
        refused.extend(self.assign(current.number, &edit.added_assignees).await?);
        let Some(body) = edit_body(current, edit) else {
            return Ok(Edited { pull_request: self.read(current.number, false).await?.0, refused });
        };
        let request = self.repository.edit(current.number, body).essential_if(edit.is_closed);
        let operation = request.operation;
        let response = self.client.call(request).await?;
        let pull_request = self.client.checked(operation, own_pull_request(&response.body))?;
        Ok(Edited { pull_request, refused })
    }

    async fn merge(&self, current: &PullRequest, merge: &Merge) -> Result<MergeAnswer, ForgeError> {
        let (found, document) = self.read(current.number, false).await?;
        if let Some(answer) = found.obstacle(merge) {
            return Ok(answer);
        }
        if merge.time == MergeTime::WhenReady && !self.is_anything_required(&found.base).await? {
            return Ok(MergeAnswer::NothingRequired);
        }
        let style = self.style(merge.method).await?;
        if !permits(&document, &style) {
            // The server schedules it all the same, and never merges.
            let reason = format!("the repository does not permit the merge method {style:?}");
            return Ok(MergeAnswer::Refused { reason });
        }
        let request = self.repository.merge(current.number, merge, &style);
        let operation = request.operation;
        let response = self.client.send(request).await?;
        merge_answer(&response).ok_or_else(|| self.client.failure(operation, &response))
    }

    fn tells_auto_merge(&self) -> bool {
        false
    }

    async fn cancel_merge(&self, current: &PullRequest) -> Result<(), ForgeError> {
        const OPERATION: &str = "cancel an auto-merge";
        let path = ["pulls", &current.number.to_string(), "merge"];
        let request = self.repository.request(Method::Delete, &path, OPERATION).essential();
        let response = self.client.send(request).await?;
        match response.status {
            200..=299 | 404 => Ok(()),
            // That of a person stays, unless we administer the repository.
            403 if is_of_others(&response) => Ok(()),
            _ => Err(self.client.failure(OPERATION, &response)),
        }
    }
}

/// Returns the server's reason to refuse a user or a team in plain words.
fn reason_in_words(reason: &str) -> String {
    match reason.to_ascii_lowercase() {
        lower if !lower.contains("not exist") => reason.to_owned(),
        lower if lower.starts_with("team") => "there is no such team".to_owned(),
        _ => "there is no such user".to_owned(),
    }
}

/// Returns the name of a team without that of its organization.
fn team_name(team: &str) -> &str {
    team.rsplit('/').next().unwrap_or(team)
}

/// Returns the teams among reviewers that an answer lacks.
///
/// In a repository of a user, all teams are dropped silently.
fn teams_missing<'n>(asked: &'n [String], answer: &[Value]) -> Vec<&'n String> {
    let present = texts(answer, "/team/name");
    asked.iter().filter(|name| name.contains('/') && !is_among(&present, team_name(name))).collect()
}

/// Returns true if a user is among others.
fn is_among(names: &[String], name: &str) -> bool {
    names.iter().any(|other| other.eq_ignore_ascii_case(name))
}
