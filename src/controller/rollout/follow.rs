//! Follows the scans of automations.
//!
//! It keeps the index of places up to date, and watches the kinds to which they lead.

use std::collections::BTreeSet;
use std::sync::Arc;

use tagboat_api::ObjectName;

use super::kinds;
use super::state::Rollouts;
use super::watches::Watches;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::rollout::index::PlaceIndex;
use crate::rollout::watched::GroupKind;
use crate::tenancy::run_blocking;

/// Follows the scans until dropped.
pub(super) async fn follow_places(rollouts: Arc<Rollouts>) {
    let own = rollouts.clone();
    // Before the last of the first lists, reconciles would end at once.
    let on_state = move || {
        if own.cluster.is_listed() {
            own.enqueue_all();
        }
    };
    let mut watches = Watches::new(rollouts.cluster.clone(), on_state);
    let mut change = Change::Objects;
    loop {
        let own = rollouts.clone();
        // It may wait for a computation.
        let work = move || {
            let Updated { concerned, kinds } = match change {
                Change::Places(changed) => update(&own, &changed),
                Change::Images(policies) => update_images(&own, &policies),
                Change::Objects => update(&own, &BTreeSet::new()),
            };
            // Before the watches: a kind of this set without a watch is one whose watch begins.
            own.kinds.send_if_modified(|known| std::mem::replace(known, kinds.clone()) != kinds);
            watches.set(&kinds);
            own.places.handled();
            (watches, concerned)
        };
        let (same, concerned) = run_blocking(work).await;
        watches = same;
        concerned.into_iter().for_each(|policy| rollouts.kind.enqueue(policy));
        change = tokio::select! {
            changed = rollouts.places.changed() => Change::Places(changed),
            policies = rollouts.changed_policies.changed() => Change::Images(policies),
            () = rollouts.objects_changed.notified() => Change::Objects,
        };
    }
}

/// A change that the index of places, or the set of watched kinds, depends on.
enum Change {
    /// New scans changed the places of these policies.
    Places(BTreeSet<ObjectName>),
    /// These policies may have selected images of other repositories.
    Images(BTreeSet<ObjectName>),
    /// There are more or fewer objects, or components of other kinds.
    Objects,
}

/// The effects of new scans.
struct Updated {
    /// The policies whose components may change.
    concerned: BTreeSet<ObjectName>,
    /// The kinds to watch.
    kinds: BTreeSet<GroupKind>,
}

/// Puts the places of changed policies into the index.
fn update(rollouts: &Rollouts, changed: &BTreeSet<ObjectName>) -> Updated {
    let before = rollouts.place_index.read().rivals(changed);
    let namespaces: BTreeSet<&String> = changed.iter().map(|policy| &policy.namespace).collect();
    namespaces.iter().for_each(|namespace| update_namespace(rollouts, namespace));
    for policy in changed {
        rollouts.set_repository(policy);
    }
    let index = rollouts.place_index.read();
    let mut concerned = index.rivals(changed);
    concerned.extend(before);
    updated(rollouts, &index, concerned, &namespaces)
}

/// Puts the image repositories of policies into the index.
///
/// If a policy has another one, its previous and its new rivals are concerned.
fn update_images(rollouts: &Rollouts, policies: &BTreeSet<ObjectName>) -> Updated {
    let mut concerned = BTreeSet::new();
    for policy in policies {
        let only = BTreeSet::from([policy.clone()]);
        let before = rollouts.place_index.read().rivals(&only);
        if rollouts.set_repository(policy) {
            concerned.extend(before);
            concerned.extend(rollouts.place_index.read().rivals(&only));
        }
    }
    let namespaces = policies.iter().map(|policy| &policy.namespace).collect();
    let index = rollouts.place_index.read();
    updated(rollouts, &index, concerned, &namespaces)
}

/// Returns the effects of a change in some namespaces.
fn updated(
    rollouts: &Rollouts,
    index: &PlaceIndex,
    mut concerned: BTreeSet<ObjectName>,
    namespaces: &BTreeSet<&String>,
) -> Updated {
    let is_separate = rollouts.options.cross_namespace == CrossNamespace::Forbidden;
    concerned.retain(|policy| !is_separate || namespaces.contains(&policy.namespace));
    let objects = rollouts.kind.cache.all().into_iter();
    let objects: Vec<_> = objects.map(|object| rollouts.own_statuses.of_known(object)).collect();
    let kinds = kinds::to_watch(index, &objects, &rollouts.kinds.borrow());
    Updated { concerned, kinds }
}

/// Puts the last scans of a namespace's automations into the index.
fn update_namespace(rollouts: &Rollouts, namespace: &str) {
    let automations = rollouts.automations.in_namespace(namespace);
    let mut index = rollouts.place_index.write();
    for automation in automations {
        let automation = ObjectName::of(automation.as_ref());
        let Some(scan) = rollouts.places.of_automation(&automation) else { continue };
        if index.scan(&automation).is_none_or(|indexed| !Arc::ptr_eq(indexed, &scan)) {
            index.insert_scan(scan);
        }
    }
    for automation in index.automations_in(namespace) {
        if !rollouts.places.is_known(&automation) {
            index.remove_scan(&automation);
        }
    }
}
