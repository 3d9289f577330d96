//! What the watches of the three kinds set in motion.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::ObjectMeta;
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tagboat_api::settings::PolicySettings;
use tagboat_api::{FINALIZER, GitRepository, ImagePolicy, ImageUpdateAutomation};
use tokio::sync::watch::Receiver;
use tokio::task::AbortHandle;

use super::queue::{GATHERING, Signal};
use super::shared::Shared;
use super::trigger::{concerns_itself, concerns_policy, concerns_source};
use crate::backoff::Backoff;
use crate::objects::cluster::{
    Announcement, Announcer, Cache, Change, ClusterError, ObjectWriter, Observation, Occurrence, Scope,
    watch_objects,
};
use crate::objects::{Event, EventType, ObjectName};
use crate::printable::printable;

/// The maximum number of tries to remove our finalizer from an object that cannot be read.
const TRIES: u32 = 8;

/// The waits after these tries.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(128) };

/// How long the images of policies of a group are gathered.
const GATHERING_A_GROUP: Duration = Duration::from_millis(400);

/// The word for events about objects that cannot be read.
const UNREADABLE: &str = "InvalidObject";

/// Watches the automations.
pub(super) fn automations(shared: Arc<Shared>, scope: Scope) -> impl Future<Output = ()> {
    let cache = shared.objects.automations.clone();
    watch(shared, scope, cache, |shared, change| shared.automation_changed(&change))
}

/// Watches the policies, whatever labels the automations are to have.
pub(super) fn policies(shared: Arc<Shared>, scope: Scope) -> impl Future<Output = ()> {
    let cache = shared.objects.policies.clone();
    let scope = Scope { labels: None, ..scope };
    watch(shared, scope, cache, |shared, change: Change<ImagePolicy>| {
        // A group's policies get their images at the same time, and these belong into one commit.
        let is_grouped =
            change.new.as_ref().is_some_and(|policy| PolicySettings::has_group(policy.annotations()));
        let wait = if is_grouped { GATHERING_A_GROUP } else { GATHERING };
        for automation in shared.objects.automations.in_namespace(&change.name.namespace) {
            if concerns_policy(&automation, change.old.as_deref(), change.new.as_deref()) {
                shared.signal(Signal::Wake(ObjectName::of(automation.as_ref()), wait));
            }
        }
    })
}

/// Watches the git repositories.
pub(super) fn git_repositories(shared: Arc<Shared>, scope: Scope) -> impl Future<Output = ()> {
    let cache = shared.objects.git_repositories.clone();
    let scope = Scope { labels: None, ..scope };
    watch(shared, scope, cache, |shared, change: Change<GitRepository>| {
        if !concerns_source(change.old.as_deref(), change.new.as_deref()) {
            return;
        }
        for automation in shared.objects.automations.referrers(&change.name) {
            shared.wake(ObjectName::of(automation.as_ref()));
        }
    })
}

impl Shared {
    /// What follows from a change of an automation.
    pub(super) fn automation_changed(&self, change: &Change<ImageUpdateAutomation>) {
        self.under_way.observe(change);
        if let Some(old) = &change.old {
            self.forget_unused_key(old, change.new.as_deref());
        }
        match &change.new {
            None => {
                self.forget(&change.name);
                self.signal(Signal::Forget(change.name.clone()));
            }
            Some(new) if concerns_itself(change.old.as_deref(), new) => self.wake(change.name.clone()),
            Some(_) => {}
        }
    }
}

/// What a watch needs of those for whom it watches.
pub(super) trait Watcher: Send + Sync + 'static {
    /// The way to the cluster.
    fn client(&self) -> Client;

    /// Who is told of objects that cannot be understood.
    fn announcer(&self) -> &Announcer;

    /// Who writes to objects of a kind; nobody where they are not ours to write to.
    fn writer(&self, kind: &str) -> Option<ObjectWriter>;

    /// Whether nothing is announced.
    fn is_silent(&self) -> bool {
        false
    }

    /// What tells whether this process is the one that writes.
    fn leadership(&self) -> Receiver<bool>;
}

impl Watcher for Shared {
    fn client(&self) -> Client {
        self.objects.client().clone()
    }

