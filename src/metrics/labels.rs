//! By what counts and measures are told apart.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};

/// The names of the controllers as labels.
pub(super) const CONTROLLERS: [&str; 3] = ["imageupdateautomation", "imagerepository", "imagepolicy"];

/// The name of the controller of a kind as a label, which dashboards for Flux select by.
pub(super) fn controller_of(kind: &str) -> &'static str {
    match kind {
        "ImageRepository" => CONTROLLERS[1],
        "ImagePolicy" => CONTROLLERS[2],
        _ => CONTROLLERS[0],
    }
}

/// An object that something was measured of.
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
pub(super) struct ShadowLabels {
    pub(super) outcome: ShadowOutcome,
}

/// How what another controller pushed compares with what a shadow would have pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelValue)]
#[allow(non_camel_case_types, reason = "the names are the values of the label")]
pub enum ShadowOutcome {
    /// It is the same.
    agreed,
    /// It is something else.
    differed,
    /// The shadow would have pushed nothing.
    missed,
}

/// How a run ended, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
#[allow(non_camel_case_types, reason = "the names are the values of the label")]
pub enum RunOutcome {
    /// Something was pushed.
    pushed,
    /// There was something to look at and nothing to change.
    unchanged,
    /// Nothing was new.
    skipped,
    /// Only a change of an object helps.
    stalled,
    /// It is tried again.
    failed,
}
