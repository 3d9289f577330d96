//! What the program counts and measures, for Prometheus.
//!
//! A value that is handed in to whoever has something to count; there is no global one.

mod process;
mod under_way;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use process::ProcessCost;
use under_way::UnderWay;

pub use under_way::Look;

/// The names of the controllers as labels.
const CONTROLLERS: [&str; 3] = ["imageupdateautomation", "imagerepository", "imagepolicy"];

/// The name of the controller of a kind as a label, which dashboards for Flux select by.
fn controller_of(kind: &str) -> &'static str {
    match kind {
        "ImageRepository" => CONTROLLERS[1],
        "ImagePolicy" => CONTROLLERS[2],
        _ => CONTROLLERS[0],
    }
}

/// The limits of the buckets of reconciles, in seconds: ten, each the same number of times the one before.
const RECONCILE: (f64, f64, i32) = (0.01, 1800.0, 10);

/// The same of what git does.
const GIT: (f64, f64, i32) = (0.01, 300.0, 10);

/// Counters and measures. Clones are one and the same.
#[derive(Clone)]
pub struct Metrics {
    families: Arc<Families>,
    registry: Arc<Registry>,
}

struct Families {
    reconciles: Family<ObjectLabels, Histogram>,
    results: Family<ResultLabels, Counter>,
    errors: Family<ControllerLabels, Counter>,
    runs: Family<RunLabels, Counter>,
    git: Family<GitLabels, Histogram>,
    fetched: Counter,
    pushes_retried: Counter,
    files_scanned: Counter,
    unresolved: Family<ObjectLabels, Gauge>,
    next_poll: Family<ObjectLabels, Gauge<f64, AtomicU64>>,
    leader: Gauge<f64, AtomicU64>,
    requests: Family<RequestLabels, Counter>,
    under_way: UnderWay,
    shadow_commits: Counter,
    shadow_comparisons: Family<ShadowLabels, Counter>,
}