    fn announcer(&self) -> &Announcer {
        &self.announcer
    }

    fn writer(&self, kind: &str) -> Option<ObjectWriter> {
        (kind == ImageUpdateAutomation::kind(&())).then(|| self.objects.writer())
    }

    fn is_silent(&self) -> bool {
        self.shadows.is_some()
    }

    fn leadership(&self) -> Receiver<bool> {
        self.is_leader.subscribe()
    }
}

/// A kind of objects in namespaces that the API server tells of.
pub(super) trait Watched:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + DeserializeOwned
    + PartialEq
    + Debug
    + Send
    + Sync
    + 'static
{
}

impl<K> Watched for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + PartialEq
        + Debug
        + Send
        + Sync
        + 'static
{
}

/// Watches the objects of a kind, and says of each change what it is.
pub(super) async fn watch<W, K>(
    shared: Arc<W>,
    scope: Scope,
    cache: Cache<K>,
    changed: impl Fn(&Arc<W>, Change<K>),
) where
    W: Watcher,
    K: Watched,
{
    let plural = K::plural(&());
    let mut trouble = String::new();
    let mut unreadable = Unreadable::default();
    watch_objects(shared.client(), &scope, &cache, |observation| match observation {
        Observation::Changed(change) => {
            unreadable.remove(&change.name);
            changed(&shared, change);
        }
        Observation::Listing => unreadable.listing = Some(BTreeSet::new()),
        Observation::Complete => {
            unreadable.forget_unlisted();
            if !std::mem::take(&mut trouble).is_empty() {
                tracing::info!(resource = %plural, "the watch goes on");
            }
        }
        Observation::Unreadable { metadata, message, change } => {
            if let Some(change) = change {
                changed(&shared, change);
            }
            let name = ObjectName {
                namespace: metadata.namespace.clone().unwrap_or_default(),
                name: metadata.name.clone().unwrap_or_default(),
            };
            let is_news = unreadable.insert(&name, fault(metadata.uid.as_deref(), &message));
            if metadata.deletion_timestamp.is_some() {
                unreadable
                    .let_go(name, tokio::spawn(let_go::<W, K>(shared.clone(), *metadata)).abort_handle());
            } else if is_news {
                report_unreadable::<W, K>(&shared, *metadata, &message);
            }
        }
        Observation::WatchError(error) => {
            let words = disturbance(&error);
            if words != trouble {
                tracing::error!(resource = %plural, error = words, "the watch is disturbed, trying again");
                trouble = words;
            }
        }
    })
    .await;
}

/// The objects of a kind that cannot be understood.
#[derive(Debug, Default)]
struct Unreadable {
    /// The faults that were reported: each listing tells of them anew.
    reported: BTreeMap<ObjectName, [u8; 32]>,
    /// Those that the listing in progress has named.
    listing: Option<BTreeSet<ObjectName>>,
    /// What takes our finalizer off those that are to be deleted.
    letting_go: BTreeMap<ObjectName, AbortHandle>,
}

impl Unreadable {
    /// Adds an object with its fault, and says whether that is news.
    fn insert(&mut self, name: &ObjectName, fault: [u8; 32]) -> bool {
        if let Some(listing) = &mut self.listing {
            listing.insert(name.clone());
        }
        self.reported.insert(name.clone(), fault) != Some(fault)
    }

    /// Keeps a task that lets go of an object, in place of the one before.
    fn let_go(&mut self, name: ObjectName, task: AbortHandle) {
        if let Some(before) = self.letting_go.insert(name, task) {
            before.abort();
        }
    }

    /// Forgets an object that has gone or can be understood.
    fn remove(&mut self, name: &ObjectName) {
        self.reported.remove(name);
        if let Some(task) = self.letting_go.remove(name) {
            task.abort();
        }
    }

    /// Forgets what a listing that is complete did not name.
    fn forget_unlisted(&mut self) {
        let listed = self.listing.take().unwrap_or_default();
        self.reported.retain(|name, _| listed.contains(name));
        self.letting_go.retain(|name, _| listed.contains(name));
    }
}

/// A digest of what is wrong with which object, for the words may be long.
fn fault(uid: Option<&str>, words: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(uid.unwrap_or_default());
    hash.update([0]);
    hash.update(words);
    hash.finalize().into()
}

