//! Announcing what happened to an object: as a Kubernetes event, and to Flux's notification controller.

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
use super::notification::{Notification, Notifier, named};
use super::recording::Recorder;
use super::{ClusterError, ClusterObjects};
use crate::backoff::Backoff;
use crate::objects::Event;

/// The annotations of an object that its announcements carry.
const CARRIED: &str = "event.toolkit.fluxcd.io/";

/// How long the API server may take; whoever announces something has more to do.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum number of tries to record an event while the API server is unavailable.
const TRIES: u32 = 5;

/// The waits between these tries.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(60) };

/// The maximum length of a message, in bytes. The message of a push has that of its commit, and the API server refuses
/// events that are larger than 1.5 MiB.
const MAX_MESSAGE: usize = 256 * 1024;

/// The longest wait for delayed events at the end.
const FAREWELL: Duration = Duration::from_secs(1);

/// What tells an event from others that say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occurrence {
    /// A commit was pushed, which happens once. These events are not limited.
    Pushed(String),
    /// It happens once in the life of the object, however often it is found: a set of problems, say.
    Once(String),
    /// It may happen again, and is counted then.
    Repeated,
}

/// What is to be announced.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// The object that it is about.
    pub object: ObjectReference,
    /// The annotations of that object.
    pub annotations: BTreeMap<String, String>,
    /// What happened.
    pub event: Event,
    /// What tells it from others that say the same.
    pub occurrence: Occurrence,
    /// When it happened.
    pub time: Timestamp,
}

/// Announces what happens to objects.
pub struct Announcer {
    recorder: Arc<Recorder>,
    limiter: Mutex<EventLimiter>,
    delayed: Deliveries,
    notifier: Option<Notifier>,
    controller: &'static str,
    instance: String,
}

impl Announcer {
    /// One that announces among `objects` as `instance` of a controller, and to a notifier if there is one.
    pub fn new(
        objects: &ClusterObjects,
        notifier: Option<Notifier>,
        controller: &'static str,
        instance: String,
    ) -> Self {
        let (client, gate) = (objects.client().clone(), objects.gate().with_patience(PATIENCE));
        let delayed = gate.delayed().clone();
        let recorder = Arc::new(Recorder::new(client, gate, controller, instance.clone()));
        Self { recorder, limiter: Mutex::default(), delayed, notifier, controller, instance }
    }

    /// Announces an event; what happens only once is announced once, even by a process that knows nothing of another.
    ///
    /// If the API server is not up to it, it is recorded later, in the background. An event beyond the limit of its object
    /// is not recorded; receivers of notifications have limits of their own. A message that is too long is cut.
    ///
    /// # Errors
    ///
    /// When the cluster does not take it; notifications are on their way all the same.
    pub async fn announce(&self, mut announcement: Announcement) -> Result<(), ClusterError> {
        cut(&mut announcement.event.message);
        let recorded =
            if self.admits(&announcement) { self.recorder.record(&announcement).await } else { Ok(true) };
        let is_news = !matches!(recorded, Ok(false) | Err(ClusterError::Deposed));
        if let Some(notifier) = self.notifier.as_ref().filter(|_| is_news) {
            notifier.notify(Notification {
                object: announcement.object.clone(),
                event: announcement.event.clone(),
                metadata: announcement.carried(),
                controller: self.controller,
                instance: self.instance.clone(),
                time: announcement.time,
            });
        }
        match recorded {
            Err(error) if error.is_passing() => {
                self.delay(announcement, &error);
                Ok(())
            }
            recorded => recorded.map(drop),
        }
    }

    /// Returns whether an event may be recorded.
    fn admits(&self, announcement: &Announcement) -> bool {
        if matches!(announcement.occurrence, Occurrence::Pushed(_)) {
            return true;
        }
        let mut limiter = self.limiter.lock();
        let admits = limiter.admits(&announcement.object, Instant::now());
        if !admits {
            let object = named(&announcement.object);
            tracing::debug!(object, "an event is not recorded: its object has had too many");
        }
        admits
    }

    /// Announces an event in the background, as `announce` does it.
    pub fn announce_later<F>(&self, mut announcement: Announcement, announce: impl FnOnce(Announcement) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        cut(&mut announcement.event.message);
        let delivery = Delivery {
            namespace: announcement.object.namespace.clone().unwrap_or_default(),
            label: named(&announcement.object),
            bytes: announcement.size(),
            work: announce(announcement),
        };
        for object in self.delayed.start(delivery) {
            tracing::error!(object, "an event is not recorded: too many of its namespace are waiting");
        }
    }

    /// Records an event later, with growing waits.
    fn delay(&self, announcement: Announcement, error: &ClusterError) {
        tracing::info!(error = %error, "cannot record an event, trying again");
        let recorder = self.recorder.clone();
        self.announce_later(announcement, |announcement| async move {
            for attempt in 2..=TRIES {
                sleep(BACKOFF.after(attempt - 1)).await;
                match recorder.record(&announcement).await {
                    Ok(_) => return,
                    Err(error) if error.is_passing() && attempt < TRIES => {}
                    Err(error) => {
                        tracing::error!(error = %error, "cannot record the event");
                        return;
                    }
                }
            }
        });
    }

    /// Waits until what is on its way has arrived or failed, but not for long.
    pub async fn finish(&self) {
        let notifications = async {
            if let Some(notifier) = &self.notifier {
                notifier.finish().await;
            }
        };
        tokio::join!(self.delayed.finish(FAREWELL), notifications);
    }
}

/// Cuts a message to its maximum length, and says so at its end.
fn cut(message: &mut String) {
    if message.len() <= MAX_MESSAGE {
        return;
    }
    let note = format!("… (cut: the message has {} bytes)", message.len());
    message.truncate(message.floor_char_boundary(MAX_MESSAGE - note.len()));
    message.push_str(&note);
}

impl Announcement {
    /// The memory that it takes, in bytes.
    fn size(&self) -> usize {
        let annotations = self.annotations.iter().map(|(name, value)| name.len() + value.len());
        self.event.message.len() + annotations.sum::<usize>() + 1024
    }

    /// The annotations that go along.
    pub(super) fn carried(&self) -> BTreeMap<String, String> {
        let carried = self.annotations.iter().filter(|(key, _)| key.starts_with(CARRIED));
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
            cut(&mut found);
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
