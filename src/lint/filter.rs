//! Checks tag filters, and rules against annotations.
//!
//! It reports policies that the controller rejects, or that can select nothing.

use serde_json::json;
use tagboat_api::Kind;
use tagboat_api::policy::ImagePolicySpec;
use tagboat_api::settings::{PREFIX, PolicySettings};
use tagboat_api::substitution::contains_placeholder;
use tagboat_go_text::Regexp;

use super::automation::{has_placeholder, texts};
use super::finding::{Findings, Location, Rule};
use super::object::Object;
use crate::error::chain;
use crate::policy::{FilterError, Policy, PolicyError, RuleError};
use crate::yaml::Node;

/// Checks a policy, except for fields with rules of their own (ranges, patterns).
pub(super) fn check(object: &Object<'_>, findings: &mut Findings<'_>) {
    let (Kind::Policy, Some(spec)) = (object.kind, object.node.at(&["spec"])) else { return };
    check_groups(spec, findings);
    let [choice, filter] =
        ["policy", "filterTags"].map(|name| spec.at(&[name]).map(texts).unwrap_or_default());
    if has_placeholder(&choice) || has_placeholder(&filter) {
        return;
    }
    let whole = json!({"imageRepositoryRef": {"name": "lint"}, "policy": choice, "filterTags": filter});
    let (Ok(settings), Ok(whole)) = (
        PolicySettings::from_annotations(&object.own_annotations()),
        serde_json::from_value::<ImagePolicySpec>(whole),
    ) else {
        return;
    };
    let order = || object.annotations()?.at(&[&format!("{PREFIX}order")]);
    let policy = Policy::new(&whole, settings);
    match policy.and_then(|policy| policy.check_filter()) {
        Err(error @ PolicyError::Rule(RuleError::OrderWithoutText)) => {
            let location = order().map_or_else(|| object.location(), Location::of);
            findings.add(location, Rule::InvalidAnnotation, chain(&error));
        }
        Err(error @ PolicyError::Filter(FilterError::LongExtract { .. })) => {
            let location =
                spec.at(&["filterTags", "extract"]).map_or_else(|| object.location(), Location::of);
            findings.add(location, Rule::InvalidValue, chain(&error));
        }
        _ => {}
    }
}

/// Checks for groups that the pattern does not have: they are empty for every tag.
fn check_groups(spec: &Node, findings: &mut Findings<'_>) {
    let Some(filter) = spec.at(&["filterTags"]) else { return };
    let Some(node) = filter.at(&["extract"]) else { return };
    let (Some(extract), pattern) = (node.text(), filter.text_at(&["pattern"]).unwrap_or_default()) else {
        return;
    };
    if contains_placeholder(pattern) || extract.contains("{{") || extract.contains("<<") {
        return;
    }
    let Ok(pattern) = Regexp::compile_within(pattern, MAX_PATTERN) else { return };
    for name in pattern.unknown_groups(extract) {
        let sentence = format!(
            "`spec.filterTags.extract` is `{extract}`, and `spec.filterTags.pattern` has no group `{name}`, so nothing is \
             extracted there"
        );
        findings.add(Location::of(node), Rule::InvalidValue, sentence);
    }
}

/// The maximum size of a compiled pattern in bytes.
const MAX_PATTERN: usize = 10 << 20;
