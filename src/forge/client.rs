//! The parts that all clients share: failures, and short ways to make requests.

use serde_json::Value;

use super::error::ForgeError;
use super::exchange::{ApiRequest, ApiResponse, Cost, Method, Transport};
use super::pull_request::{Merge, MergeAnswer, PullRequest, PullRequestEdit, PullRequestState};
use super::reading::{Defect, NO_JSON, message, said, with_remedy};

/// The names by which errors refer to a forge and to its login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The host of the API, with its port unless that is the usual one.
    pub host: String,
    /// The object that has the credentials.
    pub login: String,
    /// True if an annotation gives the URL of the API.
    pub has_given_url: bool,
}

/// A transport, with the names for its errors.
#[derive(Debug)]
pub(super) struct Client<T> {
    transport: T,
    endpoint: Endpoint,
}

impl<T: Transport> Client<T> {
    pub(super) fn new(transport: T, endpoint: Endpoint) -> Self {
        Self { transport, endpoint }
    }

    /// Sends a request, and returns the response with any status.
    pub(super) async fn send(&self, request: ApiRequest) -> Result<ApiResponse, ForgeError> {
        self.transport.send(request).await
    }

    /// Sends a request, and returns the response if its status is a success.
    pub(super) async fn call(&self, request: ApiRequest) -> Result<ApiResponse, ForgeError> {
        let operation = request.operation;
        let response = self.send(request).await?;
        if response.is_success() { Ok(response) } else { Err(self.failure(operation, &response)) }
    }

    /// Returns the error for a response with a status that is no success.
    pub(super) fn failure(&self, operation: &'static str, response: &ApiResponse) -> ForgeError {
        let host = self.endpoint.host.clone();
        let detail = message(response) + self.doubt_of_url(operation, response);
        match response.status {
            401 => ForgeError::Unauthenticated { host, login: self.endpoint.login.clone(), detail },
            403 | 404 => {
                let detail = format!("{} (login: {})", with_remedy(detail), self.endpoint.login);
                ForgeError::Forbidden { host, operation, detail }
            }
            status @ 500..=599 => ForgeError::failing(&host, status, &said(response).unwrap_or_default()),
            status @ 400..=499 => {
                ForgeError::Refused { host, operation, status, detail: with_remedy(detail) }
            }
            status => ForgeError::Malformed { host, operation, detail: format!("status {status}") },
        }
    }

    /// Returns the advice about the URL of the API, if a response makes it doubtful.
    ///
    /// A list comes before all other calls, so it is the call that such a URL fails.
    fn doubt_of_url(&self, operation: &'static str, response: &ApiResponse) -> &'static str {
        const ABSENT: &str =
            ": check that the repository exists, has pull requests enabled, and can be read with this login";
        if !matches!(response.status, 404 | 405) || !operation.starts_with("list ") {
            return "";
        }
        // The API of another forge says nothing, and what is no API does not say it in JSON.
        let is_odd = said(response).is_none_or(|said| said.ends_with(NO_JSON));
        match (self.endpoint.has_given_url, is_odd) {
            (true, _) => ": check that tagboat.dev/forge-url leads to the API that has the repository",
            (false, true) => ": check tagboat.dev/forge, or set tagboat.dev/forge-url to the URL of the API",
            (false, false) if response.status == 404 => ABSENT,
            (false, false) => "",
        }
    }

    /// Returns the forge's reason to refuse a part of a pull request.
    ///
    /// # Errors
    ///
    /// If the failure may pass, so that a later round tries again.
    pub(super) fn refused_part(
        &self,
        operation: &'static str,
        response: &ApiResponse,
    ) -> Result<String, ForgeError> {
        let failure = self.failure(operation, response);
        if failure.is_final() { Ok(message(response)) } else { Err(failure) }
    }

    /// Refuses an edit if the pull request has changed since it was decided.
    pub(super) fn unchanged(
        &self,
        operation: &'static str,
        (found, known): (&PullRequest, &PullRequest),
        edit: &PullRequestEdit,
    ) -> Result<(), ForgeError> {
        match found.admits(edit, known) {
            true => Ok(()),
            false => Err(self.changed_meanwhile(operation)),
        }
    }

    /// Returns the error of a change to a pull request that others have changed.
    pub(super) fn changed_meanwhile(&self, operation: &'static str) -> ForgeError {
        ForgeError::changed_meanwhile(&self.endpoint.host, operation)
    }

    /// Turns a defect of a response into an error.
    pub(super) fn checked<V>(
        &self,
        operation: &'static str,
        read: Result<V, Defect>,
    ) -> Result<V, ForgeError> {
        read.map_err(|Defect(detail)| ForgeError::Malformed {
            host: self.endpoint.host.clone(),
            operation,
            detail: detail.to_owned(),
        })
    }
}

impl ApiResponse {
    /// Returns true if the status is a success.
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

impl ApiRequest {
    pub(super) fn get(path: Vec<String>, operation: &'static str) -> Self {
        Self {
            method: Method::Get,
            path,
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            cost: Cost::Read,
            operation,
        }
    }

