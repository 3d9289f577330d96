//! Requests to forges, and their rate limits; pull requests.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use tagboat_api::ObjectName;

/// The maximum number of hosts with a gauge. Tenants may name any host.
const MAX_HOSTS: usize = 100;

/// The families of requests to forges.
#[derive(Default)]
pub(super) struct ForgeFamilies {
    requests: Family<ForgeRequestLabels, Counter>,
    rest: Family<ForgeLabels, Counter<f64, AtomicU64>>,
    remaining: Family<HostLabels, Gauge>,
    hosts: Mutex<BTreeSet<String>>,
    pull_requests: Family<PullRequestLabels, Gauge>,
    actions: Family<ActionLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PullRequestLabels {
    namespace: String,
    name: String,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ActionLabels {
    action: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ForgeRequestLabels {
    forge: &'static str,
    operation: &'static str,
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ForgeLabels {
    forge: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HostLabels {
    host: String,
}

impl ForgeFamilies {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "tagboat_forge_requests",
            "Requests to forges by forge, operation and status of the response",
            self.requests.clone(),
        );
        registry.register_with_unit(
            "tagboat_forge_rest",
            "The time in seconds for which rate limits paused calls to forges",
            Unit::Seconds,
            self.rest.clone(),
        );
        registry.register(
            "tagboat_forge_limit_remaining",
            "Calls that a forge still allows, by its last response",
            self.remaining.clone(),
        );
        registry.register(
            "tagboat_pull_requests",
            "Pull requests of an automation: open ones, and refused ones of images that it still wants",
            self.pull_requests.clone(),
        );
        registry.register(
            "tagboat_pull_request_actions",
            "Actions on pull requests: opened, refreshed, closed, merged",
            self.actions.clone(),
        );
    }

    pub(super) fn set_pull_requests(&self, automation: &ObjectName, open: usize, refused: usize) {
        for (state, count) in [("open", open), ("refused", refused)] {
            let gauge = self.pull_requests.get_or_create(&labels(automation, state));
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    pub(super) fn forget_pull_requests(&self, automation: &ObjectName) {
        for state in ["open", "refused"] {
            self.pull_requests.remove(&labels(automation, state));
        }
    }

    pub(super) fn acted(&self, action: &'static str) {
        self.actions.get_or_create(&ActionLabels { action }).inc();
    }

    pub(super) fn requested(&self, forge: &'static str, operation: &'static str, status: Option<u16>) {
        let code = status.map_or_else(|| "<error>".to_owned(), |status| status.to_string());
        self.requests.get_or_create(&ForgeRequestLabels { forge, operation, code }).inc();
    }

    pub(super) fn rested(&self, forge: &'static str, duration: Duration) {
        self.rest.get_or_create(&ForgeLabels { forge }).inc_by(duration.as_secs_f64());
    }

    pub(super) fn remaining(&self, host: &str, remaining: u64) {
        let mut hosts = self.hosts.lock();
        if !hosts.contains(host) {
            if hosts.len() == MAX_HOSTS {
                return;
            }
            hosts.insert(host.to_owned());
        }
        let labels = HostLabels { host: host.to_owned() };
        self.remaining.get_or_create(&labels).set(i64::try_from(remaining).unwrap_or(i64::MAX));
    }
}

fn labels(automation: &ObjectName, state: &'static str) -> PullRequestLabels {
    PullRequestLabels { namespace: automation.namespace.clone(), name: automation.name.clone(), state }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_tenants_name_take_bounded_memory() {
        let families = ForgeFamilies::default();
        for number in 0..2 * MAX_HOSTS {
            families.remaining(&number.to_string(), 1);
        }
        assert_eq!(families.hosts.lock().len(), MAX_HOSTS);
    }
}
