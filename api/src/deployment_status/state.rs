//! States, and the reasons and errors that come with them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::{MAX_CODE, MAX_MESSAGE, MAX_TEXT};

/// State of a component or a deployment, as in the Margo specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The object does not have the wanted image, or does not exist.
    Pending,
    /// The object has the wanted image, and its rollout is not complete.
    Installing,
    /// The rollout is complete.
    Installed,
    /// The rollout, or a step before it, failed.
    Failed,
    /// The object is being deleted.
    Removing,
    /// The object is gone.
    Removed,
}

impl State {
    /// All states, from the most to the least severe.
    pub const BY_SEVERITY: [Self; 6] =
        [Self::Failed, Self::Removing, Self::Installing, Self::Pending, Self::Removed, Self::Installed];

    /// Returns the rank of the state by severity: 0 is the most severe.
    #[must_use]
    pub fn severity_rank(self) -> usize {
        match self {
            Self::Failed => 0,
            Self::Removing => 1,
            Self::Installing => 2,
            Self::Pending => 3,
            Self::Removed => 4,
            Self::Installed => 5,
        }
    }

    /// Returns the state as in a status.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Installing => "installing",
            Self::Installed => "installed",
            Self::Failed => "failed",
            Self::Removing => "removing",
            Self::Removed => "removed",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Reason why an object does not have the wanted image yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum BlockReason {
    /// The policy has selected no image.
    NotChosen,
    /// The automation is suspended, failed, or has not run.
    NotCommitted,
    /// The commit was pushed to another branch.
    AwaitingMerge,
    /// The applier is at another revision, is suspended, or does not synchronize automatically.
    NotApplied,
    /// The object does not exist.
    NotFound,
}

/// Formats the reason, which is the name of the variant.
impl fmt::Display for BlockReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// Key that matched a workload to a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tie {
    /// The marked document is the object.
    Object,
    /// The marked document is the object's HelmRelease.
    Release,
    /// The applier of the marked file owns the object.
    Applier,
    /// The object uses the image repository.
    Image,
}

/// Error of a component or a deployment; no member is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusError {
    /// Code for programs, such as `ImagePullBackOff`.
    #[schemars(length(min = 1, max = MAX_CODE))]
    pub code: String,
    /// Name of the component, applier or object that has the error.
    #[schemars(length(min = 1, max = MAX_TEXT))]
    pub source: String,
    /// Message for users.
    #[schemars(length(min = 1, max = MAX_MESSAGE))]
    pub message: String,
}

/// Number of items, and of those in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Summary {
    /// Number of items in all states.
    pub total: i64,
    /// Number of items that failed.
    pub failed: i64,
    /// Number of items that are being removed.
    pub removing: i64,
    /// Number of items whose rollout is in progress.
    pub installing: i64,
    /// Number of items without the wanted image.
    pub pending: i64,
    /// Number of items that were removed.
    pub removed: i64,
    /// Number of items whose rollout is complete.
    pub installed: i64,
}

impl Summary {
    /// Returns the number of items in a state.
    #[must_use]
    pub fn count(&self, state: State) -> i64 {
        match state {
            State::Pending => self.pending,
            State::Installing => self.installing,
            State::Installed => self.installed,
            State::Failed => self.failed,
            State::Removing => self.removing,
            State::Removed => self.removed,
        }
    }
}

/// Counts states.
impl FromIterator<State> for Summary {
    fn from_iter<I: IntoIterator<Item = State>>(states: I) -> Self {
        let mut summary = Self::default();
        for state in states {
            summary.total += 1;
            *match state {
                State::Failed => &mut summary.failed,
                State::Removing => &mut summary.removing,
                State::Installing => &mut summary.installing,
                State::Pending => &mut summary.pending,
                State::Removed => &mut summary.removed,
                State::Installed => &mut summary.installed,
            } += 1;
        }
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_the_order_of_severity() {
        for (rank, state) in State::BY_SEVERITY.into_iter().enumerate() {
            assert_eq!(state.severity_rank(), rank, "{state}");
        }
    }

    #[test]
    fn names_are_those_of_a_status() {
        for state in State::BY_SEVERITY {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        assert_eq!(serde_json::to_value(Tie::Applier).unwrap(), "applier");
        for reason in [BlockReason::NotChosen, BlockReason::AwaitingMerge, BlockReason::NotFound] {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.to_string());
        }
    }

    #[test]
    fn a_summary_counts_every_state() {
        let summary = Summary::from_iter([State::Failed, State::Installed, State::Installed]);
        assert_eq!(summary, Summary { total: 3, failed: 1, installed: 2, ..Summary::default() });
        let one_each = Summary::from_iter(State::BY_SEVERITY);
        let json = serde_json::to_value(one_each).unwrap();
        for state in State::BY_SEVERITY {
            assert_eq!(json[state.as_str()], 1, "{state}");
        }
    }
}
