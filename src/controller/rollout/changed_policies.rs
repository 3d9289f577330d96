//! The policies that have changed since the index of places was updated.

use std::collections::BTreeSet;
use std::mem;

use parking_lot::Mutex;
use tagboat_api::ObjectName;
use tokio::sync::Notify;

/// The policies that have changed since the last [`changed`](Self::changed).
#[derive(Debug, Default)]
pub(super) struct ChangedPolicies {
    names: Mutex<BTreeSet<ObjectName>>,
    added: Notify,
}

impl ChangedPolicies {
    /// Adds a policy.
    pub(super) fn insert(&self, policy: ObjectName) {
        self.names.lock().insert(policy);
        self.added.notify_one();
    }

    /// Removes and returns all policies.
    pub(super) fn take(&self) -> BTreeSet<ObjectName> {
        mem::take(&mut self.names.lock())
    }

    /// Waits for policies, then removes and returns all of them.
    pub(super) async fn changed(&self) -> BTreeSet<ObjectName> {
        loop {
            let names = self.take();
            if !names.is_empty() {
                return names;
            }
            self.added.notified().await;
        }
    }
}
