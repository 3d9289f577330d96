//! The values in responses of GitLab.

use serde_json::Value;

use crate::forge::exchange::ApiResponse;
use crate::forge::pull_request::{MergeAnswer, MergeMethod, PullRequest, PullRequestState};
use crate::forge::reading::{Defect, branch, commit, flag, list, message, number, page_url, text, texts};

/// The prefixes that GitLab recognizes; the last two in older versions.
pub(super) const DRAFT_PREFIXES: [&str; 5] = ["draft:", "[draft]", "(draft)", "wip:", "[wip]"];

/// The settings of a project that bear on merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MergeSettings {
    pub(super) makes_merge_commits: bool,
    pub(super) rebases: bool,
    pub(super) may_squash: bool,
    pub(super) requires_checks: bool,
    pub(super) has_merge_trains: bool,
}

impl MergeSettings {
    /// Returns the reason for which the project does not merge by a method.
    pub(super) fn refusal(self, method: Option<MergeMethod>) -> Option<&'static str> {
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

/// Reads a list of merge requests; those whose head is elsewhere are left out.
pub(super) fn merge_requests(body: &Value) -> Result<Vec<PullRequest>, Defect> {
    let entries = body.as_array().ok_or(Defect("no list of merge requests"))?;
    entries.iter().filter_map(|entry| merge_request(entry).transpose()).collect()
}

pub(super) fn own_merge_request(body: &Value) -> Result<PullRequest, Defect> {
    merge_request(body)?.ok_or(Defect("a merge request whose head is in another project"))
}

/// Reads a merge request.
/// It is left out if its head is not a branch of the project itself.
pub(super) fn merge_request(body: &Value) -> Result<Option<PullRequest>, Defect> {
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
        lacks_branch: false,
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
pub(super) fn bare_title(title: &str, is_draft: bool) -> &str {
    let lower = title.to_ascii_lowercase();
    let prefix = DRAFT_PREFIXES.into_iter().find(|prefix| is_draft && lower.starts_with(prefix));
    prefix.map_or(title, |prefix| title[prefix.len()..].trim_start())
}

pub(super) fn merge_settings(project: &Value) -> MergeSettings {
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

pub(super) fn needs_approval(approvals: &Value) -> bool {
    number(approvals, "/approvals_required").unwrap_or(0) > 0
}

/// Reads the answer to a merge.
/// There is none if the failure is about more than this one.
pub(super) fn merge_answer(response: &ApiResponse, uses_train: bool) -> Option<MergeAnswer> {
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
