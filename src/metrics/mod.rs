//! What the program counts and measures, for Prometheus.
//!
//! A value that is handed in to whoever has something to count; there is no global one.

mod families;
mod labels;
mod namespaces;
mod process;
mod under_way;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use families::Families;
use labels::{
    ControllerLabels, GitLabels, RequestLabels, ResultLabels, RunLabels, ShadowLabels, controller_of,
};

pub use labels::{ObjectLabels, RunOutcome, ShadowOutcome};
pub use namespaces::SlotResource;
pub use under_way::Look;

/// Counters and measures. Clones are one and the same.
#[derive(Clone)]
pub struct Metrics {
    families: Arc<Families>,
    registry: Arc<Registry>,
}

impl Default for Metrics {
    fn default() -> Self {
        let families = Families::default();
        let registry = families.registered();
        Self { families: Arc::new(families), registry: Arc::new(registry) }
    }
}

impl Metrics {
    /// Takes note of how long a reconcile took and whether it failed.
    pub fn reconciled(&self, object: &ObjectLabels, duration: Duration, is_success: bool) {
        self.families.namespaces.add_object(object);
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

    /// Adds a wait of a namespace for a slot of a shared resource; also one that ended at once.
    pub fn slot_waited(&self, resource: SlotResource, namespace: &str, duration: Duration) {
        self.families.namespaces.slot_waited(resource, namespace, duration);
    }

    /// Adds the time that a job of a namespace ran on a thread of the blocking pool.
    pub fn pool_used(&self, namespace: &str, duration: Duration) {
        self.families.namespaces.pool_used(namespace, duration);
    }

    /// Forgets an object that has gone, and the metrics of its namespace with the last object there.
    pub fn forget(&self, object: &ObjectLabels) {
        self.families.namespaces.forget(object);
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
