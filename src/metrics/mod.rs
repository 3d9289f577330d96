//! Metrics for Prometheus.
//!
//! They are a value that is passed to its users; there is no global registry.
//!
//! | module | contents |
//! |---|---|
//! | `families`, `labels` | the metric families with their registration; their labels |
//! | `deployments` | the states of deployments, and the availability of clusters |
//! | `forges` | requests to forges, and their rate limits; pull requests |
//! | `in_flight` | the duration of the longest reconcile in flight |
//! | `namespaces` | waits for shared slots, and time on the blocking pool, by namespace |
//! | `process` | process metrics, read on each scrape |
//! | `waits` | the images that automations do not write, and the times at which they may |

mod deployments;
mod families;
mod forges;
mod in_flight;
mod labels;
mod namespaces;
mod node_pools;
mod process;
mod waits;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tagboat_api::ObjectName;
use tagboat_api::deployment_status::State;

use families::Families;
use labels::{
    ComparisonLabels, ControllerLabels, GitLabels, RequestLabels, ResultLabels, RunLabels, controller_of,
};

pub use in_flight::InFlightTimer;
pub use labels::{ComparisonOutcome, ObjectLabels, RunOutcome};
pub use namespaces::SlotResource;
pub use node_pools::NodePoolState;
use node_pools::{EvictionLabels, StageLabels};
pub use waits::{WaitingImages, WriteState, WriteWindows};

