//! A repository on Gitea and Forgejo, and requests to it.

use serde_json::{Map, Value, json};

use crate::forge::client::path;
use crate::forge::exchange::{ApiRequest, Method};
use crate::forge::pull_request::{Merge, MergeTime, NewPullRequest, PullRequest, PullRequestEdit};

/// The prefix by which a title marks a draft.
const DRAFT_PREFIX: &str = "WIP: ";

/// A repository on Gitea or Forgejo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GiteaRepository {
    /// The user or organization.
    pub owner: String,
    /// The name.
    pub name: String,
}

impl GiteaRepository {
    pub(super) fn request(&self, method: Method, below: &[&str], operation: &'static str) -> ApiRequest {
        let mut segments = path(&["repos", &self.owner, &self.name]);
        segments.extend(below.iter().map(|&segment| segment.to_owned()));
        match method {
            Method::Get => ApiRequest::get(segments, operation),
            _ => ApiRequest::write(method, segments, operation),
        }
    }

    pub(super) fn open(&self, new: &NewPullRequest) -> ApiRequest {
        let title = title(&new.title, new.is_draft);
        let body =
            json!({"head": new.head.as_str(), "base": new.base.as_str(), "title": title, "body": new.body});
        self.request(Method::Post, &["pulls"], "open a pull request").with_body(body).creating()
    }

    pub(super) fn edit(&self, number: u64, body: Value) -> ApiRequest {
        let path = ["pulls", &number.to_string()];
        self.request(Method::Patch, &path, "edit a pull request").with_body(body)
    }

    pub(super) fn add_labels(&self, number: u64, names: &[String]) -> ApiRequest {
        let path = ["issues", &number.to_string(), "labels"];
        self.request(Method::Post, &path, "add labels").with_body(json!({ "labels": names }))
    }

    pub(super) fn request_reviews(&self, number: u64, reviewers: &[String]) -> ApiRequest {
        // A team of another organization cannot review here; the forge says so.
        let (teams, users): (Vec<_>, Vec<_>) = reviewers.iter().partition(|name| name.contains('/'));
        let teams: Vec<_> =
            teams.iter().map(|team| team.strip_prefix(&format!("{}/", self.owner)).unwrap_or(team)).collect();
        let path = ["pulls", &number.to_string(), "requested_reviewers"];
        let body = json!({"reviewers": users, "team_reviewers": teams});
        self.request(Method::Post, &path, "request reviews").with_body(body).creating()
    }

    pub(super) fn merge(&self, number: u64, merge: &Merge, style: &str) -> ApiRequest {
        let mut body = json!({"do": style, "head_commit_id": merge.head_commit.to_string()});
        if merge.time == MergeTime::WhenReady {
            body["merge_when_checks_succeed"] = json!(true);
        }
        let path = ["pulls", &number.to_string(), "merge"];
        self.request(Method::Post, &path, "merge a pull request").with_body(body)
    }
}

pub(super) fn title(title: &str, is_draft: bool) -> String {
    if is_draft { format!("{DRAFT_PREFIX}{title}") } else { title.to_owned() }
}

/// Returns the members that set a body.
pub(super) fn body_members(text: &str, version: Option<u64>) -> Map<String, Value> {
    let mut members = Map::from_iter([("body".to_owned(), json!(text))]);
    // Without it, a text that a person wrote meanwhile would be lost.
    members.extend(version.map(|version| ("content_version".to_owned(), json!(version))));
    members
}

/// Returns the members of an edit, or none if only labels change.
pub(super) fn edit_body(current: &PullRequest, edit: &PullRequestEdit) -> Option<Value> {
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
