//! Per-namespace metrics: waits for shared slots, and time used on the blocking pool.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::families::histogram;
use super::labels::ObjectLabels;

/// The histogram buckets of waits in seconds: six powers of ten.
const WAITS: (f64, f64, i32) = (0.01, 1000.0, 6);

/// The maximum number of namespaces with metrics of their own.
///
/// All further namespaces share the empty label.
const MAX_NAMESPACES: usize = 1000;

/// A shared resource whose slots are granted fairly by namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
#[allow(non_camel_case_types, reason = "the names are the values of the label")]
pub enum SlotResource {
    /// A git transaction.
    transaction,
    /// A request to a registry.
    registry,
    /// A share of the memory budget.
    memory,
    /// A thread of the blocking pool.
    pool,
    /// A request to the API server.
    api,
}

impl SlotResource {
    const ALL: [Self; 5] = [Self::transaction, Self::registry, Self::memory, Self::pool, Self::api];
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SlotLabels {
    namespace: String,
    resource: SlotResource,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NamespaceLabels {
    namespace: String,
}

/// The metrics with a namespace label, for a bounded number of namespaces.
pub(super) struct NamespaceFamilies {
    waits: Family<SlotLabels, Histogram>,
    pool: Family<NamespaceLabels, Counter<f64>>,
    known: Mutex<Known>,
}

/// The namespaces with a label of their own, with their reconciled objects.
type Known = BTreeMap<String, BTreeSet<(&'static str, String)>>;

impl Default for NamespaceFamilies {
    fn default() -> Self {
        Self {
            waits: Family::new_with_constructor(|| histogram(WAITS)),
            pool: Family::default(),
            known: Mutex::default(),
        }
    }
}

impl NamespaceFamilies {
    /// Adds the metrics to a registry.
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "tagboat_slot_wait",
            "The duration in seconds of a wait for a slot of a shared resource",
            Unit::Seconds,
            self.waits.clone(),
        );
        registry.register_with_unit(
            "tagboat_pool",
            "Time in seconds used on the threads of the blocking pool",
            Unit::Seconds,
            self.pool.clone(),
        );
    }

    /// Records a wait for a slot.
    pub(super) fn slot_waited(&self, resource: SlotResource, namespace: &str, duration: Duration) {
        let namespace = label(&mut self.known.lock(), namespace);
        self.waits.get_or_create(&SlotLabels { namespace, resource }).observe(duration.as_secs_f64());
    }

    /// Records time on the pool.
    pub(super) fn pool_used(&self, namespace: &str, duration: Duration) {
        let namespace = label(&mut self.known.lock(), namespace);
        self.pool.get_or_create(&NamespaceLabels { namespace }).inc_by(duration.as_secs_f64());
    }

    /// Keeps the metrics of an object's namespace until the object is removed.
    pub(super) fn add_object(&self, object: &ObjectLabels) {
        let mut known = self.known.lock();
        label(&mut known, &object.namespace);
        if let Some(objects) = known.get_mut(&object.namespace) {
            objects.insert((object.kind, object.name.clone()));
        }
    }

    /// Removes an object.
    ///
    /// With the last object of a namespace, the metrics of the namespace are removed.
    pub(super) fn forget(&self, object: &ObjectLabels) {
        let mut known = self.known.lock();
        let namespace = &object.namespace;
        if let Some(objects) = known.get_mut(namespace) {
            objects.remove(&(object.kind, object.name.clone()));
            if !objects.is_empty() {
                return;
            }
        }
        known.remove(namespace);
        for resource in SlotResource::ALL {
            self.waits.remove(&SlotLabels { namespace: namespace.clone(), resource });
        }
        self.pool.remove(&NamespaceLabels { namespace: namespace.clone() });
    }
}

/// Returns the label of a namespace: its name, or empty beyond the maximum.
fn label(known: &mut Known, namespace: &str) -> String {
    if !known.contains_key(namespace) {
        if known.len() >= MAX_NAMESPACES {
            return String::new();
        }
        known.insert(namespace.to_owned(), BTreeSet::new());
    }
    namespace.to_owned()
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    fn text(families: &NamespaceFamilies) -> String {
        let (mut registry, mut text) = (Registry::default(), String::new());
        families.register(&mut registry);
        encode(&mut text, &registry).unwrap();
        text
    }

    fn object(namespace: &str, name: &str) -> ObjectLabels {
        ObjectLabels { kind: "ImagePolicy", name: name.to_owned(), namespace: namespace.to_owned() }
    }

    #[test]
    fn each_namespace_has_its_waits_and_its_pool_time_until_its_last_object_goes() {
        let families = NamespaceFamilies::default();
        for name in ["one", "other"] {
            families.add_object(&object("team-a", name));
        }
        families.slot_waited(SlotResource::api, "team-a", Duration::from_millis(500));
        families.slot_waited(SlotResource::memory, "team-b", Duration::from_secs(5));
        families.pool_used("team-a", Duration::from_millis(250));
        families.pool_used("team-a", Duration::from_millis(500));
        let found = text(&families);
        for line in [
            r#"tagboat_slot_wait_seconds_sum{namespace="team-a",resource="api"} 0.5"#,
            r#"tagboat_slot_wait_seconds_count{namespace="team-b",resource="memory"} 1"#,
            r#"tagboat_pool_seconds_total{namespace="team-a"} 0.75"#,
        ] {
            assert!(found.lines().any(|found| found == line), "{line} is not in\n{found}");
        }
        families.forget(&object("team-a", "one"));
        assert!(text(&families).contains("team-a"));
        families.forget(&object("team-a", "other"));
        let found = text(&families);
        assert!(!found.contains("team-a") && found.contains("team-b"), "{found}");
    }

    #[test]
    fn further_namespaces_share_one_label() {
        let families = NamespaceFamilies::default();
        for number in 0..MAX_NAMESPACES + 10 {
            families.slot_waited(SlotResource::api, &format!("n{number}"), Duration::ZERO);
        }
        let found = text(&families);
        let counts = found.lines().filter(|line| line.starts_with("tagboat_slot_wait_seconds_count"));
        assert_eq!(counts.count(), MAX_NAMESPACES + 1);
        let shared = r#"tagboat_slot_wait_seconds_count{namespace="",resource="api"} 10"#;
        assert!(found.lines().any(|line| line == shared), "{found}");
        families.forget(&object("n0", "any"));
        families.slot_waited(SlotResource::api, "new", Duration::ZERO);
        assert!(text(&families).contains(r#"namespace="new""#));
    }
}
