//! The values in responses of Bitbucket Data Center.

use serde_json::{Value, json};

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
    let number_of = |pointer| number(body, pointer);
    let number = number_of("/id").ok_or(Defect("a pull request without a number"))?;
    let target = number_of("/toRef/repository/id");
    let target = target.ok_or(Defect("a pull request without a repository"))?;
    let (Some(head), Some(base)) = (branch(body, "/fromRef/id"), branch(body, "/toRef/id")) else {
        return Ok(None);
    };
    if number_of("/fromRef/repository/id") != Some(target) {
        return Ok(None);
    }
    let state = match text(body, "/state") {
        Some("OPEN") => PullRequestState::Open,
        Some("DECLINED") => PullRequestState::Closed,
        Some("MERGED") => PullRequestState::Merged,
        _ => return Err(Defect("a pull request without a state")),
    };
    Ok(Some(PullRequest {
        number,
        url: page_url(body, "/links/self/0/href")?,
        state,
        head,
        head_commit: commit(body, "/fromRef/latestCommit"),
        lacks_branch: false,
        base,
        title: text(body, "/title").unwrap_or_default().to_owned(),
        body: text(body, "/description").unwrap_or_default().to_owned(),
        is_draft: flag(body, "/draft"),
        labels: Vec::new(),
        is_in_merge_queue: false,
        has_auto_merge: false,
        version: Some(number_of("/version").ok_or(Defect("a pull request without a version"))?),
    }))
}

/// Returns true if the settings require an approval or a build.
pub(super) fn requires_anything(settings: &Value) -> bool {
    // A number in older versions, and a switch with a number in newer ones.
    let is_required = |name: &str| {
        let value = &settings[name];
        let is_off = ["enable", "enabled"].iter().any(|name| value[name] == json!(false));
        let count = number(value, "").or_else(|| number(value, "/count"));
        !is_off && count.unwrap_or(0) > 0
    };
    flag(settings, "/requiredAllApprovers")
        || ["requiredApprovers", "requiredSuccessfulBuilds"].into_iter().any(is_required)
}

/// Reads the answer to a merge.
/// There is none if the failure is about more than this one.
pub(super) fn merge_answer(response: &ApiResponse, is_later: bool) -> Option<MergeAnswer> {
    let reason = message(response);
    Some(match response.status {
        200..=299 if text(&response.body, "/state") == Some("MERGED") => MergeAnswer::Merged,
        200..=299 if is_later => MergeAnswer::Scheduled,
        200..=299 => MergeAnswer::NotYet { reason: "the merge has not finished".to_owned() },
        400 => MergeAnswer::Refused { reason },
        409 => MergeAnswer::NotYet { reason },
        _ => return None,
    })
}
