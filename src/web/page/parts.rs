//! The parts that both pages show: states, times and messages.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use tagboat_api::deployment_status::{State, StatusError};

use crate::rollout::message::message;

/// A state with a symbol, so that color is never the only difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct StateView {
    /// The word, which is also the class of the style.
    word: &'static str,
    symbol: &'static str,
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
        Self { word: state.as_str(), symbol }
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

/// Returns an error as a sentence.
pub(super) fn sentence(error: &StatusError) -> String {
    message(&format!("{}: {} ({})", error.code, error.message, error.source))
}

/// Returns the path of the page of a deployment.
pub(super) fn path(namespace: &str, name: &str) -> String {
    let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string().replace("%2D", "-");
    format!("/deployments/{}/{}", encoded(namespace), encoded(name).replace("%2E", "."))
}
