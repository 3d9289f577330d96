//! The cause of a state as one text, which begins with its code.
//!
//! The fields of a status have the code and the message apart from each other; what shows both as one text uses this.

use tagboat_api::deployment_status::{BlockReason, ComponentStatus, Report};

/// Returns the cause of a deployment's state: its error, or that of its worst component.
#[must_use]
pub fn cause(report: &Report) -> Option<String> {
    if let Some(error) = &report.error {
        return Some(format!("{}: {}", error.code, error.message));
    }
    let worst = report.components.first();
    let of_worst = worst.and_then(|worst| Some(format!("{}: {}", worst.name, component_cause(worst)?)));
    of_worst.or_else(|| with_reason(report.reason, report.message.as_deref()))
}

/// Returns the cause of a component's state: its error, or its reason and message.
#[must_use]
pub fn component_cause(component: &ComponentStatus) -> Option<String> {
    match &component.error {
        Some(error) => Some(format!("{}: {}", error.code, error.message)),
        None => with_reason(component.reason, component.message.as_deref()),
    }
}

fn with_reason(reason: Option<BlockReason>, message: Option<&str>) -> Option<String> {
    match (reason, message) {
        (Some(reason), Some(message)) => Some(format!("{reason}: {message}")),
        (Some(reason), None) => Some(reason.to_string()),
        (None, message) => message.map(str::to_owned),
    }
}
