//! Watches the objects of one kind.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::ClusterResourceScope;
use kube::core::{DeserializeGuard, ObjectMeta};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use super::cache::{Cache, Change};
use super::client::observed_client;
use super::error::ClusterError;
use super::list::PAGE_SIZE;
use super::resource_scope::ResourceScope;
use crate::backoff::Backoff;
use crate::objects::ObjectName;

/// The time after which the API server ends each request of a close watch.
const CLOSE_WATCH_SECONDS: u32 = 20;

/// The time after which the API server ends each request to watch one object.
///
/// A connection that is dead is noticed a few seconds later. There are as many such watches as nodes, so they are not closer.
const OBJECT_WATCH_SECONDS: u32 = 60;

/// The status of a resource version that is too old to watch from.
const GONE: u16 = 410;

/// A kind of objects that is watched, namespaced or cluster-scoped.
pub trait Watched:
    Resource<DynamicType = (), Scope: ResourceScope>
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
    K: Resource<DynamicType = (), Scope: ResourceScope>
        + Clone
        + DeserializeOwned
        + PartialEq
        + Debug
        + Send
        + Sync
        + 'static
{
}

/// The selection of the objects of a kind to watch.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The only namespace; `None`: all. Kinds of the whole cluster ignore it.
    pub namespace: Option<String>,
    /// The label selector.
    pub labels: Option<String>,
}

/// An event of a watch.
#[derive(Debug)]
pub enum Observation<K> {
    /// An object changed, or one that could never be parsed was deleted.
    Changed(Change<K>),
    /// An object cannot be parsed. It counts as absent, and the watch continues.
    Unreadable {
        /// The object's metadata.
        metadata: Box<ObjectMeta>,
        /// The error message.
        message: String,
        /// The change that follows from its absence, if it could be parsed before.
        change: Option<Change<K>>,
    },
    /// A listing of all objects begins, which ends with [`Complete`](Self::Complete).
    ///
    /// It has the known objects, too.
    Listing,
    /// All existing objects have been listed.
    Complete,
    /// The watch failed and is retried shortly.
    WatchError(ClusterError),
}

/// Counts consecutive failures, with a short backoff.
///
/// The first requests after an outage of the API server fail as well (it does not know roles and former versions
/// yet), so a watch with a long backoff would recover last.
#[derive(Debug, Default)]
struct WatchBackoff {
    failures: u32,
    last: Option<Instant>,
}

impl WatchBackoff {
    const BACKOFF: Backoff = Backoff { first: Duration::from_millis(500), longest: Duration::from_secs(5) };

    /// The time after which a failure is not consecutive any more.
    const RESET_AFTER: Duration = Duration::from_secs(30);

