//! All statuses that an object has had, also those that last for a moment only.
//!
//! ```text
//! let statuses = Statuses::record(&scene, "podinfo").await;
//! // … the program works …
//! statuses.until("removed", |status| status["state"] == "removed").await;
//! assert_eq!(statuses.states(), ["installed", "removing", "removed"]);
//! ```

use std::sync::{Arc, Mutex};

use futures::{StreamExt, TryStreamExt};
use kube::core::DynamicObject;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::scene::Scene;
use crate::support::eventually::eventually_found;

/// The record of an object's statuses, by a watch.
pub(super) struct Statuses {
    seen: Arc<Mutex<Vec<Value>>>,
    watch: JoinHandle<()>,
}

impl Statuses {
    /// Begins the record of a policy's object.
    /// The first status is that of the object now, if it exists.
    pub(super) async fn record(scene: &Scene, policy: &str) -> Self {
        let only = watcher::Config::default().fields(&format!("metadata.name={policy}"));
        let mut events = watcher(scene.statuses(), only).boxed();
        let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
        let keep = {
            let seen = seen.clone();
            move |event: Event<DynamicObject>| {
                if let Event::InitApply(object) | Event::Apply(object) = event {
                    seen.lock().unwrap().push(object.data.get("status").cloned().unwrap_or_default());
                }
            }
        };
        while let Some(event) = events.try_next().await.unwrap() {
            let is_listed = matches!(event, Event::InitDone);
            keep(event);
            if is_listed {
                break;
            }
        }
        // Another list could omit statuses.
        let watch = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                keep(event.expect("the watch does not fail"));
            }
        });
        Self { seen, watch }
    }

    /// Returns all statuses so far, in order.
    pub(super) fn all(&self) -> Vec<Value> {
        assert!(!self.watch.is_finished(), "the watch has ended");
        self.seen.lock().unwrap().clone()
    }

    /// Returns the states so far, without repetitions in a row.
    pub(super) fn states(&self) -> Vec<String> {
        let statuses = self.all().into_iter();
        let mut states: Vec<String> =
            statuses.map(|status| status["state"].as_str().unwrap_or_default().to_owned()).collect();
        states.dedup();
        states
    }

    /// Waits until a status has fulfilled a condition, and returns the first one.
    pub(super) async fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        eventually_found(what, async || self.all().into_iter().find(&is)).await
    }
}

impl Drop for Statuses {
    fn drop(&mut self) {
        self.watch.abort();
    }
}
