//! What the watches of the three kinds set in motion.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::ObjectMeta;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tagboat_api::{GitRepository, ImagePolicy, ImageUpdateAutomation};
use tokio::sync::watch::Receiver;

use super::queue::Verdict;
use super::trigger::{concerns_itself, concerns_policy, concerns_source, source_of};
use super::work::Shared;
use crate::objects::cluster::{
    Announcement, Announcer, Cache, Change, ClusterError, Observation, Occurrence, Scope, follow,
};
use crate::objects::{Event, EventType, ObjectName};

/// What the queue is to know.
#[derive(Debug)]
pub(super) enum Signal {
    /// An automation is due.
    Wake(ObjectName),
    /// An automation has gone.
    Forget(ObjectName),
    /// An automation has been carried out.
    Done(ObjectName, Verdict),
}

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
        for automation in shared.objects.automations.in_namespace(&change.name.namespace) {
            if concerns_policy(&automation, change.old.as_deref(), change.new.as_deref()) {
                shared.wake(ObjectName::of(automation.as_ref()));
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
        for automation in shared.objects.automations.all() {
            if source_of(&automation) == change.name {
                shared.wake(ObjectName::of(automation.as_ref()));
            }
        }
    })
}

impl Shared {
    /// What follows from a change of an automation.
    pub(super) fn automation_changed(&self, change: &Change<ImageUpdateAutomation>) {
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

    /// Whether nothing is announced.
    fn is_silent(&self) -> bool {
        false
    }

    /// What tells whether this process is the one that writes, where that is waited for.
    fn leadership(&self) -> Option<Receiver<bool>> {
        None
    }
}

impl Watcher for Shared {
    fn client(&self) -> Client {
        self.objects.client().clone()
    }

    fn announcer(&self) -> &Announcer {
        &self.announcer
    }

    fn is_silent(&self) -> bool {
        self.shadows.is_some()
    }

    fn leadership(&self) -> Option<Receiver<bool>> {
        Some(self.is_leader.subscribe())
    }
}

/// Watches the objects of a kind, and says of each change what it is.
pub(super) async fn watch<W, K>(
    shared: Arc<W>,
    scope: Scope,
    cache: Cache<K>,
    changed: impl Fn(&Arc<W>, Change<K>),
) where
    W: Watcher,
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + Sync
        + 'static,
{
    let plural = K::plural(&());
    let mut trouble = String::new();
    follow(shared.client(), &scope, &cache, |observation| match observation {
        Observation::Changed(change) => changed(&shared, change),
        Observation::Complete => {
            if !std::mem::take(&mut trouble).is_empty() {
                tracing::info!(resource = %plural, "the watch goes on");
            }
        }
        Observation::Unreadable { metadata, words, change } => {
            if let Some(change) = change {
                changed(&shared, change);
            }
            report_unreadable::<W, K>(&shared, *metadata, &words);
        }
        Observation::Disturbed(error) => {
            let words = disturbance(&error);
            if words != trouble {
                tracing::error!(resource = %plural, error = words, "the watch is disturbed, trying again");
                trouble = words;
            }
        }
    })
    .await;
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
fn report_unreadable<W: Watcher, K: Resource<DynamicType = ()>>(
    shared: &Arc<W>,
    metadata: ObjectMeta,
    words: &str,
) {
    let object = ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        ..Default::default()
    };
    let annotations = metadata.annotations.unwrap_or_default();
    let message = format!("the object cannot be understood and is left alone until it is corrected: {words}");
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
    let shared = shared.clone();
    tokio::spawn(async move {
        // Everybody watches, and only one writes.
        if let Some(mut leadership) = shared.leadership() {
            // We hold the sending end ourselves, so the wait ends with its condition.
            let _ = leadership.wait_for(|is_leader| *is_leader).await;
        }
        let (annotations, event) = (&annotations, &event);
        let (occurrence, time) = (Occurrence::Repeated, Timestamp::now());
        let announcement = Announcement { object, annotations, event, occurrence, time };
        if let Err(error) = shared.announcer().announce(&announcement).await {
            tracing::error!(error = %error, "cannot record the event");
        }
    });
}
