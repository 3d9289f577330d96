//! The log lines about lists of pods that fail: one per namespace and error.

use std::collections::HashMap;

use crate::controller::rollout::cluster::Connection;
use crate::controller::rollout::failures::Failures;
use crate::objects::remote_clusters::Answers;

/// The maximum number of namespaces whose failures are remembered.
const MAX_NAMESPACES: usize = 1_000;

/// The namespaces of a cluster whose pods cannot be listed.
#[derive(Default)]
pub(super) struct RefusedLists(HashMap<String, Failures>);

impl RefusedLists {
    /// Adds the end of a list, and logs a new error of its namespace.
    pub(super) fn add(&mut self, connection: &Connection, namespace: &str, error: Option<&String>) {
        let cluster = connection.cluster.as_deref();
        let Some(error) = error else {
            if self.0.remove(namespace).is_some_and(|mut failures| failures.end()) {
                tracing::info!(cluster, namespace, "pods can be listed again");
            }
            return;
        };
        if self.0.len() >= MAX_NAMESPACES && !self.0.contains_key(namespace) {
            self.0.clear();
        }
        let failures = self.0.entry(namespace.to_owned()).or_default();
        if failures.add(error, connection.answers.as_ref().map(Answers::count)) {
            tracing::error!(cluster, namespace, error, "cannot list pods, retrying");
        }
    }
}
