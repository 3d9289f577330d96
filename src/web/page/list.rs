//! The page with the deployments by namespace.

use axum::extract::State;
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::Response;
use kube::ResourceExt;
use serde::Serialize;
use tagboat_api::DeploymentStatus;
use tagboat_api::deployment_status::State as DeploymentState;

use super::filters::FiltersView;
use super::pages::Pages;
use super::parts::{StateView, TimeView, path};
use super::templates::{Template, value};
use crate::rollout::cause::cause;
use crate::rollout::message::message;
use crate::web::http::{Problem, Query};
use crate::web::selection::{PARAMETERS, Selection};
use crate::web::store::Snapshot;

/// The number of deployments on one page.
const PER_PAGE: usize = 500;

/// The parameter with the number of the page.
const PAGE: &str = "page";

/// The content of the page.
#[derive(Debug, Serialize)]
struct ListView {
    title: &'static str,
    filters: FiltersView,
    /// The number of node pools; 0 if they are not known.
    pools: usize,
    total: usize,
    counts: Vec<Count>,
    namespaces: Vec<Namespace>,
    /// There are other pages.
    is_part: bool,
    previous: Option<String>,
    next: Option<String>,
}

/// The number of deployments in a state, with a link to them.
#[derive(Debug, Serialize)]
struct Count {
    state: StateView,
    count: i64,
    path: String,
}

/// The deployments of a namespace.
#[derive(Debug, Serialize)]
struct Namespace {
    name: String,
    rows: Vec<Row>,
}

/// A deployment.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    path: String,
    state: StateView,
    progress: String,
    version: String,
    since: TimeView,
    /// The code and the message of its state; may be empty.
    cause: String,
}

/// Responds with the page.
pub(super) async fn list(State(pages): State<Pages>, request: Parts) -> Response {
    let known: Vec<&'static str> = PARAMETERS.into_iter().chain([PAGE]).collect();
    let query = match Query::parse(&request.uri, &known) {
        Ok(query) => query,
        Err(problem) => return pages.respond_with(problem, None).await,
    };
    match view(&pages, &request.uri, &query) {
        Ok((versions, view)) => pages.respond(&request, versions, Template::List, view).await,
        Err(problem) => pages.respond_with(problem, Some(FiltersView::new(&query))).await,
    }
}

/// Returns what the page depends on, and a function that computes its content.
fn view(
    pages: &Pages,
    uri: &Uri,
    query: &Query,
) -> Result<(Vec<String>, impl FnOnce() -> serde_json::Value + Send + use<>), Problem> {
    let number = match query.get(PAGE).map(str::parse) {
        None => 1,
        Some(Ok(number)) if number > 0 => number,
        Some(_) => return Err(Problem::bad_request("page is invalid: write a whole number of 1 or more")),
    };
    let selection = Selection::parse(query)?;
    let snapshot = selection.of(pages.stores.snapshot()?, &pages.stores);
    let mut versions = snapshot.versions();
    versions.push(uri.query().unwrap_or_default().to_owned());
    let pools = pages.stores.nodes.count();
    versions.push(pools.to_string());
    let query = query.clone();
    Ok((versions, move || value(&ListView { pools, ..content(&snapshot, &query, number) })))
}

fn content(snapshot: &Snapshot, query: &Query, number: usize) -> ListView {
    let objects = snapshot.objects();
    // A page behind the last one is the last one: the list may have become shorter.
    let number = number.clamp(1, objects.len().div_ceil(PER_PAGE).max(1));
    let first = (number - 1) * PER_PAGE;
    let last = (first + PER_PAGE).min(objects.len());
    let mut namespaces: Vec<Namespace> = Vec::new();
    for object in &objects[first..last] {
        let namespace = object.namespace().unwrap_or_default();
        let Some(row) = row(&namespace, &snapshot.shown(object)) else { continue };
        match namespaces.last_mut().filter(|last| last.name == namespace) {
            Some(last) => last.rows.push(row),
            None => namespaces.push(Namespace { name: namespace, rows: vec![row] }),
        }
    }
    let summary = snapshot.summary();
    let counts = [
        (DeploymentState::Failed, summary.failed),
        (DeploymentState::Removing, summary.removing),
        (DeploymentState::Installing, summary.installing),
        (DeploymentState::Pending, summary.pending),
        (DeploymentState::Removed, summary.removed),
        (DeploymentState::Installed, summary.installed),
    ];
    let counts = counts.into_iter().filter(|(_, count)| *count > 0).map(|(state, count)| Count {
        state: state.into(),
        count,
        path: link(query, "state", state.as_str()),
    });
    ListView {
        title: "Deployments",
        filters: FiltersView::new(query),
        pools: 0,
        total: objects.len(),
        counts: counts.collect(),
        namespaces,
        is_part: first > 0 || last < objects.len(),
        previous: (first > 0).then(|| link(query, PAGE, &(number - 1).to_string())),
        next: (last < objects.len()).then(|| link(query, PAGE, &(number + 1).to_string())),
    }
}

fn row(namespace: &str, object: &DeploymentStatus) -> Option<Row> {
    let report = &object.status.as_ref()?.report;
    let name = object.name_any();
    Some(Row {
        path: path(namespace, &name),
        name,
        state: report.state.into(),
        progress: report.progress.clone(),
        version: report.target.as_ref().map(|target| target.tag.clone()).unwrap_or_default(),
        since: (&report.since).into(),
        cause: cause(report).as_deref().map(message).unwrap_or_default(),
    })
}

/// Returns the path of this page with another value of a parameter.
fn link(query: &Query, name: &str, value: &str) -> String {
    let mut text = url::form_urlencoded::Serializer::for_suffix(String::from("/?"), 2);
    let others = PARAMETERS.into_iter().filter(|other| *other != name);
    for other in others {
        if let Some(value) = query.get(other) {
            text.append_pair(other, value);
        }
    }
    text.append_pair(name, value);
    text.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_the_other_filters_and_no_empty_parameter() {
        let link = |uri: &str, name: &str, value: &str| {
            let known: Vec<&'static str> = PARAMETERS.into_iter().chain([PAGE]).collect();
            link(&Query::parse(&uri.parse().unwrap(), &known).unwrap(), name, value)
        };
        assert_eq!(link("/", "state", "failed"), "/?state=failed");
        assert_eq!(
            link("/?namespace=a&state=pending&page=2", "state", "failed"),
            "/?namespace=a&state=failed"
        );
        assert_eq!(link("/?selector=a%3Db", PAGE, "2"), "/?selector=a%3Db&page=2");
    }
}
