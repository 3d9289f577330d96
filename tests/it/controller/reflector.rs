//! The reflector controller, which scans and selects, running in this process.
//!
//! ```text
//! let reflector = Reflector::of(&scene).polling(PollingInterval::Disabled).start();
//! chosen(&scene, "app", &json!({"name": image, "tag": "1.0.0"})).await;
//! reflector.end().await;
//! ```

use std::time::{Duration, Instant};

use kube::Client;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use tagboat::backoff::Backoff;
use tagboat::controller::reflector::{self, ReflectorOptions, Sources};
use tagboat::controller::{ControllerError, ControllerOptions, Election, lease_name};
use tagboat::metrics::Metrics;
use tagboat::objects::cluster::{ApiGuard, ClusterObjects, REFLECTOR, Scope};
use tagboat::policy::DowngradeProtection;
use tagboat::polling::PollingInterval;
use tagboat::reconcile::cross_namespace::CrossNamespace;
use tagboat::reconcile::policy::digest::FirstImage;
use tagboat::reconcile::policy::run::PolicyOptions;
use tagboat::reconcile::registries::AuthenticatedRegistries;
use tagboat::reconcile::repository::logins::Logins;
use tagboat::reconcile::repository::request::ObjectIdentity;
use tagboat::reconcile::tags::SharedTagStore;
use tagboat::reconcile::times::TimeBounds;
use tagboat::registry::store::{StoreLimits, TagStore};
use tagboat::registry::{Registries, RegistryOptions};
use tagboat::tenancy::Capacity;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::scene::{Kind, Scene, condition, kstatus};

/// Timeout of any step; the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Creation time of images whose age does not matter.
pub(super) const CREATED: &str = "2026-01-02T03:04:05Z";

/// Builder of a [`Reflector`], with a store in the scene's directory.
pub(super) struct ReflectorBuilder {
    pub(super) client: Client,
    pub(super) options: ReflectorOptions,
    tags: std::path::PathBuf,
    limits: StoreLimits,
}

/// A running reflector controller.
pub(super) struct Reflector {
    end: oneshot::Sender<()>,
    task: JoinHandle<Result<(), ControllerError>>,
    metrics: Metrics,
}

impl ReflectorBuilder {
    pub(super) fn polling(mut self, polling: PollingInterval) -> Self {
        self.options.policies.polling = polling;
        self
    }

    pub(super) fn downgrade_protection(mut self, scans: u32, time: Duration) -> Self {
        self.options.policies.downgrade_protection = DowngradeProtection { scans, time };
        self
    }

    pub(super) fn without_cross_namespace_references(mut self) -> Self {
        self.options.policies.cross_namespace = CrossNamespace::Forbidden;
        self
    }

    /// Sets the namespace; `None` is all namespaces.
    pub(super) fn in_namespace(mut self, namespace: Option<&str>) -> Self {
        self.options.controller.scope.namespace = namespace.map(str::to_owned);
        self
    }

    /// Sets the client.
    pub(super) fn through(self, client: Client) -> Self {
        Self { client, ..self }
    }

    /// Sets the limits of the store.
    pub(super) fn storing(self, limits: StoreLimits) -> Self {
        Self { limits, ..self }
    }

    /// Sets an empty store, as after a restart without the old one.
    pub(super) fn with_an_empty_store(mut self) -> Self {
        self.tags.set_extension("other");
        self
    }

    /// Turns leader election on, with this identity.
    pub(super) fn standing_as(mut self, identity: &str) -> Self {
        self.options.controller.election = Some(Election {
            namespace: self.options.controller.scope.namespace.clone().unwrap(),
            name: lease_name(REFLECTOR, None),
            identity: identity.to_owned(),
            duration: Duration::from_secs(3),
            renew_deadline: Duration::from_secs(2),
            retry_period: Duration::from_millis(200),
            is_released: true,
        });
        self
    }

