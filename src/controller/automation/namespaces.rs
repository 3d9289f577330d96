//! The annotations of Namespaces that decide about writes.
//!
//! A watch of all Namespaces keeps them. Where that is not possible, and while the watch fails, a Namespace is read each time
//! that its annotations are needed. What is not known is an error, so that nothing is written against a freeze.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use kube::core::ApiResource;
use kube::runtime::watcher::Event;
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use tagboat_api::ObjectName;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use super::refused_reads::{Refusal, RefusedReads};
use crate::cancel::BootTime;
use crate::controller::engine::refusals::Refusals;
use crate::controller::engine::{forbidden, is_permitted};
use crate::objects::cluster::{Cache, Change, ClusterError, ClusterObjects, NamespaceObject, watch_closely};
use crate::reconcile::automation::waiting::{NamespaceRules, RulesError, RulesReader};

/// The silence of the watch after which its state is unknown.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);

/// The timeout of a request, with the wait for its slot.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The time for which the answer to a request is reused.
///
/// A freeze must be seen within a second.
const LONGEST_REUSE: Duration = Duration::from_millis(500);

/// The maximum time for which reconciles wait for the first list.
const SYNC_TIMEOUT: Duration = Duration::from_secs(10);

/// The annotations of Namespaces that decide about writes. Clones share them.
#[derive(Clone)]
pub(super) struct Namespaces(Arc<State>);

struct State {
    objects: ClusterObjects,
    /// The namespace of the controller.
    own: String,
    is_watched: bool,
    cache: Cache<NamespaceObject>,
    /// The last sign of life of the watch; none while it is refused or fails.
    alive: Mutex<Option<BootTime>>,
    /// True once a watch has begun or was refused.
    is_settled: watch::Sender<bool>,
    refused: Mutex<RefusedReads>,
    /// The last answers to requests, each with its time.
    recent: Mutex<BTreeMap<String, Answer>>,
}

/// A watch that the API server has refused.
struct RefusedWatch {
    /// The reason.
    refusal: String,
    /// True if it was accepted before.
    has_begun: bool,
}

/// The annotations of a Namespace, with the time of the request.
type Answer = (BootTime, BTreeMap<String, String>);

impl Namespaces {
    /// Makes an empty cache.
    ///
    /// `own` is the namespace of the controller. If Namespaces are not watched, each is read when it is needed.
    pub(super) fn new(objects: ClusterObjects, own: String, is_watched: bool) -> Self {
        Self(Arc::new(State {
            objects,
            own,
            is_watched,
            cache: Cache::default(),
            alive: Mutex::default(),
            is_settled: watch::Sender::new(!is_watched),
            refused: Mutex::default(),
            recent: Mutex::default(),
        }))
    }

    /// Returns the namespace of the controller, which can freeze all automations.
    pub(super) fn own(&self) -> &str {
        &self.0.own
    }

    /// Watches all Namespaces until dropped, and passes on each change of our annotations.
    ///
    /// A refused watch is tried again, in the end every five minutes.
    pub(super) async fn watch(&self, changed: impl Fn(&Change<NamespaceObject>)) {
        if !self.0.is_watched {
            return;
        }
        let (mut refusals, mut logged) = (Refusals::default(), None);
        loop {
            let RefusedWatch { refusal, has_begun } = self.0.watch_until_refused(&changed).await;
            self.0.lost();
            if has_begun {
                (refusals, logged) = (Refusals::default(), None);
            }
            self.0.settle();
            if logged.as_ref() != Some(&refusal) {
                tracing::info!("namespaces are not watched, but read before each write: {refusal}");
                logged = Some(refusal);
            }
            sleep(refusals.add().pause).await;
        }
    }

    /// Waits until the watch has begun or is refused, but not for long.
    pub(super) async fn wait_for_sync(&self) {
        let mut is_settled = self.0.is_settled.subscribe();
        // After the timeout, Namespaces are read when they are needed.
        let _ = timeout(SYNC_TIMEOUT, is_settled.wait_for(|is_settled| *is_settled)).await;
    }

    /// Returns a reader of the rules that hold for the automations of a Namespace.
    pub(super) fn rules(&self) -> RulesReader {
        let (namespaces, watched) = (self.clone(), self.clone());
        let is_cached = move || watched.0.is_known(BootTime::now());
        let reader = RulesReader::new(move |namespace| {
            let own = namespaces.annotations(namespace)?;
            let of_controller = namespaces.annotations(namespaces.own())?;
            Ok(NamespaceRules::of(&own).with_freeze_all(namespaces.own(), &of_controller))
        });
        reader.cached_while(is_cached)
    }

