//! The windows and freezes of the Namespaces among manifests.

use crate::objects::manifests::{Manifests, NamespaceConflict};
use crate::reconcile::automation::waiting::{NamespaceRules, RulesReader};

/// Returns a reader of the windows and freezes of the Namespaces among manifests.
///
/// A freeze of all namespaces counts on any of them, because a command does not know that of the controller.
///
/// # Errors
///
/// If two manifests of a Namespace contradict each other.
pub(super) fn namespace_rules(manifests: &Manifests) -> Result<RulesReader, NamespaceConflict> {
    let all = manifests.namespace_annotations()?;
    Ok(RulesReader::new(move |namespace| {
        let rules = all.get(namespace).map(NamespaceRules::of).unwrap_or_default();
        Ok(all.iter().fold(rules, |rules, (name, annotations)| rules.with_freeze_all(name, annotations)))
    }))
}
