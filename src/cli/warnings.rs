//! What is odd about a request and no error.

use std::collections::BTreeSet;

use kube::ResourceExt;
use tagboat_api::ImageUpdateAutomation;

use super::outcome::Outcome;
use super::terminal::say;
use crate::objects::manifests::Manifests;
use crate::reconcile::automation::request::{GivenImages, Request};
use crate::reconcile::automation::source::DEFAULT_MESSAGE;
use crate::update::PolicyName;

/// Says so when an automation selects no policy although there are some in its namespace.
pub(super) fn warn_of_empty_selection(
    automation: Option<&ImageUpdateAutomation>,
    manifests: &Manifests,
    request: &Request,
    outcome: &Outcome,
) {
    let Some(automation) = automation.filter(|automation| automation.spec.policy_selector.is_some()) else {
        return;
    };
    let own = manifests.policies().filter(|policy| policy.namespace() == automation.namespace()).count();
    if own > 0 && request.update.setters.selected().next().is_none() {
        let sentence =
            format!("spec.policySelector selects none of the {own} ImagePolicies of its namespace");
        say(&format!("warning: {}", super::update::prefixed(outcome, &sentence)));
    }
}

/// Says which of the given images nobody asks for.
pub(super) fn warn_of_idle_images(request: &Request, given: &GivenImages) {
    let selected: BTreeSet<&PolicyName> = request.update.setters.images().map(|(policy, _)| policy).collect();
    for policy in given.keys() {
        if !selected.contains(policy) {
            say(&format!(
                "warning: --latest for {policy} has no effect: the automation does not select the policy"
            ));
        }
    }
}

/// Says so when an automation has a template for its messages, which nobody renders yet.
pub(super) fn warn_of_template(automation: &ImageUpdateAutomation, outcome: &Outcome) {
    let template = automation.spec.git.as_ref().and_then(|git| git.commit.message_template.as_ref());
    if template.is_some_and(|template| !template.is_empty()) {
        let sentence = format!(
            "spec.git.commit.messageTemplate is not rendered yet; the commit message is {DEFAULT_MESSAGE:?}"
        );
        say(&format!("warning: {}", super::update::prefixed(outcome, &sentence)));
    }
}
