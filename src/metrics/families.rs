//! The metric families and their registration.

use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::deployments::Deployments;
use super::forges::ForgeFamilies;
use super::in_flight::InFlight;
use super::labels::{
    ComparisonLabels, ControllerLabels, GitLabels, ObjectLabels, RequestLabels, ResultLabels, RunLabels,
};
use super::namespaces::NamespaceFamilies;
use super::node_pools::NodePoolFamilies;
use super::process::ProcessCost;
use super::waits::Waits;

/// The histogram buckets of reconciles in seconds.
///
/// The values are the lowest and the highest limit, and the number of limits.
const RECONCILE: (f64, f64, i32) = (0.01, 1800.0, 10);

/// The histogram buckets of git operations.
const GIT: (f64, f64, i32) = (0.01, 300.0, 10);

/// The histogram buckets of rollouts: from a second to a day.
const ROLLOUT: (f64, f64, i32) = (1.0, 86_400.0, 12);

/// All metric families.
pub(super) struct Families {
    pub(super) reconciles: Family<ObjectLabels, Histogram>,
    pub(super) results: Family<ResultLabels, Counter>,
    pub(super) errors: Family<ControllerLabels, Counter>,
    pub(super) runs: Family<RunLabels, Counter>,
    pub(super) git: Family<GitLabels, Histogram>,
    pub(super) fetched: Counter,
    pub(super) pushes_retried: Counter,
    pub(super) files_scanned: Counter,
    pub(super) unresolved: Family<ObjectLabels, Gauge>,
    pub(super) next_poll: Family<ObjectLabels, Gauge<f64, AtomicU64>>,
    pub(super) leader: Gauge<f64, AtomicU64>,
    /// The number of controllers that lead; it is not published.
    pub(super) led: Mutex<u32>,
    pub(super) requests: Family<RequestLabels, Counter>,
    pub(super) in_flight: InFlight,
    pub(super) dry_run_commits: Counter,
    pub(super) dry_run_comparisons: Family<ComparisonLabels, Counter>,
    pub(super) namespaces: NamespaceFamilies,
    pub(super) deployments: Deployments,
    pub(super) rollouts: Histogram,
    pub(super) node_pools: NodePoolFamilies,
    pub(super) forges: ForgeFamilies,
    pub(super) waits: Waits,
}

impl Default for Families {
    fn default() -> Self {
        Self {
            reconciles: Family::new_with_constructor(|| histogram(RECONCILE)),
            results: Family::default(),
            errors: Family::default(),
            runs: Family::default(),
            git: Family::new_with_constructor(|| histogram(GIT)),
            fetched: Counter::default(),
            pushes_retried: Counter::default(),
            files_scanned: Counter::default(),
            unresolved: Family::default(),
            next_poll: Family::default(),
            leader: Gauge::default(),
            led: Mutex::default(),
            requests: Family::default(),
            in_flight: InFlight::default(),
            dry_run_commits: Counter::default(),
            dry_run_comparisons: Family::default(),
            namespaces: NamespaceFamilies::default(),
            deployments: Deployments::default(),
            rollouts: histogram(ROLLOUT),
            node_pools: NodePoolFamilies::default(),
            forges: ForgeFamilies::default(),
            waits: Waits::default(),
        }
    }
}

impl Families {
    /// Makes a registry of all families and of the process metrics.
    pub(super) fn registered(&self) -> Registry {
        let mut registry = Registry::default();
        registry.register_with_unit(
            "gotk_reconcile_duration",
            "The duration in seconds of a reconcile",
            Unit::Seconds,
            self.reconciles.clone(),
        );
        registry.register("controller_runtime_reconcile", "Reconciles by their result", self.results.clone());
        registry.register(
            "controller_runtime_reconcile_errors",
            "Reconciles that failed",
            self.errors.clone(),
        );
        registry.register(
            "rest_client_requests",
            "Requests to the API server by the status of the response",
            self.requests.clone(),
        );
        registry.register_collector(Box::new(self.in_flight.clone()));
        registry.register_collector(Box::new(ProcessCost));
        registry.register("tagboat_runs", "Runs of automations by their outcome", self.runs.clone());
        registry.register_with_unit(
            "tagboat_git_operation_duration",
            "The duration in seconds of a call of git",
            Unit::Seconds,
            self.git.clone(),
        );
        registry.register_with_unit(
            "tagboat_git_fetched",
            "Bytes that fetches added to mirrors",
            Unit::Bytes,
            self.fetched.clone(),
        );
        registry.register(
            "tagboat_pushes_retried",
            "Transactions that were repeated because another client had pushed meanwhile",
            self.pushes_retried.clone(),
        );
        registry.register(
            "tagboat_files_scanned",
            "Files that were searched for markers",
            self.files_scanned.clone(),
        );
        registry.register(
            "tagboat_markers_unresolved",
            "Markers without effect and unreadable files of the last reconcile",
            self.unresolved.clone(),
        );
        registry.register_with_unit(
            "tagboat_next_poll_timestamp",
            "The time of the next lookup of a floating tag's digest, in seconds since 1970",
            Unit::Seconds,
            self.next_poll.clone(),
        );
        registry.register(
            "tagboat_leader",
            "1 if a controller of this process is the leader, else 0",
            self.leader.clone(),
        );
        registry.register(
            "tagboat_dry_run_commits",
            "Commits that would have been made, with --dry-run",
            self.dry_run_commits.clone(),
        );
        registry.register(
            "tagboat_dry_run_comparisons",
            "Comparisons of the pushes of another controller with those of --dry-run",
            self.dry_run_comparisons.clone(),
        );
        self.namespaces.register(&mut registry);
        registry.register_collector(Box::new(self.deployments.clone()));
        registry.register_with_unit(
            "tagboat_rollout_duration",
            "The time in seconds from the commit of an image until all objects ran it",
            Unit::Seconds,
            self.rollouts.clone(),
        );
        self.node_pools.register(&mut registry);
        self.forges.register(&mut registry);
        registry.register_collector(Box::new(self.waits.clone()));
        registry
    }
}

/// Makes a histogram with exponential buckets between two limits.
pub(super) fn histogram((lowest, highest, count): (f64, f64, i32)) -> Histogram {
    let factor = (highest / lowest).powf(1.0 / f64::from(count - 1));
    Histogram::new((0..count).map(move |step| lowest * factor.powi(step)))
}