    pub(super) fn start(self) -> Reflector {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let Self { client, options, tags, limits } = self;
        let registry = AuthenticatedRegistries {
            objects: ClusterObjects::new(client.clone()),
            registries: Registries::new(RegistryOptions::default()),
            logins: Logins::default(),
        };
        let capacity = options.policies.capacity.clone();
        let sources =
            Sources { registry, tag_store: SharedTagStore::new(TagStore::limited(tags, limits), capacity) };
        let (end, ended) = oneshot::channel();
        let end_of_test = async move {
            // A test that drops its reflector ends it, too.
            let _ = ended.await;
        };
        let metrics = Metrics::default();
        let task = tokio::spawn(reflector::run(client, options, sources, metrics.clone(), end_of_test));
        Reflector { end, task, metrics }
    }
}

impl Reflector {
    pub(super) fn of(scene: &Scene) -> ReflectorBuilder {
        let options = ReflectorOptions {
            controller: ControllerOptions {
                name: REFLECTOR,
                scope: Scope { namespace: Some(scene.cluster.namespace().to_owned()), labels: None },
                backoff: Backoff { first: Duration::from_millis(750), longest: Duration::from_secs(900) },
                election: None,
                guard: ApiGuard::default(),
                notifier: None,
                instance: "tests".to_owned(),
                process_id: "0b5f60e2-93d5-4d7c-8a52-3f1de25a70cd".to_owned(),
                is_dry_run: false,
                is_leader: watch::Sender::default(),
            },
            policies: PolicyOptions {
                cross_namespace: CrossNamespace::Allowed,
                identity: ObjectIdentity::Off,
                requeue_dependency: Duration::from_secs(30),
                downgrade_protection: DowngradeProtection::default(),
                polling: PollingInterval::default(),
                first_image: FirstImage::Counts,
                times: TimeBounds::default(),
                capacity: Capacity::default(),
            },
        };
        ReflectorBuilder {
            client: scene.cluster.client(),
            options,
            tags: scene.root().join("tags"),
            limits: StoreLimits::default(),
        }
    }

    /// Returns the time until the digest of a policy is looked up next.
    /// It is `None` if that is not known.
    pub(super) fn next_poll(&self, policy: &str) -> Option<Duration> {
        next_poll(&self.metrics.to_text(), policy)
    }

    /// Seconds of the longest lookup of a controller so far.
    pub(super) fn longest_look(&self, controller: &str) -> f64 {
        let name = format!("workqueue_longest_running_processor_seconds{{name=\"{controller}\"}} ");
        let text = self.metrics.to_text();
        text.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
    }

    /// True if there is a metric of objects with this name.
    pub(super) fn measures(&self, name: &str) -> bool {
        self.metrics.to_text().contains(&format!("name=\"{name}\",namespace="))
    }

    pub(super) async fn end(self) {
        let _ = self.end.send(());
        self.task.await.unwrap().unwrap();
    }
}

/// The time until the next lookup of a policy, from the text of the metrics.
pub(super) fn next_poll(metrics: &str, policy: &str) -> Option<Duration> {
    let name = format!("name=\"{policy}\"");
    let mut lines = metrics.lines().filter(|line| line.starts_with("tagboat_next_poll_timestamp_seconds{"));
    let (_, value) = lines.find(|line| line.contains(&name))?.rsplit_once(' ')?;
    let now = jiff::Timestamp::now().as_millisecond() as f64 / 1000.0;
    Some(Duration::from_secs_f64((value.parse::<f64>().unwrap() - now).max(0.0)))
}

/// Waits until an object fulfils a condition, and returns its status.
pub(super) async fn until(
    scene: &Scene,
    kind: Kind,
    name: &str,
    is: impl Fn(&DynamicObject) -> bool,
) -> Value {
    let begin = Instant::now();
    loop {
        let object = scene.api(kind).get(name).await.unwrap();
        if is(&object) {
            return object.data["status"].clone();
        }
        assert!(begin.elapsed() < TIMEOUT, "{name} is not as it should be: {:#}", object.data["status"]);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(super) async fn chosen(scene: &Scene, policy: &str, image: &Value) -> Value {
    let is =
        |object: &DynamicObject| kstatus(object) == "Current" && object.data["status"]["latestRef"] == *image;
    until(scene, Kind::Policy, policy, is).await
}

pub(super) fn ready(status: &Value) -> (String, String) {
    let ready = condition(status, "Ready").expect("there is Ready");
    let text = |name: &str| ready[name].as_str().unwrap().to_owned();
    (text("reason"), text("message"))
}

pub(super) fn requested(token: &str) -> Value {
    json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": token}}})
}