/// An object that something was measured of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ObjectLabels {
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabels {
    controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    controller: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RunLabels {
    outcome: RunOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GitLabels {
    operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ShadowLabels {
    outcome: ShadowOutcome,
}

/// How what another controller pushed compares with what a shadow would have pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelValue)]
#[allow(non_camel_case_types, reason = "the names are the values of the label")]
pub enum ShadowOutcome {
    /// It is the same.
    agreed,
    /// It is something else.
    differed,
    /// The shadow would have pushed nothing.
    missed,
}

/// How a run ended, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
#[allow(non_camel_case_types, reason = "the names are the values of the label")]
pub enum RunOutcome {
    /// Something was pushed.
    pushed,
    /// There was something to look at and nothing to change.
    unchanged,
    /// Nothing was new.
    skipped,
    /// Only a change of an object helps.
    stalled,
    /// It is tried again.
    failed,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let families = Families {
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
            requests: Family::default(),
            under_way: UnderWay::default(),
            shadow_commits: Counter::default(),
            shadow_comparisons: Family::default(),
        };
        registry.register_with_unit(
            "gotk_reconcile_duration",
            "The duration in seconds of a reconcile",
            Unit::Seconds,
            families.reconciles.clone(),
        );
        registry.register(
            "controller_runtime_reconcile",
            "Reconciles by their result",
            families.results.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_errors",
            "Reconciles that failed",
            families.errors.clone(),
        );
        registry.register(
            "rest_client_requests",
            "Requests to the API server by the status of the answer",
            families.requests.clone(),
        );
        registry.register_collector(Box::new(families.under_way.clone()));
        registry.register_collector(Box::new(ProcessCost));
        registry.register("tagboat_runs", "Runs of automations by their outcome", families.runs.clone());
        registry.register_with_unit(
            "tagboat_git_operation_duration",
            "The duration in seconds of a call of git",
            Unit::Seconds,
            families.git.clone(),
        );
        registry.register_with_unit(
            "tagboat_git_fetched",
            "Bytes by which fetches made mirrors larger",
            Unit::Bytes,
            families.fetched.clone(),
        );
        registry.register(
            "tagboat_pushes_retried",
            "Transactions that were begun anew because somebody else pushed meanwhile",
            families.pushes_retried.clone(),
        );
        registry.register(
            "tagboat_files_scanned",
            "Files that were searched for markers",
            families.files_scanned.clone(),
        );
        registry.register(
            "tagboat_markers_unresolved",
            "Markers and files of the last look that something is wrong with",
            families.unresolved.clone(),
        );
        registry.register_with_unit(
            "tagboat_next_poll_timestamp",
            "When the digest of a floating tag is looked up next, in seconds since 1970",
            Unit::Seconds,
            families.next_poll.clone(),
        );
        registry.register(
            "tagboat_leader",
            "Whether this process is the one that writes",
            families.leader.clone(),
        );
        registry.register(
            "tagboat_shadow_commits",
            "Commits that would have been made, with --dry-run",
            families.shadow_commits.clone(),
        );
        registry.register(
            "tagboat_shadow_comparisons",
            "What another controller pushed, compared with what would have been pushed, with --dry-run",
            families.shadow_comparisons.clone(),
        );
        Self { families: Arc::new(families), registry: Arc::new(registry) }
    }
}

impl Metrics {
    /// Takes note of how long a reconcile took and whether it failed.
    pub fn reconciled(&self, object: &ObjectLabels, duration: Duration, is_success: bool) {
        self.families.reconciles.get_or_create(object).observe(duration.as_secs_f64());
        let result = if is_success { "success" } else { "error" };
        let controller = controller_of(object.kind);
        self.families.results.get_or_create(&ResultLabels { controller, result }).inc();
        if !is_success {
            self.families.errors.get_or_create(&ControllerLabels { controller }).inc();
        }
    }

    /// Begins a look at an object of a kind.
    pub fn begin(&self, kind: &str) -> Look {
        self.families.under_way.begin(controller_of(kind), Instant::now())
    }

    /// Takes note of an answer of the API server, by its status; none where it gave no answer.
    pub fn answered(&self, status: Option<u16>) {
        // As Go's client writes it.
        let code = status.map_or_else(|| "<error>".to_owned(), |status| status.to_string());
        self.families.requests.get_or_create(&RequestLabels { code }).inc();
    }

    /// Takes note of how a run ended.
    pub fn run_ended(&self, outcome: RunOutcome) {
        self.families.runs.get_or_create(&RunLabels { outcome }).inc();
    }

    /// Takes note of when the digest that a policy follows is looked up next; one that follows none has no such time.
    pub fn next_poll(&self, policy: &ObjectLabels, next: Option<Timestamp>) {
        match next {
            Some(next) => {
                let milliseconds = next.as_millisecond() as f64;
                self.families.next_poll.get_or_create(policy).set(milliseconds / 1000.0);
            }
            None => {
                self.families.next_poll.remove(policy);
            }
        }
    }

    /// Takes note of what was found in the files of an automation.
    pub fn looked(&self, object: &ObjectLabels, files: u64, unresolved: u64) {
        self.families.files_scanned.inc_by(files);
        self.families.unresolved.get_or_create(object).set(i64::try_from(unresolved).unwrap_or(i64::MAX));
    }

    /// Takes note of a call of git.
    pub fn git_called(&self, operation: &'static str, duration: Duration) {
        self.families.git.get_or_create(&GitLabels { operation }).observe(duration.as_secs_f64());
    }

    /// Takes note of what a fetch brought.
    pub fn fetched(&self, bytes: u64) {
        self.families.fetched.inc_by(bytes);
    }

    /// Takes note of a lost race.
    pub fn push_retried(&self) {
        self.families.pushes_retried.inc();
    }

    /// Takes note of whether we lead.
    pub fn set_leader(&self, is_leader: bool) {
        self.families.leader.set(if is_leader { 1.0 } else { 0.0 });
    }

    /// Takes note of a commit that would have been made.
    pub fn would_have_committed(&self) {
        self.families.shadow_commits.inc();
    }

    /// Takes note of how what another controller pushed compares with what we would have pushed.
    pub fn compared(&self, outcome: ShadowOutcome) {
        self.families.shadow_comparisons.get_or_create(&ShadowLabels { outcome }).inc();
    }

    /// Forgets an object that has gone.
    pub fn forget(&self, object: &ObjectLabels) {
        self.families.reconciles.remove(object);
        self.families.unresolved.remove(object);
        self.families.next_poll.remove(object);
    }

    /// Everything in Prometheus' text format.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string cannot fail");
        text
    }
}

/// Prints nothing of what is counted.
impl fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Metrics")
    }
}

