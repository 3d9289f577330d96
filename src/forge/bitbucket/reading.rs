//! The values in responses of Bitbucket Cloud.

use serde_json::Value;

use crate::forge::exchange::ApiResponse;
use crate::forge::pull_request::{MergeAnswer, PullRequest, PullRequestState};
use crate::forge::reading::{Defect, branch, commit, flag, message, number, page_url, text};

/// Reads a page of pull requests; those whose head is elsewhere are left out.
pub(super) fn pull_requests(body: &Value) -> Result<Vec<PullRequest>, Defect> {
    let entries = body.get("values").and_then(Value::as_array).ok_or(Defect("no list of pull requests"))?;
    entries.iter().filter_map(|entry| pull_request(entry).transpose()).collect()
}

pub(super) fn own_pull_request(body: &Value) -> Result<PullRequest, Defect> {
    pull_request(body)?.ok_or(Defect("a pull request whose head is in another repository"))
}

/// Reads a pull request.
/// It is left out if its head is not a branch of the repository itself.
pub(super) fn pull_request(body: &Value) -> Result<Option<PullRequest>, Defect> {
    let number = number(body, "/id").ok_or(Defect("a pull request without a number"))?;
    let target = text(body, "/destination/repository/full_name");
    let target = target.ok_or(Defect("a pull request without a repository"))?;
    let (Some(head), Some(base)) =
        (branch(body, "/source/branch/name"), branch(body, "/destination/branch/name"))
    else {
        return Ok(None);
    };
    if text(body, "/source/repository/full_name") != Some(target) {
        return Ok(None);
    }
    let state = match text(body, "/state") {
        Some("OPEN") => PullRequestState::Open,
        Some("DECLINED" | "SUPERSEDED") => PullRequestState::Closed,
        Some("MERGED") => PullRequestState::Merged,
        _ => return Err(Defect("a pull request without a state")),
    };
    let description = text(body, "/description").or_else(|| text(body, "/summary/raw"));
    Ok(Some(PullRequest {
        number,
        url: page_url(body, "/links/html/href")?,
        state,
        head,
        head_commit: commit(body, "/source/commit/hash"),
        lacks_branch: false,
        base,
        title: text(body, "/title").unwrap_or_default().to_owned(),
        body: description.unwrap_or_default().to_owned(),
        is_draft: flag(body, "/draft"),
        labels: Vec::new(),
        is_in_merge_queue: false,
        has_auto_merge: false,
        version: None,
    }))
}

/// Reads the answer to a merge.
/// There is none if the failure is about more than this one.
pub(super) fn merge_answer(response: &ApiResponse) -> Option<MergeAnswer> {
    let reason = message(response);
    Some(match response.status {
        200..=299 if text(&response.body, "/state") == Some("MERGED") => MergeAnswer::Merged,
        200..=299 => MergeAnswer::NotYet { reason: "the merge has not finished".to_owned() },
        // 555 is a merge that takes too long.
        400 | 409 | 555 => MergeAnswer::NotYet { reason },
        _ => return None,
    })
}
