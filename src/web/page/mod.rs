//! The web page: the deployments, each of them with its steps, and node pools.
//!
//! | module | contents |
//! |---|---|
//! | `list` | `/`: the deployments by namespace |
//! | `filters` | the form with the filters of the list |
//! | `deployment` | `/deployments/NS/NAME`: the steps, components and history of one deployment |
//! | `node_pool` | `/nodes/NAME`: the nodes of a pool by stage |
//! | `node_pools` | `/nodes`: all pools |
//! | `pages` | what the routes share: responses with a page, or with the page of an error |
//! | `parts` | what several pages show: states, times, facts and messages |
//! | `templates` | the templates of `templates/page/`, rendered off the async workers |
//! | `assets` | the script and the style |
//!
//! The pages are complete without scripts. With them, parts of a visible page are replaced when a deployment
//! or the node pool changes.

mod assets;
mod deployment;
mod filters;
mod list;
mod node_pool;
mod node_pools;
mod pages;
mod parts;
mod templates;

use axum::Router;
use axum::routing::get;

use super::store::Stores;
use pages::Pages;

/// Returns the routes of the page, and the response for paths that do not exist.
pub(super) fn routes(stores: Stores) -> Router {
    Router::new()
        .route("/", get(list::list))
        .route("/deployments/{namespace}/{name}", get(deployment::deployment))
        .route("/nodes", get(node_pools::node_pools))
        .route("/nodes/{name}", get(node_pool::node_pool))
        .fallback(pages::not_found)
        .with_state(Pages::new(stores))
        .merge(assets::routes())
}
