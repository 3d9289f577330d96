//! Checks windows and freezes, of automations and of Namespaces.

use tagboat_api::Kind;
use tagboat_api::settings::PREFIX;
use tagboat_api::substitution::contains_placeholder;

use super::finding::{Findings, Location, Rule};
use super::object::Object;
use crate::schedule::{Freeze, SettingsError, Windows};
use crate::yaml::Node;

/// Checks the windows of an automation.
pub(super) fn check(object: &Object<'_>, findings: &mut Findings<'_>) {
    if object.kind == Kind::Automation {
        check_annotation(object.node, "windows", windows, findings);
    }
}

/// Checks the windows and freezes of a Namespace.
pub(super) fn check_namespace(node: &Node, findings: &mut Findings<'_>) {
    check_annotation(node, "windows", windows, findings);
    check_annotation(node, "freeze", freeze, findings);
    check_annotation(node, "freeze-all", freeze, findings);
}

fn windows(text: &str) -> Result<(), SettingsError> {
    text.parse::<Windows>().map(drop)
}

fn freeze(text: &str) -> Result<(), SettingsError> {
    Freeze::parse(text).map(drop)
}

fn check_annotation(
    object: &Node,
    name: &str,
    parse: fn(&str) -> Result<(), SettingsError>,
    findings: &mut Findings<'_>,
) {
    let name = format!("{PREFIX}{name}");
    let Some(value) = object.at(&["metadata", "annotations", &name]) else { return };
    let Some(text) = value.text().filter(|text| !contains_placeholder(text)) else { return };
    // An empty list of an automation is reported with its other settings.
    if let Err(error) = parse(text) {
        findings.add(Location::of(value), Rule::InvalidAnnotation, format!("annotation {name}: {error}"));
    }
}
