//! The pools of the cluster with their nodes, kept up to date by watches.

use std::time::Duration;

use tagboat_api::NodePool;

use crate::cli::Failure;
use crate::cli::cluster::Connection;
use crate::cli::feed::{Feed, failure};
use crate::nodes::{NodeObject, PoolDocument, PoolView, keys};
use crate::objects::cluster::Scope;

/// The pools of the cluster, and the nodes in them.
pub(super) struct Fleet {
    pools: Feed<NodePool>,
    nodes: Feed<NodeObject>,
}

impl Fleet {
    /// Starts the watches and waits for the first listings.
    ///
    /// `wait` is a time for which errors that may pass are retried.
    ///
    /// # Errors
    ///
    /// If the objects cannot be listed, or not in time.
    pub(super) async fn start(connection: &Connection, wait: Option<Duration>) -> Result<Self, Failure> {
        let client = || connection.client.clone();
        // The controller labels each node of a pool, so other nodes are not read.
        let labeled = Scope { namespace: None, labels: Some(keys::STATE.to_owned()) };
        let (pools, nodes) = tokio::join!(
            Feed::start("NodePools", client(), Scope::default(), wait),
            Feed::start("Nodes", client(), labeled, wait),
        );
        let server = &connection.server;
        Ok(Self {
            pools: pools.map_err(|error| failure::<NodePool>("NodePools", &error, server))?,
            nodes: nodes.map_err(|error| failure::<NodeObject>("Nodes", &error, server))?,
        })
    }

    /// Returns the pool of a name, or all sorted by name, with the nodes.
    pub(super) fn documents(&self, pool: Option<&str>) -> Vec<PoolDocument> {
        let views = PoolView::all(self.pools.objects(), self.nodes.objects());
        let documents = views.iter().map(PoolView::document);
        documents.filter(|document| pool.is_none_or(|name| document.name == name)).collect()
    }

    /// Returns a sentence for each object that cannot be parsed.
    ///
    /// The pool of such a node is not known.
    pub(super) fn unreadable(&self, pool: Option<&str>) -> Vec<String> {
        let pools = self.pools.unreadable().filter(|(found, _)| pool.is_none_or(|name| found.name == name));
        let pools = pools.map(|(name, message)| format!("the NodePool {name} cannot be read: {message}"));
        let nodes = self.nodes.unreadable();
        let nodes = nodes.map(|(name, message)| format!("the Node {name} cannot be read: {message}"));
        pools.chain(nodes).collect()
    }

    /// Waits until something may have changed; no change is lost if the future is dropped.
    pub(super) async fn changed(&mut self) {
        tokio::select! {
            _ = self.pools.changes() => {}
            _ = self.nodes.changes() => {}
        }
    }
}