    /// Returns our annotations of a Namespace; none if it does not exist.
    ///
    /// If they are not known, it blocks the thread for one request. If the role does not permit that, there are none. It must
    /// be called on a blocking thread of the runtime.
    ///
    /// # Errors
    ///
    /// The Namespace cannot be read.
    pub(super) fn annotations(&self, namespace: &str) -> Result<BTreeMap<String, String>, RulesError> {
        let now = BootTime::now();
        if let Some(known) = self.0.known(namespace, now).or_else(|| self.0.recent(namespace, now)) {
            return Ok(known);
        }
        let read = Handle::current().block_on(self.0.read(namespace, now));
        if let Ok(annotations) = &read {
            let mut recent = self.0.recent.lock();
            recent.retain(|_, (at, _)| now.since(*at) < LONGEST_REUSE);
            recent.insert(namespace.to_owned(), (now, annotations.clone()));
        }
        read
    }
}

impl State {
    /// Watches all Namespaces until the API server refuses that, and returns the reason.
    async fn watch_until_refused(
        self: &Arc<Self>,
        changed: &impl Fn(&Change<NamespaceObject>),
    ) -> RefusedWatch {
        let (client, resource) = (self.objects.client(), ApiResource::erase::<NamespaceObject>(&()));
        for verb in ["list", "watch"] {
            let review = forbidden(client, None, &resource, verb, None);
            if let Ok(Some(refusal)) = timeout(REQUEST_TIMEOUT, review).await {
                return RefusedWatch { refusal, has_begun: false };
            }
        }
        let (refuse, refusal) = oneshot::channel();
        let (mut refuse, mut failure) = (Some(refuse), String::new());
        let (own, has_begun) = (self.clone(), Arc::new(AtomicBool::new(false)));
        let begins = has_begun.clone();
        let watching = watch_closely(
            client,
            move || {
                begins.store(true, Ordering::Relaxed);
                own.is_alive(BootTime::now());
            },
            |event| match event {
                Ok(event) => {
                    if matches!(event, Event::InitDone | Event::Apply(_) | Event::Delete(_))
                        && !std::mem::take(&mut failure).is_empty()
                    {
                        tracing::info!("watch of namespaces recovered");
                    }
                    self.cache.observe(event).iter().filter(|change| is_news(change)).for_each(changed);
                }
                Err(error) if error.is_forbidden() => {
                    // The receiver waits until the first one.
                    refuse.take().into_iter().for_each(|refuse| drop(refuse.send(error.to_string())));
                }
                Err(error) => {
                    // A change may have been missed, until a watch is accepted again.
                    self.lost();
                    let message = error.to_string();
                    if message != failure {
                        tracing::error!(error = message, "watch of namespaces failed, retrying");
                        failure = message;
                    }
                }
            },
        );
        let refusal = tokio::select! {
            () = watching => String::new(),
            refusal = refusal => refusal.unwrap_or_default(),
        };
        RefusedWatch { refusal, has_begun: has_begun.load(Ordering::Relaxed) }
    }

    /// Records that the watch shows nothing at present.
    fn lost(&self) {
        *self.alive.lock() = None;
    }

    /// Records a sign of life of the watch.
    fn is_alive(&self, now: BootTime) {
        *self.alive.lock() = Some(now);
        self.settle();
    }

    fn settle(&self) {
        self.is_settled.send_if_modified(|is_settled| !std::mem::replace(is_settled, true));
    }

    /// Returns the answer to a request of this moment.
    fn recent(&self, namespace: &str, now: BootTime) -> Option<BTreeMap<String, String>> {
        let recent = self.recent.lock();
        let (at, annotations) = recent.get(namespace)?;
        (now.since(*at) < LONGEST_REUSE).then(|| annotations.clone())
    }

    /// Returns true if the watch shows the annotations at present.
    fn is_known(&self, now: BootTime) -> bool {
        self.alive.lock().is_some_and(|alive| now.since(alive) <= LONGEST_SILENCE)
    }

    /// Returns the annotations that the watch has shown, unless it is silent for long.
    fn known(&self, namespace: &str, now: BootTime) -> Option<BTreeMap<String, String>> {
        if !self.is_known(now) {
            return None;
        }
        let name = ObjectName { namespace: String::new(), name: namespace.to_owned() };
        let found = self.cache.get(&name);
        Some(found.map(|found| found.annotations().clone()).unwrap_or_default())
    }

