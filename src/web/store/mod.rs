//! Deployments, node pools and clusters as last observed.
//!
//! | module | contents |
//! |---|---|
//! | `deployment_store` | the deployments, by name and by id |
//! | `node_store` | the node pools with their nodes |
//! | `changes` | the last changes, for clients that follow them |
//! | `clusters` | the clusters, and whether they answer |
//! | `observe` | the watches that fill the stores |
//! | `probe` | requests that find out whether the own cluster answers |
//! | `remote` | the clusters with a kubeconfig, which others probe |
//! | `snapshot` | the deployments at one moment, as a request sees them |
//!
//! The stores separate observation from requests: the server reads them, and the watches and probes write them.

mod changes;
mod clusters;
mod deployment_store;
mod node_store;
mod observe;
mod probe;
mod remote;
mod snapshot;

pub use changes::{ChangeId, Changes, Missed, RecordedChange, StatusChange, Subscription};
pub use clusters::{ClusterState, Clusters, UNNAMED};
pub use deployment_store::{DeploymentStore, Unknown};
pub use node_store::{NodeStore, UnknownPools, pool_version, pool_versions};
pub use observe::{Missing, Observed, observe, observe_nodes};
pub use probe::probe;
pub use remote::follow_remote_clusters;
pub use snapshot::Snapshot;

use crate::objects::ObjectName;

/// All that the status server shows. Clones share it.
#[derive(Clone)]
pub struct Stores {
    /// The deployments.
    pub deployments: DeploymentStore,
    /// The node pools.
    pub nodes: NodeStore,
    /// The clusters.
    pub clusters: Clusters,
}

impl Stores {
    /// Creates empty stores of a cluster; an empty name counts as none.
    #[must_use]
    pub fn new(cluster_name: &str) -> Self {
        let deployments = DeploymentStore::default();
        let nodes = NodeStore::new(deployments.changes().clone());
        Self { deployments, nodes, clusters: Clusters::new(cluster_name) }
    }

    /// Returns the deployments at this moment.
    ///
    /// # Errors
    ///
    /// If they are not known.
    pub fn snapshot(&self) -> Result<Snapshot, Unknown> {
        Ok(Snapshot::new(self.deployments.all()?, self.clusters.own_outage()))
    }

    /// Returns one deployment at this moment, if it exists.
    ///
    /// # Errors
    ///
    /// If the deployments are not known.
    pub fn snapshot_of(&self, name: &ObjectName) -> Result<Snapshot, Unknown> {
        let object = self.deployments.get(name)?;
        Ok(Snapshot::new(object.into_iter().collect(), self.clusters.own_outage()))
    }

    /// Records the state of a cluster.
    ///
    /// An outage of the own cluster, or its end, changes every deployment.
    pub fn set_cluster(&self, name: &str, state: ClusterState) {
        let is_own = name == self.clusters.own_name();
        if self.clusters.set(name, state) && is_own {
            self.deployments.changes().reset();
        }
    }
}
