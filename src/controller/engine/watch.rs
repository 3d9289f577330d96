//! Watches the objects of a kind.
//!
//! It logs its failures, and reports objects that cannot be read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::ObjectMeta;
use tokio::task::AbortHandle;

use super::context::Context;
use crate::backoff::Backoff;
use crate::objects::cluster::{
    Announcement, Cache, Change, ClusterError, EventIdentity, Observation, Scope, Watched, watch_objects,
};
use crate::objects::{Event, EventType, ObjectName};
use crate::printable::printable;
use crate::secrets::Fingerprint;

/// The maximum number of tries to remove our finalizer from an unreadable object.
const TRIES: u32 = 8;

/// The waits after these tries.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(128) };

/// The reason of events about objects that cannot be read.
const UNREADABLE: &str = "InvalidObject";

/// A report of the watch of a kind.
#[derive(Debug)]
pub(super) enum Report<'r, K> {
    /// An object has changed.
    Changed(&'r Change<K>),
    /// An object cannot be read. The change by which it counts as deleted comes next.
    Unreadable(&'r ObjectMeta),
    /// An object that could not be read is gone, or can be read again.
    NoLongerUnreadable(&'r ObjectName),
}

/// Watches the objects of a kind, updates `cache`, and reports each change.
///
/// If the kind has a `finalizer` of ours, it is removed from deleted objects that cannot be read.
pub(super) async fn watch<K: Watched>(
    context: Arc<Context>,
    scope: Scope,
    cache: Cache<K>,
    finalizer: Option<&'static str>,
    report: impl Fn(&Report<'_, K>),
) {
    let plural = K::plural(&());
    let mut failure = String::new();
    let mut unreadable = Unreadable::default();
    watch_objects(context.objects.client().clone(), &scope, &cache, |observation| match observation {
        Observation::Changed(change) => {
            let was_unreadable = unreadable.remove(&change.name);
            report(&Report::Changed(&change));
            if was_unreadable {
                report(&Report::NoLongerUnreadable(&change.name));
            }
        }
        Observation::Listing => unreadable.listing = Some(BTreeSet::new()),
        Observation::Complete => {
            unreadable.forget_unlisted().iter().map(Report::NoLongerUnreadable).for_each(|one| report(&one));
            if !std::mem::take(&mut failure).is_empty() {
                tracing::info!(resource = %plural, "watch recovered");
            }
        }
        Observation::Unreadable { metadata, message, change } => {
            report(&Report::Unreadable(&metadata));
            change.iter().map(Report::Changed).for_each(|one| report(&one));
            let name = ObjectName {
                namespace: metadata.namespace.clone().unwrap_or_default(),
                name: metadata.name.clone().unwrap_or_default(),
            };
            let is_news = unreadable.insert(&name, defect(metadata.uid.as_deref(), &message));
            if metadata.deletion_timestamp.is_some() {
                let task = tokio::spawn(remove_finalizer::<K>(context.clone(), *metadata, finalizer));
                unreadable.keep_removal(name, task.abort_handle());
            } else if is_news {
                report_unreadable::<K>(&context, *metadata, &message);
            }
        }
        Observation::WatchError(error) => {
            let message = with_advice(&error);
            if message != failure {
                tracing::error!(resource = %plural, error = message, "watch failed, retrying");
                failure = message;
            }
        }
    })
    .await;
}

/// The objects of a kind that cannot be read.
#[derive(Debug, Default)]
struct Unreadable {
    /// The defects that were reported: each listing shows them again.
    reported: BTreeMap<ObjectName, Fingerprint>,
    /// The objects that the listing in progress has named.
    listing: Option<BTreeSet<ObjectName>>,
    /// The tasks that remove our finalizer from deleted objects.
    removals: BTreeMap<ObjectName, AbortHandle>,
}

impl Unreadable {
    /// Adds an object with its defect, and returns whether that is news.
    fn insert(&mut self, name: &ObjectName, defect: Fingerprint) -> bool {
        if let Some(listing) = &mut self.listing {
            listing.insert(name.clone());
        }
        self.reported.insert(name.clone(), defect) != Some(defect)
    }

    /// Keeps the task that removes an object's finalizer, in place of an earlier one.
    fn keep_removal(&mut self, name: ObjectName, task: AbortHandle) {
        if let Some(before) = self.removals.insert(name, task) {
            before.abort();
        }
    }

    /// Forgets an object that was deleted or can be read now.
    ///
    /// Returns `true` if it was known.
    fn remove(&mut self, name: &ObjectName) -> bool {
        if let Some(task) = self.removals.remove(name) {
            task.abort();
        }
        self.reported.remove(name).is_some()
    }

    /// Forgets the objects that a complete listing did not name, and returns their names.
    fn forget_unlisted(&mut self) -> Vec<ObjectName> {
        let listed = self.listing.take().unwrap_or_default();
        self.removals.retain(|name, _| listed.contains(name));
        self.reported.extract_if(.., |name, _| !listed.contains(name)).map(|(name, _)| name).collect()
    }
}

/// Returns the fingerprint of an object's defect, since its description may be long.
fn defect(uid: Option<&str>, message: &str) -> Fingerprint {
    Fingerprint::of([uid.unwrap_or_default(), message])
}

/// Returns the message of an error, with advice if there is an evident remedy.
fn with_advice(error: &ClusterError) -> String {
    if error.is_not_found() {
        format!("{error}; nothing is reconciled until the CustomResourceDefinition is installed")
    } else if error.is_forbidden() {
        format!("{error}; nothing is reconciled until the role of the controller allows it")
    } else {
        error.to_string()
    }
}

/// Reports an object that cannot be read, in the log and by an event.
fn report_unreadable<K: Watched>(context: &Arc<Context>, metadata: ObjectMeta, cause: &str) {
    let object = ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        ..Default::default()
    };
    // Two controllers watch policies, and several processes everything: each defect is announced once.
    let identity = EventIdentity::Once(format!("{:?} {cause}", metadata.generation));
    let annotations = metadata.annotations.unwrap_or_default();
    let message = format!("the object is invalid and is ignored until it is corrected: {}", printable(cause));
    let event = Event { type_: EventType::Warning, reason: UNREADABLE.to_owned(), message };
    tracing::error!(
        kind = object.kind,
        namespace = object.namespace,
        name = object.name,
        error = cause,
        "an object is invalid and is ignored until it is corrected"
    );
    if context.is_dry_run {
        return;
    }
    let announcement = Announcement { object, annotations, event, identity, time: Timestamp::now() };
    let announcing = context.clone();
    context.announcer.announce_later(announcement, |announcement| async move {
        announcing.become_leader().await;
        announcing.announce(announcement).await;
    });
}

/// Removes our finalizer from a deleted object, of which only the metadata can be read.
async fn remove_finalizer<K: Watched>(
    context: Arc<Context>,
    metadata: ObjectMeta,
    finalizer: Option<&'static str>,
) {
    let is_set =
        |finalizer: &&str| metadata.finalizers.iter().flatten().any(|one| one.as_str() == *finalizer);
    let Some(finalizer) = finalizer.filter(is_set).filter(|_| !context.is_dry_run) else { return };
    context.become_leader().await;
    for attempt in 1..=TRIES {
        match context.writer.remove_finalizer_by_metadata::<K>(&metadata, finalizer).await {
            // After a change by another client, the watch reports the object again.
            Err(error) if !error.is_conflict() => {
                tracing::error!(
                    namespace = metadata.namespace,
                    name = metadata.name,
                    error = %error,
                    "cannot remove the finalizer of a deleted object, retrying"
                );
                tokio::time::sleep(BACKOFF.after(attempt)).await;
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> ObjectName {
        ObjectName { namespace: "n".to_owned(), name: name.to_owned() }
    }

    #[test]
    fn defects_are_reported_once_and_forgotten_with_their_objects() {
        let mut unreadable = Unreadable::default();
        let defects = [defect(Some("1"), "a"), defect(Some("1"), "b"), defect(Some("2"), "a")];
        let news = defects
            .map(|defect| [unreadable.insert(&name("a"), defect), unreadable.insert(&name("a"), defect)]);
        assert_eq!(news, [[true, false]; 3]);
        // It was deleted.
        assert!(unreadable.remove(&name("a")) && !unreadable.remove(&name("a")));
        assert!(unreadable.reported.is_empty() && unreadable.removals.is_empty());
        // One was deleted while the watch was down, one is unchanged, one is new.
        for one in ["deleted", "same"] {
            unreadable.insert(&name(one), defects[0]);
        }
        unreadable.listing = Some(BTreeSet::new());
        assert!(!unreadable.insert(&name("same"), defects[0]) && unreadable.insert(&name("new"), defects[0]));
        assert_eq!(unreadable.forget_unlisted(), [name("deleted")]);
        let left: Vec<&str> = unreadable.reported.keys().map(|name| name.name.as_str()).collect();
        assert_eq!(left, ["new", "same"]);
    }
}
