//! The facts about an automation of manifests, with the state of earlier runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kube::ResourceExt;
use tagboat_api::ImagePolicy;
use tagboat_api::settings::AutomationSettings;

use super::facts::{Facts, Found, Origin};
use crate::cli::Failure;
use crate::cli::explain::manifests::{Candidates, sentences, warn};
use crate::cli::explain::query::ObjectQuery;
use crate::cli::inputs::read_manifests_in_part;
use crate::cli::namespace_rules::namespace_rules;
use crate::error::chain;
use crate::objects::ObjectName;
use crate::objects::manifests::{Defect, LoadResult, StateDirectory, StateError};
use crate::reconcile::automation::preflight;
use crate::reconcile::automation::request::{self, ImageOverrides};
use crate::reconcile::automation::waiting::NamespaceRules;

/// Reads the automation of a query and its policies, with their statuses in the state.
///
/// Without a state, those of the manifests count. Defects of objects that are not needed are warnings.
pub(super) fn facts(
    paths: &[PathBuf],
    state: Option<&Path>,
    query: &ObjectQuery<'_>,
) -> Result<Found, Failure> {
    let (manifests, defects) = read_manifests_in_part(paths, state);
    let valid = manifests.automations().map(ObjectName::of).collect();
    let candidates = Candidates { kind: "ImageUpdateAutomation", valid, invalid: Defect::automation };
    let name = candidates.find(&defects, query)?;
    let is_needed = |defect: &&Defect| {
        defect.automation() == Some(&name)
            || defect.policy().is_some_and(|policy| policy.namespace == name.namespace)
    };
    let (needed, others): (Vec<&Defect>, Vec<&Defect>) = defects.iter().partition(is_needed);
    // Such a manifest is a Namespace that may have a freeze, or it may be anything. A run refuses it.
    let (refused, others): (Vec<&Defect>, Vec<&Defect>) =
        others.into_iter().partition(|defect| defect.is_unattributed() || defect.is_of_namespace());
    warn(&others);
    let found = manifests.automations().find(|automation| ObjectName::of(*automation) == name);
    let Some(automation) = found.filter(|_| needed.is_empty()) else {
        return Ok(Found::Invalid { name, sentences: sentences(&needed) });
    };
    let own = manifests.policies().filter(|policy| policy.namespace() == automation.namespace());
    let source = automation.git_repository();
    let mut facts = Facts {
        automation: automation.clone(),
        repository: manifests.git_repository(&source.namespace, &source.name).cloned(),
        policies: Vec::new(),
        rules: NamespaceRules::default(),
        refusals: sentences(&refused),
        unread: Vec::new(),
        notes: Vec::new(),
        origin: Origin::Manifests,
    };
    facts.notes.extend(state.and_then(missing));
    match state.map(StateDirectory::new) {
        None => facts.policies = own.cloned().map(Arc::new).collect(),
        Some(state) => {
            let failed = |error: StateError| Failure::new(chain(&error));
            state.load_automation(&mut facts.automation).map_err(failed)?;
            let policies = own.map(|policy| with_state(policy, &state, &mut facts.unread).map(Arc::new));
            facts.policies = policies.collect::<Result<_, _>>().map_err(failed)?;
        }
    }
    facts.refusals.extend(refusal(&facts));
    let rules = namespace_rules(&manifests).map_err(|error| error.to_string());
    match rules.and_then(|rules| rules.read(&name.namespace).map_err(|error| chain(&error))) {
        Ok(rules) => facts.rules = rules,
        Err(error) => facts.refusals.push(error),
    }
    Ok(Found::Facts(Box::new(facts)))
}

/// Returns the error with which `tagboat run` does not begin, if there is one.
///
/// Invalid settings and selectors are told in any case. Manifests without the GitRepository are not all that a run needs.
fn refusal(facts: &Facts) -> Option<String> {
    let automation = &facts.automation;
    let repository = facts.repository.as_ref().filter(|_| !automation.spec.suspend)?;
    let settings = AutomationSettings::from_annotations(automation.annotations()).ok()?;
    let policies = facts.policies.iter().map(AsRef::as_ref);
    let request = request::of_automation(automation, policies, &ImageOverrides::new()).ok()?;
    let checked = preflight::check((automation, &settings), repository, (&request, &facts.policies));
    checked.err().map(|error| chain(&error))
}

/// Returns a note if there is no state directory.
fn missing(state: &Path) -> Option<String> {
    let is_missing = matches!(state.try_exists(), Ok(false));
    is_missing.then(|| {
        format!("the state directory {} does not exist, so no earlier run is known", state.display())
    })
}

/// Returns a policy with its status in the state, or else in its manifest.
fn with_state(
    manifest: &ImagePolicy,
    state: &StateDirectory,
    unread: &mut Vec<String>,
) -> Result<ImagePolicy, StateError> {
    let mut policy = manifest.clone();
    if let LoadResult::Corrupt(path) = state.load_policy(&mut policy)? {
        unread.push(format!("the state in {} is damaged", path.display()));
    }
    if policy.status.as_ref().is_none_or(|status| status.latest_ref.is_none()) {
        policy.status.clone_from(&manifest.status);
    }
    Ok(policy)
}
