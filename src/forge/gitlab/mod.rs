//! GitLab, where a pull request is a merge request.
//!
//! The path of a project is one segment. A draft is a title that begins with `Draft: `. Reviewers and assignees are ids of users.
//! Auto-merge is the member `auto_merge`, in versions before 17.11 `merge_when_pipeline_succeeds`; a version ignores the member
//! that it does not know, so both are sent. The project decides between merge commits and fast-forward.
//!
//! | files | contents |
//! |---|---|
//! | `requests` | a project, and requests to it |
//! | `reading` | the values in responses |

mod reading;
mod requests;
#[cfg(test)]
pub(super) mod tests;

pub use requests::GitlabProject;

use serde_json::{Map, Value, json};

use super::api::Forge;
use super::client::{Client, Endpoint, newest_first, path};
use super::error::ForgeError;
use super::exchange::{ApiRequest, ApiResponse, Method, Transport};
use super::listing::Listing;
use super::paging::Pages;
use super::pull_request::{
    Edited, Merge, MergeAnswer, MergeTime, NewPullRequest, Opened, PullRequest, PullRequestEdit,
};
use super::reading::{list, number};
use crate::git::BranchName;
use reading::{
    DRAFT_PREFIXES, MergeSettings, merge_answer, merge_requests, merge_settings, needs_approval,
    own_merge_request,
};
use requests::edit_body;

/// The maximum number of entries of a page.
const PAGE_SIZE: usize = 100;

/// The merge requests of a project on GitLab.
#[derive(Debug)]
pub struct Gitlab<T> {
    client: Client<T>,
    project: GitlabProject,
}

/// The ids of users, and sentences about names that have none.
#[derive(Debug, Default)]
struct Users {
    found: Vec<(u64, String)>,
    refused: Vec<String>,
}

impl<T: Transport> Gitlab<T> {
    /// Makes the client of a project.
    pub fn new(transport: T, endpoint: Endpoint, project: GitlabProject) -> Self {
        Self { client: Client::new(transport, endpoint), project }
    }

