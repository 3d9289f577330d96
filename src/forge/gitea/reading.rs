//! The values in responses of Gitea and Forgejo.

use serde_json::Value;

use crate::forge::exchange::ApiResponse;
use crate::forge::pull_request::{MergeAnswer, PullRequest, PullRequestState};
use crate::forge::reading::{Defect, branch, commit, flag, list, message, number, page_url, text, texts};

/// The prefixes that a server recognizes, unless its administrator set others.
pub(super) const DRAFT_PREFIXES: [&str; 2] = ["wip:", "[wip]"];

/// Reads a list of pull requests; those whose head is elsewhere are left out.
///
/// The head of a merged one is that which was merged in lists of Gitea from 1.26 on, which have versions of the content. Lists
/// of others, and each single pull request, have the tip that the branch has now.
pub(super) fn pull_requests(body: &Value) -> Result<Vec<PullRequest>, Defect> {
    let entries = body.as_array().ok_or(Defect("no list of pull requests"))?;
    let with_head = |one: PullRequest, entry: &Value| match one.version {
        Some(_) => PullRequest { head_commit: commit(entry, "/head/sha"), ..one },
        None => one,
    };
    let read = |entry: &Value| Some(pull_request(entry).transpose()?.map(|one| with_head(one, entry)));
    entries.iter().filter_map(read).collect()
}

pub(super) fn own_pull_request(body: &Value) -> Result<PullRequest, Defect> {
    pull_request(body)?.ok_or(Defect("a pull request whose head is in another repository"))
}

/// Reads a pull request.
/// It is left out if its head is not a branch of the repository itself. The head of a merged one is unknown.
pub(super) fn pull_request(body: &Value) -> Result<Option<PullRequest>, Defect> {
    let number_of = |pointer| number(body, pointer);
    let number = number_of("/number").ok_or(Defect("a pull request without a number"))?;
    let base_repository = number_of("/base/repo_id").ok_or(Defect("a pull request without a base"))?;
    // The label has the name even if the branch was deleted. Without one, the head is no branch.
    let (Some(head), Some(base)) = (branch(body, "/head/label"), branch(body, "/base/ref")) else {
        return Ok(None);
    };
    if number_of("/head/repo_id") != Some(base_repository) {
        return Ok(None);
    }
    let state = match text(body, "/state") {
        _ if flag(body, "/merged") => PullRequestState::Merged,
        Some("open") => PullRequestState::Open,
        Some("closed") => PullRequestState::Closed,
        _ => return Err(Defect("a pull request without a state")),
    };
    let (title, is_draft) = bare_title(text(body, "/title").unwrap_or_default(), body.get("draft"));
    Ok(Some(PullRequest {
        number,
        url: page_url(body, "/html_url")?,
        state,
        head,
        head_commit: commit(body, "/head/sha").filter(|_| state != PullRequestState::Merged),
        lacks_branch: lacks_branch(body, number),
        base,
        title,
        body: text(body, "/body").unwrap_or_default().to_owned(),
        is_draft,
        labels: texts(list(body, "/labels"), "/name"),
        is_in_merge_queue: false,
        has_auto_merge: false,
        version: number_of("/content_version"),
    }))
}

/// Returns true if the branch of a pull request does not exist.
///
/// The reference that the server keeps then stands for it.
fn lacks_branch(pull_request: &Value, number: u64) -> bool {
    text(pull_request, "/head/ref").is_some_and(|head| head == format!("refs/pull/{number}/head"))
}

/// Splits a title into the part without a prefix, and the mark of a draft.
pub(super) fn bare_title(title: &str, draft: Option<&Value>) -> (String, bool) {
    let lower = title.to_ascii_lowercase();
    let prefix = DRAFT_PREFIXES.into_iter().find(|prefix| lower.starts_with(prefix));
    // Older versions have no member for it.
    let is_draft = draft.and_then(Value::as_bool).unwrap_or(prefix.is_some());
    match prefix {
        Some(prefix) if is_draft => (title[prefix.len()..].trim_start().to_owned(), true),
        _ => (title.to_owned(), is_draft),
    }
}

pub(super) fn requires_anything(branch: &Value) -> bool {
    let approvals = number(branch, "/required_approvals").unwrap_or(0);
    flag(branch, "/protected") && (flag(branch, "/enable_status_check") || approvals > 0)
}

pub(super) fn default_style(repository: &Value) -> &'static str {
    match text(repository, "/default_merge_style") {
        Some("rebase") => "rebase",
        Some("rebase-merge") => "rebase-merge",
        Some("squash") => "squash",
        Some("fast-forward-only") => "fast-forward-only",
        _ => "merge",
    }
}

/// Returns true unless the repository of a pull request forbids a style of merges.
pub(super) fn permits(pull_request: &Value, style: &str) -> bool {
    let member = match style {
        "merge" => "allow_merge_commits",
        "rebase" => "allow_rebase",
        "rebase-merge" => "allow_rebase_explicit",
        "squash" => "allow_squash_merge",
        "fast-forward-only" => "allow_fast_forward_only_merge",
        _ => return true,
    };
    pull_request["base"]["repo"][member] != Value::Bool(false)
}

/// Reads the answer to a merge.
/// There is none if the failure is about more than this one.
pub(super) fn merge_answer(response: &ApiResponse) -> Option<MergeAnswer> {
    let reason = message(response);
    let says = |words: &str| reason.to_ascii_lowercase().contains(words);
    Some(match response.status {
        201 => MergeAnswer::Scheduled,
        200 | 204 => MergeAnswer::Merged,
        405 if says("already merged") => MergeAnswer::Merged,
        409 if says("already scheduled") => MergeAnswer::Scheduled,
        405 if says("not allowed") || says("work in progress") => MergeAnswer::Refused { reason },
        // The server gives one answer for both.
        405 if says("try again later") => MergeAnswer::NotYet {
            reason: format!("the server still checks it, or it has a conflict: {reason}"),
        },
        405 => MergeAnswer::Blocked { reason },
        409 => MergeAnswer::NotYet { reason },
        _ => return None,
    })
}

/// Returns true if a refusal says that the auto-merge is that of another user.
pub(super) fn is_of_others(response: &ApiResponse) -> bool {
    message(response).to_ascii_lowercase().contains("no permission to cancel")
}
