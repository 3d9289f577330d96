//! The values in responses of Azure DevOps.

use serde_json::Value;

use super::requests::AzureRepository;
use crate::forge::exchange::ApiResponse;
use crate::forge::pull_request::{MergeAnswer, PullRequest, PullRequestState};
use crate::forge::reading::{Defect, branch, commit, flag, list, message, number, one_line, text, texts};
use crate::net::percent;

/// The policies of branches that require a check or an approval.
pub(super) const POLICIES: [&str; 4] = [
    // A number of reviewers.
    "fa4e907d-c16b-4a4c-9dfa-4906e5d171dd",
    // Certain reviewers.
    "fd2167ab-b0be-447a-8ec8-39368250530e",
    // A build.
    "0609b952-1397-4640-95ec-e00a01b2c241",
    // A status of another service.
    "cbdc66da-9728-4af8-aada-9a5a32e4a226",
];

impl AzureRepository {
    /// Returns the address of a pull request's page, which the API does not tell.
    fn page(&self, number: u64) -> String {
        let [organization, project, name] =
            [&self.organization, &self.project, &self.name].map(|part| percent::encode(part.as_bytes()));
        format!("https://dev.azure.com/{organization}/{project}/_git/{name}/pullrequest/{number}")
    }

    pub(super) fn own_pull_request(&self, body: &Value) -> Result<PullRequest, Defect> {
        self.pull_request(body)?.ok_or(Defect("a pull request whose head is in another repository"))
    }

    /// Reads a pull request.
    /// It is left out if its head is not a branch of the repository itself.
    pub(super) fn pull_request(&self, body: &Value) -> Result<Option<PullRequest>, Defect> {
        let number = number(body, "/pullRequestId").ok_or(Defect("a pull request without a number"))?;
        let (Some(head), Some(base)) = (branch(body, "/sourceRefName"), branch(body, "/targetRefName"))
        else {
            return Ok(None);
        };
        if body.get("forkSource").is_some_and(|fork| !fork.is_null()) {
            return Ok(None);
        }
        let state = match text(body, "/status") {
            Some("active") => PullRequestState::Open,
            Some("abandoned") => PullRequestState::Closed,
            Some("completed") => PullRequestState::Merged,
            _ => return Err(Defect("a pull request without a state")),
        };
        Ok(Some(PullRequest {
            number,
            url: self.page(number),
            state,
            head,
            head_commit: commit(body, "/lastMergeSourceCommit/commitId"),
            lacks_branch: false,
            base,
            title: text(body, "/title").unwrap_or_default().to_owned(),
            body: text(body, "/description").unwrap_or_default().to_owned(),
            is_draft: flag(body, "/isDraft"),
            labels: texts(list(body, "/labels"), "/name"),
            is_in_merge_queue: false,
            has_auto_merge: text(body, "/autoCompleteSetBy/id").is_some(),
            version: None,
        }))
    }
}

/// Returns true if a policy applies, forbids merges, and requires a check or an approval.
pub(super) fn is_required(policy: &Value) -> bool {
    let kind = text(policy, "/type/id").unwrap_or_default().to_ascii_lowercase();
    flag(policy, "/isEnabled") && flag(policy, "/isBlocking") && POLICIES.contains(&kind.as_str())
}

/// Returns true for an id: 32 hexadecimal digits in five groups.
pub(super) fn is_id(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Reads the answer to a merge.
/// There is none if the failure is about more than this one.
pub(super) fn merge_answer(response: &ApiResponse) -> Option<MergeAnswer> {
    let body = &response.body;
    Some(match response.status {
        200..=299 if text(body, "/status") == Some("completed") => MergeAnswer::Merged,
        200..=299 => match text(body, "/mergeStatus") {
            Some(state @ ("conflicts" | "rejectedByPolicy" | "failure")) => {
                let reason = text(body, "/mergeFailureMessage").unwrap_or(state);
                MergeAnswer::NotYet { reason: one_line(reason) }
            }
            // The forge does it in the background.
            _ => MergeAnswer::Scheduled,
        },
        400 => MergeAnswer::Refused { reason: message(response) },
        409 => MergeAnswer::NotYet { reason: message(response) },
        _ => return None,
    })
}
