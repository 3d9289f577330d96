//! Checks for policies that cannot select anything, and repositories that cannot be scanned.

use tagboat_api::Kind;
use tagboat_api::substitution::contains_placeholder;
use tagboat_go_text::Regexp;

use super::finding::{Findings, Location, Rule};
use super::object::Object;
use crate::policy::Constraint;
use crate::reference::RepositoryAddress;
use crate::yaml::Node;

/// The rules of a policy, in order of precedence.
const CHOICES: [&str; 3] = ["semver", "alphabetical", "numerical"];

/// Checks a policy's rule, and version ranges of all kinds.
///
/// If the object is not whole, missing fields may be in another file.
pub(super) fn check(object: &Object<'_>, is_complete: bool, findings: &mut Findings<'_>) {
    let Some(spec) = object.node.at(&["spec"]) else { return };
    match object.kind {
        Kind::Policy => {
            check_range("spec.policy.semver.range", spec.at(&["policy", "semver", "range"]), findings);
            if let Some(pattern) = spec.at(&["filterTags", "pattern"]) {
                check_expression("spec.filterTags.pattern", pattern, findings);
            }
            if is_complete {
                check_choice(spec, findings);
                check_interval(spec, findings);
            }
        }
        Kind::GitRepository => check_range("spec.ref.semver", spec.at(&["ref", "semver"]), findings),
        Kind::Automation => {
            let range = spec.at(&["git", "checkout", "ref", "semver"]);
            check_range("spec.git.checkout.ref.semver", range, findings);
        }
        Kind::Repository => {
            check_image(spec, findings);
            for (index, pattern) in
                spec.at(&["exclusionList"]).map(Node::items).unwrap_or_default().iter().enumerate()
            {
                check_expression(&format!("spec.exclusionList[{index}]"), pattern, findings);
            }
        }
    }
}

/// The maximum size of a compiled regular expression in bytes.
const MAX_EXPRESSION: usize = 10 << 20;

fn check_expression(path: &str, node: &Node, findings: &mut Findings<'_>) {
    let Some(text) = node.text().filter(|text| !contains_placeholder(text)) else { return };
    if let Err(error) = Regexp::compile_within(text, MAX_EXPRESSION) {
        let sentence = format!("`{path}` is `{text}`, which is not a regular expression: {error}");
        findings.add(Location::of(node), Rule::InvalidValue, sentence);
    }
}

fn check_image(spec: &Node, findings: &mut Findings<'_>) {
    let Some(node) = spec.at(&["image"]) else { return };
    let Some(text) = node.text().filter(|text| !contains_placeholder(text)) else { return };
    if text.parse::<f64>().is_ok() {
        // The schema reports that it is not a text.
        return;
    }
    if let Err(error) = RepositoryAddress::parse(text, false) {
        findings.add(Location::of(node), Rule::InvalidValue, format!("`spec.image`: {error}"));
    }
}

fn check_range(path: &str, range: Option<&Node>, findings: &mut Findings<'_>) {
    let Some(text) = range.and_then(Node::text).filter(|text| !text.is_empty()) else { return };
    if contains_placeholder(text) {
        return;
    }
    if let (Some(node), Err(error)) = (range, Constraint::parse(text)) {
        let sentence = format!("`{path}` is `{text}`, which is not a version range: {error}");
        findings.add(Location::of(node), Rule::InvalidValue, sentence);
    }
}

/// Checks for a policy without a rule.
///
/// The API server accepts it, the controller rejects it.
fn check_choice(spec: &Node, findings: &mut Findings<'_>) {
    let Some(choice) = spec.field("policy") else { return };
    let has = |name: &&str| choice.value.at(&[*name]).is_some_and(|node| !node.is_null());
    if choice.value.is_mapping() && !CHOICES.iter().any(has) {
        let sentence = format!("`spec.policy` has no rule; set one of {}", CHOICES.join(", "));
        findings.add(Location::of(choice.key), Rule::MissingField, sentence);
    }
}

/// Checks `spec.interval` against the rules of Flux's schema.
fn check_interval(spec: &Node, findings: &mut Findings<'_>) {
    let given = |name: &str| spec.field(name).filter(|field| !field.value.is_null());
    let reflection = given("digestReflectionPolicy");
    let text = reflection.and_then(|field| field.value.text()).unwrap_or_default();
    if contains_placeholder(text) {
        return;
    }
    match (given("interval"), reflection) {
        (Some(interval), _) if text != "Always" => {
            let sentence = "`spec.interval` is only accepted when `spec.digestReflectionPolicy` is `Always`";
            findings.add(Location::of(interval.key), Rule::InvalidValue, sentence);
        }
        (None, Some(reflection)) if text == "Always" => {
            let sentence = "`spec.interval` must be set when `spec.digestReflectionPolicy` is `Always`";
            findings.add(Location::of(reflection.key), Rule::MissingField, sentence);
        }
        _ => {}
    }
}
