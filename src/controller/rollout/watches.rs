//! The watches of one cluster: one for each kind that a place can lead to.
//!
//! A kind that is not served or not permitted is skipped, and tried again every five minutes. Objects that are known
//! are kept until the refusal is confirmed: an API server refuses requests in the first moments after its start.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::Api;
use kube::api::ListParams;
use kube::core::{ApiResource, NamespaceResourceScope, Resource};
use kube::discovery::{ApiGroup, Scope, oneshot};
use kube::runtime::watcher::Event;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use super::cluster::{WatchState, WatchedCluster};
use super::failures::Failures;
use crate::controller::engine::forbidden;
use crate::controller::engine::refusals::Refusals;
use crate::objects::cluster::{ClusterError, watch_events};
use crate::objects::remote_clusters::Answers;
use crate::rollout::objects::{
    Application, ArgoRollout, Canary, CronJob, DaemonSet, Deployment, GenericObject, GitRepository,
    HelmRelease, Job, Kustomization, StatefulSet,
};
use crate::rollout::watched::{GroupKind, WatchedId, WatchedObject};
use crate::tenancy::catch_panic;

/// The maximum time for which statuses wait for the first list of a kind.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);

/// The time after which discovery is tried again that has failed.
const DISCOVERY_RETRY: Duration = Duration::from_secs(5);

/// The watches of a cluster, which end when this is dropped.
pub(super) struct Watches {
    cluster: Arc<WatchedCluster>,
    /// Called when the state of a kind changes, on which statuses depend.
    on_state: Arc<dyn Fn() + Send + Sync>,
    running: BTreeMap<GroupKind, AbortHandle>,
    tasks: JoinSet<()>,
}

impl Watches {
    pub(super) fn new(cluster: Arc<WatchedCluster>, on_state: impl Fn() + Send + Sync + 'static) -> Self {
        Self { cluster, on_state: Arc::new(on_state), running: BTreeMap::new(), tasks: JoinSet::new() }
    }

    /// Watches exactly these kinds from now on.
    pub(super) fn set(&mut self, kinds: &BTreeSet<GroupKind>) {
        while self.tasks.try_join_next().is_some() {}
        self.running.retain(|kind, task| {
            let is_kept = kinds.contains(kind);
            if !is_kept {
                task.abort();
                self.cluster.forget_kind(kind);
            }
            is_kept
        });
        for kind in kinds.iter().filter(|kind| !self.running.contains_key(*kind)).cloned().collect::<Vec<_>>()
        {
            self.cluster.set_state(&kind, WatchState::Starting);
            let (cluster, on_state) = (self.cluster.clone(), self.on_state.clone());
            let watch = KindWatch {
                cluster,
                kind: kind.clone(),
                on_state,
                is_listed: AtomicBool::new(false),
                failures: Mutex::default(),
            };
            let task = self.tasks.spawn(async move { watch.keep_running().await });
            self.running.insert(kind, task);
        }
    }
}

/// The watch of one kind.
struct KindWatch {
    cluster: Arc<WatchedCluster>,
    kind: GroupKind,
    on_state: Arc<dyn Fn() + Send + Sync>,
    /// True once a list has arrived since the last refusal.
    is_listed: AtomicBool,
    failures: Mutex<Failures>,
}

impl KindWatch {
    /// Watches the kind until dropped, and begins anew after a panic.
    async fn keep_running(&self) {
        while let Err(panic) = catch_panic(self.run()).await {
            tracing::error!(
                cluster = self.cluster.connection.cluster,
                kind = self.kind.kind(),
                group = self.kind.group(),
                error = %panic,
                "watch ended, and begins again"
            );
            sleep(DISCOVERY_RETRY).await;
        }
    }

    /// Watches the kind whenever that is possible, until dropped.
    async fn run(&self) {
        tokio::join!(self.keep_watching(), self.end_waiting());
    }