    /// Lists those merge requests of a choice whose head is in the project itself.
    async fn list(
        &self,
        query: &[(&'static str, &str)],
        listing: &mut Listing,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        const OPERATION: &str = "list merge requests";
        let (mut pages, mut found) = (Pages::of(PAGE_SIZE), Vec::new());
        loop {
            let mut request = self.project.request(Method::Get, &["merge_requests"], OPERATION);
            for (name, value) in query {
                request = request.with_query(name, value);
            }
            let request = request.with_query("per_page", &pages.size()).with_query("page", &pages.number());
            let request = request.essential_if(listing.is_urgent);
            let Some(response) = pages.admit(self.client.call(request).await)? else { continue };
            let entries = self.client.checked(OPERATION, merge_requests(&response.body))?;
            let all = list(&response.body, "");
            let numbers = all.iter().filter_map(|entry| number(entry, "/iid"));
            self.client.checked(OPERATION, pages.count(numbers))?;
            self.client.checked(OPERATION, listing.keep(entries, &mut found))?;
            // The header names the next page, and is empty on the last one.
            if all.is_empty() || response.header("x-next-page") == Some("") {
                return Ok(newest_first(found));
            }
            pages.go_on();
        }
    }

    async fn read(&self, number: u64, is_essential: bool) -> Result<PullRequest, ForgeError> {
        const OPERATION: &str = "read a merge request";
        let path = ["merge_requests", &number.to_string()];
        let request = self.project.request(Method::Get, &path, OPERATION).essential_if(is_essential);
        let response = self.client.call(request).await?;
        self.client.checked(OPERATION, own_merge_request(&response.body))
    }

    /// Looks up the ids of users.
    async fn users(&self, role: &str, names: &[String]) -> Result<Users, ForgeError> {
        let mut users = Users::default();
        for name in names {
            if name.contains('/') {
                users.refused.push(format!("{role} {name:?} is refused: GitLab takes users only"));
                continue;
            }
            let request =
                ApiRequest::get(path(&["users"]), "look up a user").with_query("username", name).essential();
            let response = self.client.call(request).await?;
            match list(&response.body, "").first().and_then(|user| number(user, "/id")) {
                Some(id) => users.found.push((id, name.clone())),
                None => users.refused.push(format!("{role} {name:?} is refused: there is no such user")),
            }
        }
        Ok(users)
    }

    /// Returns the members of an edit that add reviewers and assignees beside those of others.
    ///
    /// Adds a sentence for each user that the server does not know.
    async fn added_users(
        &self,
        number: u64,
        edit: &PullRequestEdit,
        refused: &mut Vec<String>,
    ) -> Result<Map<String, Value>, ForgeError> {
        let mut members = Map::new();
        if edit.added_reviewers.is_empty() && edit.added_assignees.is_empty() {
            return Ok(members);
        }
        let path = ["merge_requests", &number.to_string()];
        let request = self.project.request(Method::Get, &path, "read a merge request").essential();
        let document = self.client.call(request).await?.body;
        for (role, present, member, names) in [
            ("reviewer", "/reviewers", "reviewer_ids", &edit.added_reviewers),
            ("assignee", "/assignees", "assignee_ids", &edit.added_assignees),
        ] {
            let added = self.users(role, names).await?;
            refused.extend(added.refused.iter().cloned());
            let present =
                list(&document, present).iter().filter_map(|user| super::reading::number(user, "/id"));
            // An edit replaces all.
            let mut all: Vec<u64> = present.collect();
            let missing: Vec<u64> = added.ids().into_iter().filter(|id| !all.contains(id)).collect();
            if !missing.is_empty() {
                all.extend(missing);
                members.insert(member.to_owned(), json!(all));
            }
        }
        Ok(members)
    }

    /// Marks the merge requests that are in a merge train.
    async fn mark_trains(&self, found: &mut [PullRequest], is_essential: bool) -> Result<(), ForgeError> {
        const OPERATION: &str = "list the merge trains";
        if !found.iter().any(|one| one.has_auto_merge) {
            return Ok(());
        }
        let request = self.project.request(Method::Get, &["merge_trains"], OPERATION);
        let request = request.with_query("scope", "active").with_query("per_page", &PAGE_SIZE);
        let request = request.essential_if(is_essential);
        let response = self.client.send(request).await?;
        // Not each edition has merge trains.
        if matches!(response.status, 403 | 404) {
            return Ok(());
        }
        if !response.is_success() {
            return Err(self.client.failure(OPERATION, &response));
        }
        for car in list(&response.body, "") {
            let number = number(car, "/merge_request/iid");
            for one in found.iter_mut().filter(|one| Some(one.number) == number) {
                one.is_in_merge_queue = true;
            }
        }
        Ok(())
    }

    async fn merge_settings(&self) -> Result<MergeSettings, ForgeError> {
        let request = self.project.request(Method::Get, &[], "read the project");
        Ok(merge_settings(&self.client.call(request).await?.body))
    }

    /// Returns true if a merge request needs an approval.
    async fn needs_approval(&self, number: u64) -> Result<bool, ForgeError> {
        const OPERATION: &str = "read the approvals";
        let path = ["merge_requests", &number.to_string(), "approvals"];
        let response = self.client.send(self.project.request(Method::Get, &path, OPERATION)).await?;
        match response.status {
            // Not each edition has rules for approvals.
            404 => Ok(false),
            200..=299 => Ok(needs_approval(&response.body)),
            _ => Err(self.client.failure(OPERATION, &response)),
        }
    }
}

impl<T: Transport> Forge for Gitlab<T> {
    fn draft_prefixes(&self) -> &'static [&'static str] {
        &DRAFT_PREFIXES
    }

    async fn open_pull_requests(&self, listing: &mut Listing) -> Result<Vec<PullRequest>, ForgeError> {
        let mut found = self.list(&[("state", "opened")], listing).await?;
        self.mark_trains(&mut found, listing.is_urgent).await?;
        Ok(found)
    }

    async fn find(&self, head: &BranchName, base: &BranchName) -> Result<Vec<PullRequest>, ForgeError> {
        let branches = [("source_branch", head.as_str()), ("target_branch", base.as_str())];
        let order = [("state", "all"), ("order_by", "created_at"), ("sort", "desc")];
        let query = [branches.as_slice(), order.as_slice()].concat();
        let mut found = self.list(&query, &mut Listing::of_head(head)).await?;
        found.retain(|one| one.head == *head && one.base == *base);
        Ok(found)
    }

    async fn get(&self, number: u64) -> Result<PullRequest, ForgeError> {
        self.read(number, false).await
    }

    async fn open(&self, new: &NewPullRequest) -> Result<Opened, ForgeError> {
        const OPERATION: &str = "open a merge request";
        let reviewers = self.users("reviewer", &new.reviewers).await?;
        let assignees = self.users("assignee", &new.assignees).await?;
        let request = self.project.open(new, &reviewers.ids(), &assignees.ids());
        let response = self.client.send(request).await?;
        if !response.is_success() {
            let failure = self.client.failure(OPERATION, &response);
            if matches!(response.status, 409 | 422)
                && let Some(opened) = Opened::among(self.find(&new.head, &new.base).await?)
            {
                return Ok(opened);
            }
            return Err(failure);
        }
        let pull_request = self.client.checked(OPERATION, own_merge_request(&response.body))?;
        let mut refused = reviewers.dropped("reviewer", list(&response.body, "/reviewers"));
        refused.extend(assignees.dropped("assignee", list(&response.body, "/assignees")));
        Ok(Opened { pull_request, is_new: true, refused })
    }

    async fn edit(&self, current: &PullRequest, edit: &PullRequestEdit) -> Result<Edited, ForgeError> {
        const OPERATION: &str = "edit a merge request";
        if edit.needs_look() {
            let found = self.read(current.number, edit.is_closed).await?;
            self.client.unchanged(OPERATION, (&found, current), edit)?;
        }
        let mut members = edit_body(current, edit);
        let mut refused = Vec::new();
        members.extend(self.added_users(current.number, edit, &mut refused).await?);
        if members.is_empty() {
            return Ok(Edited { pull_request: self.read(current.number, false).await?, refused });
        }
        let body = Value::Object(members);
        let path = ["merge_requests", &current.number.to_string()];
        let request = self.project.request(Method::Put, &path, OPERATION).with_body(body);
        let request = request.essential_if(edit.is_closed);
        let response = self.client.call(request).await?;
        let pull_request = self.client.checked(OPERATION, own_merge_request(&response.body))?;
        Ok(Edited { pull_request, refused })
    }

    async fn merge(&self, current: &PullRequest, merge: &Merge) -> Result<MergeAnswer, ForgeError> {
        let found = self.read(current.number, false).await?;
        if let Some(answer) = found.obstacle(merge) {
            return Ok(answer);
        }
        let settings = self.merge_settings().await?;
        if let Some(reason) = settings.refusal(merge.method) {
            return Ok(MergeAnswer::Refused { reason: reason.to_owned() });
        }
        let is_later = merge.time == MergeTime::WhenReady;
        if is_later && !settings.requires_checks && !self.needs_approval(current.number).await? {
            return Ok(MergeAnswer::NothingRequired);
        }
        let uses_train = is_later && settings.has_merge_trains;
        let request = if uses_train {
            self.project.board_train(current.number, merge)
        } else {
            self.project.merge(current.number, merge)
        };
        let operation = request.operation;
        let response = self.client.send(request).await?;
        merge_answer(&response, uses_train).ok_or_else(|| self.client.failure(operation, &response))
    }

    async fn cancel_merge(&self, current: &PullRequest) -> Result<(), ForgeError> {
        const OPERATION: &str = "cancel an auto-merge";
        let path = ["merge_requests", &current.number.to_string(), "cancel_merge_when_pipeline_succeeds"];
        let request = self.project.request(Method::Post, &path, OPERATION).essential();
        let response = self.client.send(request).await?;
        match response.status {
            // It has ended, or has no auto-merge.
            200..=299 | 405 | 406 => Ok(()),
            // GitLab has this status for a login that may not merge into the branch.
            401 => Err(self.client.failure(OPERATION, &ApiResponse { status: 403, ..response })),
            _ => Err(self.client.failure(OPERATION, &response)),
        }
    }
}

impl Users {
    fn ids(&self) -> Vec<u64> {
        self.found.iter().map(|(id, _)| *id).collect()
    }

    /// Returns the sentences about unknown names, and about users that the forge left out.
    fn dropped(self, role: &str, present: &[Value]) -> Vec<String> {
        let mut refused = self.refused;
        for (id, name) in self.found {
            if !present.iter().any(|user| number(user, "/id") == Some(id)) {
                refused.push(format!("{role} {name:?} is left out by GitLab"));
            }
        }
        refused
    }
}
