//! GitLab, where a pull request is a merge request.
//!
//! The path of a project is one segment. A draft is a title that begins with `Draft: `. Reviewers and assignees are ids of users.
//! Auto-merge is the member `auto_merge`, in versions before 17.11 `merge_when_pipeline_succeeds`; a version ignores the member
//! that it does not know, so both are sent. The project decides between merge commits and fast-forward.

use serde_json::{Value, json};

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
const DRAFT_PREFIX: &str = "Draft: ";

/// The prefixes that GitLab recognizes; the last two in older versions.
const DRAFT_PREFIXES: [&str; 5] = ["draft:", "[draft]", "(draft)", "wip:", "[wip]"];

/// The maximum number of entries of a page.
const PAGE_SIZE: usize = 100;

/// The merge requests of a project on GitLab.
#[derive(Debug)]
pub struct Gitlab<T> {
    client: Client<T>,
    project: GitlabProject,
}

/// A project on GitLab, by its path, such as `group/subgroup/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitlabProject {
    /// The path, with the names of all groups.
    pub path: String,
}

/// The settings of a project that bear on merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MergeSettings {
    makes_merge_commits: bool,
    rebases: bool,
    may_squash: bool,
    requires_checks: bool,
    has_merge_trains: bool,
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
            found.extend(entries.into_iter().filter(|one| listing.keeps(one)));
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

    async fn open(&self, new: &NewPullRequest) -> Result<Opened, ForgeError> {
        const OPERATION: &str = "open a merge request";
        let reviewers = self.users("reviewer", &new.reviewers).await?;
        let assignees = self.users("assignee", &new.assignees).await?;
        let request = self.project.open(new, &reviewers.ids(), &assignees.ids());
        let response = self.client.send(request).await?;
        if !response.is_success() {
            let failure = self.client.failure(OPERATION, &response);
            if matches!(response.status, 409 | 422) {
                let found = self.find(&new.head, &new.base).await?;
                if let Some(pull_request) = found.into_iter().find(|one| one.state == PullRequestState::Open)
                {
                    return Ok(Opened { pull_request, is_new: false, refused: Vec::new() });
                }
            }
            return Err(failure);
        }
        let pull_request = self.client.checked(OPERATION, own_merge_request(&response.body))?;
        let mut refused = reviewers.dropped("reviewer", list(&response.body, "/reviewers"));
        refused.extend(assignees.dropped("assignee", list(&response.body, "/assignees")));
        Ok(Opened { pull_request, is_new: true, refused })
    }

    async fn edit(&self, current: &PullRequest, edit: &PullRequestEdit) -> Result<PullRequest, ForgeError> {
        const OPERATION: &str = "edit a merge request";
        if edit.depends_on_text() {
            let found = self.read(current.number, edit.is_closed).await?;
            self.client.unchanged(OPERATION, (&found, current), edit)?;
        }
        let Some(body) = edit_body(current, edit) else { return self.read(current.number, false).await };
        let path = ["merge_requests", &current.number.to_string()];
        let request = self.project.request(Method::Put, &path, OPERATION).with_body(body);
        let request = request.essential_if(edit.is_closed);
        let response = self.client.call(request).await?;
        self.client.checked(OPERATION, own_merge_request(&response.body))
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

impl GitlabProject {
    fn request(&self, method: Method, below: &[&str], operation: &'static str) -> ApiRequest {
        let mut segments = path(&["projects", &self.path]);
        segments.extend(below.iter().map(|&segment| segment.to_owned()));
        match method {
            Method::Get => ApiRequest::get(segments, operation),
            _ => ApiRequest::write(method, segments, operation),
        }
    }

    fn open(&self, new: &NewPullRequest, reviewers: &[u64], assignees: &[u64]) -> ApiRequest {
        let mut body = json!({
            "source_branch": new.head.as_str(),
            "target_branch": new.base.as_str(),
            "title": title(&new.title, new.is_draft),
            "description": new.body,
        });
        if !new.labels.is_empty() {
            body["labels"] = json!(new.labels.join(","));
        }
        if !reviewers.is_empty() {
            body["reviewer_ids"] = json!(reviewers);
        }
        if !assignees.is_empty() {
            body["assignee_ids"] = json!(assignees);
        }
        self.request(Method::Post, &["merge_requests"], "open a merge request").with_body(body).creating()
    }

    fn merge(&self, number: u64, merge: &Merge) -> ApiRequest {
        let mut body = merge_body(merge);
        if merge.time == MergeTime::WhenReady {
            body["auto_merge"] = json!(true);
            body["merge_when_pipeline_succeeds"] = json!(true);
        }
        let path = ["merge_requests", &number.to_string(), "merge"];
        self.request(Method::Put, &path, "merge a merge request").with_body(body)
    }

    fn board_train(&self, number: u64, merge: &Merge) -> ApiRequest {
        let mut body = merge_body(merge);
        body["auto_merge"] = json!(true);
        body["when_pipeline_succeeds"] = json!(true);
        let path = ["merge_trains", "merge_requests", &number.to_string()];
        self.request(Method::Post, &path, "add a merge request to the merge train").with_body(body)
    }
}

impl MergeSettings {
    /// Returns the reason for which the project does not merge by a method.
    fn refusal(self, method: Option<MergeMethod>) -> Option<&'static str> {
        match method {
            Some(MergeMethod::Commit) if !self.makes_merge_commits => {
                Some("the project merges by fast-forward, without merge commits")
            }
            Some(MergeMethod::Squash) if !self.may_squash => Some("the project does not squash commits"),
            Some(MergeMethod::Rebase) if !self.rebases => {
                Some("the project merges by merge commits, without a rebase")
            }
            _ => None,
        }
    }
}

