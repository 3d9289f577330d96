//! The deployments of the cluster, kept up to date by a watch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::{Client, Resource};
use tagboat_api::DeploymentStatus;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::cli::Failure;
use crate::cli::cluster::cannot_read;
use crate::cli::terminal::say;
use crate::objects::ObjectName;
use crate::objects::cluster::{Cache, Change, ClusterError, Observation, Scope, watch_objects};

/// The timeout of the first listing, unless a wait has another.
const FIRST_LISTING: Duration = Duration::from_secs(30);

/// The shortest timeout of the first listing.
const MIN_FIRST_LISTING: Duration = Duration::from_secs(5);

/// The status code of a watch whose resource version has expired, which is listed anew.
const EXPIRED: u16 = 410;

/// The deployments of a scope.
pub(in crate::cli) struct Feed {
    cache: Cache<DeploymentStatus>,
    observations: UnboundedReceiver<Observation<DeploymentStatus>>,
    /// The error messages of the objects that cannot be parsed.
    unreadable: BTreeMap<ObjectName, String>,
    /// The last request failed.
    is_interrupted: bool,
}

/// Returns the failure of the first listing at a server.
pub(in crate::cli) fn failure(error: &ClusterError, server: &str) -> Failure {
    if error.is_not_found() {
        Failure::new(format!(
            "the cluster at {server} has no kind {} of {}: its CustomResourceDefinition is not installed",
            DeploymentStatus::kind(&()),
            DeploymentStatus::api_version(&())
        ))
    } else {
        cannot_read(&format!("DeploymentStatuses at {server}"), error)
    }
}

impl Feed {
    /// Starts a watch and waits for the first listing.
    ///
    /// `wait` is a time for which errors that may pass are retried.
    ///
    /// # Errors
    ///
    /// If the objects cannot be listed, or not in time.
    pub(in crate::cli) async fn start(
        client: Client,
        scope: Scope,
        wait: Option<Duration>,
    ) -> Result<Self, ClusterError> {
        let (sender, observations) = unbounded_channel();
        let cache = Cache::default();
        let watched = cache.clone();
        // The task ends with the async runtime.
        tokio::spawn(async move {
            let observe = |observation| {
                // The receiver is gone when the command ends.
                let _ = sender.send(observation);
            };
            watch_objects(client, &scope, &watched, observe).await;
        });
        let mut feed = Self { cache, observations, unreadable: BTreeMap::new(), is_interrupted: false };
        let limit = wait.map_or(FIRST_LISTING, |wait| wait.max(MIN_FIRST_LISTING));
        let mut last = None;
        let listed = timeout(limit, feed.first_listing(wait.is_some(), &mut last)).await;
        listed.unwrap_or_else(|_| Err(last.unwrap_or(ClusterError::Timeout(limit))))?;
        Ok(feed)
    }

    /// Waits for the first listing.
    ///
    /// With `is_retried`, the last error that may pass is in `last`.
    async fn first_listing(
        &mut self,
        is_retried: bool,
        last: &mut Option<ClusterError>,
    ) -> Result<(), ClusterError> {
        while let Some(observation) = self.observations.recv().await {
            match observation {
                Observation::WatchError(error) if is_retried && error.is_transient() => *last = Some(error),
                Observation::WatchError(error) => return Err(error),
                Observation::Complete => break,
                observation => {
                    self.apply(observation);
                }
            }
        }
        Ok(())
    }

    /// Returns the deployments, sorted by namespace and name.
    pub(in crate::cli) fn objects(&self) -> Vec<Arc<DeploymentStatus>> {
        self.cache.all()
    }

    /// Returns the objects that cannot be parsed, with the error messages.
    pub(in crate::cli) fn unreadable(&self) -> impl Iterator<Item = (&ObjectName, &str)> {
        self.unreadable.iter().map(|(name, message)| (name, message.as_str()))
    }

    /// Waits for the next changes and returns those that have arrived; there may be none.
    ///
    /// A failed watch is retried, and reported once. No change is lost if the future is dropped.
    pub(super) async fn changes(&mut self) -> Vec<Change<DeploymentStatus>> {
        let Some(first) = self.observations.recv().await else { return std::future::pending().await };
        let mut changes: Vec<_> = self.apply(first).into_iter().collect();
        while let Ok(observation) = self.observations.try_recv() {
            changes.extend(self.apply(observation));
        }
        changes
    }

    fn apply(&mut self, observation: Observation<DeploymentStatus>) -> Option<Change<DeploymentStatus>> {
        match observation {
            Observation::Changed(change) => {
                self.is_interrupted = false;
                self.unreadable.remove(&change.name);
                Some(change)
            }
            Observation::Unreadable { metadata, message, change } => {
                let name = ObjectName {
                    namespace: metadata.namespace.unwrap_or_default(),
                    name: metadata.name.unwrap_or_default(),
                };
                self.unreadable.insert(name, message);
                change
            }
            // The listing has the objects that still cannot be parsed.
            Observation::Listing => {
                self.unreadable.clear();
                None
            }
            Observation::Complete => {
                self.is_interrupted = false;
                None
            }
            Observation::WatchError(ClusterError::Rejected(status)) if status.code == EXPIRED => None,
            Observation::WatchError(error) => {
                if !self.is_interrupted {
                    say(&format!("warning: the watch is interrupted and will be retried: {error}"));
                }
                self.is_interrupted = true;
                None
            }
        }
    }
}
