//! The automation controller: reconciles ImageUpdateAutomations, those of one repository together.
//!
//! | file | contents |
//! |---|---|
//! | `state`, `options` | the state that all reconciles share, and the effects of changes on it; options |
//! | `predicates` | the changes of policies and git repositories that make an automation due |
//! | `namespaces`, `refused_reads` | the annotations of Namespaces that decide about writes; reads of them that are refused |
//! | `batch`, `reconcile` | automations that are reconciled together; one reconcile of one of them |
//! | `waiting`, `write_state` | the automations that wait, and the timer that makes them due; their waiting as metrics |
//! | `memory` | state between two reconciles that no status has |
//! | `places` | the places of markers, for the rollout controller |
//! | `compare` | compare mode: the results of a controller that writes nothing |

mod batch;
mod compare;
mod memory;
mod namespaces;
mod options;
mod places;
mod predicates;
mod reconcile;
mod refused_reads;
mod state;
mod waiting;
mod write_state;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kube::Client;
use tagboat_api::{FINALIZER, GitRepository, ImagePolicy, ImageUpdateAutomation};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::engine::dispatcher::Dispatcher;
use super::engine::kind::KindOptions;
use super::engine::queue::{DEBOUNCE, RATE};
use super::engine::{Access, ControllerError, Engine, Requirement};
use super::process::Controller;
use super::rollout::{RolloutController, RolloutOptions};
use crate::git::{MirrorStore, TransactionSlots, Writer, WriterContext, WriterOptions};
use crate::metrics::Metrics;
use crate::objects::cluster::Cache;
use crate::reconcile::automation::pull_requests::{PullRequestQueue, PullRequestQueueOptions};
use crate::reconcile::automation::waiting::WriteRules;
use compare::Comparisons;
use namespaces::Namespaces;
use state::Automations;
use waiting::Waiting;

pub use options::{AutomationOptions, RunOptions};
pub use places::{KnownFile, Places};

/// The maximum time for reconciles in flight at shutdown.
///
/// This and the times below must fit into the ten seconds that the Deployments of Flux give a pod.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// The maximum time for reconciles after the stop signal.
///
/// Git processes get two seconds of it.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// The maximum time for reports of rollouts after the stop signal.
const REPORT_TIMEOUT: Duration = Duration::from_millis(500);

/// The time that mirrors may still be tidied for.
const TIDY_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum time for which reconciles wait until rollouts can be reported.
const PREPARATION_TIMEOUT: Duration = Duration::from_secs(10);

/// The time between two searches for mirrors that nothing uses any more.
const SWEEP_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// Makes the automation controller of a process.
pub fn controller(client: Client, options: AutomationOptions, metrics: Metrics) -> Controller {
    let access = if options.controller.is_dry_run { Access::Read } else { Access::Write };
    let requirements = vec![
        Requirement::of::<ImageUpdateAutomation>(access),
        Requirement::of::<ImagePolicy>(Access::Read),
        Requirement::of::<GitRepository>(Access::Read),
    ];
    let scope = options.controller.scope.clone();
    Controller::new("automation", scope, requirements, move |end| run(client, options, metrics, end))
}

