//! A request to the API server, in the terms of RBAC roles.

use axum::http::{Method, Request};

/// A request: verb, resource, object and URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The verb of a role: get, list, watch, create, update, patch, delete or deletecollection.
    pub(crate) verb: &'static str,
    /// The resource of a role: the plural with the subresource.
    /// For paths without a resource, it is the path.
    pub(crate) resource: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    /// Path and query, as sent.
    pub(crate) target: String,
}

impl Call {
    pub(crate) fn new<B>(request: &Request<B>) -> Self {
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str()).to_owned();
        let parts: Vec<&str> = request.uri().path().split('/').filter(|part| !part.is_empty()).collect();
        let below = match parts.as_slice() {
            ["api", _, below @ ..] | ["apis", _, _, below @ ..] => below,
            _ => &[],
        };
        let (namespace, below) = match below {
            // A resource in a namespace, unless it is a subresource of the namespace itself.
            ["namespaces", namespace, resource, rest @ ..] if !matches!(*resource, "status" | "finalize") => {
                (Some(*namespace), [&[*resource], rest].concat())
            }
            below => (None, below.to_vec()),
        };
        let name = below.get(1).map(|name| (*name).to_owned());
        let resource = match below.as_slice() {
            [] => request.uri().path().to_owned(),
            [resource] | [resource, _] => (*resource).to_owned(),
            [resource, _, subresource, ..] => format!("{resource}/{subresource}"),
        };
        let query = request.uri().query().unwrap_or_default();
        let watches = query.split('&').any(|part| matches!(part, "watch=true" | "watch=1"));
        let verb = match (request.method(), &name) {
            (&Method::GET, _) if watches => "watch",
            (&Method::GET, None) if !below.is_empty() => "list",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, Some(_)) => "delete",
            (&Method::DELETE, None) => "deletecollection",
            _ => "get",
        };
        Self { verb, resource, namespace: namespace.map(str::to_owned), name, target }
    }

    /// Returns whether it is this verb on this resource, as a role names both.
    pub(crate) fn is(&self, verb: &str, resource: &str) -> bool {
        self.verb == verb && self.resource == resource
    }

    /// Returns whether it can change anything.
    pub(crate) fn writes(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch")
    }
}
