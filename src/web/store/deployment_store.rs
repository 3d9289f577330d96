//! The deployments as last observed, by name and by id.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use kube::ResourceExt;
use parking_lot::RwLock;
use tagboat_api::DeploymentStatus;

use super::changes::{Changes, StatusChange};
use super::observe::Observed;
use crate::objects::ObjectName;
use crate::objects::cluster::{Cache, Change};

/// The deployments as last observed. Clones share them.
#[derive(Clone, Default)]
pub struct DeploymentStore {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    cache: Cache<DeploymentStatus>,
    /// The objects by the id of their deployment.
    ids: RwLock<HashMap<String, ObjectName>>,
    changes: Changes,
    knowledge: RwLock<Knowledge>,
}

/// The state of the list of deployments.
#[derive(Debug, Default)]
enum Knowledge {
    /// They have not been listed yet.
    #[default]
    NotYet,
    /// They cannot be listed, with the reason.
    No(String),
    /// They have been listed.
    Yes,
}

/// The deployments of the cluster are not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// They have not been listed yet.
    #[error("the deployments have not been listed yet")]
    NotYet,
    /// They cannot be listed.
    #[error("the deployments cannot be listed: {reason}")]
    Unlisted {
        /// The reason.
        reason: String,
    },
}

impl DeploymentStore {
    /// Returns the last changes.
    pub fn changes(&self) -> &Changes {
        &self.shared.changes
    }

    /// Records that the objects cannot be listed.
    pub fn set_unlisted(&self, reason: impl Into<String>) {
        *self.shared.knowledge.write() = Knowledge::No(reason.into());
    }

    /// Returns all objects that have a status, sorted by name.
    ///
    /// # Errors
    ///
    /// If the objects are not known.
    pub fn all(&self) -> Result<Vec<Arc<DeploymentStatus>>, Unknown> {
        self.check()?;
        let mut all = self.shared.cache.all();
        all.retain(|object| object.status.is_some());
        Ok(all)
    }

    /// Returns an object, if it exists and has a status.
    ///
    /// # Errors
    ///
    /// If the objects are not known.
    pub fn get(&self, name: &ObjectName) -> Result<Option<Arc<DeploymentStatus>>, Unknown> {
        self.check()?;
        Ok(self.shared.cache.get(name).filter(|object| object.status.is_some()))
    }

    fn check(&self) -> Result<(), Unknown> {
        match &*self.shared.knowledge.read() {
            Knowledge::Yes => Ok(()),
            Knowledge::NotYet => Err(Unknown::NotYet),
            Knowledge::No(reason) => Err(Unknown::Unlisted { reason: reason.clone() }),
        }
    }

    /// Returns the name of the object of a deployment.
    ///
    /// # Errors
    ///
    /// If the objects are not known.
    pub fn name_of(&self, deployment_id: &str) -> Result<Option<ObjectName>, Unknown> {
        self.check()?;
        Ok(self.shared.ids.read().get(deployment_id).cloned())
    }
}

impl Observed<DeploymentStatus> for DeploymentStore {
    fn cache(&self) -> &Cache<DeploymentStatus> {
        &self.shared.cache
    }

    /// Records a change of an object.
    ///
    /// Lookups by id and the clients that follow changes depend on it.
    fn record(&self, change: &Change<DeploymentStatus>) {
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        let mut ids = self.shared.ids.write();
        if let Some(id) = old.and_then(id)
            && ids.get(id) == Some(&change.name)
        {
            ids.remove(id);
        }
        if let Some(id) = new.and_then(id) {
            ids.insert(id.to_owned(), change.name.clone());
        }
        drop(ids);
        let what = match (old.filter(|old| old.status.is_some()), new.filter(|new| new.status.is_some())) {
            (old, Some(new)) if old.is_none_or(|old| differs(old, new)) => StatusChange::changed(new),
            (Some(old), None) => StatusChange::deleted(old),
            _ => return,
        };
        if let Some(what) = what {
            self.shared.changes.add(what);
        }
    }

    /// Records that all objects have been listed.
    ///
    /// If they were not known before, every deployment may have changed.
    fn set_known(&self) {
        let before = mem::replace(&mut *self.shared.knowledge.write(), Knowledge::Yes);
        if !matches!(before, Knowledge::Yes) {
            self.shared.changes.reset();
        }
    }
}

fn id(object: &DeploymentStatus) -> Option<&str> {
    Some(object.status.as_ref()?.deployment_id.as_str())
}

/// Returns true if the documents of two states differ.
fn differs(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    old.status != new.status || old.labels() != new.labels()
}
