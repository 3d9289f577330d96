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
    let selected = requested.map(split_name);
    if selected.is_some_and(|(namespace, name)| name.is_empty() || namespace == Some("")) {
        let text = requested.unwrap_or_default();
        return Err(Failure::Usage(format!("--automation {text:?} is not of the form [NAMESPACE/]NAME")));
    }
    let fits = |automation: &&ImageUpdateAutomation| {
        selected.is_none_or(|(namespace, name)| {
            automation.name_any() == name
                && namespace.is_none_or(|namespace| automation.namespace().as_deref() == Some(namespace))
        })
    };
    let found: Vec<_> = manifests.automations().filter(fits).collect();
    match (found.as_slice(), requested) {
        ([], None) => Ok(None),
        ([one], _) => Ok(Some(one)),
        ([], Some(requested)) => {
            let all: Vec<_> = manifests.automations().map(full_name).collect();
            let there = existing(&all);
            Err(Failure::Usage(format!(
                "--automation {requested}: no ImageUpdateAutomation of that name is among the manifests; {there}"
            )))
        }
        (several, _) => {
            let names: Vec<String> = several.iter().map(|found| full_name(found)).collect();
            Err(Failure::Usage(format!(
                "the manifests hold several ImageUpdateAutomations ({}); choose one with --automation NAMESPACE/NAME",
                names.join(", ")
            )))
        }
    }
}

/// Returns the names that could be given instead, as the end of a sentence.
pub(super) fn existing(names: &[String]) -> String {
    match names {
        [] => "there is none".to_owned(),
        [name] => format!("there is {name}"),
        names => format!("there are {}", names.join(", ")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_names_are_in_singular_or_plural() {
        for (names, sentence) in [
            (&[][..], "there is none"),
            (&["a/one"], "there is a/one"),
            (&["a/one", "b/two"], "there are a/one, b/two"),
        ] {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(existing(&names), sentence);
        }
    }
}
