//! The paths of the API.

pub(super) const DEPLOYMENTS: &str = "/api/v1/deployments";
pub(super) const BY_ID: &str = "/api/v1/deployments/{id}/status";
pub(super) const BY_NAME: &str = "/api/v1/namespaces/{namespace}/deployments/{name}/status";
pub(super) const NODE_POOLS: &str = "/api/v1/nodepools";
pub(super) const NODE_POOL: &str = "/api/v1/nodepools/{name}";
pub(super) const CLUSTERS: &str = "/api/v1/clusters";
pub(super) const EVENTS: &str = "/api/v1/events";
pub(super) const OPENAPI: &str = "/api/v1/openapi.json";