    fn after_failure(&mut self, now: Instant) -> Duration {
        if self.last.replace(now).is_none_or(|last| now.duration_since(last) > Self::RESET_AFTER) {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        Self::BACKOFF.after(self.failures)
    }
}

/// Watches the objects of a kind, updates `cache` and calls `observe`, until dropped.
///
/// It requests them as [`watch_events`] does.
pub async fn watch_objects<K: Watched>(
    client: Client,
    scope: &Scope,
    cache: &Cache<K>,
    mut observe: impl FnMut(Observation<K>),
) {
    let api: Api<DeserializeGuard<K>> = K::Scope::api(client, scope.namespace.as_deref());
    watch_events(api, scope.labels.clone(), |event| {
        let event = match event {
            Ok(event) => event,
            Err(error) => return observe(Observation::WatchError(error)),
        };
        let is_end = match &event {
            Event::Delete(guard) => {
                let name = ObjectName::of(guard);
                let change = cache.remove(&name).unwrap_or(Change { name, old: None, new: None });
                return observe(Observation::Changed(change));
            }
            Event::Init => {
                observe(Observation::Listing);
                false
            }
            event => matches!(event, Event::InitDone),
        };
        match unwrap_object(event) {
            Ok(event) => cache.observe(event).into_iter().map(Observation::Changed).for_each(&mut observe),
            Err((metadata, message)) => {
                let name = ObjectName {
                    namespace: metadata.namespace.clone().unwrap_or_default(),
                    name: metadata.name.clone().unwrap_or_default(),
                };
                let change = cache.remove(&name);
                observe(Observation::Unreadable { metadata, message, change });
            }
        }
        if is_end {
            observe(Observation::Complete);
        }
    })
    .await;
}

/// Watches the objects of a kind and passes on all events and failures, until dropped.
///
/// Objects are listed in pages, which the API server grants only without a resource version in the request. They are
/// listed again after an outage of the API server: if it was restored from a backup, the resource version of the last
/// watch would be in its future, and it would send no events. They are as well if the API server says that it cannot go on from
/// that version. After a failure, the watch is retried shortly.
pub async fn watch_events<K>(
    api: Api<K>,
    labels: Option<String>,
    observe: impl FnMut(Result<Event<K>, ClusterError>),
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut config = watcher::Config::default().page_size(PAGE_SIZE);
    config.label_selector = labels;
    watch_selected(api, config, observe).await;
}

/// Watches all objects of a kind, and shows that the watch is alive, until dropped.
///
/// It requests them and passes on events and failures as [`watch_events`] does. `alive` is called when the API server
/// accepts a request to watch, which it does every 20 seconds as long as the watch works. So it is known that no event is
/// missing because a connection is dead.
pub async fn watch_closely<K>(
    client: &Client,
    alive: impl Fn() + Clone + Send + Sync + 'static,
    observe: impl FnMut(Result<Event<K>, ClusterError>),
) where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope>
        + Clone
        + DeserializeOwned
        + Debug
        + Send
        + 'static,
{
    let client = observed_client(client.clone(), move |request, is_success| {
        if is_success && request.query().is_some_and(|query| query.contains("watch=true")) {
            alive();
        }
    });
    let config = watcher::Config::default().page_size(PAGE_SIZE).timeout(CLOSE_WATCH_SECONDS);
    watch_selected(Api::all(client), config, observe).await;
}

/// Watches the object of a name, and passes on its states and failures, until dropped.
///
/// `None` is an object that does not exist.
///
/// It may pass on an object that has not changed. A change is passed on after about a minute at the latest, also if the
/// connection is dead.
pub async fn watch_object<K>(
    api: Api<K>,
    name: &str,
    mut observe: impl FnMut(Result<Option<K>, ClusterError>),
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let fields = format!("metadata.name={name}");
    let config = watcher::Config::default().fields(&fields).timeout(OBJECT_WATCH_SECONDS);
    let mut listed = None;
    watch_selected(api, config, |event| match event {
        Ok(Event::Init) => listed = None,
        Ok(Event::InitApply(object)) => listed = Some(object),
        Ok(Event::InitDone) => observe(Ok(listed.take())),
        Ok(Event::Apply(object)) => observe(Ok(Some(object))),
        Ok(Event::Delete(_)) => observe(Ok(None)),
        Err(error) => observe(Err(error)),
    })
    .await;
}

async fn watch_selected<K>(
    api: Api<K>,
    config: watcher::Config,
    mut observe: impl FnMut(Result<Event<K>, ClusterError>),
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let start = || watcher::watcher(api.clone(), config.clone()).boxed();
    let (mut events, mut backoff) = (start(), WatchBackoff::default());
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => observe(Ok(event)),
            Err(error) => {
                if needs_listing(&error) {
                    events = start();
                }
                observe(Err(cluster_error(error)));
                sleep(backoff.after_failure(Instant::now())).await;
            }
        }
    }
}

/// Unwraps the object of an event; the error has its metadata and a message.
///
/// It drops the managed fields, which nothing reads.
fn unwrap_object<K: Resource>(
    event: Event<DeserializeGuard<K>>,
) -> Result<Event<K>, (Box<ObjectMeta>, String)> {
    let open = |guard: DeserializeGuard<K>| match guard.0 {
        Ok(mut object) => {
            object.meta_mut().managed_fields = None;
            Ok(object)
        }
        Err(invalid) => Err((Box::new(invalid.metadata), invalid.error)),
    };
    Ok(match event {
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
        Event::InitApply(guard) => Event::InitApply(open(guard)?),
        Event::Apply(guard) => Event::Apply(open(guard)?),
        Event::Delete(guard) => Event::Delete(open(guard)?),
    })
}

/// Returns true if a watch begins with a listing again after an error.
///
/// The API server could not be asked to continue it, or has ended it with an error. It would end with the same one again.
fn needs_listing(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => {
            status.code >= 500 || status.code == GONE
        }
        watcher::Error::WatchStartFailed(_) | watcher::Error::WatchError(_) => true,
        _ => false,
    }
}

