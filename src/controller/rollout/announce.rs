//! Announces the outcome of a rollout, as an event of its ImagePolicy.

use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use tagboat_api::ImagePolicy;

use super::state::Rollouts;
use crate::controller::engine::reconcile_steps::log_event;
use crate::objects::cluster::{Announcement, EventIdentity};
use crate::objects::{Event, EventType};
use crate::rollout::event::{RolloutEvent, RolloutOutcome};

/// Announces an event.
///
/// It is called before the status is written. If the process ends in between, the next one announces the same event, whose
/// name exists then.
pub(super) async fn announce(rollouts: &Rollouts, policy: &ImagePolicy, event: RolloutEvent) {
    let RolloutEvent { outcome, message, key, .. } = event;
    let type_ = match outcome {
        RolloutOutcome::Succeeded => EventType::Normal,
        RolloutOutcome::Failed => EventType::Warning,
    };
    let event = Event { type_, reason: outcome.to_string(), message };
    log_event(&event);
    let announcement = Announcement {
        object: policy.object_ref(&()),
        annotations: policy.annotations().clone(),
        event,
        identity: EventIdentity::Once(key),
        time: Timestamp::now(),
    };
    rollouts.kind.context.announce(announcement).await;
}
