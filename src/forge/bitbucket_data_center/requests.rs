//! A repository on Bitbucket Data Center, and requests to it.

use serde_json::{Value, json};

use crate::forge::client::path;
use crate::forge::exchange::{ApiRequest, Method};
use crate::forge::pull_request::{
    Merge, MergeMethod, MergeTime, NewPullRequest, PullRequest, PullRequestEdit,
};
use crate::forge::reading::{list, texts};
use crate::git::BranchName;

/// A repository on Bitbucket Data Center.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataCenterRepository {
    /// The key of the project, or `~` and the name of a user.
    pub project: String,
    /// The name in addresses.
    pub slug: String,
}

impl DataCenterRepository {
    pub(super) fn request(&self, method: Method, below: &[&str], operation: &'static str) -> ApiRequest {
        let mut segments = path(&["projects", &self.project, "repos", &self.slug]);
        segments.extend(below.iter().map(|&segment| segment.to_owned()));
        match method {
            Method::Get => ApiRequest::get(segments, operation),
            _ => ApiRequest::write(method, segments, operation),
        }
    }

    pub(super) fn open(&self, new: &NewPullRequest) -> ApiRequest {
        let place = json!({"slug": self.slug, "project": {"key": self.project}});
        let reference =
            |branch: &BranchName| json!({"id": branch.reference().to_string(), "repository": place});
        let mut body = json!({
            "title": new.title,
            "description": new.body,
            "fromRef": reference(&new.head),
            "toRef": reference(&new.base),
        });
        if new.is_draft {
            body["draft"] = json!(true);
        }
        self.request(Method::Post, &["pull-requests"], "open a pull request").with_body(body).creating()
    }

    pub(super) fn add_reviewer(&self, number: u64, name: &str) -> ApiRequest {
        let path = ["pull-requests", &number.to_string(), "participants"];
        let body = json!({"user": {"name": name}, "role": "REVIEWER"});
        self.request(Method::Post, &path, "add a reviewer").with_body(body).creating()
    }

    pub(super) fn decline(&self, number: u64, version: u64) -> ApiRequest {
        let path = ["pull-requests", &number.to_string(), "decline"];
        let request = self.request(Method::Post, &path, "decline a pull request").essential();
        let mut request = request.with_query("version", &version);
        // A POST without a body is refused otherwise, as a defence of browsers.
        request.headers.push(("X-Atlassian-Token", "no-check".to_owned()));
        request
    }

    pub(super) fn merge(&self, number: u64, merge: &Merge, version: u64) -> ApiRequest {
        let mut body = json!({});
        if merge.time == MergeTime::WhenReady {
            body["autoMerge"] = json!(true);
        }
        if let Some(method) = merge.method {
            body["strategyId"] = json!(match method {
                MergeMethod::Commit => "no-ff",
                MergeMethod::Squash => "squash",
                MergeMethod::Rebase => "rebase-ff-only",
            });
        }
        let path = ["pull-requests", &number.to_string(), "merge"];
        let request = self.request(Method::Post, &path, "merge a pull request");
        request.with_query("version", &version).with_body(body)
    }
}

/// Returns the members of an update, which names all that it must not lose.
pub(super) fn edit_body(
    found: &PullRequest,
    document: &Value,
    edit: &PullRequestEdit,
    version: u64,
) -> Value {
    let reviewers = texts(list(document, "/reviewers"), "/user/name");
    let reviewers: Vec<_> = reviewers.iter().map(|name| json!({"user": {"name": name}})).collect();
    let mut body = json!({
        "version": version,
        "title": edit.title.as_ref().unwrap_or(&found.title),
        "description": edit.body.as_ref().unwrap_or(&found.body),
        "reviewers": reviewers,
    });
    if found.is_draft {
        body["draft"] = json!(true);
    }
    body
}
