//! The description of the API in OpenAPI 3.1.

use std::sync::OnceLock;

use axum::body::Body;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use tagboat_api::deployment_status::State;

use super::clusters::ClusterList;
use super::document::FORM;
use super::events::{ChangedDeployment, ChangedNodePool};
use super::paths;
use super::state::MAX_FOLLOWERS;
use crate::nodes::{PoolDocument, PoolList};
use crate::rollout::document::{Document, DocumentList, MargoManifest};
use crate::web::form::Form;
use crate::web::http::{EntityTag, JSON, PROBLEM, Problem, Query, respond};

/// Responds with the description.
pub(super) async fn serve(headers: HeaderMap, uri: Uri) -> Result<Response, Problem> {
    /// The description never changes while the process runs.
    static TEXT: OnceLock<String> = OnceLock::new();
    Query::parse(&uri, &[])?;
    let text = TEXT.get_or_init(|| openapi().to_string()).as_str();
    Ok(respond(&headers, &EntityTag::of([text]), JSON, || Body::from(text)))
}

/// Returns the description of the API in OpenAPI 3.1.
///
/// The schemas are made from the types that are serialized.
#[must_use]
pub fn openapi() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.for_serialize().into_generator();
    let paths = paths(&mut generator);
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tagboat status",
            "description": "States of deployments: whether the images of policies are running; and of node pools.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "version": "v1",
        },
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

/// Returns the description of all paths.
fn paths(generator: &mut SchemaGenerator) -> Value {
    let (list, document) = (schema::<DocumentList>(generator), schema::<Document>(generator));
    let (margo, clusters) = (schema::<MargoManifest>(generator), schema::<ClusterList>(generator));
    let problem = schema::<Problem>(generator);
    let (pools, pool) = (schema::<PoolList>(generator), schema::<PoolDocument>(generator));
    // The events of a stream have no place in OpenAPI; their data has a schema.
    schema::<ChangedDeployment>(generator);
    schema::<ChangedNodePool>(generator);
    let form = parameter(FORM, "Form of the document.", &json!({"type": "string", "enum": Form::NAMES}));
    let one = json!({"oneOf": [document, margo]});
    let operation = |id: &str, summary: &str, parameters: Value, content: Value, errors: &[&str]| {
        json!({"get": {
            "operationId": id,
            "summary": summary,
            "parameters": parameters,
            "responses": responses(&content, &problem, errors),
        }})
    };
    let json_of = |schema: &Value| json!({JSON: {"schema": schema}});
    json!({
        paths::DEPLOYMENTS: operation(
            "listDeployments",
            "Lists the deployments that match all filters, with their aggregate state.",
            filters(),
            json_of(&list),
            &[],
        ),
        paths::BY_ID: operation(
            "getDeployment",
            "Returns the status of the deployment of an image policy, by the uid of the policy.",
            json!([path_parameter("id", "Uid of the image policy."), form]),
            json_of(&one),
            &["404"],
        ),
        paths::BY_NAME: operation(
            "getNamedDeployment",
            "Returns the status of the deployment of an image policy, by namespace and name.",
            json!([
                path_parameter("namespace", "Namespace of the image policy."),
                path_parameter("name", "Name of the image policy."),
                form,
            ]),
            json_of(&one),
            &["404"],
        ),
        paths::NODE_POOLS: operation(
            "listNodePools",
            "Lists the node pools with their nodes.",
            json!([]),
            json_of(&pools),
            &["404"],
        ),
        paths::NODE_POOL: operation(
            "getNodePool",
            "Returns a node pool with its nodes.",
            json!([path_parameter("name", "Name of the node pool.")]),
            json_of(&pool),
            &["404"],
        ),
        paths::CLUSTERS: operation(
            "listClusters",
            "Lists the clusters, and whether they answer.",
            json!([]),
            json_of(&clusters),
            &[],
        ),
        paths::EVENTS: operation(
            "followChanges",
            &format!(
                "Sends the events reset, changed, deleted and nodepool as they occur, to at most {MAX_FOLLOWERS} \
                 clients. The data of changed and deleted is a ChangedDeployment, that of nodepool a ChangedNodePool."
            ),
            json!([{
                "name": "Last-Event-ID",
                "in": "header",
                "description": "Id of the last event that the client has.",
                "schema": {"type": "string"},
            }]),
            json!({"text/event-stream": {"schema": {"type": "string"}}}),
            &[],
        ),
        paths::OPENAPI: operation(
            "getDescription",
            "Returns this description.",
            json!([]),
            json_of(&json!({"type": "object", "required": ["openapi", "info", "paths"]})),
            &[],
        ),
    })
}

/// Returns a reference to the schema of a type, which is added to the definitions.
fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().into()
}

/// Returns the parameters of a list.
fn filters() -> Value {
    let text = json!({"type": "string"});
    let states: Vec<&str> = State::BY_SEVERITY.into_iter().map(State::as_str).collect();
    json!([
        parameter("namespace", "Namespace of the deployments.", &text),
        parameter("selector", "Label selector, as of kubectl.", &text),
        parameter("automation", "Name of the automation of a component.", &text),
        parameter("cluster", "Name of the cluster of a component.", &text),
        parameter("state", "State of the deployments.", &json!({"type": "string", "enum": states})),
    ])
}

fn parameter(name: &str, description: &str, schema: &Value) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": schema})
}

fn path_parameter(name: &str, description: &str) -> Value {
    let schema = json!({"type": "string"});
    json!({"name": name, "in": "path", "required": true, "description": description, "schema": schema})
}

/// Returns the responses of an operation: its content, an unchanged one, and errors.
///
/// Every operation has the errors that do not depend on its path.
fn responses(content: &Value, problem: &Value, errors: &[&str]) -> Value {
    let tag = json!({"ETag": {"description": "Tag of the content.", "schema": {"type": "string"}}});
    let mut responses = Map::new();
    responses
        .insert("200".to_owned(), json!({"description": "Content.", "headers": tag, "content": content}));
    responses.insert("304".to_owned(), json!({"description": "Content that the client has."}));
    for status in errors.iter().chain(&["400", "405", "421", "503"]) {
        let description = match *status {
            "400" => "Invalid parameter; without a content, a request that is not HTTP.",
            "404" => "No such object, or a kind that the cluster does not serve.",
            "405" => "Method other than GET and HEAD.",
            "421" => "Unknown host.",
            _ => "Not available now, or too many connections.",
        };
        let content = json!({PROBLEM: {"schema": problem}});
        responses.insert((*status).to_owned(), json!({"description": description, "content": content}));
    }
    responses.insert("431".to_owned(), json!({"description": "Too long a head, or too many headers."}));
    responses.into()
}
