//! The parts that several pages show: states, times, facts and messages.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use tagboat_api::deployment_status::{State, StatusError};

use crate::rollout::message::message;

/// A state with a symbol, so that color is never the only difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct StateView {
    word: &'static str,
    symbol: &'static str,
    /// The class of the style: the state of a deployment.
    class: &'static str,
}

impl StateView {
    pub(super) fn new(word: &'static str, symbol: &'static str, class: &'static str) -> Self {
        Self { word, symbol, class }
    }
}

impl From<State> for StateView {
    fn from(state: State) -> Self {
        let symbol = match state {
            State::Failed => "✕",
            State::Removing => "↓",
            State::Installing => "↻",
            State::Pending => "○",
            State::Removed => "–",
            State::Installed => "✓",
        };
        Self::new(state.as_str(), symbol, state.as_str())
    }
}

/// A time, for programs and for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct TimeView {
    machine: String,
    text: String,
}

impl From<&Time> for TimeView {
    fn from(time: &Time) -> Self {
        Self { machine: time.0.to_string(), text: time.0.strftime("%Y-%m-%d %H:%M:%S UTC").to_string() }
    }
}

/// A fact with its label.
#[derive(Debug, Serialize)]
pub(super) struct Fact {
    pub(super) label: &'static str,
    pub(super) value: String,
}

/// An image that was deployed.
#[derive(Debug, Serialize)]
pub(super) struct HistoryView {
    pub(super) version: String,
    pub(super) time: TimeView,
    pub(super) facts: Vec<Fact>,
}

/// Returns an error as a sentence.
pub(super) fn sentence(error: &StatusError) -> String {
    message(&format!("{}: {} ({})", error.code, error.message, error.source))
}

/// Returns the path of the page of a deployment.
pub(super) fn path(namespace: &str, name: &str) -> String {
    format!("/deployments/{}/{}", encoded(namespace), encoded(name))
}

/// Returns the path of the page of a node pool.
pub(super) fn pool_path(name: &str) -> String {
    format!("/nodes/{}", encoded(name))
}

/// Encodes a name as a segment of a path.
fn encoded(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string().replace("%2D", "-").replace("%2E", ".")
}

/// Returns the facts that have a value.
pub(super) fn facts_of<const N: usize>(facts: [(&'static str, Option<String>); N]) -> Vec<Fact> {
    let facts = facts.into_iter().filter_map(|(label, value)| Some(Fact { label, value: value? }));
    facts.filter(|fact| !fact.value.is_empty()).collect()
}
