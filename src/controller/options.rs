//! The options of a reconcile.

use crate::git::Keyring;
use crate::reconcile::automation::login::LoginOptions;
use crate::reconcile::cross_namespace::CrossNamespace;
use crate::reconcile::times::TimeBounds;

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
}
