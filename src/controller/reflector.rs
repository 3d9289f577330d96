//! The reflector controller: reconciles ImageRepositories and ImagePolicies, and looks up the digests of followed tags.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kube::Client;
use tagboat_api::{FINALIZER, ImagePolicy, ImageRepository};

use super::engine::kind::KindOptions;
use super::engine::queue::RATE;
use super::engine::reconcile_steps::reconcile;
use super::engine::{Access, ControllerError, ControllerOptions, Engine, Requirement};
use super::policy::{self, Policies, Poller};
use super::process::Controller;
use super::repository::{self, Repositories};
use crate::metrics::Metrics;
use crate::objects::cluster::Cache;
use crate::reconcile::policy::request::repository_of;
use crate::reconcile::policy::run::PolicyOptions;
use crate::reconcile::tags::{Registry, SharedTagStore};
use crate::tenancy::{FairSemaphore, SlotLimits};

/// The time that reconciles in flight may take at shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// The maximum number of reconciles in flight, in total and per namespace.
///
/// Reconciles that wait for a registry come on top.
const SLOTS: SlotLimits = SlotLimits { total: 64, per_namespace: 32, overflow: None }.with_overflow(64);

/// The minimum time between two recorded events of an unchanged object.
///
/// In the long run Flux's controllers record as much, since their client lets no more through.
const TRACE_INTERVAL: Duration = Duration::from_secs(300);

/// The options of the reflector controller.
pub struct ReflectorOptions {
    /// The options that all controllers have.
    pub controller: ControllerOptions,
    /// The options of policies.
    pub policies: PolicyOptions,
}

/// The source of tags and their store.
pub struct Sources<R> {
    /// The registries.
    pub registry: R,
    /// The store of the tags that were found there.
    pub tag_store: SharedTagStore,
}

/// Makes the reflector controller of a process.
pub fn controller<R: Registry>(
    client: Client,
    options: ReflectorOptions,
    sources: Sources<R>,
    metrics: Metrics,
) -> Controller {
    let requirements = vec![
        Requirement::of::<ImageRepository>(Access::Write),
        Requirement::of::<ImagePolicy>(Access::Write),
    ];
    let scope = options.controller.scope.clone();
    Controller::new("reflector", scope, requirements, move |end| run(client, options, sources, metrics, end))
}

/// Reconciles repositories and policies until `end` has come, and shuts down in good order.
///
/// # Errors
///
/// If another process has become the leader. No reconcile is in flight any more by then.
pub async fn run<R: Registry>(
    client: Client,
    options: ReflectorOptions,
    sources: Sources<R>,
    metrics: Metrics,
    end: impl Future<Output = ()>,
) -> Result<(), ControllerError> {
    let slots = FairSemaphore::new(SLOTS);
    let mut engine = Engine::new(client, options.controller, Some(slots), &metrics);
    let (repository, mut scans) = engine.add_kind(
        Cache::default(),
        kind("ImageRepository", |repository: &ImageRepository| repository.spec.suspend),
    );
    let policies = Cache::indexed_by(|policy| Some(repository_of(policy)));
    let (policy, mut selections) =
        engine.add_kind(policies, kind("ImagePolicy", |policy: &ImagePolicy| policy.spec.suspend));
    let repositories = Arc::new(Repositories {
        kind: repository,
        policies: policy.clone(),
        registry: sources.registry,
        tag_store: sources.tag_store,
        options: options.policies.scans(),
        memory: repository::Memory::default(),
    });
    let policies = Arc::new(Policies {
        kind: policy,
        repositories: repositories.clone(),
        options: options.policies,
        memory: policy::Memory::default(),
        poller: Poller::default(),
    });
    engine.watch(&repositories);
    engine.watch(&policies);
    let work = async {
        tokio::join!(repositories.kind.cache.wait_for_sync(), policies.kind.cache.wait_for_sync());
        let swept = repositories.clone();
        let sweep = move || swept.tag_store.sweep(|name| swept.kind.cache.get(name).is_some());
        // No namespace of the cluster has this name.
        policies.options.capacity.pool.run("", sweep).await;
        tracing::info!("reconciling image repositories and policies");
        policies.poller.log_interval(&policies.options.polling);
        let scan = scans.dispatch_each(|name| {
            reconcile(repositories.clone(), name, |own, in_flight| {
                repository::reconcile(own, in_flight).boxed()
            })
        });
        let select = selections.dispatch_each(|name| {
            reconcile(policies.clone(), name, |own, in_flight| policy::reconcile(own, in_flight).boxed())
        });
        tokio::join!(scan, select, policy::poll(policies.clone()));
    };
    let lost = engine.lead(work, end).await;
    if lost.is_none() {
        tokio::join!(scans.drain(DRAIN_TIMEOUT), selections.drain(DRAIN_TIMEOUT));
    }
    tokio::join!(scans.abort(), selections.abort());
    engine.shut_down(lost).await
}

/// Returns the options of a kind of the reflector.
fn kind<K>(name: &'static str, is_suspended: fn(&K) -> bool) -> KindOptions<K> {
    KindOptions {
        name,
        finalizer: Some(FINALIZER),
        is_suspended,
        debounce: Duration::ZERO,
        rate: RATE,
        trace_interval: TRACE_INTERVAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::engine::in_flight::InFlight;
    use crate::controller::engine::kind::Reconciler;
    use crate::controller::engine::reconcile_steps::Work;
    use crate::objects::ObjectName;
    use crate::objects::cluster::ClusterObjects;
    use crate::reconcile::registries::AuthenticatedRegistries;

    type Registered = AuthenticatedRegistries<ClusterObjects>;

    fn waiting<R: Reconciler, F: Future>(_: impl FnOnce(Arc<R>, ObjectName, Work<R>) -> F) -> usize {
        size_of::<F>()
    }

    fn working<'a, R: Reconciler, F: Future>(_: impl FnOnce(&'a Arc<R>, &'a mut InFlight) -> F) -> usize {
        size_of::<F>()
    }

    /// Due objects wait in memory, and a restart makes all objects due.
    #[test]
    fn a_reconcile_that_waits_takes_little_memory() {
        let size = waiting(reconcile::<Policies<Registered>>);
        assert!(size < 1024, "{size} bytes until it has a slot");
        let working = [
            working(|repositories: &Arc<Repositories<Registered>>, in_flight| {
                repository::reconcile(repositories, in_flight)
            }),
            working(|policies: &Arc<Policies<Registered>>, in_flight| policy::reconcile(policies, in_flight)),
        ];
        for size in working {
            assert!(size < 8192, "{size} bytes while it waits for a registry");
        }
    }
}
