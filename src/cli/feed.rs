//! The objects of a kind in the cluster, kept up to date by a watch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::{Client, Resource};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{sleep, timeout};

use super::Failure;
use super::cluster::cannot_read;
use super::terminal::say;
use crate::objects::ObjectName;
use crate::objects::cluster::{
    Cache, Change, ClusterError, Observation, PROBE_INTERVAL, Scope, Watched, probe, watch_objects,
};

/// The timeout of the first listing, unless a wait has another.
const FIRST_LISTING: Duration = Duration::from_secs(30);

/// The shortest timeout of the first listing.
const MIN_FIRST_LISTING: Duration = Duration::from_secs(5);

/// The status code of a watch whose resource version has expired, which is listed anew.
const EXPIRED: u16 = 410;

/// The objects of a kind in a scope.
pub(super) struct Feed<K> {
    /// The objects, as in `the watch of Nodes`.
    objects: &'static str,
    cache: Cache<K>,
    observations: UnboundedReceiver<Observation<K>>,
    /// The error messages of the objects that cannot be parsed.
    unreadable: BTreeMap<ObjectName, String>,
    /// The last request failed.
    is_interrupted: bool,
}

/// Returns the failure of the first listing at a server.
///
/// `objects` is the plural of the kind.
pub(super) fn failure<K: Resource<DynamicType = ()>>(
    objects: &str,
    error: &ClusterError,
    server: &str,
) -> Failure {
    if error.is_not_found() {
        Failure::new(format!(
            "the cluster at {server} has no kind {} of {}: its CustomResourceDefinition is not installed",
            K::kind(&()),
            K::api_version(&())
        ))
    } else {
        cannot_read(&format!("{objects} at {server}"), error)
    }
}

/// Waits until the API server answers again after a silence, which is reported.
///
/// A watch does not notice that no bytes arrive any more. It notices other errors itself.
async fn end_of_silence(client: &Client, report: impl Fn(ClusterError)) {
    let mut is_silent = false;
    loop {
        sleep(PROBE_INTERVAL).await;
        match probe(client).await {
            Err(error @ ClusterError::Timeout(_)) => {
                is_silent = true;
                report(error);
            }
            _ if is_silent => return,
            _ => {}
        }
    }
}

impl<K: Watched> Feed<K> {
    /// Starts a watch and waits for the first listing.
    ///
    /// `objects` is the plural of the kind. `wait` is a time for which errors that may pass are retried.
    ///
    /// # Errors
    ///
    /// If the objects cannot be listed, or not in time.
    pub(super) async fn start(
        objects: &'static str,
        client: Client,
        scope: Scope,
        wait: Option<Duration>,
    ) -> Result<Self, ClusterError> {
        let (sender, observations) = unbounded_channel();
        let cache = Cache::default();
        let watched = cache.clone();
        // The task ends with the async runtime.
        tokio::spawn(async move {
            // The receiver is gone when the command ends.
            let send = |observation| drop(sender.send(observation));
            let (listed, mut is_first) = (Notify::new(), true);
            loop {
                let observe = |observation| {
                    if matches!(observation, Observation::Complete) {
                        listed.notify_one();
                    }
                    send(observation);
                };
                let silence = async {
                    // The first listing has a timeout of its own.
                    if is_first {
                        listed.notified().await;
                    }
                    end_of_silence(&client, |error| send(Observation::WatchError(error))).await;
                };
                // The connection of the watch may stay silent although the API server answers again.
                tokio::select! {
                    () = watch_objects(client.clone(), &scope, &watched, observe) => return,
                    () = silence => is_first = false,
                }
            }
        });
        let mut feed =
            Self { objects, cache, observations, unreadable: BTreeMap::new(), is_interrupted: false };
        let limit = wait.map_or(FIRST_LISTING, |wait| wait.max(MIN_FIRST_LISTING));
        let mut last = None;
        let listed = timeout(limit, feed.first_listing(wait.is_some(), &mut last)).await;
        listed.unwrap_or_else(|_| Err(last.unwrap_or(ClusterError::Timeout(limit))))?;
        Ok(feed)
    }

    /// Waits for the first listing.
    ///
    /// With `is_retried`, the last error that may pass is in `last`.
    async fn first_listing(
        &mut self,
        is_retried: bool,
        last: &mut Option<ClusterError>,
    ) -> Result<(), ClusterError> {
        while let Some(observation) = self.observations.recv().await {
            match observation {
                Observation::WatchError(error) if is_retried && error.is_transient() => *last = Some(error),
                Observation::WatchError(error) => return Err(error),
                Observation::Complete => break,
                observation => {
                    self.apply(observation);
                }
            }
        }
        Ok(())
    }