/// Counters, gauges and histograms. Clones share their values.
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
    /// Records the duration of a reconcile and whether it succeeded.
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

    /// Starts a timer of a reconcile of a kind.
    pub fn start_timer(&self, kind: &str) -> InFlightTimer {
        self.families.in_flight.start(controller_of(kind), Instant::now())
    }

    /// Records a response of the API server by its status.
    ///
    /// `None` means that there was no response.
    pub fn api_request(&self, status: Option<u16>) {
        // Go's client uses this value.
        let code = status.map_or_else(|| "<error>".to_owned(), |status| status.to_string());
        self.families.requests.get_or_create(&RequestLabels { code }).inc();
    }

    /// Records the outcome of a run.
    pub fn run_ended(&self, outcome: RunOutcome) {
        self.families.runs.get_or_create(&RunLabels { outcome }).inc();
    }

    /// Records the time of the next lookup of a policy's digest.
    ///
    /// `None` if the policy follows no digest.
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

    /// Records the number of files that an automation examined, and of its unresolved markers.
    pub fn files_examined(&self, object: &ObjectLabels, files: u64, unresolved: u64) {
        self.families.files_scanned.inc_by(files);
        self.families.unresolved.get_or_create(object).set(i64::try_from(unresolved).unwrap_or(i64::MAX));
    }

    /// Records the images that an automation does not write, and when it may.
    pub fn set_write_state(&self, automation: &ObjectName, state: WriteState) {
        self.families.waits.set(automation, state);
    }

    /// Forgets that state of an automation that is gone or suspended.
    pub fn forget_write_state(&self, automation: &ObjectName) {
        self.families.waits.forget(automation);
    }

    /// Records a call of git.
    pub fn git_called(&self, operation: &'static str, duration: Duration) {
        self.families.git.get_or_create(&GitLabels { operation }).observe(duration.as_secs_f64());
    }

    /// Records the bytes that a fetch added to a mirror.
    pub fn fetched(&self, bytes: u64) {
        self.families.fetched.inc_by(bytes);
    }

    /// Records a push that lost a race and is retried.
    pub fn push_retried(&self) {
        self.families.pushes_retried.inc();
    }

    /// Records that a controller of this process became the leader, or ceased to be.
    pub fn set_leader(&self, is_leader: bool) {
        let mut led = self.families.led.lock();
        *led = if is_leader { *led + 1 } else { led.saturating_sub(1) };
        self.families.leader.set(if *led > 0 { 1.0 } else { 0.0 });
    }

    /// Records a commit that a dry run would have made.
    pub fn would_have_committed(&self) {
        self.families.dry_run_commits.inc();
    }

    /// Records the comparison of another controller's push with our dry run.
    pub fn compared(&self, outcome: ComparisonOutcome) {
        self.families.dry_run_comparisons.get_or_create(&ComparisonLabels { outcome }).inc();
    }

    /// Records the wait of a namespace for a slot of a shared resource.
    ///
    /// Waits that ended at once count, too.
    pub fn slot_waited(&self, resource: SlotResource, namespace: &str, duration: Duration) {
        self.families.namespaces.slot_waited(resource, namespace, duration);
    }

    /// Records the time that a job of a namespace used a blocking thread.
    pub fn pool_used(&self, namespace: &str, duration: Duration) {
        self.families.namespaces.pool_used(namespace, duration);
    }

    /// Records the state of a deployment; `None` if it was deleted.
    pub fn deployment_state(&self, name: &ObjectName, state: Option<State>) {
        self.families.deployments.set_state(name, state);
    }

    /// Records the time from the commit of an image until all objects ran it.
    pub fn rolled_out(&self, duration: Duration) {
        self.families.rollouts.observe(duration.as_secs_f64());
    }

    /// Records whether a cluster responds; `None` if it is not watched any more.
    pub fn cluster_up(&self, cluster: &str, is_up: Option<bool>) {
        self.families.deployments.set_cluster(cluster, is_up);
    }

    /// Removes the metrics of all deployments and clusters.
    ///
    /// This process does not watch them any more.
    pub fn forget_deployments(&self) {
        self.families.deployments.clear();
    }

    /// Records a request to a forge by its status, if there was one.
    pub fn forge_requested(&self, forge: &'static str, operation: &'static str, status: Option<u16>) {
        self.families.forges.requested(forge, operation, status);
    }

    /// Records the numbers of an automation's pull requests.
    pub fn pull_requests(&self, automation: &ObjectName, open: usize, refused: usize) {
        self.families.forges.set_pull_requests(automation, open, refused);
    }

    /// Forgets the pull requests of an automation that is gone.
    pub fn forget_pull_requests(&self, automation: &ObjectName) {
        self.families.forges.forget_pull_requests(automation);
    }

    /// Records an action on a pull request.
    pub fn pull_request_action(&self, action: &'static str) {
        self.families.forges.acted(action);
    }

    /// Records the time that rate limits paused calls to a forge.
    pub fn forge_rested(&self, forge: &'static str, duration: Duration) {
        self.families.forges.rested(forge, duration);
    }

    /// Records the number of calls that a host still allows to the last login.
    pub fn forge_remaining(&self, host: &str, remaining: u64) {
        self.families.forges.remaining(host, remaining);
    }

    /// Records the state of a node pool; `None` if it was deleted.
    pub fn node_pool(&self, pool: &str, state: Option<NodePoolState>) {
        self.families.node_pools.pools.set(pool, state);
    }

    /// Records the time that a node spent in a stage.
    pub fn node_stage_ended(&self, stage: &'static str, duration: Duration) {
        let stages = &self.families.node_pools.stages;
        stages.get_or_create(&StageLabels { stage }).observe(duration.as_secs_f64());
    }

    /// Records the outcome of an eviction: `accepted`, `blocked` or `failed`.
    pub fn eviction(&self, outcome: &'static str) {
        self.families.node_pools.evictions.get_or_create(&EvictionLabels { outcome }).inc();
    }

    /// Removes the metrics of a deleted object.
    ///
    /// With the last object of its namespace, the metrics of the namespace are removed.
    pub fn forget(&self, object: &ObjectLabels) {
        self.families.namespaces.forget(object);
        self.families.reconciles.remove(object);
        self.families.unresolved.remove(object);
        self.families.next_poll.remove(object);
    }

    /// Encodes all metrics in Prometheus' text format.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string cannot fail");
        text
    }
}