    /// Watches the kind, and tries again after each refusal.
    async fn keep_watching(&self) {
        let (mut refusals, mut logged) = (Refusals::default(), None);
        loop {
            let obstacle = self.watch().await;
            // A refusal is an answer.
            self.failures.lock().end();
            if logged.as_ref() != Some(&obstacle) {
                tracing::info!(
                    cluster = self.cluster.connection.cluster,
                    kind = self.kind.kind(),
                    group = self.kind.group(),
                    "a kind is not watched: {obstacle}"
                );
                logged = Some(obstacle);
            }
            if self.is_listed.swap(false, Ordering::Relaxed) {
                refusals = Refusals::default();
            }
            let refusal = refusals.add();
            if refusal.is_confirmed {
                self.cluster.retain(&self.kind, &HashSet::new());
                self.set_state(WatchState::Skipped);
            } else if self.cluster.is_starting(&self.kind) {
                self.set_state(WatchState::Delayed);
            }
            sleep(refusal.pause).await;
        }
    }

    /// Ends the wait of statuses for the first list, if it takes long.
    async fn end_waiting(&self) {
        sleep(LIST_TIMEOUT / 2).await;
        let before = self.answers();
        sleep(LIST_TIMEOUT / 2).await;
        if self.cluster.is_starting(&self.kind) {
            // Otherwise the probe of the other cluster logs that it does not answer.
            let is_answering = before.is_none() || self.answers() > before;
            if is_answering && !self.failures.lock().are_logged() {
                tracing::warn!(
                    cluster = self.cluster.connection.cluster,
                    kind = self.kind.kind(),
                    "the first list takes long; components of this kind stay as they are until then"
                );
            }
            self.set_state(WatchState::Delayed);
        }
    }

    /// Returns the number of answers of another cluster to probes.
    fn answers(&self) -> Option<u64> {
        self.cluster.connection.answers.as_ref().map(Answers::count)
    }

    /// Handles a failure that may pass.
    fn failed(&self, error: &ClusterError) {
        let connection = &self.cluster.connection;
        if connection.cluster.is_some() && error.is_unauthorized() {
            self.wait_for_login();
        }
        let message = error.to_string();
        if self.failures.lock().add(&message, self.answers()) {
            tracing::error!(
                cluster = connection.cluster,
                kind = self.kind.kind(),
                group = self.kind.group(),
                error = message,
                "watch failed, retrying"
            );
        }
    }

    /// Handles the end of failures.
    fn succeeded(&self) {
        if self.failures.lock().end() {
            tracing::info!(
                cluster = self.cluster.connection.cluster,
                kind = self.kind.kind(),
                group = self.kind.group(),
                "watch recovered"
            );
        }
    }

    /// Ends the wait of statuses for the first list after a refused login.
    fn wait_for_login(&self) {
        if self.cluster.is_starting(&self.kind) {
            self.set_state(WatchState::Delayed);
        }
    }

    fn set_state(&self, state: WatchState) {
        if self.cluster.set_state(&self.kind, state) != Some(state) {
            (self.on_state)();
        }
    }

    /// Watches the kind until that is not possible, and returns the reason.
    async fn watch(&self) -> String {
        macro_rules! watch {
            ($($name:ident: $type:ident),* $(,)?) => {
                match &self.kind {
                    $(kind if *kind == GroupKind::$name => {
                        self.watch_known::<$type>(WatchedObject::$type).await
                    })*
                    _ => self.watch_other().await,
                }
            };
        }
        watch! {
            DEPLOYMENT: Deployment,
            STATEFUL_SET: StatefulSet,
            DAEMON_SET: DaemonSet,
            JOB: Job,
            CRON_JOB: CronJob,
            ARGO_ROLLOUT: ArgoRollout,
            CANARY: Canary,
            KUSTOMIZATION: Kustomization,
            HELM_RELEASE: HelmRelease,
            APPLICATION: Application,
            GIT_REPOSITORY: GitRepository,
        }
    }

    /// Watches a kind that has a type of its own.
    async fn watch_known<K>(&self, wrap: fn(Box<K>) -> WatchedObject) -> String
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + Sync
            + 'static,
    {
        let (api, resource) = (self.cluster.connection.api::<K>(), ApiResource::erase::<K>(&()));
        match self.obstacle(&api, &resource).await {
            Some(obstacle) => obstacle,
            None => self.follow(api, wrap).await,
        }
    }

