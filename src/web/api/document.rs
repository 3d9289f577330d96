//! The status of one deployment, in the default form or as a manifest of Margo.

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;

use super::state::Api;
use crate::objects::ObjectName;
use crate::web::form::Form;
use crate::web::http::{EntityTag, JSON, Problem, Query, respond};

/// The parameter with the form of the document.
pub(super) const FORM: &str = "form";

/// Responds with the deployment of an id.
pub(super) async fn by_id(
    State(api): State<Api>,
    id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let form = form_of(&uri)?;
    let Path(id) = id.map_err(|_| invalid_path())?;
    let name = api.stores.deployments.name_of(&id)?;
    respond_with(&api, &headers, name, form, || format!("there is no deployment with the id {id:?}"))
}

/// Responds with the deployment of a namespace and a name.
pub(super) async fn by_name(
    State(api): State<Api>,
    name: Result<Path<(String, String)>, PathRejection>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let form = form_of(&uri)?;
    let Path((namespace, name)) = name.map_err(|_| invalid_path())?;
    let object = ObjectName { namespace: namespace.clone(), name: name.clone() };
    let missing = || format!("there is no deployment {name:?} in the namespace {namespace:?}");
    respond_with(&api, &headers, Some(object), form, missing)
}

fn respond_with(
    api: &Api,
    headers: &HeaderMap,
    name: Option<ObjectName>,
    form: Form,
    missing: impl FnOnce() -> String,
) -> Result<Response, Problem> {
    let Some(name) = name else { return Err(Problem::not_found(missing())) };
    let snapshot = api.stores.snapshot_of(&name)?;
    let Some(object) = snapshot.objects().first() else { return Err(Problem::not_found(missing())) };
    let cluster = api.stores.clusters.given_name();
    let mut parts = snapshot.versions();
    parts.push(form.name().to_owned());
    parts.extend(cluster.map(str::to_owned));
    Ok(respond(headers, &EntityTag::of(parts), JSON, || {
        let object = snapshot.shown(object);
        Body::from(form.document(&object, cluster))
    }))
}

/// Returns the form that a query asks for.
fn form_of(uri: &Uri) -> Result<Form, Problem> {
    let query = Query::parse(uri, &[FORM])?;
    let Some(name) = query.get(FORM) else { return Ok(Form::Seed) };
    name.parse::<Form>().map_err(|error| Problem::bad_request(format!("form {name:?} is invalid: {error}")))
}

fn invalid_path() -> Problem {
    Problem::bad_request("the path is not UTF-8")
}
