//! The list of deployments that match, with their aggregate state.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use futures::stream;

use super::state::Api;
use crate::rollout::document::Document;
use crate::web::http::{EntityTag, JSON, Problem, Query, json, respond};
use crate::web::selection::{PARAMETERS, Selection};
use crate::web::store::Snapshot;

/// Responds with the deployments that match the filters of the query.
pub(super) async fn list(State(api): State<Api>, headers: HeaderMap, uri: Uri) -> Result<Response, Problem> {
    let query = Query::parse(&uri, &PARAMETERS)?;
    let selection = Selection::parse(&query)?;
    let snapshot = selection.of(api.stores.snapshot()?, &api.stores);
    let tag = EntityTag::of(snapshot.versions());
    Ok(respond(&headers, &tag, JSON, || body(snapshot)))
}

/// Returns a [`DocumentList`](crate::rollout::document::DocumentList) as a stream.
///
/// Each deployment is serialized when the client has read those before it. So a large list neither occupies a worker
/// for long nor takes much memory, however slowly the client reads.
fn body(snapshot: Snapshot) -> Body {
    let begin = format!(
        "{{\"state\":{},\"summary\":{},\"items\":[",
        json(&snapshot.state()),
        json(&snapshot.summary())
    );
    let objects = snapshot.objects().to_vec();
    let items = objects.into_iter().enumerate().filter_map(move |(place, object)| {
        let item = json(&Document::new(&snapshot.shown(&object))?);
        Some(if place == 0 { item } else { format!(",{item}") })
    });
    let parts = std::iter::once(begin).chain(items).chain(["]}".to_owned()]);
    Body::from_stream(stream::iter(parts.map(|part| Ok::<Bytes, Infallible>(part.into()))))
}