    /// Watches any other kind, in the version that the API server recommends.
    async fn watch_other(&self) -> String {
        let connection = &self.cluster.connection;
        let found = match self.discover().await {
            Ok(group) => group.and_then(|group| group.recommended_kind(self.kind.kind())),
            Err(refusal) => return refusal,
        };
        let Some((resource, capabilities)) = found else {
            return format!("the API server does not serve {}", self.kind.kind());
        };
        let api: Api<GenericObject> = match (&connection.namespace, capabilities.scope) {
            (Some(namespace), Scope::Namespaced) => {
                Api::namespaced_with(connection.client.clone(), namespace, &resource)
            }
            _ => Api::all_with(connection.client.clone(), &resource),
        };
        match self.obstacle(&api, &resource).await {
            Some(obstacle) => obstacle,
            None => {
                let resource = Arc::new(resource);
                self.follow(api, |object| WatchedObject::Other(resource.clone(), object)).await
            }
        }
    }

    /// Returns the group of the kind, if the API server serves it.
    ///
    /// An outage of the API server, or of the one that it asks, is waited out; a refusal is an error.
    async fn discover(&self) -> Result<Option<ApiGroup>, String> {
        let connection = &self.cluster.connection;
        loop {
            let request = async {
                match oneshot::group(&connection.client, self.kind.group()).await {
                    Err(kube::Error::Discovery(_)) => Ok(None),
                    found => found.map(Some),
                }
            };
            match connection.guard.send("", request).await {
                Ok(group) => return Ok(group),
                Err(error) => match refusal(&error) {
                    Some(refusal) => return Err(refusal),
                    None => self.failed(&error),
                },
            }
            sleep(DISCOVERY_RETRY).await;
        }
    }

    /// Returns the reason for which the kind cannot be watched.
    ///
    /// The permissions are checked first, so that no request is refused.
    async fn obstacle<K: Clone + DeserializeOwned + Debug>(
        &self,
        api: &Api<K>,
        resource: &ApiResource,
    ) -> Option<String> {
        let connection = &self.cluster.connection;
        for verb in ["list", "watch"] {
            let missing =
                forbidden(&connection.client, connection.namespace.as_deref(), resource, verb, None);
            if let Some(missing) = missing.await {
                return Some(missing);
            }
        }
        let parameters = ListParams::default().limit(1);
        let error = connection.guard.send("", api.list_metadata(&parameters)).await.err()?;
        refusal(&error)
    }

    /// Puts the objects of the kind into the index until the API server refuses that.
    ///
    /// Returns the reason.
    async fn follow<K>(&self, api: Api<K>, wrap: impl Fn(Box<K>) -> WatchedObject) -> String
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let (cluster, kind) = (&self.cluster, &self.kind);
        let refused = watch::Sender::new(None);
        let mut listed: HashSet<WatchedId> = HashSet::new();
        let watching = watch_events(api, None, |event| match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => {
                let object = wrap(Box::new(object));
                let id = object.id();
                listed.insert(id.clone());
                cluster.insert(id, object);
            }
            Ok(Event::InitDone) => {
                cluster.retain(kind, &std::mem::take(&mut listed));
                self.is_listed.store(true, Ordering::Relaxed);
                self.set_state(WatchState::Listed);
                self.succeeded();
            }
            Ok(Event::Apply(object)) => {
                self.succeeded();
                let object = wrap(Box::new(object));
                cluster.insert(object.id(), object);
            }
            Ok(Event::Delete(object)) => {
                self.succeeded();
                cluster.remove(&wrap(Box::new(object)).id());
            }
            Err(error) => match refusal(&error) {
                Some(refusal) => drop(refused.send_replace(Some(refusal))),
                None => self.failed(&error),
            },
        });
        let mut refusals = refused.subscribe();
        tokio::select! {
            () = watching => String::new(),
            refusal = refusals.wait_for(Option::is_some) => {
                refusal.ok().and_then(|text| text.clone()).unwrap_or_default()
            }
        }
    }
}

/// Returns the message of an error that lasts; the others are those of an outage.
fn refusal(error: &ClusterError) -> Option<String> {
    if error.is_not_found() {
        Some("the API server does not serve it".to_owned())
    } else if error.is_forbidden() {
        Some(error.to_string())
    } else {
        None
    }
}
