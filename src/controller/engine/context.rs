//! The parts of a controller that all of its kinds share.

use tokio::sync::watch;

use super::run_ids::RunIds;
use crate::metrics::Metrics;
use crate::objects::cluster::{Announcement, Announcer, ClusterObjects, ObjectWriter};
use crate::tenancy::FairSemaphore;

/// The parts of a controller that all of its kinds share.
pub(crate) struct Context {
    pub(crate) objects: ClusterObjects,
    /// Writes objects as the field manager of the controller.
    pub(crate) writer: ObjectWriter,
    pub(crate) announcer: Announcer,
    pub(crate) metrics: Metrics,
    /// Limits the reconciles that are in flight; none if the kinds limit them themselves.
    pub(super) slots: Option<FairSemaphore>,
    pub(super) run_ids: RunIds,
    /// True while this process is the leader, which writes.
    pub(super) is_leader: watch::Sender<bool>,
    /// True if no object is written and no event announced.
    pub(crate) is_dry_run: bool,
}

impl Context {
    /// Waits until this process is the leader: all processes watch.
    pub(super) async fn become_leader(&self) {
        // The sender is here, so the wait ends with its condition only.
        let _ = self.is_leader.subscribe().wait_for(|is_leader| *is_leader).await;
    }

    /// Announces an event, and logs the error if it cannot be recorded.
    pub(crate) async fn announce(&self, announcement: Announcement) {
        if let Err(error) = Box::pin(self.announcer.announce(announcement)).await {
            tracing::error!(error = %error, "cannot record the event");
        }
    }
}