/// A histogram with buckets from the first limit to the second.
fn histogram((lowest, highest, count): (f64, f64, i32)) -> Histogram {
    let factor = (highest / lowest).powf(1.0 / f64::from(count - 1));
    Histogram::new((0..count).map(move |step| lowest * factor.powi(step)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(name: &str) -> ObjectLabels {
        ObjectLabels { kind: "ImageUpdateAutomation", name: name.to_owned(), namespace: "n".to_owned() }
    }

    #[test]
    fn dashboards_find_the_names_that_they_ask_for() {
        let metrics = Metrics::default();
        metrics.reconciled(&labels("a"), Duration::from_millis(5), true);
        metrics.reconciled(&labels("b"), Duration::from_secs(5), false);
        metrics.run_ended(RunOutcome::pushed);
        metrics.git_called("push", Duration::from_secs(1));
        metrics.push_retried();
        metrics.fetched(300);
        metrics.looked(&labels("a"), 3, 2);
        metrics.would_have_committed();
        metrics.compared(ShadowOutcome::agreed);
        metrics.answered(Some(409));
        metrics.answered(None);
        let text = metrics.to_text();
        for line in [
            r#"gotk_reconcile_duration_seconds_bucket{le="0.01",kind="ImageUpdateAutomation",name="a",namespace="n"} 1"#,
            r#"gotk_reconcile_duration_seconds_count{kind="ImageUpdateAutomation",name="b",namespace="n"} 1"#,
            r#"controller_runtime_reconcile_total{controller="imageupdateautomation",result="error"} 1"#,
            r#"controller_runtime_reconcile_errors_total{controller="imageupdateautomation"} 1"#,
            r#"rest_client_requests_total{code="409"} 1"#,
            r#"rest_client_requests_total{code="<error>"} 1"#,
            r#"workqueue_longest_running_processor_seconds{name="imagepolicy"} 0.0"#,
            r#"tagboat_runs_total{outcome="pushed"} 1"#,
            r#"tagboat_git_operation_duration_seconds_count{operation="push"} 1"#,
            "tagboat_pushes_retried_total 1",
            "tagboat_git_fetched_bytes_total 300",
            "tagboat_files_scanned_total 3",
            "tagboat_shadow_commits_total 1",
            r#"tagboat_shadow_comparisons_total{outcome="agreed"} 1"#,
            r#"tagboat_markers_unresolved{kind="ImageUpdateAutomation",name="a",namespace="n"} 2"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        for name in ["process_cpu_seconds_total ", "process_resident_memory_bytes "] {
            assert!(text.lines().any(|found| found.starts_with(name)), "{name} is not in\n{text}");
        }
        let buckets = text
            .lines()
            .filter(|line| line.contains("duration_seconds_bucket") && line.contains(r#"name="a""#));
        // Ten limits and the rest.
        assert_eq!(buckets.count(), 11);
        metrics.forget(&labels("a"));
        assert!(!metrics.to_text().contains(r#"name="a""#));
    }
}
