//! The error of a NodePool with an invalid field.

use tagboat_api::duration::DurationError;
use tagboat_api::selector::SelectorError;

use super::WindowError;
use crate::reference::ReferenceError;

/// The path of the node selector below `spec`.
pub(super) const NODE_SELECTOR: &str = "nodeSelector";

/// A field of a NodePool that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.{field}: {defect}")]
pub struct InvalidSpec {
    /// The path of the field below `spec`, such as `rollout.windows[0].start`.
    pub field: String,
    /// The defect.
    pub defect: Defect,
}

impl InvalidSpec {
    /// Returns `true` if the selector is not valid.
    ///
    /// The nodes of the pool are not known then.
    #[must_use]
    pub fn hides_nodes(&self) -> bool {
        self.field == NODE_SELECTOR
    }
}

/// The defect of a field of a NodePool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// A selector that would select everything.
    #[error("an empty selector is invalid: write matchLabels or matchExpressions")]
    EmptySelector,
    /// A selector with an invalid requirement.
    #[error("{0}")]
    Selector(SelectorError),
    /// An image that is not a reference.
    #[error("{0}")]
    Reference(ReferenceError),
    /// A reference with neither a tag nor a digest.
    #[error("{0:?} has neither a tag nor a digest; expected NAME:TAG, NAME@DIGEST or NAME:TAG@DIGEST")]
    Unpinned(String),
    /// A number that is negative, or a text that is no percentage.
    #[error("`{0}` is neither a number of nodes nor a percentage from 0% to 100%")]
    MaxUnavailable(String),
    /// A text that is not a duration.
    #[error("{0}")]
    Duration(DurationError),
    /// A time limit without time.
    #[error("must be more than 0; for no limit, leave it out")]
    NoTime,
    /// A window that is not valid.
    #[error("{0}")]
    Window(WindowError),
    /// A key that no label has.
    #[error("{key:?} is not a key of a label: {}", .defects.join("; "))]
    Key {
        /// The key.
        key: String,
        /// Its defects.
        defects: Vec<&'static str>,
    },
    /// A key of Tagboat's own.
    #[error("{0:?} is a key of Tagboat's own, with which a hook cannot confirm")]
    OwnKey(String),
    /// A key of Tagboat's own in the node selector.
    #[error("{0:?} is a key of Tagboat's own, which changes during a rollout: select nodes by other labels")]
    SelectsOwnKey(String),
    /// A key of a hook that the node selector uses too.
    #[error(
        "{0:?} is a key of spec.nodeSelector, and the keys of hooks are removed from nodes: use another key"
    )]
    SelectedKey(String),
    /// A key of Kubernetes or of an autoscaler.
    #[error(
        "{0:?} is a key of Kubernetes or of an autoscaler, and the keys of hooks are removed from nodes: use one of your own"
    )]
    SystemKey(String),
}
