//! Requests that find out whether the own cluster answers.

use std::time::Instant;

use jiff::Timestamp;
use kube::Client;
use tokio::time::sleep;

use super::Stores;
use super::clusters::ClusterState;
use crate::metrics::Metrics;
use crate::objects::cluster::{PROBE_INTERVAL, Silence, probe as request};

/// Requests the version of the own cluster again and again, and records whether it answers.
pub async fn probe(client: Client, stores: Stores, metrics: Metrics) {
    let own = stores.clusters.own_name().to_owned();
    let mut silence = Silence::default();
    let mut known = ClusterState::Up;
    loop {
        let is_answered = request(&client).await.is_ok();
        let state = ClusterState::from(silence.after(is_answered, Instant::now(), Timestamp::now()));
        if state != known {
            match state {
                ClusterState::Up => tracing::info!(cluster = own, "the cluster answers again"),
                ClusterState::Down(_) => tracing::warn!(cluster = own, "the cluster does not answer"),
            }
            known = state;
        }
        stores.set_cluster(&own, state);
        metrics.cluster_up(&own, Some(state == ClusterState::Up));
        sleep(PROBE_INTERVAL).await;
    }
}