/// What is wrong, and what to do about it where that is plain.
fn disturbance(error: &ClusterError) -> String {
    if error.is_not_found() {
        format!("{error}; nothing is carried out until the CustomResourceDefinition is installed")
    } else if error.is_forbidden() {
        format!("{error}; nothing is carried out until the role of the controller allows it")
    } else {
        error.to_string()
    }
}

/// Says of an object that it cannot be read, in the log and by an event.
fn report_unreadable<W, K>(shared: &Arc<W>, metadata: ObjectMeta, words: &str)
where
    W: Watcher,
    K: Watched,
{
    let object = ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        ..Default::default()
    };
    // Both halves watch policies, and several processes everything: each fault is told once.
    let occurrence = Occurrence::Once(format!("{:?} {words}", metadata.generation));
    let annotations = metadata.annotations.unwrap_or_default();
    let message = format!(
        "the object cannot be understood and is left alone until it is corrected: {}",
        printable(words)
    );
    let event = Event { type_: EventType::Warning, reason: UNREADABLE.to_owned(), message };
    tracing::error!(
        kind = object.kind,
        namespace = object.namespace,
        name = object.name,
        error = words,
        "an object cannot be understood and is left alone until it is corrected"
    );
    if shared.is_silent() {
        return;
    }
    let announcement = Announcement { object, annotations, event, occurrence, time: Timestamp::now() };
    let announcing = shared.clone();
    shared.announcer().announce_later(announcement, |announcement| async move {
        become_leader(announcing.as_ref()).await;
        if let Err(error) = announcing.announcer().announce(announcement).await {
            tracing::error!(error = %error, "cannot record the event");
        }
    });
}

/// Takes our finalizer off an object that is to be deleted. Nothing else about it need be understood for that.
async fn let_go<W, K>(shared: Arc<W>, metadata: ObjectMeta)
where
    W: Watcher,
    K: Watched,
{
    let is_ours = metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER);
    let Some(writer) = shared.writer(&K::kind(&())).filter(|_| is_ours && !shared.is_silent()) else {
        return;
    };
    become_leader(shared.as_ref()).await;
    for attempt in 1..=TRIES {
        match writer.release::<K>(&metadata, FINALIZER).await {
            // Whoever has changed it has made the watch tell of it again.
            Err(error) if !error.is_conflict() => {
                tracing::error!(
                    namespace = metadata.namespace,
                    name = metadata.name,
                    error = %error,
                    "cannot let go of an object that is to be deleted, trying again"
                );
                tokio::time::sleep(BACKOFF.after(attempt)).await;
            }
            _ => return,
        }
    }
}

/// Waits until this process is the one that writes: everybody watches.
async fn become_leader<W: Watcher>(shared: &W) {
    // We hold the sending end ourselves, so the wait ends with its condition.
    let _ = shared.leadership().wait_for(|is_leader| *is_leader).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> ObjectName {
        ObjectName { namespace: "n".to_owned(), name: name.to_owned() }
    }

    #[test]
    fn faults_are_reported_once_and_forgotten_with_their_objects() {
        let mut unreadable = Unreadable::default();
        let words = [fault(Some("1"), "a"), fault(Some("1"), "b"), fault(Some("2"), "a")];
        let news =
            words.map(|fault| [unreadable.insert(&name("a"), fault), unreadable.insert(&name("a"), fault)]);
        assert_eq!(news, [[true, false]; 3]);
        // It was deleted.
        unreadable.remove(&name("a"));
        assert!(unreadable.reported.is_empty() && unreadable.letting_go.is_empty());
        // One was deleted while the watch was down, one is as it was, one is new.
        for one in ["gone", "same"] {
            unreadable.insert(&name(one), words[0]);
        }
        unreadable.listing = Some(BTreeSet::new());
        assert!(!unreadable.insert(&name("same"), words[0]) && unreadable.insert(&name("new"), words[0]));
        unreadable.forget_unlisted();
        let left: Vec<&str> = unreadable.reported.keys().map(|name| name.name.as_str()).collect();
        assert_eq!(left, ["new", "same"]);
    }
}
