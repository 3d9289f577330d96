//! The states of deployments, and the availability of clusters.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use tagboat_api::ObjectName;
use tagboat_api::deployment_status::{State, Summary};

/// The states of all deployments and clusters. Clones share them.
///
/// Without any, there are no metrics: the feature is off, or another process is the leader.
#[derive(Clone, Debug, Default)]
pub(super) struct Deployments {
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    states: BTreeMap<ObjectName, State>,
    clusters: BTreeMap<String, bool>,
}

impl Deployments {
    /// Records the state of a deployment; `None` if it was deleted.
    pub(super) fn set_state(&self, name: &ObjectName, state: Option<State>) {
        let states = &mut self.known.lock().states;
        match state {
            Some(state) => states.insert(name.clone(), state),
            None => states.remove(name),
        };
    }

    /// Records whether a cluster responds; `None` if it is not watched any more.
    pub(super) fn set_cluster(&self, name: &str, is_up: Option<bool>) {
        let clusters = &mut self.known.lock().clusters;
        match is_up {
            Some(is_up) => clusters.insert(name.to_owned(), is_up),
            None => clusters.remove(name),
        };
    }

    /// Forgets all deployments and clusters.
    pub(super) fn clear(&self) {
        *self.known.lock() = Known::default();
    }

    fn encode_states(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let states = self.known.lock().states.clone();
        if states.is_empty() {
            return Ok(());
        }
        let counts: Summary = states.values().copied().collect();
        let help = "Deployments by their state";
        let mut metric = encoder.encode_descriptor("tagboat_deployments", help, None, MetricType::Gauge)?;
        for state in State::BY_SEVERITY {
            let labels = [("state", state.as_str())];
            ConstGauge::new(counts.count(state)).encode(metric.encode_family(&labels)?)?;
        }
        let help = "1 if the deployment failed, else 0";
        let mut metric =
            encoder.encode_descriptor("tagboat_deployment_failed", help, None, MetricType::Gauge)?;
        for (name, state) in &states {
            let labels = [("namespace", name.namespace.as_str()), ("name", name.name.as_str())];
            ConstGauge::new(i64::from(*state == State::Failed)).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn encode_clusters(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let clusters = self.known.lock().clusters.clone();
        if clusters.is_empty() {
            return Ok(());
        }
        let help = "1 if the cluster responds, else 0";
        let mut metric = encoder.encode_descriptor("tagboat_cluster_up", help, None, MetricType::Gauge)?;
        for (name, is_up) in &clusters {
            let labels = [("cluster", name.as_str())];
            ConstGauge::new(i64::from(*is_up)).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl Collector for Deployments {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.encode_states(&mut encoder)?;
        self.encode_clusters(&mut encoder)
    }
}
