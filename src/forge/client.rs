//! The parts that all clients share: failures, paging, and short ways to make requests.

use std::collections::BTreeSet;

use serde_json::Value;

use super::error::ForgeError;
use super::exchange::{ApiRequest, ApiResponse, Cost, Method, Transport};
use super::pull_request::{Merge, MergeAnswer, PullRequest, PullRequestState};
use super::reading::{Defect, message};

/// The maximum number of pages of one listing.
const MAX_PAGES: usize = 100;

/// The names by which errors refer to a forge and to its login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The host of the API.
    pub host: String,
    /// The object that has the credentials.
    pub login: String,
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
        let (host, detail) = (self.endpoint.host.clone(), message(response));
        match response.status {
            401 => ForgeError::Unauthenticated { host, login: self.endpoint.login.clone(), detail },
            403 | 404 => ForgeError::Forbidden { host, operation, detail },
            500..=599 => ForgeError::Unavailable { host, detail },
            400..=499 => ForgeError::Refused { host, operation, status: response.status, detail },
            status => ForgeError::Malformed { host, operation, detail: format!("status {status}") },
        }
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

    /// Marks a request that creates content of which users are notified.
    pub(super) fn creating(self) -> Self {
        Self { cost: Cost::Create, ..self }
    }
}

/// Makes the segments of a path.
pub(super) fn path(segments: &[&str]) -> Vec<String> {
    segments.iter().map(|&segment| segment.to_owned()).collect()
}

/// The progress through a listing, guarded against pages without end.
#[derive(Debug, Default)]
pub(super) struct Paging {
    seen: BTreeSet<u64>,
    pages: usize,
}

impl Paging {
    /// Counts a page with the numbers of its entries.
    pub(super) fn count(&mut self, numbers: impl IntoIterator<Item = u64>) -> Result<(), Defect> {
        self.pages += 1;
        if self.pages > MAX_PAGES {
            return Err(Defect("more than 100 pages"));
        }
        let (before, mut entries) = (self.seen.len(), 0);
        for number in numbers {
            entries += 1;
            self.seen.insert(number);
        }
        // Entries can move to the next page while pages are read, but not all of them.
        if entries > 0 && self.seen.len() == before {
            return Err(Defect("a page that repeats earlier ones"));
        }
        Ok(())
    }

    /// Returns the number of different entries so far.
    pub(super) fn entries(&self) -> u64 {
        self.seen.len() as u64
    }
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
    use super::*;

    #[test]
    fn pages_end() {
        let mut paging = Paging::default();
        assert_eq!(paging.count([3, 2]), Ok(()));
        assert_eq!(paging.count([2, 1]), Ok(()), "an entry moved to the next page");
        assert_eq!(paging.entries(), 3);
        assert_eq!(paging.count([]), Ok(()));
        assert!(paging.count([3]).is_err(), "a loop");
        let mut endless = Paging::default();
        let pages = (0..1_000).take_while(|page| endless.count([*page]).is_ok()).count();
        assert_eq!(pages, MAX_PAGES);
    }
}
