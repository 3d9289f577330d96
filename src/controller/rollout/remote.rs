//! The watches of clusters with a kubeconfig.
//!
//! Each cluster has its own client, slots, watches and index. A cluster that does not answer has none of them until it
//! answers again, because a watch may not notice that its connection is dead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use tagboat_api::ObjectName;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::cluster::{Connection, WatchedCluster};
use super::state::Rollouts;
use super::watches::Watches;
use crate::objects::cluster::ApiGuard;
use crate::objects::remote_clusters::{RemoteCluster, RemoteClusters};
use crate::rollout::watched::WatchedObject;

/// A cluster with a kubeconfig.
#[derive(Clone)]
pub(super) enum Remote {
    /// It is watched.
    Watched(Arc<WatchedCluster>),
    /// It does not answer, or its kubeconfig cannot be used for this reason.
    Lost(Option<String>),
}

impl Remote {
    /// Returns the cluster if it is watched.
    pub(super) fn watched(&self) -> Option<&Arc<WatchedCluster>> {
        match self {
            Self::Watched(cluster) => Some(cluster),
            Self::Lost(_) => None,
        }
    }

    /// Returns the reason why the kubeconfig cannot be used.
    pub(super) fn problem(&self) -> Option<&str> {
        match self {
            Self::Watched(_) | Self::Lost(None) => None,
            Self::Lost(Some(problem)) => Some(problem),
        }
    }
}

/// The watches of all clusters with a kubeconfig, which end when this is dropped.
pub(super) struct RemoteWatches {
    rollouts: Arc<Rollouts>,
    changes: Option<watch::Receiver<BTreeMap<String, RemoteCluster>>>,
    /// The clusters, as they were when their watches began.
    followed: BTreeMap<String, Followed>,
    tasks: JoinSet<()>,
}

struct Followed {
    cluster: RemoteCluster,
    /// The watches; none while the cluster does not answer.
    watches: Option<AbortHandle>,
}

impl Followed {
    /// Returns true if the watches of a cluster do not depend on what changed.
    fn is_current(&self, known: &RemoteCluster) -> bool {
        let is_down = |cluster: &RemoteCluster| cluster.down_since().is_some();
        self.cluster.has_same_kubeconfig(known) && is_down(&self.cluster) == is_down(known)
    }
}

impl RemoteWatches {
    /// Begins to watch the known clusters.
    ///
    /// Before that, no status may be computed: it would lose the components of other clusters.
    pub(super) fn new(rollouts: Arc<Rollouts>) -> Self {
        let changes = rollouts.options.remote.as_ref().map(RemoteClusters::subscribe);
        let mut watches = Self { rollouts, changes, followed: BTreeMap::new(), tasks: JoinSet::new() };
        watches.update();
        watches
    }

    /// Follows the clusters until dropped.
    pub(super) async fn run(&mut self) {
        while let Some(changes) = &mut self.changes {
            if changes.changed().await.is_err() {
                break;
            }
            if self.update() && self.rollouts.cluster.is_listed() {
                self.rollouts.enqueue_all();
            }
        }
        std::future::pending::<()>().await;
    }

    /// Watches exactly the clusters that answer, and returns true if these have changed.
    fn update(&mut self) -> bool {
        while self.tasks.try_join_next().is_some() {}
        let Some(changes) = &mut self.changes else { return false };
        let known = changes.borrow_and_update().clone();
        let mut next = self.rollouts.remote.read().clone();
        let mut has_changed = false;
        self.followed.retain(|name, followed| {
            let is_kept = known.get(name).is_some_and(|cluster| followed.is_current(cluster));
            if !is_kept {
                followed.watches.iter().for_each(AbortHandle::abort);
                next.remove(name);
                has_changed = true;
            }
            is_kept
        });
        for (name, cluster) in known {
            if self.followed.contains_key(&name) {
                continue;
            }
            has_changed = true;
            let (remote, watches) = self.follow(&name, &cluster);
            next.insert(name.clone(), remote);
            self.followed.insert(name, Followed { cluster, watches });
        }
        // All at once: a cluster that is not in the map for a moment would lose its components.
        *self.rollouts.remote.write() = next;
        has_changed
    }

    /// Begins to watch a cluster, unless it is down.
    fn follow(&mut self, name: &str, cluster: &RemoteCluster) -> (Remote, Option<AbortHandle>) {
        let client = match cluster.client() {
            Ok(client) => client.clone(),
            Err(problem) => return (Remote::Lost(Some(problem.to_owned())), None),
        };
        if cluster.down_since().is_some() {
            return (Remote::Lost(None), None);
        }
        let connection = Connection {
            cluster: Some(name.to_owned()),
            client,
            guard: ApiGuard::default(),
            answers: Some(cluster.answers().clone()),
            namespace: self.rollouts.options.namespace.clone(),
        };
        let own: Weak<Rollouts> = Arc::downgrade(&self.rollouts);
        let on_change = move |cluster: &WatchedCluster, object: &WatchedObject| {
            // Before the end of its lists, no status depends on its objects.
            let rollouts = own.upgrade().filter(|_| cluster.is_listed());
            rollouts.iter().for_each(|rollouts| rollouts.object_changed(cluster, object));
        };
        let limiter = self.rollouts.list_limiter.clone();
        let watched = Arc::new(WatchedCluster::new(connection, limiter, on_change));
        let task = self.tasks.spawn(watch_cluster(self.rollouts.clone(), watched.clone()));
        (Remote::Watched(watched), Some(task))
    }
}

/// Watches a cluster, and lists its pods, until dropped.
async fn watch_cluster(rollouts: Arc<Rollouts>, cluster: Arc<WatchedCluster>) {
    let (own, watched) = (rollouts.clone(), cluster.clone());
    let on_state = move || {
        if watched.is_listed() && own.cluster.is_listed() {
            own.enqueue_all();
        }
    };
    let mut watches = Watches::new(cluster.clone(), on_state);
    let mut kinds = rollouts.kinds.subscribe();
    let follow = async {
        loop {
            watches.set(&kinds.borrow_and_update().clone());
            if kinds.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    let listed = |policies: BTreeSet<ObjectName>| {
        policies.into_iter().for_each(|policy| rollouts.kind.enqueue(policy));
    };
    tokio::join!(follow, cluster.keep_index(), cluster.pods.run(&cluster.connection, listed));
}
