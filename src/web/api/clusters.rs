//! The clusters, and whether they answer.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::state::Api;
use crate::rollout::bounds::whole_seconds;
use crate::web::http::{EntityTag, JSON, Problem, Query, json, respond};
use crate::web::store::ClusterState;

/// Clusters in which deployments run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct ClusterList {
    /// Clusters, sorted by name.
    items: Vec<Cluster>,
}

/// Cluster in which deployments run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
struct Cluster {
    /// Name of the cluster.
    #[schemars(length(min = 1))]
    name: String,
    /// Availability of the cluster.
    state: Availability,
    /// Time since which the cluster does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    since: Option<Time>,
}

/// Availability of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Availability {
    /// The cluster answers.
    Up,
    /// The cluster has not answered for 60 seconds.
    Down,
}

fn time_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// Responds with all clusters.
pub(super) async fn clusters(
    State(api): State<Api>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    Query::parse(&uri, &[])?;
    let items = api.stores.clusters.all().into_iter().map(|(name, state)| match state {
        ClusterState::Up => Cluster { name, state: Availability::Up, since: None },
        ClusterState::Down(since) => {
            Cluster { name, state: Availability::Down, since: Some(whole_seconds(since)) }
        }
    });
    let document = json(&ClusterList { items: items.collect() });
    Ok(respond(&headers, &EntityTag::of([&document]), JSON, || Body::from(document.clone())))
}