fn cluster_error(error: watcher::Error) -> ClusterError {
    match error {
        watcher::Error::InitialListFailed(cause)
        | watcher::Error::WatchStartFailed(cause)
        | watcher::Error::WatchFailed(cause) => cause.into(),
        watcher::Error::WatchError(status) => ClusterError::Rejected(status),
        other @ watcher::Error::NoResourceVersion => ClusterError::Unreachable { message: other.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::io;
    use std::sync::Arc;

    use axum::body::{Body, Bytes};
    use axum::http::{Request, Response, StatusCode};
    use futures::stream;
    use k8s_openapi::api::core::v1::ConfigMap;
    use parking_lot::Mutex;
    use serde_json::{Value, json};
    use tokio::time::timeout;
    use tower::service_fn;

    use super::*;

    /// An answer to a request to watch.
    type Watching = fn(usize) -> (u16, Body);

    /// Watches an object for a time, at an API server that answers as given.
    ///
    /// Returns the requests by their verbs, and the number of states that were passed on.
    async fn watched(seconds: u64, watching: Watching) -> (Vec<&'static str>, usize) {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&requests);
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let recorded = Arc::clone(&recorded);
            async move {
                let query = request.uri().query().unwrap_or_default();
                let is_watch = query.contains("watch=true");
                assert!(!is_watch || query.contains("timeoutSeconds=60"), "{query}");
                let mut recorded = recorded.lock();
                recorded.push(if is_watch { "watch" } else { "list" });
                let (status, body) = match is_watch {
                    true => watching(recorded.iter().filter(|verb| **verb == "watch").count()),
                    false => (200, Body::from(list().to_string())),
                };
                let mut response = Response::new(body);
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                Ok::<_, io::Error>(response)
            }
        });
        let api: Api<ConfigMap> = Api::default_namespaced(Client::new(service, "n"));
        let mut seen = 0;
        let watch = watch_object(api, "a", |state| seen += usize::from(state.is_ok()));
        assert!(timeout(Duration::from_secs(seconds), watch).await.is_err());
        let requests = requests.lock().clone();
        (requests, seen)
    }

    fn list() -> Value {
        let items = [json!({"metadata": {"namespace": "n", "name": "a", "resourceVersion": "1"}})];
        json!({
            "apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": items,
        })
    }

    fn status(code: u16) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": "", "message": "no",
        })
    }

    /// A response without an event that never ends.
    fn silence() -> (u16, Body) {
        (200, Body::from_stream(stream::once(pending::<Result<Bytes, io::Error>>())))
    }

    /// A change of a node was missed for five minutes.
    #[tokio::test(start_paused = true)]
    async fn a_watch_on_a_dead_connection_goes_on_after_a_minute() {
        let (requests, seen) = watched(70, |_| silence()).await;
        assert_eq!((requests, seen), (vec!["list", "watch", "watch"], 1));
    }

    /// The same resource version was asked for again and again.
    #[tokio::test(start_paused = true)]
    async fn a_watch_that_cannot_go_on_begins_with_a_listing() {
        for (name, watching) in [
            ("an expired version", (|_| (410, Body::from(status(410).to_string()))) as Watching),
            ("an outage", |_| (500, Body::from(status(500).to_string()))),
            ("an error as an event", |_| {
                let event = json!({"type": "ERROR", "object": status(500)});
                (200, Body::from(format!("{event}\n")))
            }),
        ] {
            let (requests, seen) = watched(1, watching).await;
            assert_eq!(requests[..4], ["list", "watch", "list", "watch"], "{name}");
            assert!(seen >= 2, "{name}");
        }
        // A right that is missing for a moment costs no listing.
        let (requests, _) = watched(1, |_| (403, Body::from(status(403).to_string()))).await;
        assert_eq!(requests[..3], ["list", "watch", "watch"]);
    }

    #[test]
    fn delays_grow_with_failures_in_a_row_and_stay_short() {
        let (mut backoff, start) = (WatchBackoff::default(), Instant::now());
        let mut after = |second| backoff.after_failure(start + Duration::from_secs(second)).as_millis();
        assert_eq!([after(0), after(1), after(2), after(4), after(8)], [500, 1_000, 2_000, 4_000, 5_000]);
        assert_eq!([after(38), after(69)], [5_000, 500]);
    }
}