    /// Requests the annotations of a Namespace.
    async fn read(&self, namespace: &str, now: BootTime) -> Result<BTreeMap<String, String>, RulesError> {
        let api: Api<NamespaceObject> = Api::all(self.objects.client().clone());
        let request = self.objects.guard().send(namespace, api.get_opt(namespace));
        let answer = timeout(REQUEST_TIMEOUT, request).await;
        let source = match answer.unwrap_or(Err(ClusterError::Timeout(REQUEST_TIMEOUT))) {
            Ok(found) => {
                if self.refused.lock().succeeded(namespace) {
                    tracing::info!("freezes and windows of namespaces are seen again");
                }
                return Ok(found.map(|found| found.annotations().clone()).unwrap_or_default());
            }
            Err(error) if error.is_forbidden() => match self.refusal(namespace, now).await {
                Refusal::Unconfirmed => error,
                Refusal::Confirmed { is_news } => {
                    if is_news {
                        tracing::error!(error = %error, "freezes and windows of namespaces are not seen");
                    }
                    return Ok(BTreeMap::new());
                }
            },
            Err(error) => {
                self.refused.lock().failed(namespace);
                error
            }
        };
        Err(RulesError::Unreadable { namespace: namespace.to_owned(), source: Arc::new(source) })
    }

    /// Handles a refused read of a Namespace.
    ///
    /// An API server that does not know all roles yet refuses the review of the role as well, so that nothing is confirmed.
    async fn refusal(&self, namespace: &str, now: BootTime) -> Refusal {
        let refusal = self.refused.lock().add(namespace, now);
        if refusal != Refusal::Unconfirmed {
            return refusal;
        }
        let attributes = ResourceAttributes {
            resource: Some("namespaces".to_owned()),
            verb: Some("get".to_owned()),
            // A role of the Namespace may permit it.
            namespace: Some(namespace.to_owned()),
            name: Some(namespace.to_owned()),
            ..ResourceAttributes::default()
        };
        let review = timeout(REQUEST_TIMEOUT, is_permitted(self.objects.client(), attributes)).await;
        match review {
            Ok(Some(false)) => self.refused.lock().confirm(namespace),
            _ => refusal,
        }
    }
}

/// Returns whether a change of a Namespace adds or changes an annotation.
pub(super) fn sets(change: &Change<NamespaceObject>, annotation: &str) -> bool {
    let [old, new] = [&change.old, &change.new].map(|object| object.as_ref()?.annotations().get(annotation));
    new.is_some() && new != old
}

