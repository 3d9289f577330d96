//! The state of automations between reconciles, beyond their status.

use std::collections::{BTreeMap, HashMap};

use kube::ResourceExt;
use parking_lot::Mutex;
use tagboat_api::ImageUpdateAutomation;
use tagboat_api::settings::own_annotations;

use crate::controller::engine::predicates::request;
use crate::objects::cluster::ClusterObjects;
use crate::objects::{Event, ObjectName};
use crate::secrets::Fingerprint;

/// The inputs of a reconcile.
///
/// If they differ from those of the last one that succeeded, the files are read even if neither a policy nor
/// the remote has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObservedInputs {
    uid: Option<String>,
    generation: Option<i64>,
    settings: BTreeMap<String, String>,
    request: Option<String>,
    source: Option<(Option<String>, Option<i64>)>,
}

impl ObservedInputs {
    /// The inputs of an automation and its source at present.
    pub(super) fn of(automation: &ImageUpdateAutomation, objects: &ClusterObjects) -> Self {
        let source = objects.git_repositories.get(&automation.git_repository());
        let settings = own_annotations(automation.annotations());
        Self {
            uid: automation.uid(),
            generation: automation.metadata.generation,
            settings: settings.map(|(name, value)| (name.clone(), value.clone())).collect(),
            request: request(automation).cloned(),
            source: source.map(|source| (source.uid(), source.metadata.generation)),
        }
    }
}

/// The state of automations between reconciles.
///
/// If it is lost with the process, each automation reads its files once more.
#[derive(Debug, Default)]
pub(super) struct Memory {
    entries: Mutex<HashMap<ObjectName, Entry>>,
}

#[derive(Debug, Default)]
struct Entry {
    inputs: Option<ObservedInputs>,
    /// The event that was announced.
    announced: Option<Fingerprint>,
}

impl Memory {
    /// Returns whether the inputs of an automation have changed since its last reconcile that succeeded.
    pub(super) fn has_changed(&self, name: &ObjectName, inputs: &ObservedInputs) -> bool {
        self.entries.lock().get(name).is_none_or(|entry| entry.inputs.as_ref() != Some(inputs))
    }

    /// Keeps the inputs of a reconcile that succeeded.
    pub(super) fn succeeded(&self, name: &ObjectName, inputs: ObservedInputs) {
        self.entries.lock().entry(name.clone()).or_default().inputs = Some(inputs);
    }

    /// Returns whether an event was announced by a reconcile whose status could not be written.
    pub(super) fn has_announced(&self, name: &ObjectName, event: &Event) -> bool {
        self.entries.lock().get(name).is_some_and(|entry| entry.announced == Some(event.fingerprint()))
    }

    /// Keeps an event that was announced, until the status is written.
    pub(super) fn announced(&self, name: &ObjectName, event: &Event) {
        self.entries.lock().entry(name.clone()).or_default().announced = Some(event.fingerprint());
    }

    /// Forgets the event that was announced, once the status is written.
    pub(super) fn forget_announced(&self, name: &ObjectName) {
        if let Some(entry) = self.entries.lock().get_mut(name) {
            entry.announced = None;
        }
    }

    /// Forgets a deleted automation.
    pub(super) fn forget(&self, name: &ObjectName) {
        self.entries.lock().remove(name);
    }
}
