//! A server that receives statuses, played by the test.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::git_host::request::Request;
use crate::support::http_front::{Front, Reply};

const PATIENCE: Duration = Duration::from_secs(60);

/// A server that receives statuses.
pub(super) struct Sink {
    pub(super) front: Front,
}

impl Sink {
    /// Starts the server, whose responses depend on the id of the deployment.
    pub(super) fn start(plan: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self { front: Front::alone(move |request| plan(id_of(request))) }
    }

    /// The value of `--status-endpoint`, which has a path.
    pub(super) fn endpoint(&self) -> String {
        self.front.url("/margo/")
    }

    /// The requests for a deployment so far.
    pub(super) fn requests(&self, id: &str) -> Vec<Request> {
        let requests = self.front.requests_for(&format!("/margo/api/v1/deployments/{id}/status"));
        for request in &requests {
            assert_eq!((request.method.as_str(), request.query.as_str()), ("POST", ""));
            assert_eq!(request.header("content-type"), Some("application/json"));
        }
        requests
    }

    /// Waits until a deployment has a number of requests, and returns their documents.
    pub(super) async fn pushed(&self, id: &str, count: usize) -> Vec<Value> {
        let begin = Instant::now();
        while self.requests(id).len() < count {
            assert!(begin.elapsed() < PATIENCE, "{id}: {:?}", self.front.requests());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let requests = self.requests(id);
        assert_eq!(requests.len(), count, "{id}: {requests:?}");
        requests.iter().map(document).collect()
    }
}

/// The document of a request.
pub(super) fn document(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

fn id_of(request: &Request) -> &str {
    request.path.rsplit('/').nth(1).unwrap_or_default()
}
