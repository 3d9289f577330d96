//! The clusters with a kubeconfig, which others probe.

use std::collections::BTreeSet;

use super::Stores;
use super::clusters::ClusterState;
use crate::objects::remote_clusters::RemoteClusters;

/// Records the clusters with a kubeconfig, and whether they answer, until dropped.
pub async fn follow_remote_clusters(remote: RemoteClusters, stores: Stores) {
    let mut changes = remote.subscribe();
    let mut recorded: BTreeSet<String> = BTreeSet::new();
    loop {
        let known = changes.borrow_and_update().clone();
        recorded.retain(|name| {
            known.contains_key(name.as_str()) || {
                stores.clusters.remove(name);
                false
            }
        });
        for (name, cluster) in &known {
            stores.set_cluster(name, ClusterState::from(cluster.down_since()));
            recorded.insert(name.clone());
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}
