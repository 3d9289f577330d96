//! One watched cluster: the objects that its watches report, and the kinds that are watched.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use parking_lot::{Mutex, RwLockReadGuard};
use tokio::sync::Notify;

use super::long_lock::{LongLock, off_the_workers};
use super::pods::PodLists;
use crate::objects::cluster::{ApiGuard, ListLimiter};
use crate::objects::remote_clusters::Answers;
use crate::rollout::index::{ClusterIndex, Unlisted};
use crate::rollout::watched::{GroupKind, WatchedId, WatchedObject};
use crate::tenancy::run_blocking;

/// The number of objects that go into the index at once.
const CHUNK: usize = 256;

/// The access to the API server of a cluster.
#[derive(Clone)]
pub(super) struct Connection {
    /// The name of its kubeconfig; none for Tagboat's own cluster.
    pub(super) cluster: Option<String>,
    pub(super) client: Client,
    pub(super) guard: ApiGuard,
    /// The answers of another cluster to probes.
    pub(super) answers: Option<Answers>,
    /// The only namespace that is watched; `None`: all.
    pub(super) namespace: Option<String>,
}

impl Connection {
    /// Returns the requests for a kind in the watched namespaces.
    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }
}

/// The state of the watch of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchState {
    /// Its objects are not listed yet.
    Starting,
    /// Its first list takes long, or was refused once.
    ///
    /// Components stay as they are until it arrives, and nothing waits for it.
    Delayed,
    /// All of its objects are in the index.
    Listed,
    /// It is not served, or the role does not permit it.
    Skipped,
}

impl WatchState {
    /// Returns the reason why the objects of the kind are not known.
    fn unlisted(self) -> Option<Unlisted> {
        match self {
            Self::Starting | Self::Delayed => Some(Unlisted::Expected),
            Self::Listed => None,
            Self::Skipped => Some(Unlisted::Skipped),
        }
    }
}

/// A watched cluster.
///
/// `on_change` gets each object that is new, changed or gone, in its old and in its new state.
pub(super) struct WatchedCluster {
    pub(super) connection: Connection,
    pub(super) pods: PodLists,
    index: LongLock<ClusterIndex>,
    /// Changed objects that are not in the index yet; none for one that is gone.
    pending: Mutex<BTreeMap<WatchedId, Option<WatchedObject>>>,
    /// Woken when an object is pending.
    added: Notify,
    kinds: Mutex<BTreeMap<GroupKind, WatchState>>,
    /// True once the limit of objects was logged.
    is_full: AtomicBool,
    on_change: OnChange,
}

/// Handles a change of an object of a cluster.
type OnChange = Box<dyn Fn(&WatchedCluster, &WatchedObject) + Send + Sync>;

impl WatchedCluster {
    pub(super) fn new(
        connection: Connection,
        limiter: ListLimiter,
        on_change: impl Fn(&Self, &WatchedObject) + Send + Sync + 'static,
    ) -> Self {
        Self {
            connection,
            pods: PodLists::new(limiter),
            index: LongLock::default(),
            pending: Mutex::default(),
            added: Notify::new(),
            kinds: Mutex::default(),
            is_full: AtomicBool::new(false),
            on_change: Box::new(on_change),
        }
    }

