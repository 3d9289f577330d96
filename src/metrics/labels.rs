//! The labels of the metrics.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};

/// The names of the controllers as labels.
pub(super) const CONTROLLERS: [&str; 5] =
    ["imageupdateautomation", "imagerepository", "imagepolicy", "deploymentstatus", "nodepool"];

/// Returns the controller label of a kind; dashboards for Flux select by it.
pub(super) fn controller_of(kind: &str) -> &'static str {
    match kind {
        "ImageRepository" => CONTROLLERS[1],
        "ImagePolicy" => CONTROLLERS[2],
        "DeploymentStatus" => CONTROLLERS[3],
        "NodePool" => CONTROLLERS[4],
        _ => CONTROLLERS[0],
    }
}

/// The labels of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ObjectLabels {
    /// Its kind.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ControllerLabels {
    pub(super) controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ResultLabels {
    pub(super) controller: &'static str,
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestLabels {
    pub(super) code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RunLabels {
    pub(super) outcome: RunOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct GitLabels {
    pub(super) operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ComparisonLabels {
    pub(super) outcome: ComparisonOutcome,
}

/// The result of comparing another controller's push with our dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelValue)]
#[allow(non_camel_case_types, reason = "the names are the values of the label")]
pub enum ComparisonOutcome {
    /// Both changes are equal.
    agreed,
    /// The changes differ.
    differed,
    /// The dry run would have pushed nothing.
    missed,
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
#[allow(non_camel_case_types, reason = "the names are the values of the label")]
pub enum RunOutcome {
    /// It pushed a commit.
    pushed,
    /// It examined the files and found nothing to change.
    unchanged,
    /// It was skipped because nothing was new.
    skipped,
    /// Only a change of an object can fix the error.
    stalled,
    /// It failed and is retried.
    failed,
}
