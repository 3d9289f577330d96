//! The clusters, and whether they answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::RwLock;

use crate::rollout::outage::Outage;

/// The name of the own cluster if it has no other.
///
/// Argo CD has the same name for it.
pub const UNNAMED: &str = "in-cluster";

/// The clusters that are observed. Clones share them.
#[derive(Clone, Debug)]
pub struct Clusters {
    own_name: Arc<str>,
    is_named: bool,
    states: Arc<RwLock<BTreeMap<String, ClusterState>>>,
}

/// The availability of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterState {
    /// It answers.
    Up,
    /// It has not answered since this time.
    Down(Timestamp),
}

/// Converts the time since which a cluster is down.
impl From<Option<Timestamp>> for ClusterState {
    fn from(down_since: Option<Timestamp>) -> Self {
        down_since.map_or(Self::Up, Self::Down)
    }
}

impl Clusters {
    /// Creates a list with the own cluster; an empty name counts as none.
    #[must_use]
    pub fn new(own_name: &str) -> Self {
        let is_named = !own_name.is_empty();
        let name = if is_named { own_name } else { UNNAMED };
        let states = BTreeMap::from([(name.to_owned(), ClusterState::Up)]);
        Self { own_name: name.into(), is_named, states: Arc::new(RwLock::new(states)) }
    }

    /// Returns the name of the own cluster.
    #[must_use]
    pub fn own_name(&self) -> &str {
        &self.own_name
    }

    /// Returns the name that the user gave to the own cluster.
    #[must_use]
    pub fn given_name(&self) -> Option<&str> {
        self.is_named.then_some(&*self.own_name)
    }

    /// Sets the state of a cluster, and returns true if it differs.
    ///
    /// A new cluster is added.
    pub fn set(&self, name: &str, state: ClusterState) -> bool {
        self.states.write().insert(name.to_owned(), state) != Some(state)
    }

    /// Removes a cluster that is observed no longer.
    pub fn remove(&self, name: &str) {
        self.states.write().remove(name);
    }

    /// Returns all clusters, sorted by name.
    #[must_use]
    pub fn all(&self) -> Vec<(String, ClusterState)> {
        self.states.read().iter().map(|(name, state)| (name.clone(), *state)).collect()
    }

    /// Returns the outage of the own cluster, if it does not answer.
    #[must_use]
    pub fn own_outage(&self) -> Option<Outage> {
        match self.states.read().get(&*self.own_name) {
            Some(ClusterState::Down(since)) => {
                Some(Outage { cluster: self.own_name.to_string(), since: *since })
            }
            _ => None,
        }
    }
}
