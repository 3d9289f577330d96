//! The kinds that places lead to, which are watched.

use std::collections::BTreeSet;

use crate::rollout::index::PlaceIndex;
use crate::rollout::watched::GroupKind;

/// The maximum number of watched kinds that have no rule of their own.
const MAX_OTHERS: usize = 32;

/// The kinds that decide about workloads, besides their appliers.
const DECIDING: [GroupKind; 2] = [GroupKind::CANARY, GroupKind::GIT_REPOSITORY];

/// Returns the kinds to which any place can lead.
///
/// These are all workloads, because of their images, and their appliers.
pub(super) fn of_any_place() -> impl Iterator<Item = GroupKind> {
    GroupKind::WORKLOADS.into_iter().chain(GroupKind::APPLIERS).chain(DECIDING)
}

/// Returns the kinds to watch: none unless `is_needed`.
pub(super) fn of_index(index: &PlaceIndex, is_needed: bool) -> BTreeSet<GroupKind> {
    let mut kinds = BTreeSet::new();
    if is_needed {
        kinds.extend(of_any_place());
        kinds.extend(in_turns(index.other_kinds().into_values().collect(), MAX_OTHERS));
    }
    kinds
}

/// Returns at most `max` kinds, one of each namespace in turn.
///
/// So a namespace with many kinds leaves a share to the others.
fn in_turns(namespaces: Vec<BTreeSet<GroupKind>>, max: usize) -> BTreeSet<GroupKind> {
    let mut kinds = BTreeSet::new();
    let mut namespaces: Vec<_> = namespaces.into_iter().map(BTreeSet::into_iter).collect();
    while !namespaces.is_empty() {
        namespaces.retain_mut(|of_namespace| {
            let next = of_namespace.find(|kind| !kinds.contains(kind));
            if kinds.len() < max {
                kinds.extend(next.clone());
            }
            next.is_some()
        });
        if kinds.len() >= max {
            break;
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_namespace_does_not_take_the_watches_of_all_kinds() {
        let kind = |name: &str| GroupKind::new("a.example/v1", name);
        let attacker: BTreeSet<GroupKind> = (0..50).map(|number| kind(&format!("A{number:02}"))).collect();
        let victim = BTreeSet::from([kind("Service"), kind("Zone")]);
        let found = in_turns(vec![attacker.clone(), BTreeSet::new(), victim.clone()], MAX_OTHERS);
        assert_eq!(found.len(), MAX_OTHERS);
        assert!(found.is_superset(&victim), "{found:?}");
        // A kind that several namespaces have takes one place.
        let shared = in_turns(vec![attacker.clone(), attacker], MAX_OTHERS);
        assert_eq!(shared.len(), MAX_OTHERS);
        assert_eq!(in_turns(vec![victim.clone()], MAX_OTHERS), victim);
    }
}