    /// Returns the objects, which do not change as long as the guard exists.
    ///
    /// It can take long, and blocks the thread.
    pub(super) fn index(&self) -> RwLockReadGuard<'_, ClusterIndex> {
        self.index.read()
    }

    /// Returns true if all objects are known to which any place can lead.
    pub(super) fn is_listed(&self) -> bool {
        let kinds = self.kinds.lock();
        GroupKind::of_any_place()
            .all(|kind| kinds.get(&kind).is_some_and(|state| *state != WatchState::Starting))
    }

    /// Returns true if the objects of a kind are still to be listed.
    pub(super) fn is_starting(&self, kind: &GroupKind) -> bool {
        self.kinds.lock().get(kind) == Some(&WatchState::Starting)
    }

    /// Returns true if a kind was not listed yet, also before its watch begins.
    ///
    /// `watched` has the kinds that are watched in all clusters.
    pub(super) fn is_awaited(&self, kind: &GroupKind, watched: &BTreeSet<GroupKind>) -> bool {
        match self.kinds.lock().get(kind) {
            Some(state) => *state == WatchState::Starting,
            None => watched.contains(kind),
        }
    }

    /// Sets the state of the watch of a kind, and returns the state before.
    pub(super) fn set_state(&self, kind: &GroupKind, state: WatchState) -> Option<WatchState> {
        self.index.write().set_unlisted(kind, state.unlisted());
        self.kinds.lock().insert(kind.clone(), state)
    }

    /// Adds or replaces an object soon, unless it is known in this version.
    pub(super) fn insert(&self, id: WatchedId, object: WatchedObject) {
        self.pending.lock().insert(id, Some(object));
        self.added.notify_one();
    }

    /// Removes an object soon.
    pub(super) fn remove(&self, id: &WatchedId) {
        self.pending.lock().insert(id.clone(), None);
        self.added.notify_one();
    }

    /// Puts changed objects into the index, until dropped.
    ///
    /// A computation may hold the index, and the policies that an object concerns may take long to find. So this is
    /// done on a blocking thread.
    pub(super) async fn keep_index(self: &Arc<Self>) {
        loop {
            self.added.notified().await;
            let own = self.clone();
            run_blocking(move || own.apply()).await;
        }
    }

    /// Puts all pending objects into the index.
    fn apply(&self) {
        loop {
            let mut index = self.index.write();
            let mut pending = self.pending.lock();
            let taken: Vec<_> = (0..CHUNK).map_while(|_| pending.pop_first()).collect();
            drop(pending);
            if taken.is_empty() {
                return;
            }
            let changes: Vec<Changed> =
                taken.into_iter().filter_map(|(id, object)| self.apply_to(&mut index, id, object)).collect();
            drop(index);
            changes.into_iter().for_each(|changed| self.tell(changed));
        }
    }

    /// Puts an object into the index, or removes it.
    fn apply_to(
        &self,
        index: &mut ClusterIndex,
        id: WatchedId,
        object: Option<WatchedObject>,
    ) -> Option<Changed> {
        let Some(object) = object else {
            return Some(Changed { old: vec![index.remove(&id)?], new: None });
        };
        let version = |object: &WatchedObject| object.metadata().resource_version.clone();
        if index.get(&id).is_some_and(|known| version(known) == version(&object)) {
            return None;
        }
        let old = index.insert(object);
        if index.is_incomplete() && !self.is_full.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                cluster = self.connection.cluster,
                "the cluster has too many or too large objects of the watched kinds; some of the namespace with \
                 most are ignored"
            );
        }
        Some(Changed { old, new: Some(id) })
    }

    fn tell(&self, Changed { old, new }: Changed) {
        old.iter().for_each(|old| (self.on_change)(self, old));
        let new = new.and_then(|id| self.index().get(&id).cloned());
        new.iter().for_each(|new| (self.on_change)(self, new));
    }

    /// Removes the objects of a kind that a complete list does not have.
    ///
    /// After it, the index has all objects that were inserted before.
    pub(super) fn retain(&self, kind: &GroupKind, listed: &HashSet<WatchedId>) {
        off_the_workers(|| {
            self.apply();
            let gone = self.index.write().retain(kind, |id| listed.contains(id));
            self.tell(Changed { old: gone, new: None });
        });
    }

    /// Forgets all kinds, objects and pods, without a notice.
    pub(super) fn clear(&self) {
        self.pods.clear();
        self.kinds.lock().clear();
        let mut index = self.index.write();
        self.pending.lock().clear();
        *index = ClusterIndex::default();
    }

    /// Forgets a kind and its objects.
    pub(super) fn forget_kind(&self, kind: &GroupKind) {
        self.kinds.lock().remove(kind);
        self.retain(kind, &HashSet::new());
        self.index.write().forget_kind(kind);
    }
}

/// A change of the index.
struct Changed {
    /// The objects that it had, and does not have any more.
    old: Vec<WatchedObject>,
    /// The object that it has instead.
    new: Option<WatchedId>,
}
