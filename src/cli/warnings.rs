//! What is odd about a request and no error.

use std::collections::BTreeSet;

use kube::ResourceExt;
use tagboat_api::ImageUpdateAutomation;

use super::outcome::Outcome;
use super::terminal::say;
use crate::objects::manifests::Manifests;
use crate::reconcile::automation::request::{GivenImages, Request};
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
