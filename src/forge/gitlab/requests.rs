//! A project on GitLab, and requests to it.

use serde_json::{Map, Value, json};

use crate::forge::client::path;
use crate::forge::exchange::{ApiRequest, Method};
use crate::forge::pull_request::{
    Merge, MergeMethod, MergeTime, NewPullRequest, PullRequest, PullRequestEdit,
};

/// The prefix by which a title marks a draft.
const DRAFT_PREFIX: &str = "Draft: ";

/// A project on GitLab, by its path, such as `group/subgroup/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitlabProject {
    /// The path, with the names of all groups.
    pub path: String,
}

impl GitlabProject {
    pub(super) fn request(&self, method: Method, below: &[&str], operation: &'static str) -> ApiRequest {
        let mut segments = path(&["projects", &self.path]);
        segments.extend(below.iter().map(|&segment| segment.to_owned()));
        match method {
            Method::Get => ApiRequest::get(segments, operation),
            _ => ApiRequest::write(method, segments, operation),
        }
    }

    pub(super) fn open(&self, new: &NewPullRequest, reviewers: &[u64], assignees: &[u64]) -> ApiRequest {
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

    pub(super) fn merge(&self, number: u64, merge: &Merge) -> ApiRequest {
        let mut body = merge_body(merge);
        if merge.time == MergeTime::WhenReady {
            body["auto_merge"] = json!(true);
            body["merge_when_pipeline_succeeds"] = json!(true);
        }
        let path = ["merge_requests", &number.to_string(), "merge"];
        self.request(Method::Put, &path, "merge a merge request").with_body(body)
    }

    pub(super) fn board_train(&self, number: u64, merge: &Merge) -> ApiRequest {
        let mut body = merge_body(merge);
        body["auto_merge"] = json!(true);
        body["when_pipeline_succeeds"] = json!(true);
        let path = ["merge_trains", "merge_requests", &number.to_string()];
        self.request(Method::Post, &path, "add a merge request to the merge train").with_body(body)
    }
}

pub(super) fn merge_body(merge: &Merge) -> Value {
    let mut body = json!({"sha": merge.head_commit.to_string()});
    if let Some(method) = merge.method {
        body["squash"] = json!(method == MergeMethod::Squash);
    }
    body
}

pub(super) fn title(title: &str, is_draft: bool) -> String {
    if is_draft { format!("{DRAFT_PREFIX}{title}") } else { title.to_owned() }
}

/// Returns the members of an edit, but for those of users.
pub(super) fn edit_body(current: &PullRequest, edit: &PullRequestEdit) -> Map<String, Value> {
    let mut body = Map::new();
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
    body
}