fn merge_body(merge: &Merge) -> Value {
    let mut body = json!({"sha": merge.head_commit.to_string()});
    if let Some(method) = merge.method {
        body["squash"] = json!(method == MergeMethod::Squash);
    }
    body
}

fn title(title: &str, is_draft: bool) -> String {
    if is_draft { format!("{DRAFT_PREFIX}{title}") } else { title.to_owned() }
}

/// Returns the members of an edit, or none if nothing changes.
fn edit_body(current: &PullRequest, edit: &PullRequestEdit) -> Option<Value> {
    let mut body = serde_json::Map::new();
    if let Some(text) = &edit.title {
        body.insert("title".to_owned(), json!(title(text, current.is_draft)));
    }
    if let Some(text) = &edit.body {
        body.insert("description".to_owned(), json!(text));
    }
    for (name, labels) in [("add_labels", &edit.added_labels), ("remove_labels", &edit.removed_labels)] {
        if !labels.is_empty() {
            body.insert(name.to_owned(), json!(labels.join(",")));
        }
    }
    if edit.is_closed {
        body.insert("state_event".to_owned(), json!("close"));
    }
    (!body.is_empty()).then(|| Value::Object(body))
}

/// Reads a list of merge requests; those whose head is elsewhere are left out.
fn merge_requests(body: &Value) -> Result<Vec<PullRequest>, Defect> {
    let entries = body.as_array().ok_or(Defect("no list of merge requests"))?;
    entries.iter().filter_map(|entry| merge_request(entry).transpose()).collect()
}

fn own_merge_request(body: &Value) -> Result<PullRequest, Defect> {
    merge_request(body)?.ok_or(Defect("a merge request whose head is in another project"))
}

/// Reads a merge request.
/// It is left out if its head is not a branch of the project itself.
fn merge_request(body: &Value) -> Result<Option<PullRequest>, Defect> {
    let number_of = |pointer| number(body, pointer);
    let number = number_of("/iid").ok_or(Defect("a merge request without a number"))?;
    let target = number_of("/target_project_id").ok_or(Defect("a merge request without a project"))?;
    let (Some(head), Some(base)) = (branch(body, "/source_branch"), branch(body, "/target_branch")) else {
        return Ok(None);
    };
    if number_of("/source_project_id") != Some(target) {
        return Ok(None);
    }
    let state = match text(body, "/state") {
        // It is locked while it is merged.
        Some("opened" | "locked") => PullRequestState::Open,
        Some("closed") => PullRequestState::Closed,
        Some("merged") => PullRequestState::Merged,
        _ => return Err(Defect("a merge request without a state")),
    };
    let is_draft = flag(body, "/draft") || flag(body, "/work_in_progress");
    Ok(Some(PullRequest {
        number,
        url: page_url(body, "/web_url")?,
        state,
        head,
        head_commit: commit(body, "/sha"),
        base,
        title: bare_title(text(body, "/title").unwrap_or_default(), is_draft).to_owned(),
        body: text(body, "/description").unwrap_or_default().to_owned(),
        is_draft,
        labels: texts(list(body, "/labels"), ""),
        is_in_merge_queue: false,
        has_auto_merge: flag(body, "/merge_when_pipeline_succeeds"),
        version: None,
    }))
}