/// Omits the values.
impl fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Metrics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Agenda, Rule, Source};

    fn labels(name: &str) -> ObjectLabels {
        ObjectLabels { kind: "ImageUpdateAutomation", name: name.to_owned(), namespace: "n".to_owned() }
    }

    #[test]
    fn metrics_have_the_names_that_dashboards_query() {
        let metrics = Metrics::default();
        metrics.reconciled(&labels("a"), Duration::from_millis(5), true);
        metrics.reconciled(&labels("b"), Duration::from_secs(5), false);
        metrics.run_ended(RunOutcome::pushed);
        metrics.git_called("push", Duration::from_secs(1));
        metrics.push_retried();
        metrics.fetched(300);
        metrics.files_examined(&labels("a"), 3, 2);
        metrics.would_have_committed();
        metrics.compared(ComparisonOutcome::agreed);
        metrics.api_request(Some(409));
        metrics.api_request(None);
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
            "tagboat_dry_run_commits_total 1",
            r#"tagboat_dry_run_comparisons_total{outcome="agreed"} 1"#,
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
        // Ten limits and `+Inf`.
        assert_eq!(buckets.count(), 11);
        metrics.forget(&labels("a"));
        assert!(!metrics.to_text().contains(r#"name="a""#));
    }

    #[test]
    fn deployments_are_counted_by_their_state() {
        let metrics = Metrics::default();
        assert!(!metrics.to_text().contains("tagboat_deployment"));
        let name = |name: &str| ObjectName { namespace: "n".to_owned(), name: name.to_owned() };
        for (deployment, state) in [("a", State::Installing), ("b", State::Failed), ("a", State::Installed)] {
            metrics.deployment_state(&name(deployment), Some(state));
        }
        metrics.cluster_up("edge", Some(false));
        metrics.cluster_up("west", Some(true));
        metrics.rolled_out(Duration::from_secs(90));
        let has = |line: &str| metrics.to_text().lines().any(|found| found == line);
        for line in [
            r#"tagboat_deployments{state="installed"} 1"#,
            r#"tagboat_deployments{state="failed"} 1"#,
            r#"tagboat_deployments{state="installing"} 0"#,
            r#"tagboat_deployment_failed{namespace="n",name="a"} 0"#,
            r#"tagboat_deployment_failed{namespace="n",name="b"} 1"#,
            r#"tagboat_cluster_up{cluster="edge"} 0"#,
            r#"tagboat_cluster_up{cluster="west"} 1"#,
            "tagboat_rollout_duration_seconds_count 1",
        ] {
            assert!(has(line), "{line} is not in\n{}", metrics.to_text());
        }
        metrics.deployment_state(&name("b"), None);
        assert!(has(r#"tagboat_deployments{state="failed"} 0"#));
        assert!(!metrics.to_text().contains(r#"name="b""#));
        metrics.forget_deployments();
        let text = metrics.to_text();
        assert!(!text.contains("tagboat_deployment") && !text.contains("tagboat_cluster_up"), "{text}");
    }

    #[test]
    fn an_automation_has_its_waits_and_its_windows() {
        let metrics = Metrics::default();
        assert!(!metrics.to_text().contains("tagboat_policies_waiting"));
        let automation = ObjectName { namespace: "n".to_owned(), name: "a".to_owned() };
        let opens = Timestamp::from_second(4_102_444_800).unwrap();
        let waiting = WaitingImages { reason: "WindowClosed".to_owned(), policies: 2, until: Some(opens) };
        let windows = "[{name: x, kind: deny, from: 2000-01-01T00:00, until: 2100-01-01T00:00}]";
        let rule = Rule::Windows(windows.parse().unwrap());
        let agenda = Agenda::new(vec![Source { name: "x".to_owned(), rule }]);
        let windows = WriteWindows::new(agenda, Timestamp::now());
        let state = WriteState { windows: Some(windows), waiting: Some(waiting), held: Some(3) };
        metrics.set_write_state(&automation, state);
        let text = metrics.to_text();
        let object = r#"kind="ImageUpdateAutomation",name="a",namespace="n""#;
        for line in [
            format!(r#"tagboat_policies_waiting{{{object},reason="WindowClosed"}} 2"#),
            format!("tagboat_policies_held{{{object}}} 3"),
            format!("tagboat_window_open{{{object}}} 0"),
            format!("tagboat_next_write_timestamp_seconds{{{object}}} 4102444800.0"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        metrics.forget_write_state(&automation);
        assert!(!metrics.to_text().contains(r#"name="a""#));
    }

    #[test]
    fn a_node_pool_has_its_nodes_by_stage() {
        let metrics = Metrics::default();
        let stages = Some([("idle", 2), ("draining", 0)].into());
        let state = NodePoolState { stages, is_degraded: true };
        metrics.node_pool("workers", Some(state));
        metrics.node_stage_ended("draining", Duration::from_secs(90));
        metrics.eviction("blocked");
        let has = |line: &str| metrics.to_text().lines().any(|found| found == line);
        for line in [
            r#"tagboat_nodes{pool="workers",state="idle"} 2"#,
            r#"tagboat_nodes{pool="workers",state="draining"} 0"#,
            r#"tagboat_nodepool_degraded{pool="workers"} 1"#,
            r#"tagboat_node_stage_seconds_count{stage="draining"} 1"#,
            r#"tagboat_evictions_total{outcome="blocked"} 1"#,
        ] {
            assert!(has(line), "{line} is not in\n{}", metrics.to_text());
        }
        // The nodes are not known any more.
        metrics.node_pool("workers", Some(NodePoolState { stages: None, is_degraded: false }));
        assert!(has(r#"tagboat_nodes{pool="workers",state="idle"} 2"#), "{}", metrics.to_text());
        assert!(has(r#"tagboat_nodepool_degraded{pool="workers"} 0"#), "{}", metrics.to_text());
        metrics.node_pool("workers", None);
        assert!(!metrics.to_text().contains("workers"));
    }
}
