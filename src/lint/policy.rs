//! Policies that cannot choose anything, and repositories that cannot be scanned.

use tagboat_api::Kind;
use tagboat_go_text::Regexp;

use super::finding::{Findings, Place, Rule};
use super::object::Object;
use super::source::is_filled_in_later;
use crate::policy::Constraint;
use crate::reference::RepositoryAddress;
use crate::yaml::Node;

/// The rules that a policy can choose by, in the order in which they count.
const CHOICES: [&str; 3] = ["semver", "alphabetical", "numerical"];

/// Looks at what a policy chooses by, and at ranges of versions wherever they stand. What an object that is not whole
/// leaves out may stand elsewhere.
pub(super) fn check(object: &Object<'_>, is_whole: bool, findings: &mut Findings<'_>) {
    let Some(spec) = object.node.at(&["spec"]) else { return };
    match object.kind {
        Kind::Policy => {
            check_range("spec.policy.semver.range", spec.at(&["policy", "semver", "range"]), findings);
            if let Some(pattern) = spec.at(&["filterTags", "pattern"]) {
                check_expression("spec.filterTags.pattern", pattern, findings);
            }
            if is_whole {
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

/// The largest compiled form of a regular expression, in bytes.
const LARGEST_EXPRESSION: usize = 10 << 20;

fn check_expression(path: &str, node: &Node, findings: &mut Findings<'_>) {
    let Some(text) = node.text().filter(|text| !is_filled_in_later(text)) else { return };
    if let Err(error) = Regexp::compile_within(text, LARGEST_EXPRESSION) {
        let sentence = format!("`{path}` is `{text}`, which is no regular expression: {error}");
        findings.add(Place::of(node), Rule::InvalidValue, sentence);
    }
}

fn check_image(spec: &Node, findings: &mut Findings<'_>) {
    let Some(node) = spec.at(&["image"]) else { return };
    let Some(text) = node.text().filter(|text| !is_filled_in_later(text)) else { return };
    if text.parse::<f64>().is_ok() {
        // That it is no text is a finding of its own.
        return;
    }
    if let Err(error) = RepositoryAddress::parse(text, false) {
        findings.add(Place::of(node), Rule::InvalidValue, format!("`spec.image`: {error}"));
    }
}

fn check_range(path: &str, range: Option<&Node>, findings: &mut Findings<'_>) {
    let Some(text) = range.and_then(Node::text).filter(|text| !text.is_empty()) else { return };
    if is_filled_in_later(text) {
        return;
    }
    if let (Some(node), Err(error)) = (range, Constraint::parse(text)) {
        let sentence = format!("`{path}` is `{text}`, which is no range of versions: {error}");
        findings.add(Place::of(node), Rule::InvalidValue, sentence);
    }
}

/// A policy without a rule is one that the API server takes and the controller refuses.
fn check_choice(spec: &Node, findings: &mut Findings<'_>) {
    let Some(choice) = spec.field("policy") else { return };
    let has = |name: &&str| choice.value.at(&[*name]).is_some_and(|node| !node.is_null());
    if choice.value.is_mapping() && !CHOICES.iter().any(has) {
        let sentence = format!("`spec.policy` says nothing to choose by; give one of {}", CHOICES.join(", "));
        findings.add(Place::of(choice.key), Rule::MissingField, sentence);
    }
}

/// The rules that Flux's schema holds `spec.interval` against.
fn check_interval(spec: &Node, findings: &mut Findings<'_>) {
    let given = |name: &str| spec.field(name).filter(|field| !field.value.is_null());
    let reflection = given("digestReflectionPolicy");
    let text = reflection.and_then(|field| field.value.text()).unwrap_or_default();
    if is_filled_in_later(text) {
        return;
    }
    match (given("interval"), reflection) {
        (Some(interval), _) if text != "Always" => {
            let sentence = "`spec.interval` is only accepted when `spec.digestReflectionPolicy` is `Always`";
            findings.add(Place::of(interval.key), Rule::InvalidValue, sentence);
        }
        (None, Some(reflection)) if text == "Always" => {
            let sentence = "`spec.interval` must be set when `spec.digestReflectionPolicy` is `Always`";
            findings.add(Place::of(reflection.key), Rule::MissingField, sentence);
        }
        _ => {}
    }
}
