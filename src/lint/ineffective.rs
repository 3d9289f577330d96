//! Checks automations for annotations that have no effect beside the others.

use tagboat_api::settings::{AutomationSettings, Delivery, MergeTime, PREFIX};

use super::finding::{Findings, Location, Rule};
use super::object::Object;

/// The beginning of the annotations for pull requests.
const PULL_REQUEST: &str = "pull-request-";

/// Checks an automation that is whole in its file.
pub(super) fn check(object: &Object<'_>, settings: &AutomationSettings, findings: &mut Findings<'_>) {
    let Some(annotations) = object.annotations() else { return };
    for field in annotations.fields() {
        let Some(name) = field.name.strip_prefix(PREFIX) else { continue };
        if let Some(reason) = reason(object, name, settings) {
            let message = format!("annotation {PREFIX}{name} has no effect: {reason}");
            findings.add(Location::of(field.key), Rule::IneffectiveField, message);
        }
    }
}

/// Returns the reason why a setting has no effect, if it has none.
fn reason(object: &Object<'_>, name: &str, settings: &AutomationSettings) -> Option<&'static str> {
    let is_of_pull_request = name.starts_with(PULL_REQUEST);
    match (settings.delivery, name) {
        (_, "longest-wait") if settings.quiet_period.duration().is_zero() => {
            Some("it bounds the wait of a tagboat.dev/quiet-period, and there is none")
        }
        // With Flux's gate GitAllBranchReferences off, another push branch is one of the automation's own.
        (Delivery::Push, "push-branch") if object.node.at(&["spec", "git", "push", "branch"]).is_none() => {
            Some(
                "commits go to the branch that is checked out unless tagboat.dev/delivery is `branch` or `pull-request`",
            )
        }
        (Delivery::Push, _) if is_of_pull_request => Some(
            "commits are pushed without a pull request unless tagboat.dev/delivery is `pull-request`: add it, or remove this",
        ),
        (Delivery::Branch, "pull-request-refresh") => None,
        (Delivery::Branch, _) if is_of_pull_request => Some(
            "with tagboat.dev/delivery `branch`, others open the pull request: write `pull-request`, or remove this",
        ),
        (Delivery::PullRequest, "pull-request-merge-method")
            if settings.pull_request.merge == MergeTime::ByHand =>
        {
            Some("tagboat.dev/pull-request-merge is `by-hand`, so people choose the method")
        }
        _ => None,
    }
}
