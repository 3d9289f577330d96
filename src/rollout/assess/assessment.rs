//! The result of an assessment.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::rollout::message::message;
use crate::rollout::objects::Unreadable;

/// The rollout of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assessment {
    /// The progress of the rollout.
    pub progress: Progress,
    /// The pods of the object.
    pub counts: Counts,
    /// The end of the rollout, if the object reports it.
    pub finished: Option<Timestamp>,
    /// A sentence about a rollout that is not complete.
    pub message: Option<String>,
}

/// The progress of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The rollout is not complete.
    InProgress,
    /// The rollout is complete.
    Complete,
    /// The rollout failed.
    Failed(Failure),
}

/// The rollout of an object's image before an observation, as the previous status has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviousState {
    /// The object is observed for the first time.
    Unknown,
    /// The object had another image, or the rollout was in progress.
    Incomplete,
    /// The rollout of the image was complete.
    Complete,
}

/// The reason of a failed rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The code in one word, for programs.
    pub code: String,
    /// The message, at most [`MAX_LENGTH`](crate::rollout::message::MAX_LENGTH) characters.
    pub message: String,
}

impl Failure {
    /// Returns a failure with a message from the cluster, which is made safe and short.
    #[must_use]
    pub fn new(code: &str, text: &str) -> Self {
        Self { code: message(code), message: message(text) }
    }
}

/// Numbers of pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The desired pods.
    pub desired: i64,
    /// The pods of the current template.
    pub updated: i64,
    /// The ready pods.
    pub ready: i64,
    /// The ready pods of the current template, at least.
    pub updated_ready: i64,
}

impl Counts {
    /// Creates the numbers of an object with `all` pods of any template.
    ///
    /// Without `all`, the numbers are those of the template before, because the controller has not observed the change.
    ///
    /// Updated and ready pods are counted among the same pods. So if both together are more than these, the excess is the
    /// smallest number of pods that are both.
    #[must_use]
    pub fn new(desired: i64, updated: i64, ready: i64, all: Option<i64>) -> Self {
        let excess = all.map_or(0, |all| updated.saturating_add(ready).saturating_sub(all));
        Self { desired, updated, ready, updated_ready: excess.max(0) }
    }
}

impl Assessment {
    /// Returns a rollout that is complete, so that the ready pods are updated ones.
    #[must_use]
    pub fn complete(counts: Counts, finished: Option<&Time>) -> Self {
        let counts = Counts { updated_ready: counts.updated.min(counts.ready), ..counts };
        let finished = finished.map(|time| time.0);
        Self { progress: Progress::Complete, counts, finished, message: None }
    }

    /// Returns a rollout that is not complete, with a sentence about it.
    #[must_use]
    pub fn in_progress(counts: Counts, text: &str) -> Self {
        let message = Some(message(text)).filter(|message| !message.is_empty());
        Self { progress: Progress::InProgress, counts, finished: None, message }
    }

    /// Returns a rollout that failed.
    #[must_use]
    pub fn failed(counts: Counts, code: &str, text: &str) -> Self {
        let progress = Progress::Failed(Failure::new(code, text));
        Self { progress, counts, finished: None, message: None }
    }

    /// Returns the rollout of an unreadable object: in progress, with the error as message.
    #[must_use]
    pub fn unreadable(error: &Unreadable) -> Self {
        Self::in_progress(Counts::default(), &format!("the object cannot be read: {error}"))
    }
}
