//! The options of the automation controller.

use super::places::Places;
use crate::controller::engine::ControllerOptions;
use crate::git::{Keyring, MirrorStore};
use crate::objects::remote_clusters::RemoteClusters;
use crate::reconcile::automation::login::LoginOptions;
use crate::reconcile::branch_references::BranchReferences;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::times::TimeBounds;
use crate::tenancy::Capacity;

/// The options of the automation controller.
pub struct AutomationOptions {
    /// The options that all controllers have. A dry run is in compare mode.
    pub controller: ControllerOptions,
    /// The namespace of the controller, whose Namespace can freeze all automations.
    pub namespace: String,
    /// The maximum number of transactions in flight.
    pub concurrent: usize,
    /// The options of a reconcile.
    pub run: RunOptions,
    /// The mirrors.
    pub mirrors: MirrorStore,
    /// The threads and the memory of this process.
    pub capacity: Capacity,
    /// The places of markers, if rollouts are reported.
    ///
    /// They are reported where the cluster allows it, and by no dry run.
    pub places: Option<Places>,
    /// The other clusters in which rollouts are observed.
    pub remote_clusters: Option<RemoteClusters>,
}

/// The options of a reconcile, besides its objects.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Allows or forbids repositories of another namespace.
    pub cross_namespace: CrossNamespace,
    /// The options of logins at remotes.
    pub login: LoginOptions,
    /// The signing keys that are unlocked.
    pub keyring: Keyring,
    /// True if the event about markers without effect is a warning.
    pub warns_of_markers: bool,
    /// Bounds on timeouts.
    pub times: TimeBounds,
    /// The treatment of an existing push branch that is not checked out.
    pub references: BranchReferences,
}
