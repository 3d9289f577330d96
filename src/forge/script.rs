//! A transport for tests that answers from a list, and records the requests.

use std::collections::VecDeque;

use parking_lot::Mutex;
use serde_json::Value;

use super::client::Endpoint;
use super::error::ForgeError;
use super::exchange::{ApiRequest, ApiResponse, Cost, Transport};

/// Answers in order, and fails if there are too many requests.
// Marked again for the inventory of shared maps, which reads each file by itself.
#[cfg(test)]
pub(super) struct Script {
    answers: Mutex<VecDeque<ApiResponse>>,
    requests: Mutex<Vec<ApiRequest>>,
}

impl Script {
    pub(super) fn new(answers: impl IntoIterator<Item = (u16, Value)>) -> Self {
        let answer = |(status, body)| ApiResponse::new(status, Vec::new(), body);
        Self { answers: Mutex::new(answers.into_iter().map(answer).collect()), requests: Mutex::default() }
    }

    /// Returns each request as method, path with query, and body.
    pub(super) fn requests(&self) -> Vec<(String, Value)> {
        let line = |request: &ApiRequest| {
            let path = request.path.iter().map(|part| crate::net::percent::encode(part.as_bytes()));
            let query = request.query.iter().map(|(name, value)| format!("{name}={value}"));
            let (path, query) = (path.collect::<Vec<_>>().join("/"), query.collect::<Vec<_>>().join("&"));
            let mark = if query.is_empty() { "" } else { "?" };
            (format!("{:?} {path}{mark}{query}", request.method), request.body.clone().unwrap_or_default())
        };
        self.requests.lock().iter().map(line).collect()
    }

    /// Panics if a request waits when little is left of a limit.
    pub(super) fn assert_essential(&self) {
        for request in self.requests.lock().iter() {
            assert!(!matches!(request.cost, Cost::Read | Cost::Write), "{request:?}");
        }
    }
}

impl Transport for &Script {
    async fn send(&self, request: ApiRequest) -> Result<ApiResponse, ForgeError> {
        self.requests.lock().push(request.clone());
        let answer = self.answers.lock().pop_front();
        Ok(answer.unwrap_or_else(|| panic!("no answer is left for {request:?}")))
    }
}

pub(super) fn endpoint() -> Endpoint {
    Endpoint { host: "forge.example".to_owned(), login: "Secret apps/forge".to_owned(), has_given_url: false }
}

/// Runs a future that never waits.
pub(super) fn run<V>(future: impl Future<Output = V>) -> V {
    futures::executor::block_on(future)
}