    /// Returns the objects, sorted by namespace and name.
    pub(super) fn objects(&self) -> Vec<Arc<K>> {
        self.cache.all()
    }

    /// Returns the objects that cannot be parsed, with the error messages.
    pub(super) fn unreadable(&self) -> impl Iterator<Item = (&ObjectName, &str)> {
        self.unreadable.iter().map(|(name, message)| (name, message.as_str()))
    }

    /// Waits for the next changes and returns those that have arrived; there may be none.
    ///
    /// A failed watch is retried, and reported once. No change is lost if the future is dropped.
    pub(super) async fn changes(&mut self) -> Vec<Change<K>> {
        let Some(first) = self.observations.recv().await else { return std::future::pending().await };
        let mut changes: Vec<_> = self.apply(first).into_iter().collect();
        while let Ok(observation) = self.observations.try_recv() {
            changes.extend(self.apply(observation));
        }
        changes
    }

    fn apply(&mut self, observation: Observation<K>) -> Option<Change<K>> {
        match observation {
            Observation::Changed(change) => {
                self.is_interrupted = false;
                self.unreadable.remove(&change.name);
                Some(change)
            }
            Observation::Unreadable { metadata, message, change } => {
                let name = ObjectName {
                    namespace: metadata.namespace.unwrap_or_default(),
                    name: metadata.name.unwrap_or_default(),
                };
                self.unreadable.insert(name, message);
                change
            }
            // The listing has the objects that still cannot be parsed.
            Observation::Listing => {
                self.unreadable.clear();
                None
            }
            Observation::Complete => {
                self.is_interrupted = false;
                None
            }
            Observation::WatchError(ClusterError::Rejected(status)) if status.code == EXPIRED => None,
            Observation::WatchError(error) => {
                if !self.is_interrupted {
                    let objects = self.objects;
                    say(&format!(
                        "warning: the watch of {objects} is interrupted and will be retried: {error}"
                    ));
                }
                self.is_interrupted = true;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use axum::body::Body;
    use axum::http::{Request, Response};
    use serde_json::json;
    use tagboat_api::DeploymentStatus;
    use tokio::time::Instant;
    use tower::service_fn;

    use super::*;

    /// An API server that accepts requests, and answers those of a watch never.
    #[derive(Default)]
    struct Server {
        is_silent: AtomicBool,
        lists: AtomicUsize,
    }

    impl Server {
        fn client(self: &Arc<Self>) -> Client {
            let server = self.clone();
            let service = service_fn(move |request: Request<kube::client::Body>| {
                let is_version = request.uri().path() == "/version";
                let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
                let is_silent = is_watch || server.is_silent.load(Ordering::SeqCst);
                if !is_version && !is_watch {
                    server.lists.fetch_add(1, Ordering::SeqCst);
                }
                let answer = if is_version {
                    json!({"major": "1", "minor": "33", "gitVersion": "v1.33.0", "gitCommit": "", "gitTreeState": "",
                        "buildDate": "", "goVersion": "", "compiler": "", "platform": ""})
                } else {
                    json!({"apiVersion": "tagboat.dev/v1alpha1", "kind": "DeploymentStatusList",
                        "metadata": {"resourceVersion": "1"}, "items": []})
                };
                async move {
                    if is_silent {
                        std::future::pending::<()>().await;
                    }
                    Ok::<_, Infallible>(Response::new(Body::from(answer.to_string())))
                }
            });
            Client::new(service, "default")
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_api_server_is_noticed_and_the_watch_begins_again_once_it_answers() {
        let server = Arc::new(Server::default());
        let mut feed =
            Feed::<DeploymentStatus>::start("DeploymentStatuses", server.client(), Scope::default(), None)
                .await
                .unwrap();
        let begin = Instant::now();
        assert!(
            timeout(Duration::from_secs(3600), feed.changes()).await.is_err(),
            "a server without changes"
        );
        assert!(!feed.is_interrupted);
        for lists in 1..=2 {
            assert_eq!(server.lists.load(Ordering::SeqCst), lists);
            server.is_silent.store(true, Ordering::SeqCst);
            let begin = Instant::now();
            assert!(feed.changes().await.is_empty());
            assert!(feed.is_interrupted);
            assert!(begin.elapsed() <= Duration::from_secs(25), "{:?}", begin.elapsed());
            // It is said once.
            assert!(feed.changes().await.is_empty());
            assert!(feed.is_interrupted);
            server.is_silent.store(false, Ordering::SeqCst);
            while feed.is_interrupted {
                feed.changes().await;
            }
        }
        assert!(begin.elapsed() < Duration::from_secs(3900));
    }
}
