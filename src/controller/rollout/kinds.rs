//! The kinds that places lead to, which are watched.

use std::collections::BTreeSet;
use std::sync::Arc;

use tagboat_api::DeploymentStatus;
use tagboat_api::deployment_status::{DeploymentStatusStatus, State};

use crate::rollout::index::PlaceIndex;
use crate::rollout::watched::GroupKind;

/// The maximum number of watched kinds that have no rule of their own.
const MAX_OTHERS: usize = 32;

/// Returns the kinds to watch: none without places and statuses.
///
/// A kind of `watched` stays as long as a component has an object of it, whose file may have been removed from git.
pub(super) fn to_watch(
    index: &PlaceIndex,
    statuses: &[Arc<DeploymentStatus>],
    watched: &BTreeSet<GroupKind>,
) -> BTreeSet<GroupKind> {
    if index.is_empty() && statuses.is_empty() {
        return BTreeSet::new();
    }
    let mut kinds: BTreeSet<GroupKind> = GroupKind::of_any_place().collect();
    let mut others = index.other_kinds();
    let unmarked: Vec<&GroupKind> = watched
        .iter()
        .filter(|kind| !kinds.contains(kind) && !others.values().any(|marked| marked.contains(kind)))
        .collect();
    for object in statuses.iter().filter(|_| !unmarked.is_empty()) {
        let named = object.status.as_ref().map(of_components).unwrap_or_default();
        let kept = unmarked.iter().filter(|kind| named.contains(kind.kind())).copied().cloned();
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        others.entry(namespace).or_default().extend(kept);
    }
    kinds.extend(in_turns(others.into_values().collect(), MAX_OTHERS));
    kinds
}

/// Returns the kinds of the objects that are components of a status, without their groups.
pub(super) fn of_components(status: &DeploymentStatusStatus) -> BTreeSet<&str> {
    let components = status.report.components.iter();
    let objects = components.filter(|one| one.tie.is_some() && one.state != State::Removed);
    objects.filter_map(|one| kind(&one.name)).collect()
}

/// Returns the kind in the name of a component.
///
/// The name of a cluster before it has no capital letter.
fn kind(component: &str) -> Option<&str> {
    component.split('/').find(|part| part.starts_with(|first: char| first.is_ascii_uppercase()))
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
    use serde_json::{Value, json};
    use tagboat_api::ObjectName;

    use super::*;
    use crate::rollout::place::{Place, ScannedPlaces};
    use crate::update::{Field, ObjectIdentifier};

    /// Returns the scan of a file with a marker in an object of a kind.
    fn scan(kind: &str) -> Arc<ScannedPlaces> {
        let name = |name: &str| ObjectName { namespace: "n".into(), name: name.into() };
        let text = str::to_owned;
        let document = ObjectIdentifier {
            api_version: text("a.example/v1"),
            kind: text(kind),
            name: text("x"),
            namespace: text("n"),
        };
        let (policy, file, value) = (name("app"), text("x.yaml"), text("1"));
        let field = Field::Tag;
        let (pointer, proposed, written) = (None, None, None);
        let place = Place { policy, document, file, line: 7, field, pointer, value, proposed, written };
        Arc::new(ScannedPlaces {
            automation: name("fleet"),
            source: name("fleet"),
            repository: text("https://git.example/fleet"),
            revision: text("main@sha1:1"),
            checkout: None,
            push: text("main"),
            places: vec![place],
            omitted: 0,
            removed_files: Vec::new(),
        })
    }

    /// Returns a status with a component.
    fn status(component: &Value) -> Arc<DeploymentStatus> {
        let mut component = component.clone();
        component["since"] = json!("2026-01-01T00:00:00Z");
        let object = json!({
            "apiVersion": "tagboat.dev/v1alpha1", "kind": "DeploymentStatus",
            "metadata": {"name": "app", "namespace": "n"}, "spec": {"policyRef": {"name": "app"}},
            "status": {
                "deploymentId": "1", "timeStamp": "2026-01-01T00:00:00Z", "state": "pending", "progress": "",
                "since": "2026-01-01T00:00:00Z", "summary": {}, "components": [component],
            },
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    /// Its file was removed from git, so no marker leads to it.
    #[test]
    fn a_kind_stays_watched_as_long_as_a_component_has_an_object_of_it() {
        let widget = GroupKind::new("a.example/v1", "Widget");
        let mut index = PlaceIndex::default();
        index.insert_scan(scan("Widget"));
        let marked = to_watch(&index, &[], &BTreeSet::new());
        assert!(marked.contains(&widget), "{marked:?}");
        for (name, state, tie, is_kept) in [
            ("Widget/n/x", "installed", "object", true),
            ("edge/Widget/n/x", "removing", "object", true),
            ("edge/Widget/x", "pending", "object", true),
            ("Widget/n/x", "removed", "object", false),
            ("Widget/n/x", "pending", "", false),
            ("Gadget/n/x", "installed", "object", false),
            ("n/x.yaml", "pending", "", false),
        ] {
            let mut component = json!({"name": name, "state": state});
            if !tie.is_empty() {
                component["tie"] = json!(tie);
            }
            let index = PlaceIndex::default();
            let kept = to_watch(&index, &[status(&component)], &marked);
            assert_eq!(kept.contains(&widget), is_kept, "{name} {state}");
            assert!(kept.contains(&GroupKind::DEPLOYMENT));
        }
        assert_eq!(to_watch(&PlaceIndex::default(), &[], &marked), BTreeSet::new());
    }

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
