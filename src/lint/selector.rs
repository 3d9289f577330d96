//! Checks the policy selector, which an API server accepts and the controller rejects.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use tagboat_api::Kind;
use tagboat_api::substitution::contains_placeholder;

use super::finding::{Findings, Location, Rule};
use super::object::Object;
use crate::yaml::Node;
use tagboat_api::selector;

/// Checks an automation's selector; the schema reports values of a wrong type.
pub(super) fn check(object: &Object<'_>, findings: &mut Findings<'_>) {
    if object.kind != Kind::Automation {
        return;
    }
    let Some(node) = object.node.at(&["spec", "policySelector"]) else { return };
    let labels = node.at(&["matchLabels"]).map(Node::fields).unwrap_or_default();
    for label in labels {
        let Some(value) = label.value.text() else { continue };
        let labels = BTreeMap::from([(label.name.to_owned(), value.to_owned())]);
        let selector = LabelSelector { match_labels: Some(labels), match_expressions: None };
        check_part(&selector, &[label.name, value], Location::of(label.key), findings);
    }
    for expression in node.at(&["matchExpressions"]).map(Node::items).unwrap_or_default() {
        let text = |field: &str| expression.text_at(&[field]).unwrap_or_default().to_owned();
        let values = expression.at(&["values"]).map(Node::items).unwrap_or_default();
        let values: Vec<String> = values.iter().filter_map(|value| value.text().map(str::to_owned)).collect();
        let (key, operator) = (text("key"), text("operator"));
        if key.is_empty() || operator.is_empty() {
            // The schema requires both.
            continue;
        }
        let texts: Vec<&str> = values.iter().chain([&key, &operator]).map(String::as_str).collect();
        let requirement = LabelSelectorRequirement {
            key: key.clone(),
            operator: operator.clone(),
            values: Some(values.clone()),
        };
        let selector = LabelSelector { match_labels: None, match_expressions: Some(vec![requirement]) };
        check_part(&selector, &texts, Location::of(expression), findings);
    }
}

fn check_part(selector: &LabelSelector, texts: &[&str], location: Location, findings: &mut Findings<'_>) {
    if texts.iter().any(|text| contains_placeholder(text)) {
        return;
    }
    if let Err(error) = selector::parse(selector) {
        findings.add(location, Rule::InvalidValue, format!("`spec.policySelector`: {error}"));
    }
}
