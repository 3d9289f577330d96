//! The page of one node pool: its nodes by stage, and its history.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::http::request::Parts;
use axum::response::Response;
use serde::Serialize;
use tagboat_api::node_pool::{DEGRADED, PoolHistoryEntry, UP_TO_DATE};

use super::pages::Pages;
use super::parts::{Fact, HistoryView, StateView, TimeView, facts_of};
use super::templates::{Template, value};
use crate::nodes::{AgentState, NodeDocument, PoolDocument, Stage};
use crate::rollout::message::message;
use crate::web::http::{Problem, Query};
use crate::web::store::pool_versions;

/// The number of nodes that the page lists.
const MAX_NODES: usize = 500;

/// The stages in the order of the page: those with a slot first.
const STAGES: [Stage; 7] = [
    Stage::BeforeDrain,
    Stage::Draining,
    Stage::BeforeReboot,
    Stage::Rebooting,
    Stage::BeforeUncordon,
    Stage::Paused,
    Stage::Idle,
];

/// The content of the page.
#[derive(Debug, Serialize)]
struct PoolPage {
    title: String,
    name: String,
    state: StateView,
    updated: i64,
    total: i64,
    /// The message about the progress; may be empty.
    progress: String,
    /// The reason and the message of a problem; may be empty.
    error: String,
    /// The status describes an older generation of the spec.
    is_outdated: bool,
    facts: Vec<Fact>,
    stages: Vec<StageView>,
    /// The number of nodes that are not listed.
    omitted: usize,
    history: Vec<HistoryView>,
}

/// The nodes in a stage.
#[derive(Debug, Serialize)]
struct StageView {
    name: &'static str,
    count: usize,
    nodes: Vec<NodeView>,
}

/// A node.
#[derive(Debug, Serialize)]
struct NodeView {
    name: String,
    /// The state of its agent; empty without one.
    agent: &'static str,
    since: Option<TimeView>,
    message: String,
    facts: Vec<Fact>,
}

/// Responds with the page.
pub(super) async fn node_pool(
    State(pages): State<Pages>,
    name: Result<Path<String>, PathRejection>,
    request: Parts,
) -> Response {
    match view(&pages, name, &request.uri) {
        Ok((versions, view)) => pages.respond(&request, versions, Template::NodePool, view).await,
        Err(problem) => pages.respond_with(problem, None).await,
    }
}

/// Returns what the page depends on, and a function that computes its content.
fn view(
    pages: &Pages,
    name: Result<Path<String>, PathRejection>,
    uri: &Uri,
) -> Result<(Vec<String>, impl FnOnce() -> serde_json::Value + Send + use<>), Problem> {
    Query::parse(uri, &[])?;
    let Path(name) = name.map_err(|_| Problem::bad_request("the path is not UTF-8"))?;
    let Some(view) = pages.stores.nodes.get(&name)? else {
        return Err(Problem::not_found(format!("there is no node pool {name:?}")));
    };
    Ok((pool_versions(&view), move || value(&content(view.document()))))
}

fn content(pool: PoolDocument) -> PoolPage {
    let status = &pool.status;
    let text =
        |type_: &str| pool.condition(type_).map(|condition| message(&condition.message)).unwrap_or_default();
    let error = problem(&pool);
    let time = |time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time| time.0.to_string();
    let facts = [
        ("Image", pool.image.clone()),
        ("Digest", status.target_digest.clone()),
        ("Next resolution", status.next_tag_resolution_time.as_ref().map(time)),
        ("Deleted since", pool.deletion_timestamp.as_ref().map(time)),
    ];
    let (state, progress, error) = (state(&pool), text(UP_TO_DATE), error.unwrap_or_default());
    let history = status.deploy_history.iter().map(history).collect();
    let (updated, total) = (status.updated_count, status.node_count);
    let is_outdated = status.observed_generation != pool.generation;
    let (stages, omitted) = stages(pool.nodes);
    PoolPage {
        title: format!("{} (node pool)", pool.name),
        name: pool.name,
        state,
        updated,
        total,
        progress,
        error,
        is_outdated,
        facts: facts_of(facts),
        stages,
        omitted,
        history,
    }
}

