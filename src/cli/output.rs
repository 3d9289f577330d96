//! Output formats, JSON, and messages about an automation.

use clap::ValueEnum;

use super::outcome::{AutomationName, Outcome};

/// The format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// Text.
    Text,
    /// JSON.
    Json,
}

/// Returns a sentence with the automation's name in front of it.
pub(super) fn prefixed(outcome: &Outcome, sentence: &str) -> String {
    match &outcome.automation {
        Some(AutomationName { namespace, name }) => format!("{namespace}/{name}: {sentence}"),
        None => sentence.to_owned(),
    }
}

/// Returns a result as JSON.
pub(super) fn to_json(outcome: &impl serde::Serialize) -> String {
    let text = serde_json::to_string_pretty(outcome).expect("an outcome is plain JSON");
    format!("{text}\n")
}
