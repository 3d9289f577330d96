//! Merging by GitHub: at once, by auto-merge, or by a merge queue.

use std::collections::BTreeSet;

use serde_json::json;

use super::Github;
use crate::forge::error::ForgeError;
use crate::forge::exchange::{ApiRequest, Cost, Method, Transport};
use crate::forge::github::graphql::{self, MergeState};
use crate::forge::github::repository::GithubRepository;
use crate::forge::pull_request::{Merge, MergeAnswer, MergeMethod};
use crate::git::BranchName;

const MERGE: &str = "merge a pull request";

/// The maximum number of rules of a base that are read.
const MAX_RULES: usize = 100;

impl<T: Transport> Github<T> {
    /// Merges a pull request at once.
    pub(super) async fn merge_now(&self, number: u64, merge: &Merge) -> Result<MergeAnswer, ForgeError> {
        let mut body = json!({"sha": merge.head_commit.to_string()});
        if let Some(method) = merge.method {
            body["merge_method"] = match method {
                MergeMethod::Commit => "merge",
                MergeMethod::Squash => "squash",
                MergeMethod::Rebase => "rebase",
            }
            .into();
        }
        let path = ["pulls", &number.to_string(), "merge"];
        let response = self.send((Method::Put, Cost::Write), &path, Some(body), MERGE).await?;
        let reason = || self.refusal(MERGE, &response).to_string();
        match response.status {
            200 => Ok(MergeAnswer::Merged),
            // It cannot be merged now, or its head is another commit.
            405 | 409 => Ok(MergeAnswer::NotYet { reason: reason() }),
            422 => Ok(MergeAnswer::Refused { reason: reason() }),
            _ => Err(self.refusal(MERGE, &response)),
        }
    }

    /// Has the pull request merged when its checks have passed.
    pub(super) async fn merge_when_ready(
        &self,
        number: u64,
        merge: &Merge,
    ) -> Result<MergeAnswer, ForgeError> {
        let state = self.merge_state(number, Cost::Read).await?;
        if state.head != merge.head_commit.to_string() {
            return Ok(MergeAnswer::NotYet {
                reason: "the head of the pull request is another commit".to_owned(),
            });
        }
        if state.is_in_queue || state.has_auto_merge {
            return Ok(MergeAnswer::Scheduled);
        }
        if !state.requires_something {
            return Ok(match state.unknown {
                Some(reason) => MergeAnswer::Refused { reason },
                None => MergeAnswer::NothingRequired,
            });
        }
        if state.is_computing {
            // Neither a merge nor auto-merge is certain to be accepted.
            return Ok(MergeAnswer::NotYet {
                reason: "GitHub still computes whether it can be merged".to_owned(),
            });
        }
        if state.has_queue {
            return self.enqueue_when_ready(&state, merge).await;
        }
        if state.is_ready {
            return self.merge_now(number, merge).await;
        }
        self.mutate(graphql::enable_auto_merge(&state.id, merge)).await
    }

    /// Puts a pull request into the merge queue once it is ready.
    ///
    /// The queue takes only one that is ready. Auto-merge waits for that, if the repository allows it; the queue has the method.
    async fn enqueue_when_ready(&self, state: &MergeState, merge: &Merge) -> Result<MergeAnswer, ForgeError> {
        if !state.is_ready {
            let by_queue = Merge { method: None, ..merge.clone() };
            let answer = self.mutate(graphql::enable_auto_merge(&state.id, &by_queue)).await?;
            if !matches!(answer, MergeAnswer::Refused { .. }) {
                return Ok(answer);
            }
        }
        self.mutate(graphql::enqueue(&state.id, merge)).await
    }

    /// Takes auto-merge back, unless there is none.
    ///
    /// A pull request in the merge queue stays there.
    pub(super) async fn disable_auto_merge(&self, number: u64) -> Result<(), ForgeError> {
        let state = self.merge_state(number, Cost::EssentialRead).await?;
        if !state.has_auto_merge {
            return Ok(());
        }
        let request = graphql::disable_auto_merge(&state.id);
        let (host, operation) = (self.host.clone(), request.operation);
        let response = self.graphql.send(request).await?;
        if response.status != 200 {
            return Err(self.refusal(operation, &response));
        }
        let (status, errors) = (response.status, graphql::errors(&response.body));
        errors.map_or(Ok(()), |detail| Err(ForgeError::Refused { host, operation, status, detail }))
    }

