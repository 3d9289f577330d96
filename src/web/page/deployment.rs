//! The page of one deployment: its steps, components and history.

use std::collections::BTreeSet;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::Response;
use kube::ResourceExt;
use serde::Serialize;
use tagboat_api::DeploymentStatus;
use tagboat_api::deployment_status::{ComponentStatus, DeploymentStatusStatus, HistoryEntry};

use super::pages::Pages;
use super::parts::{Fact, HistoryView, StateView, TimeView, facts_of, pool_path, sentence};
use super::templates::{Template, value};
use crate::objects::ObjectName;
use crate::rollout::aggregate::component_progress;
use crate::rollout::cause::cause;
use crate::rollout::message::message;
use crate::rollout::steps::{Step, StepName, StepProgress, StepTime, shown_steps};
use crate::web::http::{Problem, Query};

/// The content of the page.
#[derive(Debug, Serialize)]
struct DeploymentView {
    title: String,
    namespace: String,
    name: String,
    state: StateView,
    since: TimeView,
    cause: String,
    error: String,
    progress: String,
    image: String,
    revision: String,
    steps: Vec<StepView>,
    components: Vec<ComponentView>,
    omitted: i64,
    history: Vec<HistoryView>,
}

/// A step.
#[derive(Debug, Serialize)]
struct StepView {
    name: &'static str,
    /// The word for the progress, which is also the class of the style.
    word: &'static str,
    symbol: &'static str,
    time: Option<StepTimeView>,
    detail: String,
}

/// The time of a step.
#[derive(Debug, Serialize)]
struct StepTimeView {
    /// The word before the time; may be empty.
    relation: &'static str,
    #[serde(flatten)]
    time: TimeView,
}

/// A component.
#[derive(Debug, Serialize)]
struct ComponentView {
    name: String,
    /// The path of its page, if it is a node pool.
    path: Option<String>,
    state: StateView,
    since: TimeView,
    message: String,
    /// Its progress in pods; empty for one that is being removed or is gone.
    progress: String,
    /// Further facts, as pairs of label and value.
    facts: Vec<Fact>,
}

/// Responds with the page.
pub(super) async fn deployment(
    State(pages): State<Pages>,
    name: Result<Path<(String, String)>, PathRejection>,
    request: Parts,
) -> Response {
    match view(&pages, name, &request.uri) {
        Ok((versions, view)) => pages.respond(&request, versions, Template::Deployment, view).await,
        Err(problem) => pages.respond_with(problem, None).await,
    }
}

/// Returns what the page depends on, and a function that computes its content.
fn view(
    pages: &Pages,
    name: Result<Path<(String, String)>, PathRejection>,
    uri: &Uri,
) -> Result<(Vec<String>, impl FnOnce() -> serde_json::Value + Send + use<>), Problem> {
    Query::parse(uri, &[])?;
    let Path((namespace, name)) = name.map_err(|_| Problem::bad_request("the path is not UTF-8"))?;
    let object = ObjectName { namespace, name };
    let snapshot = pages.stores.snapshot_of(&object)?;
    let Some(found) = snapshot.objects().first().cloned() else {
        let ObjectName { namespace, name } = object;
        let detail = format!("there is no deployment {name:?} in the namespace {namespace:?}");
        return Err(Problem::not_found(detail));
    };
    let pools = pools(pages, &found);
    let versions = snapshot.versions().into_iter().chain(pools.iter().cloned()).collect();
    Ok((versions, move || {
        let object = snapshot.shown(&found);
        let statuses = found.status.as_ref().zip(object.status.as_ref());
        let mut view = statuses.map(|(stored, status)| content(&object, stored, status));
        for component in view.iter_mut().flat_map(|view| &mut view.components) {
            let pool = pool_of(&component.name).filter(|name| pools.contains(*name));
            component.path = pool.map(pool_path);
        }
        value(&view)
    }))
}

