//! The documents of GraphQL, for what the REST API lacks: merge queues and auto-merge.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::repository::{GithubRepository, headers};
use crate::forge::exchange::{ApiRequest, Cost, Method};
use crate::forge::pull_request::{Merge, MergeMethod};
use crate::git::BranchName;

/// The state of a pull request, as far as merging depends on it.
const MERGE_STATE: &str = include_str!("merge_state.graphql");

/// A page of the entries of a merge queue.
const MERGE_QUEUE: &str = include_str!("merge_queue.graphql");

/// The open pull requests of a base, each with its state in the merge queue.
const OPEN_OF_BASE: &str = include_str!("open_of_base.graphql");

/// Puts a pull request into the merge queue.
const ENQUEUE: &str = include_str!("enqueue.graphql");

/// Has a pull request merged when its requirements are met.
const ENABLE_AUTO_MERGE: &str = include_str!("enable_auto_merge.graphql");

/// Cancels the auto-merge of a pull request.
const DISABLE_AUTO_MERGE: &str = include_str!("disable_auto_merge.graphql");

/// The login for which GitHub answers, such as `tagboat[bot]`.
const VIEWER: &str = include_str!("viewer.graphql");

/// The maximum number of pages of a merge queue, of 100 entries each.
pub(super) const MAX_PAGES: usize = 20;

/// The types of rules that require a check, of `RepositoryRuleType`.
pub(super) const CHECKS: [&str; 5] = [
    "REQUIRED_STATUS_CHECKS",
    "REQUIRED_WORKFLOW_STATUS_CHECKS",
    "WORKFLOWS",
    "CODE_SCANNING",
    "REQUIRED_DEPLOYMENTS",
];

/// The type of a rule that can require approvals.
pub(super) const APPROVALS: &str = "PULL_REQUEST";

/// The states in which a pull request could be merged at once, of `MergeStateStatus`.
pub(super) const READY: [&str; 3] = ["CLEAN", "HAS_HOOKS", "UNSTABLE"];

/// The state that GitHub has not computed yet, such as right after a push.
pub(super) const UNKNOWN: &str = "UNKNOWN";

/// The types of errors about parts that a token may not read.
const FORBIDDEN: [&str; 2] = ["FORBIDDEN", "INSUFFICIENT_SCOPES"];

/// The maximum length of the errors of a response, in bytes.
const MAX_ERRORS: usize = 500;

/// The state of a pull request, as far as merging depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MergeState {
    /// The id by which mutations name it.
    pub(super) id: String,
    /// The id of its head commit.
    pub(super) head: String,
    /// True if it waits in the merge queue.
    pub(super) is_in_queue: bool,
    /// True if its base has a merge queue.
    pub(super) has_queue: bool,
    /// True if GitHub merges it when it is ready.
    pub(super) has_auto_merge: bool,
    /// True if a check or an approval is required.
    pub(super) requires_something: bool,
    /// True if it could be merged at once.
    pub(super) is_ready: bool,
    /// True if GitHub still computes if it could be.
    pub(super) is_computing: bool,
    /// The reason for which parts of this are unknown, if some are.
    pub(super) unknown: Option<String>,
}

/// The answer to a query.
pub(super) struct Answer {
    /// The body, in which parts may be null.
    pub(super) body: Value,
    /// The reason for which the token may not read a part.
    pub(super) forbidden: Option<String>,
    /// The reason for which an older server lacks a part.
    undefined: Option<String>,
}

impl Answer {
    /// Reads an answer; `refused` is the reason for which GitHub refuses the whole query.
    ///
    /// # Errors
    ///
    /// The errors that are not about parts alone, as one sentence.
    pub(super) fn of(body: Value, refused: Option<String>) -> Result<Self, String> {
        let errors = body["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
        let of = |wanted: &dyn Fn(&Value) -> bool| {
            let mut found = errors.iter().filter(|error| wanted(error)).peekable();
            found.peek().is_some().then(|| sentence(found))
        };
        if let Some(failure) = of(&|error| !is_forbidden(error) && !is_of_undefined_field(error)) {
            return Err(failure);
        }
        let (forbidden, undefined) = (refused.or_else(|| of(&is_forbidden)), of(&is_of_undefined_field));
        Ok(Self { body, forbidden, undefined })
    }

    /// Returns the reason for which parts are null, if some are.
    pub(super) fn missing(&self) -> Option<String> {
        self.forbidden.as_ref().or(self.undefined.as_ref()).cloned()
    }
}

/// A page of numbers of pull requests.
pub(super) struct Page {
    /// The numbers.
    pub(super) numbers: Vec<u64>,
    /// The place after which the next page begins, if there is one.
    pub(super) next: Option<String>,
}

impl Page {
    fn of(list: &Value, numbers: Vec<u64>) -> Self {
        let info = &list["pageInfo"];
        let next = info["endCursor"].as_str().filter(|_| info["hasNextPage"] == Value::Bool(true));
        Self { numbers, next: next.map(str::to_owned) }
    }
}

/// The pull requests of a base that are in its merge queue, as each says.
#[derive(Debug, Default)]
pub(super) struct Queued {
    numbers: BTreeSet<u64>,
    /// True if the base has a merge queue, or if no pull request tells.
    has_queue: Option<bool>,
}

impl Queued {
    /// Adds a page; there is none if the token may not read it.
    pub(super) fn read(&mut self, body: &Value) -> Option<Page> {
        let list = &body["data"]["repository"]["pullRequests"];
        for node in list["nodes"].as_array()?.iter().filter(|node| !node.is_null()) {
            let has_queue = node["isMergeQueueEnabled"] == Value::Bool(true);
            self.has_queue = Some(self.has_queue.unwrap_or(false) || has_queue);
            if node["isInMergeQueue"] == Value::Bool(true) {
                self.numbers.extend(node["number"].as_u64());
            }
        }
        Some(Page::of(list, Vec::new()))
    }

