//! A repository on Bitbucket Cloud, and requests to it.

use serde_json::{Value, json};

use crate::forge::client::path;
use crate::forge::exchange::{ApiRequest, Method};
use crate::forge::pull_request::{MergeMethod, NewPullRequest, PullRequest};
use crate::git::BranchName;

/// A repository on Bitbucket Cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitbucketRepository {
    /// The workspace.
    pub workspace: String,
    /// The name in addresses.
    pub slug: String,
}

impl BitbucketRepository {
    pub(super) fn request(&self, method: Method, below: &[&str], operation: &'static str) -> ApiRequest {
        let mut segments = path(&["repositories", &self.workspace, &self.slug]);
        segments.extend(below.iter().map(|&segment| segment.to_owned()));
        match method {
            Method::Get => ApiRequest::get(segments, operation),
            _ => ApiRequest::write(method, segments, operation),
        }
    }

    pub(super) fn open(&self, new: &NewPullRequest) -> ApiRequest {
        let mut body = json!({
            "title": new.title,
            "description": new.body,
            "source": {"branch": {"name": new.head.as_str()}},
            "destination": {"branch": {"name": new.base.as_str()}},
        });
        if new.is_draft {
            body["draft"] = json!(true);
        }
        self.request(Method::Post, &["pullrequests"], "open a pull request").with_body(body).creating()
    }

    pub(super) fn update(&self, number: u64, body: &Value) -> ApiRequest {
        let path = ["pullrequests", &number.to_string()];
        self.request(Method::Put, &path, "edit a pull request").with_body(body.clone())
    }

    pub(super) fn merge(&self, number: u64, method: Option<MergeMethod>) -> ApiRequest {
        let path = ["pullrequests", &number.to_string(), "merge"];
        let request = self.request(Method::Post, &path, "merge a pull request");
        let strategy = match method {
            Some(MergeMethod::Commit) => "merge_commit",
            Some(MergeMethod::Squash) => "squash",
            Some(MergeMethod::Rebase) => "rebase_fast_forward",
            None => return request.with_body(json!({})),
        };
        request.with_body(json!({ "merge_strategy": strategy }))
    }
}

/// Returns the members of an update, which names all that it must not lose.
pub(super) fn text_body(current: &PullRequest, title: &str, body: &str, reviewers: &[String]) -> Value {
    let reviewers: Vec<_> = reviewers.iter().map(|id| json!({ "uuid": id })).collect();
    let mut members = json!({"title": title, "description": body, "reviewers": reviewers});
    if current.is_draft {
        members["draft"] = json!(true);
    }
    members
}

/// Returns the filter for pull requests between two branches.
pub(super) fn branches_filter(head: &BranchName, base: &BranchName) -> String {
    let quoted = |branch: &BranchName| branch.as_str().replace('"', "\\\"");
    format!("source.branch.name=\"{}\" AND destination.branch.name=\"{}\"", quoted(head), quoted(base))
}
