//! Announcing what happened to an object: as a Kubernetes event, and to Flux's notification controller.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::notification::{Notification, Notifier};
use super::recording::Recorder;
use super::{ClusterError, ClusterObjects};
use crate::objects::Event;

/// The annotations of an object that its announcements carry.
const CARRIED: &str = "event.toolkit.fluxcd.io/";

/// How long the API server may take; whoever announces something has more to do.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often an event is said again to an API server that is not up to it.
const TRIES: u32 = 5;

/// The wait before the second of these tries; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_secs(2);

/// How many events may be said again at the same time. More are lost.
const BELATED: u32 = 256;

/// How long the end waits for those.
const FAREWELL: Duration = Duration::from_secs(1);

/// What tells an event from others that say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occurrence {
    /// It happens once in the life of the object, whoever is told of it how often: a commit was pushed, say.
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
    belated: Arc<Semaphore>,
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
        let recorder = Arc::new(Recorder::new(client, gate, controller, instance.clone()));
        let belated = Arc::new(Semaphore::new(BELATED as usize));
        Self { recorder, belated, notifier, controller, instance }
    }

    /// Announces an event; what happens only once is announced once, even by a process that knows nothing of another.
    ///
    /// Where the API server is not up to it, it is said again a few times, which nobody waits for.
    ///
    /// # Errors
    ///
    /// When the cluster does not take it; notifications are on their way all the same.
    pub async fn announce(&self, announcement: Announcement) -> Result<(), ClusterError> {
        let recorded = self.recorder.record(&announcement).await;
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
            Err(error) if error.is_passing() => self.say_again(announcement, error),
            recorded => recorded.map(drop),
        }
    }

    /// Says an event again until it arrives, and gives the error back where too much waits already.
    fn say_again(&self, announcement: Announcement, error: ClusterError) -> Result<(), ClusterError> {
        let Ok(place) = self.belated.clone().try_acquire_owned() else { return Err(error) };
        tracing::info!(error = %error, "cannot record an event, trying again");
        let recorder = self.recorder.clone();
        tokio::spawn(async move {
            let _place = place;
            let mut wait = FIRST_WAIT;
            for attempt in 2..=TRIES {
                sleep(wait).await;
                wait *= 2;
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
        Ok(())
    }

    /// Waits until what is on its way has arrived or failed, but not for long.
    pub async fn finish(&self) {
        let events = timeout(FAREWELL, self.belated.acquire_many(BELATED));
        let notifications = async {
            if let Some(notifier) = &self.notifier {
                notifier.finish().await;
            }
        };
        let _ = tokio::join!(events, notifications);
    }
}

impl Announcement {
    /// The annotations that go along.
    pub(super) fn carried(&self) -> BTreeMap<String, String> {
        let carried = self.annotations.iter().filter(|(key, _)| key.starts_with(CARRIED));
        carried.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}
