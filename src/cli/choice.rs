//! Selection of one automation by `--automation`.

use kube::ResourceExt;
use tagboat_api::ImageUpdateAutomation;

use super::Failure;
use super::outcome::AutomationName;
use super::overrides::split_name;
use crate::objects::manifests::Manifests;

/// Returns the automation to reconcile, if there is one.
pub(super) fn choose_automation<'m>(
    manifests: &'m Manifests,
    requested: Option<&str>,
) -> Result<Option<&'m ImageUpdateAutomation>, Failure> {
    let fits = |automation: &&ImageUpdateAutomation| {
        let (namespace, name) = split_name(requested.unwrap_or_default());
        requested.is_none()
            || (automation.name_any() == name
                && namespace.is_none_or(|namespace| automation.namespace().as_deref() == Some(namespace)))
    };
    let found: Vec<_> = manifests.automations().filter(fits).collect();
    let names = |automations: &[&ImageUpdateAutomation]| {
        let names: Vec<String> = automations.iter().map(|found| full_name(found)).collect();
        names.join(", ")
    };
    match (found.as_slice(), requested) {
        ([], None) => Ok(None),
        ([one], _) => Ok(Some(one)),
        ([], Some(requested)) => {
            let all: Vec<_> = manifests.automations().collect();
            let there = if all.is_empty() { "none".to_owned() } else { names(&all) };
            Err(Failure::Usage(format!(
                "--automation {requested}: no ImageUpdateAutomation of that name is among the manifests; there is {there}"
            )))
        }
        (several, _) => Err(Failure::Usage(format!(
            "the manifests hold several ImageUpdateAutomations ({}); choose one with --automation NAMESPACE/NAME",
            names(several)
        ))),
    }
}

/// Returns the automation's namespace and name.
pub(super) fn name_of(automation: &ImageUpdateAutomation) -> AutomationName {
    AutomationName { namespace: automation.namespace().unwrap_or_default(), name: automation.name_any() }
}

/// Returns the automation's namespace and name as `NAMESPACE/NAME`.
pub(super) fn full_name(automation: &ImageUpdateAutomation) -> String {
    let AutomationName { namespace, name } = name_of(automation);
    format!("{namespace}/{name}")
}
