//! The state that all reconciles of repositories share, and the effects of changes on it.

use std::sync::Arc;

use tagboat_api::{ImagePolicy, ImageRepository};

use super::memory::Memory;
use crate::controller::engine::kind::{Kind, Reconciler};
use crate::controller::policy::group::enqueue_members;
use crate::controller::policy::predicates::is_due_for_repository;
use crate::objects::ObjectName;
use crate::objects::cluster::Change;
use crate::reconcile::repository::run::ScanOptions;
use crate::reconcile::tags::{Registry, SharedTagStore};

/// The state that all reconciles of repositories share.
pub(crate) struct Repositories<R> {
    pub(crate) kind: Arc<Kind<ImageRepository>>,
    /// The policies, which are due when their repository has changed.
    pub(crate) policies: Arc<Kind<ImagePolicy>>,
    pub(crate) registry: R,
    pub(crate) tag_store: SharedTagStore,
    pub(crate) options: ScanOptions,
    pub(crate) memory: Memory,
}

impl<R: Registry> Reconciler for Repositories<R> {
    type Object = ImageRepository;

    fn kind(&self) -> &Kind<ImageRepository> {
        &self.kind
    }

    fn forget(&self, name: &ObjectName) {
        self.memory.forget(name);
    }

    fn related_changes(&self, change: &Change<ImageRepository>) {
        for policy in self.policies.cache.referrers(&change.name) {
            if is_due_for_repository(&policy, change.old.as_deref(), change.new.as_deref()) {
                self.policies.enqueue(ObjectName::of(policy.as_ref()));
                enqueue_members(&self.policies, &policy);
            }
        }
    }
}