    /// Returns true if a pull request tells that the base has a merge queue.
    pub(super) fn has_queue(&self) -> bool {
        self.has_queue == Some(true)
    }

    /// Returns the numbers; none without a merge queue.
    pub(super) fn numbers(self) -> Option<BTreeSet<u64>> {
        self.has_queue.unwrap_or(true).then_some(self.numbers)
    }
}

impl MergeState {
    /// Reads the response to [`merge_state`].
    pub(super) fn read(body: &Value) -> Option<Self> {
        let found = &body["data"]["repository"]["pullRequest"];
        let base = &found["baseRef"];
        let protection = &base["branchProtectionRule"];
        let rules = base["rules"]["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
        let requires = |rule: &Value| match rule["type"].as_str() {
            Some(kind) if CHECKS.contains(&kind) => true,
            Some(APPROVALS) => rule["parameters"]["requiredApprovingReviewCount"].as_u64() > Some(0),
            _ => false,
        };
        let is_true = |value: &Value| *value == Value::Bool(true);
        Some(Self {
            id: found["id"].as_str()?.to_owned(),
            head: found["headRefOid"].as_str()?.to_owned(),
            is_in_queue: is_true(&found["isInMergeQueue"]),
            has_queue: is_true(&found["isMergeQueueEnabled"]),
            has_auto_merge: !found["autoMergeRequest"].is_null(),
            requires_something: is_true(&protection["requiresStatusChecks"])
                || is_true(&protection["requiresApprovingReviews"])
                || rules.iter().any(requires),
            is_ready: found["mergeStateStatus"].as_str().is_some_and(|state| READY.contains(&state)),
            is_computing: found["mergeStateStatus"] == UNKNOWN,
            unknown: None,
        })
    }
}

/// Makes the request for the login that the token belongs to.
pub(super) fn viewer(operation: &'static str) -> ApiRequest {
    ApiRequest { operation, ..request(VIEWER, &json!({}), Cost::EssentialRead) }
}

/// Makes the request for the state of a pull request.
pub(super) fn merge_state(repository: &GithubRepository, number: u64, cost: Cost) -> ApiRequest {
    let variables = json!({"owner": repository.owner, "name": repository.name, "number": number});
    request(MERGE_STATE, &variables, cost)
}

/// Makes the request for a page of the merge queue of a base.
pub(super) fn merge_queue(
    repository: &GithubRepository,
    base: &BranchName,
    after: Option<&str>,
) -> ApiRequest {
    list_of_base(MERGE_QUEUE, repository, base, after)
}

/// Makes the request for a page of the open pull requests of a base.
pub(super) fn open_of_base(
    repository: &GithubRepository,
    base: &BranchName,
    after: Option<&str>,
) -> ApiRequest {
    list_of_base(OPEN_OF_BASE, repository, base, after)
}

fn list_of_base(
    document: &str,
    repository: &GithubRepository,
    base: &BranchName,
    after: Option<&str>,
) -> ApiRequest {
    let GithubRepository { owner, name } = repository;
    let variables = json!({"owner": owner, "name": name, "branch": base.as_str(), "after": after});
    ApiRequest { operation: "list the merge queue", ..request(document, &variables, Cost::EssentialRead) }
}

/// Reads a page of a merge queue; none without a queue.
pub(super) fn read_merge_queue(body: &Value) -> Option<Page> {
    let list = &body["data"]["repository"]["mergeQueue"]["entries"];
    let numbers =
        list["nodes"].as_array()?.iter().filter_map(|entry| entry["pullRequest"]["number"].as_u64());
    Some(Page::of(list, numbers.collect()))
}

/// Makes the request that puts a pull request into the merge queue.
pub(super) fn enqueue(id: &str, merge: &Merge) -> ApiRequest {
    let input = json!({"pullRequestId": id, "expectedHeadOid": merge.head_commit.to_string()});
    request(ENQUEUE, &json!({"input": input}), Cost::Write)
}

/// Makes the request that has a pull request merged when it is ready.
pub(super) fn enable_auto_merge(id: &str, merge: &Merge) -> ApiRequest {
    let mut input = json!({"pullRequestId": id, "expectedHeadOid": merge.head_commit.to_string()});
    if let Some(method) = merge.method {
        input["mergeMethod"] = match method {
            MergeMethod::Commit => "MERGE",
            MergeMethod::Squash => "SQUASH",
            MergeMethod::Rebase => "REBASE",
        }
        .into();
    }
    request(ENABLE_AUTO_MERGE, &json!({"input": input}), Cost::Write)
}

/// Makes the request that cancels the auto-merge of a pull request.
pub(super) fn disable_auto_merge(id: &str) -> ApiRequest {
    let input = json!({"pullRequestId": id});
    ApiRequest {
        operation: "cancel an auto-merge",
        ..request(DISABLE_AUTO_MERGE, &json!({"input": input}), Cost::Essential)
    }
}

/// Returns the errors of a response as one sentence, if there are any.
pub(super) fn errors(body: &Value) -> Option<String> {
    let errors = body["errors"].as_array().filter(|errors| !errors.is_empty())?;
    Some(sentence(errors.iter()))
}

/// Returns true for an error about a part that the token may not read.
fn is_forbidden(error: &Value) -> bool {
    error["type"].as_str().is_some_and(|kind| FORBIDDEN.contains(&kind))
}

/// Returns true for an error about a field that an older server does not know.
fn is_of_undefined_field(error: &Value) -> bool {
    error["extensions"]["code"] == "undefinedField"
        || error["message"].as_str().is_some_and(|message| message.contains("doesn't exist on type"))
}

fn sentence<'e>(errors: impl Iterator<Item = &'e Value>) -> String {
    let messages: Vec<&str> = errors.filter_map(|error| error["message"].as_str()).take(5).collect();
    let mut sentence = crate::printable::printable(&messages.join("; ")).into_owned();
    sentence.truncate(sentence.floor_char_boundary(MAX_ERRORS));
    if sentence.is_empty() { "an error without a message".to_owned() } else { sentence }
}

fn request(document: &str, variables: &Value, cost: Cost) -> ApiRequest {
    ApiRequest {
        method: Method::Post,
        path: Vec::new(),
        query: Vec::new(),
        headers: headers(),
        body: Some(json!({"query": document, "variables": variables})),
        cost,
        operation: "merge a pull request",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(changes: &Value) -> MergeState {
        let mut found = json!({
            "id": "PR_1", "headRefOid": "abc", "isInMergeQueue": false, "isMergeQueueEnabled": false,
            "mergeStateStatus": "BLOCKED", "autoMergeRequest": null,
            "baseRef": {"branchProtectionRule": null, "rules": {"nodes": []}},
        });
        found.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        MergeState::read(&json!({"data": {"repository": {"pullRequest": found}}})).unwrap()
    }

    #[test]
    fn only_checks_and_approvals_are_requirements() {
        let rule = |kind: &str, approvals: u64| {
            json!({"baseRef": {"branchProtectionRule": null, "rules": {"nodes": [
                {"type": kind, "parameters": {"requiredApprovingReviewCount": approvals}},
            ]}}})
        };
        let protection = |checks: bool, reviews: bool| {
            json!({"baseRef": {"branchProtectionRule": {
                "requiresStatusChecks": checks, "requiresApprovingReviews": reviews,
            }}})
        };
        for (changes, expected) in [
            (json!({}), false),
            (json!({"baseRef": null}), false),
            (rule("REQUIRED_STATUS_CHECKS", 0), true),
            (rule("PULL_REQUEST", 0), false),
            (rule("PULL_REQUEST", 1), true),
            (rule("DELETION", 1), false),
            (protection(false, false), false),
            (protection(true, false), true),
            (protection(false, true), true),
        ] {
            assert_eq!(state(&changes).requires_something, expected, "{changes}");
        }
        assert!(state(&json!({"mergeStateStatus": "CLEAN"})).is_ready && !state(&json!({})).is_ready);
    }

    #[test]
    fn errors_are_one_sentence() {
        assert_eq!(errors(&json!({"data": {}})), None);
        let body = json!({"errors": [{"message": "Pull request is in clean status"}, {"message": "x\ny"}]});
        assert_eq!(errors(&body).as_deref(), Some("Pull request is in clean status; x\\ny"));
    }
}
