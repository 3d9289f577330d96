//! The facts about an automation that explain what is written.

use std::sync::Arc;

use tagboat_api::{GitRepository, ImagePolicy, ImageUpdateAutomation};

use crate::objects::ObjectName;
use crate::reconcile::automation::waiting::NamespaceRules;

/// The result of a search for an automation.
#[derive(Debug)]
pub(super) enum Found {
    /// The facts about it.
    Facts(Box<Facts>),
    /// It is invalid.
    Invalid {
        /// Its name.
        name: ObjectName,
        /// The errors, one sentence each.
        sentences: Vec<String>,
    },
}

/// The facts about an automation.
#[derive(Debug)]
pub(super) struct Facts {
    /// The automation, with the status of its last run.
    pub(super) automation: ImageUpdateAutomation,
    /// Its GitRepository, if it is known.
    pub(super) repository: Option<GitRepository>,
    /// The policies of its namespace, each with its status.
    pub(super) policies: Vec<Arc<ImagePolicy>>,
    /// The windows and freezes of Namespaces, as far as they can be read.
    pub(super) rules: NamespaceRules,
    /// The errors for which `tagboat run` writes nothing, one sentence each.
    pub(super) refusals: Vec<String>,
    /// The inputs that cannot be read, one sentence each.
    pub(super) unread: Vec<String>,
    /// Notes, one sentence each.
    pub(super) notes: Vec<String>,
    /// The origin of the statuses.
    pub(super) origin: Origin,
}

/// The origin of the statuses of an automation and its policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A cluster, whose controller reconciles the automation.
    Cluster {
        /// The namespace of the controller.
        controller: String,
    },
    /// A state directory, or manifests.
    Manifests,
}
