//! Warnings about a request that is valid.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube::ResourceExt;
use tagboat_api::ImageUpdateAutomation;
use tagboat_api::automation::CommitAuthor;
use tagboat_api::settings::AutomationSettings;

use super::namespace_rules::namespace_rules;
use super::outcome::Outcome;
use super::output::prefixed;
use super::terminal::say;
use crate::error::chain;
use crate::objects::manifests::{Manifests, SecretDirectory};
use crate::reconcile::automation::request::{ImageOverrides, Request};
use crate::reconcile::automation::source::ObjectName;
use crate::reconcile::automation::waiting::{GroupHolds, Images, ParsedRules, own_windows};
use crate::schedule::{Agenda, State};

/// Warns if an automation selects no policy although its namespace has some.
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
            format!("spec.policySelector selects no ImagePolicy of its namespace, which has {own}");
        say(&format!("warning: {}", prefixed(outcome, &sentence)));
    }
}

/// Warns of images of `--latest` for policies that no automation selects.
///
/// `is_selected` returns whether one of the `automations` selects a policy.
pub(super) fn warn_of_idle_images(
    given: &ImageOverrides,
    automations: usize,
    is_selected: impl Fn(&ObjectName) -> bool,
) {
    let subject = if automations > 1 { "no automation selects" } else { "the automation does not select" };
    for policy in given.keys().filter(|policy| !is_selected(policy)) {
        say(&format!("warning: --latest for {policy} has no effect: {subject} the policy"));
    }
}

/// Warns of `--secret` directories that are not used.
///
/// `secrets` are these directories with their arguments, `required` the Secrets that objects name; `reason` ends the
/// message.
pub(super) fn warn_of_idle_secrets(
    secrets: &[(&str, &SecretDirectory)],
    required: &[ObjectName],
    reason: &str,
) {
    let used: BTreeSet<usize> = required
        .iter()
        .filter_map(|name| secrets.iter().position(|(_, secret)| secret.is(&name.namespace, &name.name)))
        .collect();
    for (index, (text, _)) in secrets.iter().enumerate() {
        if !used.contains(&index) {
            say(&format!("warning: --secret {text:?} is not used: {reason}"));
        }
    }
}

/// Warns if settings among the manifests delay what an automation writes, which a command ignores.
pub(super) fn warn_of_wait(automation: &ImageUpdateAutomation, manifests: &Manifests, request: &Request) {
    let name = ObjectName::of(automation);
    let closed_by = match agenda(automation, manifests) {
        Ok(agenda) => match agenda.state(Timestamp::now()) {
            State::Open => None,
            State::Closed(cause) => Some(cause.to_string()),
        },
        Err(error) => Some(error),
    };
    if let Some(closed_by) = closed_by {
        say(&format!("warning: {name}: windows and freezes do not count here: {closed_by}"));
    }
    let settings = AutomationSettings::from_annotations(automation.annotations());
    if settings.is_ok_and(|settings| !settings.quiet_period.duration().is_zero()) {
        say(&format!("warning: {name}: tagboat.dev/quiet-period does not count here"));
    }
    let (mut setters, given, observed) = (request.update.setters.clone(), BTreeMap::new(), BTreeMap::new());
    let policies = manifests.policies().filter(|policy| policy.namespace() == automation.namespace());
    let images = Images { given: &given, observed: &observed };
    if let Some(by) = GroupHolds::hold(&mut setters, policies, images).by() {
        say(&format!("warning: {name}: release groups do not count here: {by}"));
    }
}

/// Returns the windows and freezes of an automation among manifests.
///
/// # Errors
///
/// The sentence about a setting that is not valid.
fn agenda(automation: &ImageUpdateAutomation, manifests: &Manifests) -> Result<Agenda, String> {
    let (name, parsed) = (ObjectName::of(automation), ParsedRules::default());
    let settings = AutomationSettings::from_annotations(automation.annotations());
    let own = own_windows(&settings.map_err(|errors| chain(&errors))?, &parsed);
    let own = own.map_err(|error| chain(&error))?;
    let rules = namespace_rules(manifests).map_err(|error| error.to_string())?;
    let agenda = rules.read(&name.namespace).and_then(|rules| rules.agenda(&name, own.as_deref(), &parsed));
    agenda.map_err(|error| chain(&error))
}

/// Warns if commits will have an author without name and e-mail address.
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
