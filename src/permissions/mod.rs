//! The RBAC permissions of the controller, with their reasons, and the roles that grant them.
//!
//! The files with roles below `deploy` are generated from this table. Flux's own roles grant all of it as well: if
//! Tagboat replaces Flux's controllers, their roles stay. `lease` has the permissions for leader election, and `manifest`
//! prints roles as YAML.

mod lease;
mod manifest;

pub use lease::{ELECTED, NODES_CONTROLLER, lease_name};
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
    /// Delete an object.
    Delete,
}

use Verb::{Create, Delete, Get, List, Patch, Update, Watch};

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
            Delete => "delete",
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
        reason: "The reconciled objects; only their finalizer is written.",
    },
    Permission {
        group: IMAGES,
        resources: &["imageupdateautomations/status", "imagerepositories/status", "imagepolicies/status"],
        leases: &[],
        verbs: &[Patch],
        reason: "Their status.",
    },
    Permission {
        group: SOURCES,
        resources: &["gitrepositories"],
        leases: &[],
        verbs: &[List, Watch],
        reason: "The repository of an automation and the login for it; a change starts a reconcile.",
    },
    Permission {
        group: "",
        resources: &["secrets"],
        leases: &[],
        verbs: &[Get],
        reason: "Logins, signing keys, certificates and proxies that the objects reference.",
    },
    Permission {
        group: "",
        resources: &["serviceaccounts"],
        leases: &[],
        verbs: &[Get],
        reason: "The pull secrets of referenced service accounts, and their cloud identities.",
    },
    Permission {
        group: "",
        resources: &["namespaces"],
        leases: &[],
        verbs: &[Get, List, Watch],
        reason: "The labels of namespaces, by which an ImageRepository grants access (`accessFrom`); their freezes and windows.",
    },
    Permission {
        group: "",
        resources: &["events"],
        leases: &[],
        verbs: &[Create, Patch],
        reason: "Events of the objects.",
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
    reason: "Tokens with which referenced service accounts log in at clouds.",
}];

/// The further permissions in every watched namespace with which rollouts are reported.
///
/// They are optional: a role of their own grants them, which is part of `deploy/rollout`.
pub const ROLLOUT: &[Permission] = &[
    Permission {
        group: "tagboat.dev",
        resources: &["deploymentstatuses"],
        leases: &[],
        verbs: &[Get, List, Watch, Create, Patch, Delete],
        reason: "One object per policy, which is made and deleted; only its labels are written.",
    },
    Permission {
        group: "tagboat.dev",
        resources: &["deploymentstatuses/status"],
        leases: &[],
        verbs: &[Patch],
        reason: "Its status.",
    },
    Permission {
        group: "apps",
        resources: &["deployments", "statefulsets", "daemonsets"],
        leases: &[],
        verbs: &[List, Watch],
        reason: "Workloads: their images and the progress of their rollouts.",
    },
    Permission {
        group: "batch",
        resources: &["jobs", "cronjobs"],
        leases: &[],
        verbs: &[List, Watch],
        reason: "Jobs: their images, and whether they are complete.",
    },
    Permission {
        group: "",
        resources: &["pods"],
        leases: &[],
        verbs: &[List],
        reason: "The pods of a workload whose rollout is in progress: why they do not start.",
    },
    Permission {
        group: "kustomize.toolkit.fluxcd.io",
        resources: &["kustomizations"],
        leases: &[],
        verbs: &[List, Watch],
        reason: "Appliers of Flux: the revision that is applied, and failures.",
    },
    Permission {
        group: "helm.toolkit.fluxcd.io",
        resources: &["helmreleases"],
        leases: &[],
        verbs: &[List, Watch],
        reason: "Releases of Flux: the chart that is installed, and failures.",
    },
    Permission {
        group: "argoproj.io",
        resources: &["applications", "rollouts"],
        leases: &[],
        verbs: &[List, Watch],
        reason: "Applications of Argo CD, and workloads of Argo Rollouts.",
    },
    Permission {
        group: "flagger.app",
        resources: &["canaries"],
        leases: &[],
        verbs: &[List, Watch],
        reason: "Canaries of Flagger, which decide whether a rollout succeeds.",
    },
];

/// The further permissions with which node pools are reconciled.
///
/// They are optional: a role of their own grants them, which is part of `deploy/nodes`.
pub const NODES: &[Permission] = &[
    Permission {
        group: "tagboat.dev",
        resources: &["nodepools"],
        leases: &[],
        verbs: &[Get, List, Watch, Patch],
        reason: "The reconciled pools, read again after a conflict; only their finalizer is written.",
    },
    Permission {
        group: "tagboat.dev",
        resources: &["nodepools/status"],
        leases: &[],
        verbs: &[Patch],
        reason: "Their status.",
    },
    Permission {
        group: "",
        resources: &["nodes"],
        leases: &[],
        verbs: &[Get, List, Watch, Patch],
        reason: "Nodes: their stage in a rollout, cordons, and annotations for autoscalers.",
    },
    Permission {
        group: "",
        resources: &["pods"],
        leases: &[],
        verbs: &[List],
        reason: "The pods of a node that is drained.",
    },
    Permission {
        group: "",
        resources: &["pods/eviction"],
        leases: &[],
        verbs: &[Create],
        reason: "Evictions, which respect disruption budgets.",
    },
];

/// The further permissions in the controller's own namespace with which node pools are reconciled.
pub const NODES_LEASE: &[Permission] = &[Permission {
    group: "coordination.k8s.io",
    resources: &["leases"],
    leases: &[NODES_CONTROLLER],
    verbs: &[Get, Update],
    reason: "Leader election: one process of the cluster updates nodes. No label selector changes the name.",
}];

/// The permissions of the agent on each node.
///
/// A role cannot restrict them to one node and to the agent's own keys; an admission policy does.
pub const AGENT: &[Permission] = &[Permission {
    group: "",
    resources: &["nodes"],
    leases: &[],
    verbs: &[Get, List, Watch, Patch],
    reason: "Its own node: its label and annotations only, see admission.yaml.",
}];

/// The permissions in the controller's own namespace.
pub const OWN_NAMESPACE: &[Permission] = &[
    Permission {
        group: "coordination.k8s.io",
        resources: &["leases"],
        leases: &ELECTED,
        verbs: &[Get, Update],
        reason: "Leader election: one process at a time writes. `--watch-label-selector` changes the names, see `tagboat rbac --help`.",
    },
    Permission {
        group: "coordination.k8s.io",
        resources: &["leases"],
        leases: &[],
        verbs: &[Create],
        reason: "The first leader creates its Lease. RBAC cannot restrict the names of created objects.",
    },
];
