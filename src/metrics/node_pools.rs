//! The metrics of node pools: nodes by stage, problems, times of stages, evictions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::families::histogram;

/// The histogram buckets of stages: from a second to a day.
const STAGE: (f64, f64, i32) = (1.0, 86_400.0, 12);

/// The state of a pool in the metrics.
#[derive(Clone, Debug, Default)]
pub struct NodePoolState {
    /// The number of nodes in each stage, also of those without any.
    ///
    /// None while the nodes are not known, as with an invalid node selector: the last numbers stay.
    pub stages: Option<BTreeMap<&'static str, u64>>,
    /// True if the pool has a problem.
    pub is_degraded: bool,
}

/// The metric families of node pools.
pub(super) struct NodePoolFamilies {
    pub(super) pools: NodePools,
    pub(super) stages: Family<StageLabels, Histogram>,
    pub(super) evictions: Family<EvictionLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct StageLabels {
    pub(super) stage: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct EvictionLabels {
    pub(super) outcome: &'static str,
}

impl Default for NodePoolFamilies {
    fn default() -> Self {
        Self {
            pools: NodePools::default(),
            stages: Family::new_with_constructor(|| histogram(STAGE)),
            evictions: Family::default(),
        }
    }
}

impl NodePoolFamilies {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.pools.clone()));
        let help = "The time in seconds that nodes spent in a stage of a rollout";
        registry.register_with_unit("tagboat_node_stage", help, Unit::Seconds, self.stages.clone());
        let help = "Evictions of pods from nodes by their outcome";
        registry.register("tagboat_evictions", help, self.evictions.clone());
    }
}

/// The states of all pools. Clones share them.
///
/// Without any, there are no metrics: the feature is off, or another process is the leader.
#[derive(Clone, Debug, Default)]
pub(super) struct NodePools(Arc<Mutex<BTreeMap<String, NodePoolState>>>);

impl NodePools {
    /// Records the state of a pool; `None` if it was deleted.
    pub(super) fn set(&self, pool: &str, state: Option<NodePoolState>) {
        let mut pools = self.0.lock();
        let Some(mut state) = state else {
            pools.remove(pool);
            return;
        };
        if state.stages.is_none() {
            state.stages = pools.get(pool).and_then(|last| last.stages.clone());
        }
        pools.insert(pool.to_owned(), state);
    }
}

impl Collector for NodePools {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let pools = self.0.lock().clone();
        if pools.is_empty() {
            return Ok(());
        }
        let help = "Nodes of a pool by their stage";
        let mut metric = encoder.encode_descriptor("tagboat_nodes", help, None, MetricType::Gauge)?;
        for (pool, state) in &pools {
            for (stage, count) in state.stages.iter().flatten() {
                let labels = [("pool", pool.as_str()), ("state", stage)];
                ConstGauge::new(*count).encode(metric.encode_family(&labels)?)?;
            }
        }
        let help = "1 if the pool has a problem, else 0";
        let mut metric =
            encoder.encode_descriptor("tagboat_nodepool_degraded", help, None, MetricType::Gauge)?;
        for (pool, state) in &pools {
            let labels = [("pool", pool.as_str())];
            ConstGauge::new(i64::from(state.is_degraded)).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
