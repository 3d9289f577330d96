//! Image overrides of the command line: `--latest`.

use kube::ResourceExt;
use tagboat_api::ImageUpdateAutomation;

use super::Failure;
use crate::error::chain;
use crate::objects::ObjectName;
use crate::objects::manifests::Manifests;
use crate::reconcile::automation::request::ImageOverrides;
use crate::reference::ImageReference;

/// Parses `--latest`.
///
/// If policies of several namespaces have the name, only those in the namespaces of automations are considered: others
/// have no effect.
pub(super) fn image_overrides(
    texts: &[String],
    manifests: &Manifests,
    automations: &[&ImageUpdateAutomation],
) -> Result<ImageOverrides, Failure> {
    let is_own = |policy: &ObjectName| {
        automations.iter().any(|automation| automation.namespace().as_ref() == Some(&policy.namespace))
    };
    let mut overrides = ImageOverrides::new();
    for text in texts {
        let (name, image) = text.split_once('=').ok_or_else(|| {
            Failure::Usage(format!("--latest {text:?} is not of the form [NAMESPACE/]NAME=IMAGE"))
        })?;
        let image = ImageReference::parse(image)
            .map_err(|error| Failure::Usage(format!("--latest {text:?}: {}", chain(&error))))?;
        let (namespace, name) = split_name(name);
        let fits = |policy: &ObjectName| {
            policy.name == name && namespace.is_none_or(|namespace| policy.namespace == namespace)
        };
        let mut found: Vec<ObjectName> = manifests.policies().map(ObjectName::of).filter(fits).collect();
        if found.iter().any(is_own) {
            found.retain(is_own);
        }
        let policy = match found.as_slice() {
            [policy] => policy,
            [] => {
                let sentence = "no ImagePolicy of that name is among the manifests";
                return Err(Failure::Usage(format!("--latest {text:?}: {sentence}")));
            }
            [policy, other, ..] => {
                return Err(Failure::Usage(format!(
                    "--latest {text:?}: both {policy} and {other} have that name; write NAMESPACE/NAME"
                )));
            }
        };
        if overrides.insert(policy.clone(), Some(image)).is_some() {
            return Err(Failure::Usage(format!("--latest gives two images for {policy}; keep one")));
        }
    }
    Ok(overrides)
}

/// Splits `[NAMESPACE/]NAME`.
pub(super) fn split_name(text: &str) -> (Option<&str>, &str) {
    text.split_once('/').map_or((None, text), |(namespace, name)| (Some(namespace), name))
}
