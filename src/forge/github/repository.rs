//! A repository at GitHub, and requests to it.

use serde_json::Value;

use crate::forge::exchange::{ApiRequest, Cost, Method};

/// The version of the API.
const VERSION: &str = "2022-11-28";

/// A repository at GitHub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GithubRepository {
    /// The user or organization.
    pub owner: String,
    /// The name.
    pub name: String,
}

impl GithubRepository {
    /// Makes a request to a resource of the repository.
    pub(super) fn request(
        &self,
        (method, cost): (Method, Cost),
        resource: &[&str],
        body: Option<Value>,
        operation: &'static str,
    ) -> ApiRequest {
        let path = ["repos", &self.owner, &self.name].into_iter().chain(resource.iter().copied());
        ApiRequest {
            method,
            path: path.map(str::to_owned).collect(),
            query: Vec::new(),
            headers: headers(),
            body,
            cost,
            operation,
        }
    }
}

/// Returns the headers of every request.
pub(super) fn headers() -> Vec<(&'static str, String)> {
    vec![("accept", "application/vnd.github+json".to_owned()), ("x-github-api-version", VERSION.to_owned())]
}
