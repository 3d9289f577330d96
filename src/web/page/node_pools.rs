//! The page with all node pools.

use axum::extract::State;
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::Response;
use serde::Serialize;
use tagboat_api::node_pool::UP_TO_DATE;

use super::node_pool::{problem, state};
use super::pages::Pages;
use super::parts::{StateView, pool_path};
use super::templates::{Template, value};
use crate::nodes::{PoolDocument, PoolView};
use crate::rollout::message::message;
use crate::web::http::{Problem, Query};
use crate::web::store::pool_version;

/// The number of pools that the page lists.
const MAX_POOLS: usize = 500;

/// The content of the page.
#[derive(Debug, Serialize)]
struct PoolsView {
    title: &'static str,
    pools: Vec<Row>,
    /// The number of pools that are not listed.
    omitted: usize,
}

/// A node pool.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    path: String,
    state: StateView,
    updated: i64,
    total: i64,
    /// The version that was deployed last; may be empty.
    version: String,
    /// The message about the progress; may be empty.
    progress: String,
    /// The reason and the message of a problem; may be empty.
    error: String,
}

/// Responds with the page.
pub(super) async fn node_pools(State(pages): State<Pages>, request: Parts) -> Response {
    match view(&pages, &request.uri) {
        Ok((versions, view)) => pages.respond(&request, versions, Template::NodePools, view).await,
        Err(problem) => pages.respond_with(problem, None).await,
    }
}

/// Returns what the page depends on, and a function that computes its content.
fn view(
    pages: &Pages,
    uri: &Uri,
) -> Result<(Vec<String>, impl FnOnce() -> serde_json::Value + Send + use<>), Problem> {
    Query::parse(uri, &[])?;
    let views = pages.stores.nodes.all()?;
    // Nodes are counted in the status, so the page depends on pools only.
    let versions = views.iter().flat_map(|view| pool_version(&view.pool)).collect();
    Ok((versions, move || value(&content(views))))
}

fn content(mut views: Vec<PoolView>) -> PoolsView {
    let omitted = views.len().saturating_sub(MAX_POOLS);
    views.truncate(MAX_POOLS);
    let pools =
        views.into_iter().map(|view| row(&PoolView { nodes: Vec::new(), ..view }.document())).collect();
    PoolsView { title: "Node pools", pools, omitted }
}

fn row(pool: &PoolDocument) -> Row {
    let progress = pool.condition(UP_TO_DATE).map(|condition| message(&condition.message));
    Row {
        path: pool_path(&pool.name),
        name: pool.name.clone(),
        state: state(pool),
        updated: pool.status.updated_count,
        total: pool.status.node_count,
        version: pool.version().unwrap_or_default().to_owned(),
        progress: progress.unwrap_or_default(),
        error: problem(pool).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_lists_a_bounded_number_of_pools() {
        let view = |number: usize| {
            let object = json!({
                "apiVersion": "tagboat.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": format!("p{number:03}")},
                "spec": {"nodeSelector": {"matchLabels": {"role": "worker"}}},
            });
            PoolView { pool: Arc::new(serde_json::from_value(object).unwrap()), nodes: Vec::new() }
        };
        let content = content((0..MAX_POOLS + 2).map(view).collect());
        assert_eq!((content.pools.len(), content.omitted), (MAX_POOLS, 2));
        assert_eq!(content.pools[7].path, "/nodes/p007");
    }
}