/// Returns a title without the prefix of a draft.
fn bare_title(title: &str, is_draft: bool) -> &str {
    let lower = title.to_ascii_lowercase();
    let prefix = DRAFT_PREFIXES.into_iter().find(|prefix| is_draft && lower.starts_with(prefix));
    prefix.map_or(title, |prefix| title[prefix.len()..].trim_start())
}

fn merge_settings(project: &Value) -> MergeSettings {
    let method = text(project, "/merge_method").unwrap_or("merge");
    MergeSettings {
        makes_merge_commits: method != "ff",
        rebases: matches!(method, "ff" | "rebase_merge"),
        may_squash: text(project, "/squash_option") != Some("never"),
        requires_checks: flag(project, "/only_allow_merge_if_pipeline_succeeds")
            || flag(project, "/only_allow_merge_if_all_status_checks_passed"),
        has_merge_trains: flag(project, "/merge_trains_enabled"),
    }
}

fn needs_approval(approvals: &Value) -> bool {
    number(approvals, "/approvals_required").unwrap_or(0) > 0
}

/// Reads the answer to a merge.
/// There is none if the failure is about more than this one.
fn merge_answer(response: &ApiResponse, uses_train: bool) -> Option<MergeAnswer> {
    let reason = message(response);
    Some(match response.status {
        200..=299 if uses_train => MergeAnswer::Scheduled,
        200..=299 if text(&response.body, "/state") == Some("merged") => MergeAnswer::Merged,
        200..=299 if flag(&response.body, "/merge_when_pipeline_succeeds") => MergeAnswer::Scheduled,
        200..=299 => MergeAnswer::NotYet { reason: "the merge has not finished".to_owned() },
        // GitLab has this status for a login that may not merge into the branch.
        401 => MergeAnswer::Refused { reason: format!("the login may not merge: {reason}") },
        400 | 405 | 406 | 409 | 422 => MergeAnswer::NotYet { reason },
        _ => return None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::script::{Script, endpoint, run};
    use super::*;

    pub(in crate::forge) const HEAD: &str = "1111111111111111111111111111111111111111";

    pub(in crate::forge) fn document(number: u64, state: &str) -> Value {
        json!({
            "iid": number, "web_url": format!("https://forge.example/a/b/-/merge_requests/{number}"),
            "state": state, "draft": false, "title": "Update web", "description": "text",
            "source_branch": "tagboat/web", "target_branch": "main", "sha": HEAD, "labels": ["images"],
            "source_project_id": 5, "target_project_id": 5, "merge_when_pipeline_succeeds": false,
        })
    }

    fn gitlab(script: &Script) -> Gitlab<&Script> {
        Gitlab::new(script, endpoint(), GitlabProject { path: "a/b/fleet".to_owned() })
    }

    fn new() -> NewPullRequest {
        NewPullRequest {
            head: "tagboat/web".parse().unwrap(),
            base: "main".parse().unwrap(),
            title: "Update web".to_owned(),
            body: "text".to_owned(),
            is_draft: true,
            labels: vec!["images".to_owned(), "fleet".to_owned()],
            reviewers: vec!["ann".to_owned(), "team/ops".to_owned(), "ghost".to_owned()],
            assignees: Vec::new(),
            completed_body: None,
        }
    }

    fn merge(time: MergeTime, method: Option<MergeMethod>) -> Merge {
        Merge { time, method, head_commit: HEAD.parse().unwrap() }
    }

    #[test]
    fn a_merge_request_is_opened_with_ids() {
        let mut opened = document(7, "opened");
        opened["reviewers"] = json!([{"id": 3}]);
        let script = Script::new([(200, json!([{"id": 3}])), (200, json!([])), (201, opened)]);
        let opened = run(gitlab(&script).open(&new())).unwrap();
        assert_eq!((opened.pull_request.number, opened.is_new, opened.refused.len()), (7, true, 2));
        script.assert_essential();
        let sent = script.requests();
        assert_eq!(sent[0].0, "Get users?username=ann");
        let wanted = json!({
            "source_branch": "tagboat/web", "target_branch": "main", "title": "Draft: Update web",
            "description": "text", "labels": "images,fleet", "reviewer_ids": [3],
        });
        assert_eq!(sent[2], ("Post projects/a%2Fb%2Ffleet/merge_requests".to_owned(), wanted));
    }

    #[test]
    fn one_that_exists_already_is_found() {
        let new = NewPullRequest { reviewers: Vec::new(), ..new() };
        let conflict = json!({"message": ["Another open merge request already exists: !7"]});
        let script = Script::new([
            (409, conflict),
            (200, json!([document(9, "closed"), document(7, "opened")])),
            (200, json!([])),
        ]);
        let opened = run(gitlab(&script).open(&new)).unwrap();
        assert_eq!((opened.pull_request.number, opened.is_new), (7, false));
        script.assert_essential();
    }

    #[test]
    fn merge_requests_of_forks_are_left_out() {
        let mut fork = document(1, "opened");
        fork["source_project_id"] = json!(6);
        assert_eq!(merge_request(&fork), Ok(None));
        fork["source_project_id"] = json!(null);
        assert_eq!(merge_request(&fork), Ok(None), "a fork that was deleted");
        for (name, value) in [("iid", json!(null)), ("state", json!("x")), ("web_url", json!("x"))] {
            let mut odd = document(1, "opened");
            odd[name] = value;
            assert!(merge_request(&odd).is_err(), "{name}");
        }
    }

    #[test]
    fn a_draft_loses_its_prefix() {
        for title in ["Draft: Update", "[Draft] Update", "(draft) Update", "WIP: Update", "Update"] {
            assert_eq!(bare_title(title, true), "Update");
        }
        assert_eq!(bare_title("Draft: Update", false), "Draft: Update");
    }

    #[test]
    fn trains_are_asked_for_only_with_auto_merge() {
        let mut scheduled = document(2, "opened");
        scheduled["merge_when_pipeline_succeeds"] = json!(true);
        let script = Script::new([
            (200, json!([scheduled, document(1, "opened")])),
            (200, json!([])),
            (200, json!([{"merge_request": {"iid": 2}}])),
        ]);
        let found = run(gitlab(&script).open_pull_requests(&mut Listing::all())).unwrap();
        assert_eq!(found.iter().map(|one| one.is_in_merge_queue).collect::<Vec<_>>(), [true, false]);
        let script = Script::new([(200, json!([document(1, "opened")])), (200, json!([]))]);
        assert!(!run(gitlab(&script).open_pull_requests(&mut Listing::all())).unwrap()[0].is_in_merge_queue);
    }

    #[test]
    fn an_edit_has_only_the_members_that_change() {
        let current = PullRequest { is_draft: true, ..own_merge_request(&document(1, "opened")).unwrap() };
        let edit = PullRequestEdit {
            title: Some("New".to_owned()),
            body: Some("text".to_owned()),
            added_labels: vec!["a".to_owned(), "b".to_owned()],
            removed_labels: vec!["c".to_owned()],
            added_reviewers: Vec::new(),
            added_assignees: Vec::new(),
            is_closed: true,
        };
        let wanted = json!({
            "title": "Draft: New", "description": "text", "add_labels": "a,b", "remove_labels": "c",
            "state_event": "close",
        });
        assert_eq!(edit_body(&current, &edit), Some(wanted));
        assert_eq!(edit_body(&current, &PullRequestEdit::default()), None);
    }

    #[test]
    fn text_that_a_person_wrote_meanwhile_stays() {
        let current = own_merge_request(&document(1, "opened")).unwrap();
        for (member, text) in [("description", "A person's"), ("title", "A person's")] {
            let mut changed = document(1, "opened");
            changed[member] = json!(text);
            let edit = PullRequestEdit { is_closed: true, ..PullRequestEdit::default() };
            let script = Script::new([(200, changed.clone())]);
            let error = run(gitlab(&script).edit(&current, &edit)).unwrap_err();
            assert!(matches!(error, ForgeError::Refused { status: 409, .. }), "{error}");
            // Labels do not depend on the text.
            let edit = PullRequestEdit { added_labels: vec!["a".to_owned()], ..PullRequestEdit::default() };
            let script = Script::new([(200, changed)]);
            run(gitlab(&script).edit(&current, &edit)).unwrap();
        }
    }

    #[test]
    fn closing_goes_on_when_little_is_left_of_a_limit() {
        let current = own_merge_request(&document(1, "opened")).unwrap();
        let edit = PullRequestEdit { is_closed: true, ..PullRequestEdit::default() };
        let script = Script::new([(200, document(1, "opened")), (200, document(1, "closed"))]);
        assert_eq!(run(gitlab(&script).edit(&current, &edit)).unwrap().state, PullRequestState::Closed);
        script.assert_essential();
    }

    #[test]
    fn a_merge_needs_a_rule_unless_it_is_immediate() {
        let current = own_merge_request(&document(1, "opened")).unwrap();
        let later = merge(MergeTime::WhenReady, None);
        // A train alone requires nothing.
        for project in [json!({"merge_method": "merge"}), json!({"merge_trains_enabled": true})] {
            let answers =
                [(200, document(1, "opened")), (200, project), (200, json!({"approvals_required": 0}))];
            let script = Script::new(answers);
            assert_eq!(run(gitlab(&script).merge(&current, &later)), Ok(MergeAnswer::NothingRequired));
        }

        let mut scheduled = document(1, "opened");
        scheduled["merge_when_pipeline_succeeds"] = json!(true);
        let script = Script::new([
            (200, document(1, "opened")),
            (200, json!({"merge_method": "merge"})),
            (200, json!({"approvals_required": 1})),
            (200, scheduled),
        ]);
        assert_eq!(run(gitlab(&script).merge(&current, &later)), Ok(MergeAnswer::Scheduled));
        let wanted = json!({"sha": HEAD, "auto_merge": true, "merge_when_pipeline_succeeds": true});
        assert_eq!(
            script.requests()[3],
            ("Put projects/a%2Fb%2Ffleet/merge_requests/1/merge".to_owned(), wanted)
        );

        let trains = json!({"only_allow_merge_if_pipeline_succeeds": true, "merge_trains_enabled": true});
        let script = Script::new([(200, document(1, "opened")), (200, trains), (202, json!([]))]);
        let squash = merge(MergeTime::WhenReady, Some(MergeMethod::Squash));
        assert_eq!(run(gitlab(&script).merge(&current, &squash)), Ok(MergeAnswer::Scheduled));
        let sent = &script.requests()[2];
        assert_eq!(sent.0, "Post projects/a%2Fb%2Ffleet/merge_trains/merge_requests/1");
        assert_eq!(sent.1["squash"], json!(true));

        let script = Script::new([
            (200, document(1, "opened")),
            (200, json!({"merge_method": "ff"})),
            (200, document(1, "merged")),
        ]);
        let now = merge(MergeTime::Immediately, Some(MergeMethod::Rebase));
        assert_eq!(run(gitlab(&script).merge(&current, &now)), Ok(MergeAnswer::Merged));
        assert_eq!(script.requests()[2].1, json!({"sha": HEAD, "squash": false}));
    }

    #[test]
    fn the_project_decides_on_methods() {
        let refused = |project: Value, method| merge_settings(&project).refusal(Some(method)).is_some();
        assert!(refused(json!({"merge_method": "ff"}), MergeMethod::Commit));
        assert!(refused(json!({"merge_method": "merge"}), MergeMethod::Rebase));
        assert!(refused(json!({"squash_option": "never"}), MergeMethod::Squash));
        for method in [MergeMethod::Commit, MergeMethod::Squash, MergeMethod::Rebase] {
            assert!(!refused(json!({"merge_method": "rebase_merge"}), method));
        }
    }

    #[test]
    fn answers_to_a_merge_are_told_apart() {
        let answer = |status, body| merge_answer(&ApiResponse { status, headers: Vec::new(), body }, false);
        let is_later = |answer| matches!(answer, Some(MergeAnswer::NotYet { .. }));
        for status in [405, 406, 409, 422] {
            assert!(is_later(answer(status, json!({"message": "x"}))), "{status}");
        }
        assert!(is_later(answer(200, document(1, "opened"))));
        assert!(matches!(answer(401, json!({})), Some(MergeAnswer::Refused { .. })));
        assert_eq!(answer(403, json!({})), None);
        assert_eq!(answer(502, json!({})), None);
    }
}
