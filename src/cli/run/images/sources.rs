//! The sources of a run's images, and the objects that it reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use tagboat_api::{ImagePolicy, ImageRepository};

use super::state::RunState;
use crate::objects::ObjectName;
use crate::objects::manifests::ManifestStore;
use crate::reconcile::policy::run::PolicyOptions;
use crate::reconcile::registries::AuthenticatedRegistries;
use crate::reconcile::tags::SharedTagStore;

/// The sources of a run's images: registries, kept tags and the state.
pub(super) struct Sources {
    pub(super) registry: AuthenticatedRegistries<ManifestStore>,
    pub(super) tag_store: SharedTagStore,
    pub(super) state: RunState,
    pub(super) policies: PolicyOptions,
}

/// A repository after its scan.
#[derive(Debug)]
pub(super) struct Scanned {
    /// The object, with its new status.
    pub(super) object: Arc<ImageRepository>,
    /// The object of its manifest.
    pub(super) manifest: ImageRepository,
    /// The reason for which the scan failed.
    pub(super) failure: Option<String>,
}

/// The scanned repositories by name, for the policies that choose from them.
pub(super) type Repositories = BTreeMap<ObjectName, Scanned>;

/// Policies by name.
pub(super) type Policies = BTreeMap<ObjectName, Arc<ImagePolicy>>;