/// Returns the reason and the message of the problem of a pool.
pub(super) fn problem(pool: &PoolDocument) -> Option<String> {
    let degraded = pool.condition(DEGRADED).filter(|condition| condition.status == "True")?;
    Some(message(&format!("{}: {}", degraded.reason, degraded.message)))
}

/// Returns the state of a pool.
pub(super) fn state(pool: &PoolDocument) -> StateView {
    let is_unknown = pool.condition(UP_TO_DATE).is_none_or(|condition| condition.status == "Unknown");
    let is_true = |type_: &str| pool.condition(type_).is_some_and(|condition| condition.status == "True");
    match pool.condition(UP_TO_DATE).map(|condition| condition.reason.as_str()) {
        _ if is_true(DEGRADED) => StateView::new("degraded", "✕", "failed"),
        _ if is_true(UP_TO_DATE) => StateView::new("up to date", "✓", "installed"),
        _ if is_unknown => StateView::new("unknown", "○", "pending"),
        Some("RolloutInProgress") => StateView::new("in progress", "↻", "installing"),
        Some("Paused") => StateView::new("paused", "○", "pending"),
        Some("OutsideWindow") => StateView::new("outside of windows", "○", "pending"),
        _ => StateView::new("unknown", "○", "pending"),
    }
}

/// Returns the nodes by stage, and the number of those that are not listed.
///
/// In a stage, nodes whose agents report errors are first.
fn stages(mut nodes: Vec<NodeDocument>) -> (Vec<StageView>, usize) {
    nodes.sort_by_key(|node| node.agent != Some(AgentState::Error));
    let mut free = MAX_NODES;
    let views = STAGES.into_iter().map(|stage| {
        let members: Vec<&NodeDocument> = nodes.iter().filter(|node| node.stage == stage).collect();
        let listed = members.len().min(free);
        free -= listed;
        let nodes = members[..listed].iter().map(|node| node_view(node)).collect();
        StageView { name: stage.as_str(), count: members.len(), nodes }
    });
    let views = views.filter(|view| view.count > 0).collect();
    (views, nodes.len().saturating_sub(MAX_NODES))
}

fn node_view(node: &NodeDocument) -> NodeView {
    let facts = [
        ("Booted", node.booted_version.clone()),
        ("Booted digest", node.booted_digest.clone()),
        ("Staged digest", node.staged_digest.clone()),
    ];
    NodeView {
        name: node.name.clone(),
        agent: node.agent.map_or("", AgentState::as_str),
        since: node.since.as_ref().map(Into::into),
        message: node.message.clone().unwrap_or_default(),
        facts: facts_of(facts),
    }
}

fn history(entry: &PoolHistoryEntry) -> HistoryView {
    let facts = [("Nodes", Some(entry.node_count.to_string())), ("Digest", entry.digest.clone())];
    HistoryView {
        version: entry.version.clone().unwrap_or_default(),
        time: (&entry.last_deployed).into(),
        facts: facts_of(facts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, stage: Stage, agent: Option<AgentState>) -> NodeDocument {
        NodeDocument {
            name: name.to_owned(),
            stage,
            since: None,
            agent,
            booted_digest: None,
            booted_version: None,
            staged_digest: None,
            message: None,
        }
    }

    #[test]
    fn every_stage_has_its_place() {
        let mut all = STAGES;
        all.sort();
        assert_eq!(all, Stage::ALL);
    }

    #[test]
    fn nodes_with_slots_and_errors_are_listed_first() {
        let mut nodes: Vec<NodeDocument> =
            (0..MAX_NODES).map(|number| node(&format!("idle-{number:03}"), Stage::Idle, None)).collect();
        nodes.push(node("draining", Stage::Draining, None));
        nodes.push(node("failed", Stage::Idle, Some(AgentState::Error)));
        let (stages, omitted) = stages(nodes);
        let found: Vec<(&str, usize, usize)> =
            stages.iter().map(|stage| (stage.name, stage.count, stage.nodes.len())).collect();
        assert_eq!(found, [("draining", 1, 1), ("idle", MAX_NODES + 1, MAX_NODES - 1)]);
        assert_eq!(
            (stages[1].nodes[0].name.as_str(), stages[1].nodes[1].name.as_str()),
            ("failed", "idle-000")
        );
        assert_eq!(omitted, 2);
    }
}