/// Returns whether a change of a Namespace is one of our annotations.
fn is_news(change: &Change<NamespaceObject>) -> bool {
    let none = BTreeMap::new();
    let [old, new] =
        [&change.old, &change.new].map(|object| object.as_ref().map_or(&none, |object| object.annotations()));
    old != new
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::Body;
    use axum::http::{Request, Response};
    use futures::{StreamExt, stream};
    use kube::Client;
    use serde_json::{Value, json};
    use tokio::task::spawn_blocking;
    use tower::service_fn;

    use super::*;

    fn namespace(name: &str, annotations: &[(&str, &str)]) -> Value {
        let annotations: BTreeMap<_, _> =
            annotations.iter().map(|(key, value)| (format!("tagboat.dev/{key}"), *value)).collect();
        let metadata = json!({"name": name, "uid": name, "resourceVersion": "1", "annotations": annotations});
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    }

    /// Returns a client of an API server with the Namespace `shop`.
    ///
    /// It sends `event` to each watch. Of a Namespace with the name of a status code, it answers with that code.
    /// Reviews of the role are refused, or say whether it permits what is asked.
    fn client(is_permitted: Option<bool>, event: Value) -> Client {
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
            let shop = namespace("shop", &[("freeze", "incident")]);
            let answer = match path.rsplit('/').next() {
                Some("selfsubjectaccessreviews") => match is_permitted {
                    Some(is_permitted) => json!({
                        "apiVersion": "authorization.k8s.io/v1",
                        "kind": "SelfSubjectAccessReview",
                        "metadata": {},
                        "spec": {},
                        "status": {"allowed": is_permitted},
                    }),
                    None => json!({"status": "Failure", "code": 403, "message": "no"}),
                },
                Some("namespaces") if query.contains("watch=true") => event.clone(),
                Some("namespaces") => json!({"metadata": {"resourceVersion": "1"}, "items": [shop]}),
                Some("shop") => shop,
                Some("404") => {
                    json!({"status": "Failure", "code": 404, "reason": "NotFound", "message": "no"})
                }
                Some(code) => {
                    json!({"status": "Failure", "code": code.parse::<u16>().unwrap(), "message": "no"})
                }
                None => Value::Null,
            };
            let status = answer["code"].as_u64().map_or(200, |code| u16::try_from(code).unwrap());
            let answer = stream::iter([Ok::<_, Infallible>(format!("{answer}\n"))]);
            let body = if query.contains("watch=true") {
                Body::from_stream(answer.chain(stream::pending()))
            } else {
                Body::from_stream(answer)
            };
            async move { Ok::<_, Infallible>(Response::builder().status(status).body(body).unwrap()) }
        });
        Client::new(service, "default")
    }

    /// Returns the annotations of a Namespace, or the message of the cause.
    async fn annotations(namespaces: &Namespaces, namespace: &'static str) -> Result<usize, String> {
        let namespaces = namespaces.clone();
        let found = spawn_blocking(move || namespaces.annotations(namespace)).await.unwrap();
        found.map(|found| found.len()).map_err(|error| crate::error::chain(&error))
    }

    #[tokio::test]
    async fn each_namespace_is_read_where_the_watch_is_refused() {
        let namespaces =
            Namespaces::new(ClusterObjects::new(client(Some(false), Value::Null)), "own".to_owned(), true);
        let own = namespaces.clone();
        let watch = tokio::spawn(async move { own.watch(|_| panic!("nothing is watched")).await });
        namespaces.wait_for_sync().await;
        for (namespace, expected) in [
            ("shop", Ok(1)),
            ("404", Ok(0)),
            ("500", Err("the annotations of namespace 500 cannot be read: no")),
            ("403", Ok(0)),
        ] {
            assert_eq!(annotations(&namespaces, namespace).await, expected.map_err(str::to_owned));
        }
        assert!(!watch.is_finished());
        watch.abort();
    }

    /// Each Namespace without an annotation was frozen for the time of the confirmation.
    #[tokio::test]
    async fn a_refusal_counts_at_once_if_the_role_does_not_permit_the_read() {
        let refusal = Err("the annotations of namespace 403 cannot be read: no".to_owned());
        for (is_permitted, expected) in [(Some(false), Ok(0)), (Some(true), refusal.clone()), (None, refusal)]
        {
            let client = client(is_permitted, Value::Null);
            let namespaces = Namespaces::new(ClusterObjects::new(client), "own".to_owned(), false);
            assert_eq!(annotations(&namespaces, "403").await, expected, "{is_permitted:?}");
            // Otherwise it counts once it has lasted.
            let later = BootTime::now() + Duration::from_secs(20);
            assert!(namespaces.0.read("403", later).await.unwrap().is_empty());
            assert_eq!(annotations(&namespaces, "403").await, Ok(0));
        }
    }

    #[tokio::test]
    async fn the_state_of_a_watch_counts_for_a_minute_after_its_last_sign_of_life() {
        let mut changed = namespace("shop", &[("freeze", "incident"), ("windows", "[]")]);
        changed["metadata"]["resourceVersion"] = json!("2");
        let event = json!({"type": "MODIFIED", "object": changed});
        let namespaces =
            Namespaces::new(ClusterObjects::new(client(Some(true), event)), "own".to_owned(), true);
        assert_eq!(namespaces.0.known("shop", BootTime::now()), None);
        let (changes, own) = (watch::Sender::new(0), namespaces.clone());
        let mut seen = changes.subscribe();
        let watch =
            tokio::spawn(async move { own.watch(|_| changes.send_modify(|count| *count += 1)).await });
        seen.wait_for(|count| *count == 2).await.unwrap();
        let now = BootTime::now();
        let known = namespaces.0.known("shop", now + Duration::from_secs(55)).unwrap();
        assert_eq!((known.len(), namespaces.0.known("other", now)), (2, Some(BTreeMap::new())));
        assert_eq!(namespaces.0.known("shop", now + Duration::from_secs(61)), None);
        watch.abort();
    }

    #[test]
    fn a_freeze_that_is_set_differs_from_one_that_is_lifted() {
        let none = &[][..];
        for (old, new, sets_freeze) in [
            (Some(none), Some(&[("freeze", "a")][..]), true),
            (None, Some(&[("freeze", "a")]), true),
            (Some(&[("freeze", "a")]), Some(&[("freeze", "b")]), true),
            (Some(&[("freeze", "a")]), Some(&[("freeze", "a"), ("windows", "[]")]), false),
            (Some(&[("freeze", "a")]), Some(none), false),
            (Some(&[("freeze", "a")]), None, false),
            (Some(none), Some(&[("freeze-all", "")]), false),
        ] {
            let object = |annotations: Option<&[(&str, &str)]>| {
                annotations.map(|annotations| {
                    Arc::new(serde_json::from_value(namespace("shop", annotations)).unwrap())
                })
            };
            let name = ObjectName { namespace: String::new(), name: "shop".to_owned() };
            let change = Change { name, old: object(old), new: object(new) };
            assert_eq!(sets(&change, "tagboat.dev/freeze"), sets_freeze, "{old:?} {new:?}");
            assert!(is_news(&change));
            assert!(!is_news(&Change { old: change.new.clone(), ..change }));
        }
    }
}