/// Returns the name of a component that may be a node pool.
fn pool_of(component: &str) -> Option<&str> {
    component.strip_prefix("NodePool/")
}

/// Returns the names of the node pools among the components.
///
/// Other groups have kinds of that name, too.
fn pools(pages: &Pages, object: &DeploymentStatus) -> BTreeSet<String> {
    let components = object.status.iter().flat_map(|status| &status.report.components);
    let names = components.filter_map(|component| pool_of(&component.name));
    let is_known = |name: &&str| pages.stores.nodes.get(name).is_ok_and(|pool| pool.is_some());
    names.filter(is_known).map(str::to_owned).collect()
}

/// Returns the content for an object as it is shown; `stored` is its stored status.
fn content(
    object: &DeploymentStatus,
    stored: &DeploymentStatusStatus,
    status: &DeploymentStatusStatus,
) -> DeploymentView {
    let report = &status.report;
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    DeploymentView {
        title: format!("{namespace}/{name}"),
        namespace,
        name,
        state: report.state.into(),
        since: (&report.since).into(),
        cause: cause(report).as_deref().map(message).unwrap_or_default(),
        error: report.error.as_ref().map(sentence).unwrap_or_default(),
        progress: report.progress.clone(),
        image: report.target.as_ref().map(ToString::to_string).unwrap_or_default(),
        revision: report.revision.clone().unwrap_or_default(),
        steps: shown_steps(stored, status).iter().map(step).collect(),
        components: report.components.iter().map(component).collect(),
        omitted: report.omitted,
        history: report.deploy_history.iter().map(history).collect(),
    }
}

fn step(step: &Step) -> StepView {
    let name = match step.name {
        StepName::Chosen => "Chosen",
        StepName::Committed => "Committed",
        StepName::Applied => "Applied",
        StepName::Running => "Running",
    };
    let (word, symbol) = match step.progress {
        StepProgress::Done => ("done", "✓"),
        StepProgress::InProgress => ("in progress", "↻"),
        StepProgress::Blocked => ("blocked", "!"),
        StepProgress::Failed => ("failed", "✕"),
        StepProgress::Waiting => ("waiting", "○"),
    };
    let time = step.time.as_ref().map(|time| {
        let (relation, time) = match time {
            StepTime::At(time) => ("", time),
            StepTime::By(time) => ("by", time),
            StepTime::Since(time) => ("since", time),
        };
        StepTimeView { relation, time: time.into() }
    });
    StepView { name, word, symbol, time, detail: message(&step.detail) }
}

fn component(component: &ComponentStatus) -> ComponentView {
    let reason = component.reason.map(|reason| reason.to_string());
    let error = component.error.as_ref().map(sentence);
    let progress = component_progress(component).map(|(done, desired)| format!("{done}/{desired}"));
    let facts = [
        ("Image", component.image.clone()),
        ("Reason", reason),
        ("Marker", component.place.clone()),
        ("Automation", component.automation.clone()),
        ("Applied by", component.applier.clone()),
        ("Applied revision", component.applied_revision.clone()),
        ("Last deployed", component.last_deployed.as_ref().map(|time| time.0.to_string())),
    ];
    ComponentView {
        name: component.name.clone(),
        path: None,
        state: component.state.into(),
        since: (&component.since).into(),
        message: error.or_else(|| component.message.as_deref().map(message)).unwrap_or_default(),
        progress: progress.unwrap_or_default(),
        facts: facts_of(facts),
    }
}

fn history(entry: &HistoryEntry) -> HistoryView {
    let facts = [
        ("Objects", Some(entry.object_count.to_string())),
        ("Digest", entry.digest.clone()),
        ("Commit", entry.short_commit().map(str::to_owned)),
    ];
    HistoryView {
        version: entry.version.clone().unwrap_or_default(),
        time: (&entry.last_deployed).into(),
        facts: facts_of(facts),
    }
}
