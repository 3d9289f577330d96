//! What the controller must be allowed to do in a cluster, and why; and the roles that allow just that.
//!
//! A table, from which the files below `deploy` are made that hold roles. Flux's own roles allow all of it as well:
//! where Tagboat takes the place of Flux's controllers, theirs stay.

mod lease;
mod manifest;

pub use lease::{ELECTED, lease_name};
pub use manifest::{RoleFile, files};

/// What is done with objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Read one.
    Get,
    /// Read all.
    List,
    /// Hear of changes.
    Watch,
    /// Make one.
    Create,
    /// Change parts of one.
    Patch,
    /// Replace one.
    Update,
}

use Verb::{Create, Get, List, Patch, Update, Watch};

impl Verb {
    /// The verb as roles name it.
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

/// One rule of a role.
#[derive(Clone, Copy, Debug)]
pub struct Permission {
    /// The API group; the core group is empty.
    pub group: &'static str,
    /// Plurals, with a subresource where one is meant.
    pub resources: &'static [&'static str],
    /// The only Leases that are meant, by the controllers that they elect; empty for all objects. RBAC cannot restrict
    /// `create` like that.
    pub leases: &'static [&'static str],
    /// What is done with them.
    pub verbs: &'static [Verb],
    /// Why.
    pub reason: &'static str,
}

const IMAGES: &str = "image.toolkit.fluxcd.io";
const SOURCES: &str = "source.toolkit.fluxcd.io";

/// What is needed in every namespace that is served.
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

/// What is needed besides, with the feature gate `ObjectLevelWorkloadIdentity`, in the namespaces whose service accounts
/// log in at clouds. Whoever has a token of an account may do what it may, so it is allowed nowhere by itself.
pub const ACCOUNT_TOKENS: &[Permission] = &[Permission {
    group: "",
    resources: &["serviceaccounts/token"],
    leases: &[],
    verbs: &[Create],
    reason: "Tokens by which accounts that an object names log in at clouds.",
}];

/// What is needed in the namespace that the controller runs in.
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
