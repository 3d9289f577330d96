//! The status of an applier.

use crate::rollout::assess::Failure;
use crate::rollout::message::message;
use crate::rollout::objects::Unreadable;

/// The status of an applier, in terms that all appliers share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplierStatus {
    /// The applied revision: of git, or for a HelmRelease the chart's version.
    pub applied_revision: Option<String>,
    /// The reason why the applier makes no further attempt by itself.
    pub block: Option<Block>,
    /// The last attempt.
    pub attempt: Attempt,
    /// A sentence about an applier that has not succeeded and has not failed.
    pub message: Option<String>,
}

/// The reason why an applier makes no further attempt by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// The applier is suspended.
    Suspended,
    /// The applier is out of sync and has no automated sync.
    OutOfSync,
}

/// The last attempt of an applier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// No attempt, or one that is in progress.
    ///
    /// A retry of a failed attempt is in progress, too: the caller keeps the failure until the retry has ended.
    InProgress,
    /// The attempt succeeded.
    Succeeded,
    /// The attempt failed.
    Failed(Failure),
}

impl ApplierStatus {
    /// Returns the status of an applier that cannot be read.
    pub(super) fn unreadable(error: &Unreadable) -> Self {
        let text = message(&format!("the object cannot be read: {error}"));
        Self { applied_revision: None, block: None, attempt: Attempt::InProgress, message: Some(text) }
    }
}