    pub(super) async fn merge_state(&self, number: u64, cost: Cost) -> Result<MergeState, ForgeError> {
        let answer = self.query(graphql::merge_state(&self.repository, number, cost)).await?;
        match (MergeState::read(&answer.body), answer.missing()) {
            (Some(state), missing) => Ok(MergeState { unknown: missing, ..state }),
            (None, Some(detail)) => {
                Err(ForgeError::Forbidden { host: self.host.clone(), operation: MERGE, detail })
            }
            (None, None) => Err(self.malformed(MERGE, "a response without the pull request's state")),
        }
    }

    /// Returns the numbers in the merge queue of a base, if it has one.
    pub(super) async fn numbers_in_queue(
        &self,
        base: &BranchName,
    ) -> Result<Option<BTreeSet<u64>>, ForgeError> {
        let (mut queued, mut after) = (BTreeSet::new(), None);
        for _ in 0..graphql::MAX_PAGES {
            let answer = self.query(graphql::merge_queue(&self.repository, base, after.as_deref())).await?;
            if let Some(reason) = &answer.forbidden {
                return self.queued(base, reason).await;
            }
            let Some(page) = graphql::read_merge_queue(&answer.body) else { return Ok(None) };
            queued.extend(page.numbers);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(Some(queued))
    }

    /// Returns the numbers in the merge queue of a base, as each pull request says.
    ///
    /// This needs no permission for merge queues.
    async fn queued(&self, base: &BranchName, first: &str) -> Result<Option<BTreeSet<u64>>, ForgeError> {
        let (mut queued, mut after) = (graphql::Queued::default(), None);
        for _ in 0..graphql::MAX_PAGES {
            let answer = self.query(graphql::open_of_base(&self.repository, base, after.as_deref())).await?;
            let Some(page) = queued.read(&answer.body) else {
                let reason = answer.missing();
                return self.unknown_queue(&queued, base, reason.as_deref().unwrap_or(first)).await;
            };
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(queued.numbers())
    }

    /// Returns that a base has no known merge queue.
    ///
    /// # Errors
    ///
    /// If earlier pages or a ruleset tell that it has one: a rebuild would remove pull requests from it.
    async fn unknown_queue(
        &self,
        queued: &graphql::Queued,
        base: &BranchName,
        reason: &str,
    ) -> Result<Option<BTreeSet<u64>>, ForgeError> {
        if queued.has_queue() || self.has_queue_rule(base).await? {
            let (host, detail) = (self.host.clone(), reason.to_owned());
            return Err(ForgeError::Forbidden { host, operation: "list the merge queue", detail });
        }
        let GithubRepository { owner, name } = &self.repository;
        tracing::warn!(
            "{owner}/{name}: it is not known which pull requests are in the merge queue of {base}, if it has one: {reason}; give \
             the token read access to pull requests"
        );
        Ok(None)
    }

    /// Returns true if a ruleset requires a merge queue for a base.
    ///
    /// The REST API tells this without further permissions, and nothing of classic branch protection.
    async fn has_queue_rule(&self, base: &BranchName) -> Result<bool, ForgeError> {
        const OPERATION: &str = "list the rules of a branch";
        let path = ["rules", "branches", base.as_str()];
        let mut request = self.repository.request((Method::Get, Cost::EssentialRead), &path, None, OPERATION);
        request.query = vec![("per_page", MAX_RULES.to_string())];
        let response = self.rest.send(request).await?;
        let rules = response.body.as_array().map(Vec::as_slice).unwrap_or_default();
        match (response.status, self.refusal(OPERATION, &response)) {
            (200, _) => Ok(rules.iter().any(|rule| rule["type"] == "merge_queue")),
            (403 | 404, ForgeError::Forbidden { .. }) => Ok(false),
            (_, refusal) => Err(refusal),
        }
    }

    /// Sends a query; parts that cannot be read are null.
    async fn query(&self, request: ApiRequest) -> Result<graphql::Answer, ForgeError> {
        let operation = request.operation;
        let response = self.graphql.send(request).await?;
        let refused = match (response.status, self.refusal(operation, &response)) {
            (200, _) => None,
            // Not each token is accepted here.
            (403, ForgeError::Forbidden { detail, .. }) => Some(detail),
            (_, refusal) => return Err(refusal),
        };
        let (host, status) = (self.host.clone(), response.status);
        let answer = graphql::Answer::of(response.body, refused);
        answer.map_err(|detail| ForgeError::Refused { host, operation, status, detail })
    }

    /// Sends a mutation; an error among its results is GitHub's reason to refuse.
    async fn mutate(&self, request: ApiRequest) -> Result<MergeAnswer, ForgeError> {
        let response = self.graphql.send(request).await?;
        if response.status != 200 {
            return Err(self.refusal(MERGE, &response));
        }
        Ok(match graphql::errors(&response.body) {
            Some(reason) => MergeAnswer::Refused { reason },
            None => MergeAnswer::Scheduled,
        })
    }
}
