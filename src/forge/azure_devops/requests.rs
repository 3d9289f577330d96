//! A repository on Azure DevOps, and requests to it.

use serde_json::{Value, json};

use crate::forge::client::path;
use crate::forge::exchange::{ApiRequest, Method};
use crate::forge::pull_request::{Merge, MergeMethod, MergeTime, NewPullRequest, PullRequestEdit};

/// The version of the API.
pub(super) const VERSION: &str = "7.1";

/// A repository on Azure DevOps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AzureRepository {
    /// The organization.
    pub organization: String,
    /// The project.
    pub project: String,
    /// The name.
    pub name: String,
}

impl AzureRepository {
    /// Reads the host and path of a git URL, in all of its forms.
    pub fn of_git_url(host: &str, segments: &[&str]) -> Option<Self> {
        let of = |organization: &str, project: &str, name: &str| {
            let is_named = [organization, project, name].iter().all(|part| !part.is_empty());
            is_named.then(|| Self {
                organization: organization.to_owned(),
                project: project.to_owned(),
                name: name.to_owned(),
            })
        };
        let host = host.to_ascii_lowercase();
        match (host.as_str(), segments) {
            ("ssh.dev.azure.com" | "vs-ssh.visualstudio.com", &["v3", organization, project, name]) => {
                of(organization, project, name)
            }
            ("dev.azure.com", &[organization, project, "_git", name]) => of(organization, project, name),
            // A repository with the name of its project.
            ("dev.azure.com", &[organization, "_git", name]) => of(organization, name, name),
            (host, segments) => {
                let organization = host.strip_suffix(".visualstudio.com")?;
                match segments {
                    [project, "_git", name] | ["DefaultCollection", project, "_git", name]
                        if *project != "DefaultCollection" =>
                    {
                        of(organization, project, name)
                    }
                    ["_git", name] | ["DefaultCollection", "_git", name] => of(organization, name, name),
                    _ => None,
                }
            }
        }
    }

    pub(super) fn request(&self, method: Method, below: &[&str], operation: &'static str) -> ApiRequest {
        let mut segments = path(&[&self.project, "_apis", "git", "repositories", &self.name]);
        segments.push("pullrequests".to_owned());
        segments.extend(below.iter().map(|&segment| segment.to_owned()));
        let request = match method {
            Method::Get => ApiRequest::get(segments, operation),
            _ => ApiRequest::write(method, segments, operation),
        };
        request.with_query("api-version", VERSION)
    }

    pub(super) fn labels(
        &self,
        method: Method,
        number: u64,
        below: &[&str],
        operation: &'static str,
    ) -> ApiRequest {
        let number = number.to_string();
        let below = [[number.as_str(), "labels"].as_slice(), below].concat();
        self.request(method, &below, operation)
    }

    pub(super) fn add_reviewer(&self, number: u64, id: &str) -> ApiRequest {
        let path = [number.to_string(), "reviewers".to_owned(), id.to_owned()];
        let path: Vec<_> = path.iter().map(String::as_str).collect();
        self.request(Method::Put, &path, "add a reviewer").with_body(json!({"vote": 0})).creating()
    }

    pub(super) fn open(&self, new: &NewPullRequest) -> ApiRequest {
        let mut body = json!({
            "sourceRefName": new.head.reference().to_string(),
            "targetRefName": new.base.reference().to_string(),
            "title": new.title,
            "description": new.body,
            "isDraft": new.is_draft,
        });
        if !new.labels.is_empty() {
            body["labels"] = new.labels.iter().map(|name| json!({ "name": name })).collect();
        }
        self.request(Method::Post, &[], "open a pull request").with_body(body).creating()
    }
}

/// Returns the members of an edit, or none if only labels change.
pub(super) fn edit_body(edit: &PullRequestEdit) -> Option<Value> {
    let mut body = serde_json::Map::new();
    if let Some(text) = &edit.title {
        body.insert("title".to_owned(), json!(text));
    }
    if let Some(text) = &edit.body {
        body.insert("description".to_owned(), json!(text));
    }
    if edit.is_closed {
        body.insert("status".to_owned(), json!("abandoned"));
    }
    (!body.is_empty()).then(|| Value::Object(body))
}

pub(super) fn merge_body(merge: &Merge, creator: &str) -> Value {
    let mut body = match merge.time {
        MergeTime::WhenReady => json!({"autoCompleteSetBy": {"id": creator}}),
        MergeTime::Immediately => json!({
            "status": "completed",
            "lastMergeSourceCommit": {"commitId": merge.head_commit.to_string()},
        }),
    };
    if let Some(method) = merge.method {
        let strategy = match method {
            MergeMethod::Commit => "noFastForward",
            MergeMethod::Squash => "squash",
            MergeMethod::Rebase => "rebase",
        };
        body["completionOptions"] = json!({ "mergeStrategy": strategy });
    }
    body
}
