//! What is remembered of automations from one run to the next, beyond their status.

use std::collections::{BTreeMap, HashMap};

use kube::ResourceExt;
use parking_lot::Mutex;
use tagboat_api::{ImageUpdateAutomation, RECONCILE_REQUEST_ANNOTATION};

use super::trigger::{settings, source_of};
use crate::objects::cluster::ClusterObjects;
use crate::objects::{Event, ObjectName};

/// What a run was asked to do. Anything else than in the last run that succeeded has to be looked at, also where
/// neither a policy nor the remote has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look {
    uid: Option<String>,
    generation: Option<i64>,
    settings: BTreeMap<String, String>,
    request: Option<String>,
    source: Option<(Option<String>, Option<i64>)>,
}

impl Look {
    /// What an automation and its source ask for as they stand.
    pub(super) fn of(automation: &ImageUpdateAutomation, objects: &ClusterObjects) -> Self {
        let source = objects.git_repositories.get(&source_of(automation));
        Self {
            uid: automation.uid(),
            generation: automation.metadata.generation,
            settings: settings(automation),
            request: automation.annotations().get(RECONCILE_REQUEST_ANNOTATION).cloned(),
            source: source.map(|source| (source.uid(), source.metadata.generation)),
        }
    }
}

/// What is remembered. It is lost with the process, which costs each automation one look at its files.
#[derive(Debug, Default)]
pub(super) struct Memory {
    entries: Mutex<HashMap<ObjectName, Entry>>,
}

#[derive(Debug, Default)]
struct Entry {
    look: Option<Look>,
    /// A digest of the event.
    told: Option<[u8; 32]>,
}

impl Memory {
    /// Whether an automation is asked for something else than in its last run that succeeded.
    pub(super) fn has_changed(&self, name: &ObjectName, look: &Look) -> bool {
        self.entries.lock().get(name).is_none_or(|entry| entry.look.as_ref() != Some(look))
    }

    /// Takes note of a run that succeeded.
    pub(super) fn looked(&self, name: &ObjectName, look: Look) {
        self.entries.lock().entry(name.clone()).or_default().look = Some(look);
    }

    /// Whether an event was announced by a run whose status could not be written.
    pub(super) fn has_told(&self, name: &ObjectName, event: &Event) -> bool {
        self.entries.lock().get(name).is_some_and(|entry| entry.told == Some(event.digest()))
    }

    /// Takes note of an event, until the status has what it says.
    pub(super) fn told(&self, name: &ObjectName, event: &Event) {
        self.entries.lock().entry(name.clone()).or_default().told = Some(event.digest());
    }

    /// Takes note that the status has what was announced.
    pub(super) fn forget_told(&self, name: &ObjectName) {
        if let Some(entry) = self.entries.lock().get_mut(name) {
            entry.told = None;
        }
    }

    /// Forgets an automation.
    pub(super) fn forget(&self, name: &ObjectName) {
        self.entries.lock().remove(name);
    }
}
