//! What is odd about a request and no error.

use std::collections::BTreeSet;

use kube::ResourceExt;
use tagboat_api::automation::CommitAuthor;
use tagboat_api::{GitRepository, ImageUpdateAutomation};

use super::outcome::Outcome;
use super::output::prefixed;
use super::terminal::say;
use crate::objects::manifests::{Manifests, SecretDirectory};
use crate::reconcile::automation::request::{GivenImages, Request};
use crate::reconcile::automation::source::ObjectName;
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
            format!("spec.policySelector selects no ImagePolicy of its namespace, where {own} can be had");
        say(&format!("warning: {}", prefixed(outcome, &sentence)));
    }
}

/// Says which of the given images nobody asks for; `is_wanted` knows whom an automation selects, of which there are
/// `automations`.
pub(super) fn warn_of_idle_images(
    given: &GivenImages,
    automations: usize,
    is_wanted: impl Fn(&PolicyName) -> bool,
) {
    let nobody = if automations > 1 { "no automation selects" } else { "the automation does not select" };
    for policy in given.keys().filter(|policy| !is_wanted(policy)) {
        say(&format!("warning: --latest for {policy} has no effect: {nobody} the policy"));
    }
}

/// Says which of the secrets that are given as directories no source has to do with.
///
/// `secrets` are those directories with the words of the command line; `wanted` are the secrets that `askers` name.
pub(super) fn warn_of_idle_secrets(
    secrets: &[(&str, &SecretDirectory)],
    wanted: &[ObjectName],
    askers: &str,
) {
    let used: BTreeSet<usize> = wanted
        .iter()
        .filter_map(|name| secrets.iter().position(|(_, secret)| secret.is(&name.namespace, &name.name)))
        .collect();
    for (index, (text, _)) in secrets.iter().enumerate() {
        if !used.contains(&index) {
            say(&format!("warning: --secret {text:?} is not used: {askers}"));
        }
    }
}

/// Says so when commits will have nobody's name on them.
pub(super) fn warn_of_nameless_author(automation: &ImageUpdateAutomation, outcome: &Outcome) {
    let author = automation.spec.git.as_ref().map(|git| &git.commit.author);
    let is_nameless = |author: &CommitAuthor| {
        author.email.is_empty() && author.name.as_deref().unwrap_or_default().is_empty()
    };
    if author.is_some_and(is_nameless) {
        let sentence =
            "spec.git.commit.author has neither a name nor an e-mail address; commits will have neither";
        say(&format!("warning: {}", prefixed(outcome, sentence)));
    }
}

/// Says what Flux's own sentence about service accounts does not: that there is no controller to set up here.
pub(super) fn warn_of_service_account(source: Option<&GitRepository>, outcome: &Outcome) {
    let account = source.and_then(|source| source.spec.service_account_name.as_deref());
    if account.is_some_and(|account| !account.is_empty()) {
        let sentence = "spec.serviceAccountName of the GitRepository: logging in through a service account is not \
                        supported yet; take the field out and name a Secret in spec.secretRef";
        say(&format!("warning: {}", prefixed(outcome, sentence)));
    }
}
