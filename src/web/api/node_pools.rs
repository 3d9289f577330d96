//! The node pools with their nodes.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use futures::stream;

use super::state::Api;
use crate::nodes::PoolView;
use crate::web::http::{EntityTag, JSON, Problem, Query, json, respond};
use crate::web::store::pool_versions;

/// Responds with all pools.
pub(super) async fn list(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Result<Response, Problem> {
    Query::parse(&uri, &[])?;
    let views = api.stores.nodes.all()?;
    let tag = EntityTag::of(views.iter().flat_map(pool_versions));
    Ok(respond(&headers, &tag, JSON, || body(views)))
}

/// Responds with the pool of a name.
pub(super) async fn by_name(
    State(api): State<Api>,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    Query::parse(&uri, &[])?;
    let Path(name) = name.map_err(|_| Problem::bad_request("the path is not UTF-8"))?;
    let Some(view) = api.stores.nodes.get(&name)? else {
        return Err(Problem::not_found(format!("there is no node pool {name:?}")));
    };
    let tag = EntityTag::of(pool_versions(&view));
    Ok(respond(&headers, &tag, JSON, || Body::from(json(&view.document()))))
}

/// Returns a [`PoolList`](crate::nodes::PoolList) as a stream, pool by pool.
fn body(views: Vec<PoolView>) -> Body {
    let items = views.into_iter().enumerate().map(|(place, view)| {
        let item = json(&view.document());
        if place == 0 { item } else { format!(",{item}") }
    });
    let parts = std::iter::once("{\"items\":[".to_owned()).chain(items).chain(["]}".to_owned()]);
    Body::from_stream(stream::iter(parts.map(|part| Ok::<Bytes, Infallible>(part.into()))))
}