    pub(super) fn write(method: Method, path: Vec<String>, operation: &'static str) -> Self {
        Self { method, cost: Cost::Write, ..Self::get(path, operation) }
    }

    pub(super) fn with_query(mut self, name: &'static str, value: &(impl ToString + ?Sized)) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    pub(super) fn with_body(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    /// Marks a request that goes on when little is left of a limit.
    pub(super) fn essential(self) -> Self {
        let cost = if self.method == Method::Get { Cost::EssentialRead } else { Cost::Essential };
        Self { cost, ..self }
    }

    /// Marks a request as essential on a condition.
    pub(super) fn essential_if(self, is_essential: bool) -> Self {
        if is_essential { self.essential() } else { self }
    }

    /// Marks a request that creates content of which users are notified.
    pub(super) fn creating(self) -> Self {
        Self { cost: Cost::Create, ..self }
    }
}

/// Makes the segments of a path.
pub(super) fn path(segments: &[&str]) -> Vec<String> {
    segments.iter().map(|&segment| segment.to_owned()).collect()
}

impl PullRequest {
    /// Returns the answer to a merge if the state of the pull request decides it.
    pub(super) fn obstacle(&self, merge: &Merge) -> Option<MergeAnswer> {
        match self.state {
            PullRequestState::Merged => Some(MergeAnswer::Merged),
            PullRequestState::Closed => Some(MergeAnswer::Refused { reason: "it is closed".to_owned() }),
            PullRequestState::Open => {
                let head = self.head_commit.filter(|head| *head != merge.head_commit)?;
                let reason = format!("its head is {}, not {}", head.short(), merge.head_commit.short());
                Some(MergeAnswer::NotYet { reason })
            }
        }
    }
}

/// Puts the newest pull requests first, each once.
pub(super) fn newest_first(mut found: Vec<PullRequest>) -> Vec<PullRequest> {
    found.sort_by_key(|one| std::cmp::Reverse(one.number));
    found.dedup_by_key(|one| one.number);
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::forge::script::{Script, endpoint};

    #[test]
    fn an_odd_answer_to_a_listing_raises_a_doubt_of_the_annotations() {
        let text = || json!({"message": format!("404, with a text {NO_JSON}")});
        for (has_given_url, operation, status, body, doubt) in [
            (true, "list pull requests", 404, text(), Some("leads to the API")),
            (true, "list pull requests", 404, json!({"message": "not found"}), Some("leads to the API")),
            (false, "list pull requests", 404, text(), Some("check tagboat.dev/forge,")),
            // The API of another forge.
            (false, "list merge requests", 405, json!(null), Some("check tagboat.dev/forge,")),
            (false, "list pull requests", 404, json!({"message": "not found"}), None),
            (true, "list pull requests", 403, json!({"message": "no"}), None),
            (true, "edit a pull request", 404, text(), None),
        ] {
            let script = Script::new([]);
            let client = Client::new(&script, Endpoint { has_given_url, ..endpoint() });
            let answer = ApiResponse::new(status, Vec::new(), body);
            let error = client.failure(operation, &answer).to_string();
            assert_eq!(error.contains("tagboat.dev/forge"), doubt.is_some(), "{error}");
            assert!(error.contains(doubt.unwrap_or_default()), "{error}");
        }
    }
}
