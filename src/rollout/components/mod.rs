//! The components of a policy: places, objects and the previous status → states.
//!
//! An object that is tied to a place is a component, and so is a place without an object. Several places of an object
//! make one component: the one that lacks its image decides.
//!
//! | file | contents |
//! |---|---|
//! | `inputs` | the observation from which components are computed, and the result |
//! | `context` | the facts about the policy that all components share |
//! | `live` | the component of an object |
//! | `found_images` | the image of an object: is it the wanted one? |
//! | `progress` | the progress of an object that has the wanted image |
//! | `chain` | the appliers of an object: the reason why the image is not there |
//! | `missing` | the component of a place without an object |
//! | `unmatched` | the component of places that are too many |
//! | `unscanned` | the places of automations that were not scanned in this process |
//! | `carried` | the components whose objects are not known now |
//! | `gone` | components whose file was removed from git |

mod carried;
mod chain;
mod context;
#[cfg(test)]
mod differences;
mod found_images;
#[cfg(test)]
mod golden;
mod gone;
mod inputs;
mod live;
mod missing;
mod progress;
#[cfg(test)]
pub(in crate::rollout) mod testing;
#[cfg(test)]
mod tests;
mod unmatched;
mod unscanned;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use context::Context;

use crate::rollout::aggregate::Component;

pub use crate::rollout::index::{Cluster, Contact};
pub use inputs::{Components, Inputs, PodRequest};

/// Returns the components of a policy.
#[must_use]
pub fn components(inputs: &Inputs<'_>) -> Components {
    let context = Context::new(inputs);
    let unscanned = unscanned::places(&context);
    let mut ties = context.ties();
    unscanned::add(&unscanned, &mut ties);

    let mut result = Components::default();
    let mut found: BTreeMap<String, Component> = BTreeMap::new();
    for component in carried::components(&context) {
        found.insert(component.status.name.clone(), component);
    }
    let carried: Vec<Component> = found.values().cloned().collect();
    result.error = carried::error(&context, &carried);
    let mut live: BTreeMap<String, Component> = BTreeMap::new();
    for (object, places) in &ties.objects {
        if inputs.stop.is_requested() {
            break;
        }
        let (component, pods) = live::component(&context, object.cluster, &object.id, places);
        result.pods_wanted.extend(pods);
        // A name has no group, so objects of two groups can have the same one.
        add_worse(&mut live, component);
    }
    found.append(&mut live);
    let mut missing: BTreeMap<String, Component> = BTreeMap::new();
    for (scan, place) in &ties.missing {
        if !carried::has_place(&carried, scan, place) {
            add_worse(&mut missing, missing::component(&context, scan, place));
        }
    }
    for (name, component) in missing {
        found.entry(name).or_insert(component);
    }
    if let Some(unmatched) = &ties.unmatched {
        let component = unmatched::component(&context, unmatched);
        found.insert(component.status.name.clone(), component);
    }
    // No place tells that a change of their objects concerns the policy.
    let next_look = inputs.now.saturating_add(gone::NEXT_LOOK).ok().filter(|_| !unscanned.is_empty());
    next_look.into_iter().for_each(|time| result.check_at(time));
    let with_object = unscanned::locations(&unscanned);
    for (component, check) in gone::components(&context) {
        if component.status.tie.is_none() && unscanned::has_object(&with_object, &component.status) {
            continue;
        }
        if let Entry::Vacant(entry) = found.entry(component.status.name.clone()) {
            entry.insert(component);
            result.check_at(check);
        }
    }
    result.components = found.into_values().collect();
    result
}

/// Adds a component, unless one of its name is at least as severe.
fn add_worse(found: &mut BTreeMap<String, Component>, component: Component) {
    match found.entry(component.status.name.clone()) {
        Entry::Vacant(entry) => {
            entry.insert(component);
        }
        Entry::Occupied(mut entry) => {
            let rank = |component: &Component| component.status.state.severity_rank();
            if rank(&component) < rank(entry.get()) {
                entry.insert(component);
            }
        }
    }
}
