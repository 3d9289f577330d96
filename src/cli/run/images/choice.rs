//! The result of a policy's choice.

use tagboat_api::ImageRef;

use crate::cli::outcome::PolicyChoice;
use crate::objects::ObjectName;

/// The result of a policy's choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli::run) struct Choice {
    /// The repository that it chooses from.
    pub(in crate::cli::run) repository: ObjectName,
    /// The image that counts, perhaps of an earlier run.
    ///
    /// Without one, the markers of the policy do not change.
    pub(in crate::cli::run) latest: Option<ImageRef>,
    /// The held image that is about to replace it, and until when it is held.
    pub(in crate::cli::run) held: Option<String>,
    /// The reason for which the image may be out of date.
    pub(in crate::cli::run) stale: Option<String>,
    /// The reason for which nothing was chosen in this run, as a sentence.
    ///
    /// All policies of a repository may share it.
    pub(in crate::cli::run) error: Option<String>,
}

impl Choice {
    /// Returns the choice as it stands in the JSON document.
    pub(in crate::cli::run) fn to_outcome(&self, policy: &ObjectName) -> PolicyChoice {
        PolicyChoice {
            policy: policy.to_string(),
            repository: self.repository.to_string(),
            latest: self.latest.as_ref().map(ToString::to_string),
            held: self.held.clone(),
            stale: self.stale.clone(),
            error: self.error.clone(),
        }
    }
}
