//! The phrases of rules in messages, by which a report of them is recognized.

use tagboat_api::ObjectName;

use super::rules::FREEZE_ALL;

/// The end of the phrase about the time before a change of the clock.
pub const BY_CHANGED_CLOCK: &str = ", by the time before the system clock was changed";

/// Returns the name of the windows of an automation.
pub fn source_of_automation(automation: &ObjectName) -> String {
    format!("automation {automation}")
}

/// Returns the name of an annotation of a Namespace.
pub fn source_of_namespace(namespace: &str, annotation: &str) -> String {
    format!("namespace {namespace} ({annotation})")
}

/// Returns the name of a freeze of all Namespaces, by the Namespace that has it.
pub fn source_of_all_namespaces(namespace: &str) -> String {
    format!("all namespaces by {FREEZE_ALL} of namespace {namespace}")
}

/// Returns the beginning of the phrase about an annotation that Namespaces do not have.
pub fn unknown_annotation_of(namespace: &str) -> String {
    format!("namespace {namespace} has the unknown annotation ")
}
