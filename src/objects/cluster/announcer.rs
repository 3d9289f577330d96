//! Announces changes of an object: as a Kubernetes event, and to Flux's notification controller.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use parking_lot::Mutex;
use tokio::time::sleep;

use super::deliveries::{Deliveries, Delivery};
use super::event_limit::EventLimiter;
use super::notifier::{Notifier, named};
use super::recorder::Recorder;
use super::{ClusterError, ClusterObjects};
use crate::backoff::Backoff;
use crate::objects::Event;

/// The prefix of an object's annotations that its announcements carry.
const ANNOTATION_PREFIX: &str = "event.toolkit.fluxcd.io/";

/// The timeout of the API server for an event; the caller has more to do.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum number of tries to record an event while the API server is unavailable.
const TRIES: u32 = 5;

/// The delay between these tries.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(60) };

/// The maximum length of a message, in bytes.
///
/// The message of a push has that of its commit, and the API server rejects events that are larger than 1.5 MiB.
const MAX_MESSAGE: usize = 256 * 1024;

/// The maximum wait for delayed events at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Deduplication of events: identifies an event among others with the same content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventIdentity {
    /// An action at a server, such as a push, which happens once.
    /// These events are not limited.
    Action(String),
    /// An event that happens once in the life of the object, even if found again.
    ///
    /// For example, a set of problems.
    Once(String),
    /// An event that may happen again, and is counted then.
    Repeated,
}

/// An event of an object, to be announced.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// The object of the event.
    pub object: ObjectReference,
    /// The annotations of that object.
    pub annotations: BTreeMap<String, String>,
    /// The event.
    pub event: Event,
    /// Identifies the event among others with the same content.
    pub identity: EventIdentity,
    /// The time of the event.
    pub time: Timestamp,
}

/// Announces events of objects.
pub struct Announcer {
    recorder: Arc<Recorder>,
    limiter: Mutex<EventLimiter>,
    delayed: Deliveries,
    notifier: Option<Notifier>,
    controller: &'static str,
    instance: String,
}

impl Announcer {
    /// Makes an announcer for `objects` and the process `instance` of a controller.
    ///
    /// It sends to a notifier as well, if there is one.
    pub fn new(
        objects: &ClusterObjects,
        notifier: Option<Notifier>,
        controller: &'static str,
        instance: String,
    ) -> Self {
        let (client, guard) = (objects.client().clone(), objects.guard().with_timeout(TIMEOUT));
        let delayed = guard.delayed().clone();
        let recorder = Arc::new(Recorder::new(client, guard, controller, instance.clone()));
        Self { recorder, limiter: Mutex::default(), delayed, notifier, controller, instance }
    }

    /// Announces an event; one that happens once is announced once, even across processes.
    ///
    /// If the API server is unavailable, it is recorded later, in the background. An event beyond the rate limit of
    /// its object is not recorded; receivers of notifications have limits of their own. A message that is too long is
    /// cut.
    ///
    /// # Errors
    ///
    /// If the cluster rejects the event; the notification is sent all the same.
    pub async fn announce(&self, mut announcement: Announcement) -> Result<(), ClusterError> {
        truncate(&mut announcement.event.message);
        let recorded =
            if self.admits(&announcement) { self.recorder.record(&announcement).await } else { Ok(true) };
        let is_news = !matches!(recorded, Ok(false) | Err(ClusterError::Fenced));
        if let Some(notifier) = self.notifier.as_ref().filter(|_| is_news) {
            notifier.notify(&announcement, self.controller, &self.instance);
        }
        match recorded {
            Err(error) if error.is_transient() => {
                self.delay(announcement, &error);
                Ok(())
            }
            recorded => recorded.map(drop),
        }
    }

    /// Returns whether the rate limit admits an event.
    fn admits(&self, announcement: &Announcement) -> bool {
        if matches!(announcement.identity, EventIdentity::Action(_)) {
            return true;
        }
        let mut limiter = self.limiter.lock();
        let admits = limiter.admits(&announcement.object, Instant::now());
        if !admits {
            let object = named(&announcement.object);
            tracing::debug!(object, "event dropped: too many events of its object");
        }
        admits
    }

    /// Announces an event in the background with `announce`.
    pub fn announce_later<F>(&self, mut announcement: Announcement, announce: impl FnOnce(Announcement) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        truncate(&mut announcement.event.message);
        let delivery = Delivery {
            namespace: announcement.object.namespace.clone().unwrap_or_default(),
            label: named(&announcement.object),
            bytes: announcement.size(),
            work: announce(announcement),
        };
        for object in self.delayed.start(delivery) {
            tracing::error!(object, "event dropped: too many events of its namespace are queued");
        }
    }

    /// Records an event later, with exponential backoff.
    fn delay(&self, announcement: Announcement, error: &ClusterError) {
        tracing::info!(error = %error, "cannot record the event, retrying");
        let recorder = self.recorder.clone();
        self.announce_later(announcement, |announcement| async move {
            for attempt in 2..=TRIES {
                sleep(BACKOFF.after(attempt - 1)).await;
                match recorder.record(&announcement).await {
                    Ok(_) => return,
                    Err(error) if error.is_transient() && attempt < TRIES => {}
                    Err(error) => {
                        tracing::error!(error = %error, "cannot record the event");
                        return;
                    }
                }
            }
        });
    }

    /// Waits briefly until the events and notifications in flight have arrived or failed.
    pub async fn finish(&self) {
        let notifications = async {
            if let Some(notifier) = &self.notifier {
                notifier.finish().await;
            }
        };
        tokio::join!(self.delayed.drain(SHUTDOWN_TIMEOUT), notifications);
    }
}

/// Truncates a message to its maximum length, with a note at its end.
fn truncate(message: &mut String) {
    if message.len() <= MAX_MESSAGE {
        return;
    }
    let note = format!("… (cut: the message has {} bytes)", message.len());
    message.truncate(message.floor_char_boundary(MAX_MESSAGE - note.len()));
    message.push_str(&note);
}

impl Announcement {
    /// Returns the memory that it takes, in bytes.
    fn size(&self) -> usize {
        let annotations = self.annotations.iter().map(|(name, value)| name.len() + value.len());
        self.event.message.len() + annotations.sum::<usize>() + 1024
    }

    /// Returns the annotations that the announcement carries.
    pub(super) fn event_annotations(&self) -> BTreeMap<String, String> {
        let carried = self.annotations.iter().filter(|(key, _)| key.starts_with(ANNOTATION_PREFIX));
        carried.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_too_long_is_cut_between_characters() {
        for (message, is_cut) in [
            ("x".repeat(MAX_MESSAGE), false),
            ("x".repeat(MAX_MESSAGE + 1), true),
            ("ä".repeat(MAX_MESSAGE), true),
            (format!("x{}", "😀".repeat(MAX_MESSAGE)), true),
        ] {
            let mut found = message.clone();
            truncate(&mut found);
            if is_cut {
                assert!(found.len() <= MAX_MESSAGE && found.len() > MAX_MESSAGE - 4, "{}", found.len());
                let note = format!("… (cut: the message has {} bytes)", message.len());
                assert!(message.starts_with(found.strip_suffix(&note).unwrap()));
            } else {
                assert!(found == message);
            }
        }
    }
}
