//! The state that all reconciles of policies share, and the effects of changes on it.

use std::sync::Arc;

use tagboat_api::ImagePolicy;

use super::group::{concerns_members, enqueue_members};
use super::memory::Memory;
use super::poller::Poller;
use crate::controller::engine::kind::{Kind, Reconciler};
use crate::controller::repository::Repositories;
use crate::objects::ObjectName;
use crate::objects::cluster::Change;
use crate::reconcile::policy::run::PolicyOptions;
use crate::reconcile::tags::Registry;

/// The state that all reconciles of policies share.
pub(crate) struct Policies<R> {
    pub(crate) kind: Arc<Kind<ImagePolicy>>,
    pub(crate) repositories: Arc<Repositories<R>>,
    pub(crate) options: PolicyOptions,
    pub(crate) memory: Memory,
    pub(crate) poller: Poller,
}

impl<R> Policies<R> {
    /// Measures when the digest of a policy is looked up next.
    pub(super) fn measure_next_poll(&self, policy: &ObjectName) {
        // While a lookup is in flight, the last measurement stays.
        if let Some(next) = self.poller.next_of(policy) {
            self.kind.context.metrics.next_poll(&self.kind.labels(policy), Some(next));
        }
    }

    /// Stops following the digest of a policy.
    pub(super) fn unfollow(&self, policy: &ObjectName) {
        self.poller.unsubscribe(policy);
        self.kind.context.metrics.next_poll(&self.kind.labels(policy), None);
    }
}

impl<R: Registry> Reconciler for Policies<R> {
    type Object = ImagePolicy;

    fn kind(&self) -> &Kind<ImagePolicy> {
        &self.kind
    }

    fn forget(&self, name: &ObjectName) {
        self.memory.forget(name);
        self.unfollow(name);
    }

    fn related_changes(&self, change: &Change<ImagePolicy>) {
        if concerns_members(change.old.as_deref(), change.new.as_deref()) {
            let of_both = change.old.iter().chain(&change.new);
            of_both.for_each(|policy| enqueue_members(&self.kind, policy));
        }
    }
}
