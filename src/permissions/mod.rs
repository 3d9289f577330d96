//! The RBAC permissions of the controller, with their reasons, and the roles that grant them.
//!
//! The files with roles below `deploy` are generated from this table. Flux's own roles grant all of it as well: if
//! Tagboat replaces Flux's controllers, their roles stay.

mod lease;
mod manifest;

pub use lease::{ELECTED, lease_name};
pub use manifest::{RoleFile, files};

/// An operation on objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read all objects.
    List,
    /// Receive changes.
    Watch,
    /// Create an object.
    Create,
    /// Change parts of an object.
    Patch,
    /// Replace an object.
    Update,
}

use Verb::{Create, Get, List, Patch, Update, Watch};

impl Verb {
    /// Returns the verb as roles name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Get => "get",
            List => "list",
            Watch => "watch",
            Create => "create",
            Patch => "patch",
            Update => "update",
        }
    }
}

/// A rule of a role.
#[derive(Clone, Copy, Debug)]
pub struct Permission {
    /// The API group; the core group is empty.
    pub group: &'static str,
    /// The plural names, with a subresource if only that is meant.
    pub resources: &'static [&'static str],
    /// The controllers to whose Leases the rule is restricted; empty for all objects.
    ///
    /// RBAC cannot restrict `create` by name.
    pub leases: &'static [&'static str],
    /// The operations.
    pub verbs: &'static [Verb],
    /// The reason.
    pub reason: &'static str,
}

const IMAGES: &str = "image.toolkit.fluxcd.io";
const SOURCES: &str = "source.toolkit.fluxcd.io";

/// The permissions in every watched namespace.
pub const EVERYWHERE: &[Permission] = &[
    Permission {
        group: IMAGES,
        resources: &["imageupdateautomations", "imagerepositories", "imagepolicies"],
        leases: &[],
        verbs: &[Get, List, Watch, Patch],
        reason: "The objects that are served; written to for their finalizer only.",
    },
    Permission {
        group: IMAGES,
        resources: &["imageupdateautomations/status", "imagerepositories/status", "imagepolicies/status"],
        leases: &[],
        verbs: &[Patch],
        reason: "What became of them.",
    },
    Permission {
        group: SOURCES,
        resources: &["gitrepositories"],
        leases: &[],
        verbs: &[List, Watch],
        reason: "Where an automation finds its repository and how to log in; a change of it starts a run.",
    },
    Permission {
        group: "",
        resources: &["secrets"],
        leases: &[],
        verbs: &[Get],
        reason: "Logins, signing keys, certificates and proxies that the objects name.",
    },
    Permission {
        group: "",
        resources: &["serviceaccounts"],
        leases: &[],
        verbs: &[Get],
        reason: "The pull secrets of accounts that an object names, and who they are at clouds.",
    },
    Permission {
        group: "",
        resources: &["namespaces"],
        leases: &[],
        verbs: &[Get],
        reason: "Labels of namespaces, by which an ImageRepository says who may use it (`accessFrom`).",
    },
    Permission {
        group: "",
        resources: &["events"],
        leases: &[],
        verbs: &[Create, Patch],
        reason: "What happened to the objects.",
    },
];

/// The permission to request tokens of service accounts, for the feature gate `ObjectLevelWorkloadIdentity`.
///
/// It is needed in the namespaces whose service accounts log in at clouds. The holder of an account's token has all
/// permissions of the account, so it is granted nowhere by default.
pub const ACCOUNT_TOKENS: &[Permission] = &[Permission {
    group: "",
    resources: &["serviceaccounts/token"],
    leases: &[],
    verbs: &[Create],
    reason: "Tokens by which accounts that an object names log in at clouds.",
}];

/// The permissions in the controller's own namespace.
pub const OWN_NAMESPACE: &[Permission] = &[
    Permission {
        group: "coordination.k8s.io",
        resources: &["leases"],
        leases: &ELECTED,
        verbs: &[Get, Update],
        reason: "The leadership: one at a time writes. `--watch-label-selector` changes the names, see `tagboat rbac --help`.",
    },
    Permission {
        group: "coordination.k8s.io",
        resources: &["leases"],
        leases: &[],
        verbs: &[Create],
        reason: "The first to lead creates its Lease. RBAC cannot restrict the names of what is created.",
    },
];