/// Reconciles automations until `end` has come, and shuts down in good order.
///
/// # Errors
///
/// If another process has become the leader. No reconcile is in flight any more by then.
pub async fn run(
    client: Client,
    options: AutomationOptions,
    metrics: Metrics,
    end: impl Future<Output = ()>,
) -> Result<(), ControllerError> {
    let is_dry_run = options.controller.is_dry_run;
    let rollout_options = RolloutOptions {
        cross_namespace: options.run.cross_namespace,
        namespace: options.controller.scope.namespace.clone(),
        labels: options.controller.scope.labels.clone(),
        remote: options.remote_clusters,
        capacity: options.capacity.clone(),
    };
    // The role for one namespace permits no watch of all of them.
    let watches_namespaces = options.controller.scope.namespace.is_none() && !is_dry_run;
    let mut engine = Engine::new(client, options.controller, None, &metrics);
    let objects = engine.context.objects.clone();
    let namespaces = Namespaces::new(objects, options.namespace, watches_namespaces);
    let stop = engine.permit.child_token();
    let slots = TransactionSlots::limited(options.concurrent, &metrics);
    let context = WriterContext { stop: stop.clone(), metrics: metrics.clone(), capacity: options.capacity };
    let mirrors = options.mirrors.clone();
    let (pool, clients) = (context.capacity.pool.clone(), options.run.login.forges.clone());
    let writer = WriterOptions { mirrors: options.mirrors, is_dry_run, context, slots };
    let cache = Cache::indexed_by(|automation: &ImageUpdateAutomation| Some(automation.git_repository()));
    let kind = KindOptions {
        name: "ImageUpdateAutomation",
        finalizer: Some(FINALIZER),
        is_suspended: |automation: &ImageUpdateAutomation| automation.spec.suspend,
        debounce: DEBOUNCE,
        rate: RATE,
        trace_interval: Duration::ZERO,
    };
    let (kind, mut dispatcher) = engine.add_kind(cache, kind);
    let places = options.places.filter(|_| !is_dry_run);
    let mut rollouts = places
        .clone()
        .map(|places| RolloutController::new(&engine, places, kind.cache.clone(), rollout_options));
    let enqueue = kind.clone();
    let pull_requests = PullRequestQueue::new(PullRequestQueueOptions {
        clients,
        pool,
        metrics: metrics.clone(),
        on_progress: Some(Arc::new(move |name| enqueue.enqueue(name.clone()))),
        is_dry_run,
    });
    engine.spawn(pull_requests.clone().run(stop.clone()));
    let rules = WriteRules { reader: namespaces.rules(), ..WriteRules::default() };
    let automations = Arc::new(Automations {
        kind,
        namespaces,
        writer: Writer::new(writer),
        stop,
        options: options.run,
        memory: memory::Memory::default(),
        rules,
        waiting: Waiting::default(),
        pull_requests,
        comparisons: is_dry_run.then(Comparisons::default),
        places,
        rollouts: rollouts.as_ref().map(|controller| controller.rollouts.clone()),
    });
    engine.spawn(sweep(mirrors));
    let timed = automations.clone();
    engine.spawn(async move { timed.waiting.run(|name| timed.kind.enqueue(name)).await });
    start_watches(&mut engine, &automations);
    let work = async {
        tokio::join!(
            automations.kind.cache.wait_for_sync(),
            automations.objects().wait_for_sync(),
            automations.namespaces.wait_for_sync(),
        );
        let message = if is_dry_run {
            "dry run: comparing automations, writing nothing; node pools and rollouts are left alone"
        } else {
            "reconciling automations"
        };
        let (preparing, prepared) = oneshot::channel();
        let reconcile = async {
            // Either is fine: rollouts are prepared, or that takes too long.
            let _ = timeout(PREPARATION_TIMEOUT, prepared).await;
            tracing::info!("{message}");
            dispatcher.dispatch(|queue, reconciles| batch::start_due(&automations, queue, reconciles)).await;
        };
        let report = async {
            if let Some(controller) = &mut rollouts {
                controller.run(preparing, || automations.enqueue_all()).await;
            }
        };
        tokio::join!(reconcile, report);
    };
    let lost = engine.lead(work, end).await;
    if let Some(controller) = &mut rollouts {
        controller.stop(if lost.is_some() { Duration::ZERO } else { REPORT_TIMEOUT }).await;
    }
    if lost.is_some() {
        // Another process may write by now, so first ends what would still be written in the cluster.
        automations.stop.cancel();
        dispatcher.abort().await;
        finish_writer(&automations, STOP_TIMEOUT).await;
    }
    stop_reconciles(&automations, &mut dispatcher).await;
    automations.comparisons.iter().for_each(Comparisons::log_counts);
    engine.shut_down(lost).await
}

/// Watches automations, the policies and git repositories that they refer to, and Namespaces.
fn start_watches(engine: &mut Engine, automations: &Arc<Automations>) {
    engine.watch(automations);
    let own = automations.clone();
    engine.watch_related(&automations.objects().policies, move |change| own.policy_changed(change));
    let own = automations.clone();
    engine.watch_related(&automations.objects().git_repositories, move |change| own.source_changed(change));
    let (own, namespaces) = (automations.clone(), automations.namespaces.clone());
    engine.spawn(async move { namespaces.watch(|change| own.namespace_changed(change)).await });
}

/// Removes mirrors that are unused or too many, now and every day.
async fn sweep(mirrors: MirrorStore) {
    loop {
        let mirrors = mirrors.clone();
        let swept = tokio::task::spawn_blocking(move || mirrors.sweep(SystemTime::now())).await;
        if let Ok(Err(error)) = swept {
            tracing::warn!(error = %error, "cannot remove unused mirrors");
        }
        tokio::time::sleep(SWEEP_INTERVAL).await;
    }
}

/// Lets the reconciles in flight end for a while, then stops them.
async fn stop_reconciles(automations: &Automations, dispatcher: &mut Dispatcher) {
    if !dispatcher.drain(DRAIN_TIMEOUT).await {
        tracing::info!("stopping the reconciles in flight");
        automations.stop.cancel();
        dispatcher.drain(STOP_TIMEOUT).await;
    }
    automations.stop.cancel();
    dispatcher.abort().await;
    // The tidying of mirrors can be broken off at any time.
    finish_writer(automations, TIDY_TIMEOUT).await;
}

/// Waits until no work on a mirror is in progress, but not for long.
async fn finish_writer(automations: &Automations, limit: Duration) {
    let _ = timeout(limit, automations.writer.finish()).await;
}
