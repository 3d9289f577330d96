//! Records Kubernetes events: creates them, or counts recent ones that are repeated.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Event as ClusterEvent, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::announcer::{Announcement, EventIdentity};
use super::{ApiGuard, ClusterError};
use crate::objects::{Event, EventType};
use crate::secrets::Fingerprint;
use crate::tenancy::FairCache;

/// The time for which a repeated event is counted instead of created anew.
const REPEAT_WINDOW: Duration = Duration::from_secs(600);

/// The maximum number of remembered events.
const MAX_REMEMBERED: usize = 4096;

/// The maximum length of an object's name in an event's name.
///
/// It leaves room for a suffix.
const MAX_NAME: usize = 235;

/// Records Kubernetes events as one of Flux's controllers.
pub(super) struct Recorder {
    client: Client,
    guard: ApiGuard,
    /// The name of Flux's controller that is the source of the events.
    controller: &'static str,
    instance: String,
    recent: Mutex<FairCache<Fingerprint, Recorded>>,
}

/// An event in the cluster.
#[derive(Clone, Debug)]
struct Recorded {
    name: String,
    count: i32,
    last: Timestamp,
}

impl Recorder {
    /// Makes a recorder for the process `instance` of a controller.
    pub(super) fn new(client: Client, guard: ApiGuard, controller: &'static str, instance: String) -> Self {
        Self { client, guard, controller, instance, recent: Mutex::new(FairCache::new(MAX_REMEMBERED)) }
    }

    /// Creates or counts a Kubernetes event; returns whether it is new.
    ///
    /// To repeat a request that arrived changes nothing but the count of a repeated event.
    ///
    /// # Errors
    ///
    /// If the cluster rejects the event.
    pub(super) async fn record(&self, announcement: &Announcement) -> Result<bool, ClusterError> {
        let Announcement { object, event, identity, time: now, .. } = announcement;
        let now = *now;
        let namespace = object.namespace.as_deref().unwrap_or("default");
        let api: Api<ClusterEvent> = Api::namespaced(self.client.clone(), namespace);
        let key = key(object, event);
        if let (EventIdentity::Repeated, Some(before)) = (identity, self.recent_one(key, now)) {
            let count = before.count.saturating_add(1);
            let patch = json!({"count": count, "lastTimestamp": Time(whole_seconds(now))});
            let parameters =
                PatchParams { field_manager: Some(self.controller.to_owned()), ..Default::default() };
            let patch = Patch::Merge(&patch);
            let patched = api.patch(&before.name, &parameters, &patch);
            match self.guard.send(namespace, patched).await {
                Ok(_) => {
                    self.remember(namespace, key, Recorded { count, last: now, ..before });
                    return Ok(true);
                }
                // Events expire.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        let name = event_name(object, identity, now);
        let new = ClusterEvent {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: object.namespace.clone(),
                annotations: Some(announcement.event_annotations()).filter(|carried| !carried.is_empty()),
                ..Default::default()
            },
            involved_object: object.clone(),
            type_: Some(type_of(event).to_owned()),
            reason: Some(event.reason.clone()),
            message: Some(event.message.clone()),
            count: Some(1),
            first_timestamp: Some(Time(whole_seconds(now))),
            last_timestamp: Some(Time(whole_seconds(now))),
            source: Some(EventSource { component: Some(self.controller.to_owned()), host: None }),
            reporting_component: Some(self.controller.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            ..Default::default()
        };
        let parameters = PostParams { field_manager: Some(self.controller.to_owned()), ..Default::default() };
        match self.guard.send(namespace, api.create(&parameters, &new)).await {
            Ok(_) => {
                self.remember(namespace, key, Recorded { name, count: 1, last: now });
                Ok(true)
            }
            // A process that ended before it had written the status has announced it already.
            Err(error) if error.is_already_exists() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn recent_one(&self, key: Fingerprint, now: Timestamp) -> Option<Recorded> {
        let mut recent = self.recent.lock();
        let found = recent.get(&key)?;
        let age = SignedDuration::try_from(REPEAT_WINDOW).expect("ten minutes are not too long");
        (now.duration_since(found.last) < age).then(|| found.clone())
    }

    /// Remembers an event; a forgotten one is created anew instead of counted.
    fn remember(&self, namespace: &str, key: Fingerprint, recorded: Recorded) {
        let mut recent = self.recent.lock();
        recent.insert(namespace, key, recorded);
    }
}

/// Returns the fingerprint of an object and an event, because a message may be long.
fn key(object: &ObjectReference, event: &Event) -> Fingerprint {
    let uid = object.uid.as_deref().unwrap_or_default();
    Fingerprint::of([uid, type_of(event), &event.reason, &event.message])
}

/// Returns the Kubernetes type of an event.
fn type_of(event: &Event) -> &'static str {
    match event.type_ {
        EventType::Warning => "Warning",
        EventType::Normal | EventType::Trace => "Normal",
    }
}

/// Truncates a time to seconds, as Kubernetes does.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).expect("the second of a timestamp is one")
}

/// Returns the name of an event.
///
/// An event that happens once always has the same name, so that it cannot be created twice.
fn event_name(object: &ObjectReference, identity: &EventIdentity, now: Timestamp) -> String {
    let mut name = object.name.clone().unwrap_or_default();
    name.truncate(MAX_NAME);
    let name = name.trim_end_matches(['.', '-']);
    match identity {
        EventIdentity::Action(what) | EventIdentity::Once(what) => {
            let mut hash = Sha256::new();
            hash.update(object.uid.as_deref().unwrap_or_default());
            hash.update([0]);
            hash.update(what);
            format!("{name}.{:.16x}", hash.finalize())
        }
        EventIdentity::Repeated => format!("{name}.{:x}", now.as_nanosecond()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_happens_once_has_one_name() {
        let object = |name: &str, uid: &str| ObjectReference {
            name: Some(name.to_owned()),
            uid: Some(uid.to_owned()),
            ..Default::default()
        };
        let (early, late) = (Timestamp::from_second(1).unwrap(), Timestamp::from_second(2).unwrap());
        let once = |what: &str| EventIdentity::Once(what.to_owned());
        let app = object("app", "1");
        assert_eq!(event_name(&app, &once("a"), early), event_name(&app, &once("a"), late));
        assert_ne!(event_name(&app, &once("a"), early), event_name(&app, &once("b"), early));
        assert_ne!(event_name(&app, &once("a"), early), event_name(&object("app", "2"), &once("a"), early));
        assert_eq!(event_name(&app, &EventIdentity::Repeated, early), "app.3b9aca00");
        let long = object(&"x.".repeat(126), "1");
        assert!(event_name(&long, &once("a"), early).len() <= 253);
        assert!(!event_name(&long, &once("a"), early).contains(".."));
    }
}
