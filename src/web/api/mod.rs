//! The REST API: read-only documents about deployments, node pools and clusters.
//!
//! | module | routes |
//! |---|---|
//! | `list` | `/api/v1/deployments`: the deployments that match, with their aggregate state |
//! | `document` | `…/deployments/{id}/status` and `…/namespaces/{ns}/deployments/{name}/status`: one deployment |
//! | `node_pools` | `/api/v1/nodepools` and `…/nodepools/{name}`: the node pools with their nodes |
//! | `clusters` | `/api/v1/clusters` |
//! | `events` | `/api/v1/events`: changes as server-sent events |
//! | `openapi` | `/api/v1/openapi.json`: the description of all of them |
//! | `paths`, `state` | the paths; what the routes share |

mod clusters;
mod document;
mod events;
mod list;
mod node_pools;
mod openapi;
mod paths;
mod state;

use axum::Router;
use axum::routing::get;

use super::store::Stores;
use state::Api;

pub use openapi::openapi;

/// Returns the routes of the API.
pub(super) fn routes(stores: Stores) -> Router {
    Router::new()
        .route(paths::DEPLOYMENTS, get(list::list))
        .route(paths::BY_ID, get(document::by_id))
        .route(paths::BY_NAME, get(document::by_name))
        .route(paths::NODE_POOLS, get(node_pools::list))
        .route(paths::NODE_POOL, get(node_pools::by_name))
        .route(paths::CLUSTERS, get(clusters::clusters))
        .route(paths::EVENTS, get(events::events))
        .route(paths::OPENAPI, get(openapi::serve))
        .with_state(Api::new(stores))
}
