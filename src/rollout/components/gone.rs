//! Components of the previous status that no place ties any more.
//!
//! If the file was removed from git, the object is being removed, for at most one hour, and then it is reported once
//! as removed. As long as its cluster or its kind is not watched, nothing tells that it is gone. If only the marker was
//! removed, the component is dropped. Before the first scan of the process, the message of the previous status tells that
//! the file was removed.

use jiff::{SignedDuration, Timestamp};
use tagboat_api::ObjectName;
use tagboat_api::deployment_status::{ComponentStatus, State};

use super::carried::kind;
use super::context::{Context, file};
use super::unscanned;
use crate::rollout::aggregate::Component;
use crate::rollout::message::message;
use crate::rollout::place::ScannedPlaces;

/// The time after which an object is no component any more whose file was removed.
const MAX_REMOVAL: SignedDuration = SignedDuration::from_hours(1);

/// The time after which an object without a known place is looked at again.
///
/// Its changes need not concern the policy any more.
pub(super) const NEXT_LOOK: SignedDuration = SignedDuration::from_secs(30);

/// The time after which a removed component is dropped.
const REPORT: SignedDuration = SignedDuration::from_secs(1);

/// Returns the components of the previous status without a place.
///
/// Each has the time of its next check. They may have the name of a component that has a place.
pub(super) fn components(context: &Context<'_>) -> Vec<(Component, Timestamp)> {
    let mut previous: Vec<&ComponentStatus> = context.previous.values().copied().collect();
    previous.sort_by(|left, right| left.name.cmp(&right.name));
    previous.into_iter().filter_map(|previous| component(context, previous)).collect()
}

fn component(context: &Context<'_>, previous: &ComponentStatus) -> Option<(Component, Timestamp)> {
    let (now, file) = (context.inputs.now, file(previous)?);
    let view = context.view(previous).filter(|_| previous.state != State::Removed)?;
    let with = |status: ComponentStatus| Component { status, has_wanted_image: previous.reason.is_none() };
    // Without a kubeconfig, a cluster has no components any more.
    if previous.tie.is_some() && context.cluster_of(&previous.name).is_none() {
        return None;
    }
    let object = context.object_of(previous);
    if object.as_ref().is_some_and(|object| !context.admits(&object.id.namespace)) {
        return None;
    }
    if !is_removed(view.scan, previous) {
        if view.scan.is_some() {
            return None;
        }
        let status = unscanned::without_object(context, &ObjectName::of(view.automation), previous);
        let component = Component { status, has_wanted_image: false };
        return Some((component, now.saturating_add(NEXT_LOOK).ok()?));
    }
    let status = |state: State, since| ComponentStatus {
        state,
        reason: None,
        message: Some(text(file)),
        error: None,
        since,
        ..previous.clone()
    };
    if object.is_none() && has_known_objects(context, previous) {
        let mut removed = status(State::Removed, context.now.clone());
        (removed.desired, removed.updated, removed.ready, removed.updated_ready) = (0, 0, 0, None);
        return Some((with(removed), now.saturating_add(REPORT).ok()?));
    }
    // A clock that was set back does not prolong the hour.
    let began = || previous.since.clone().min(context.now.clone());
    let since = if previous.state == State::Removing { began() } else { context.now.clone() };
    let is_late = now.duration_since(since.0) >= MAX_REMOVAL;
    (!is_late).then(|| (with(status(State::Removing, since)), now + NEXT_LOOK))
}

/// Returns `false` for an object of a kind whose objects are not known.
fn has_known_objects(context: &Context<'_>, component: &ComponentStatus) -> bool {
    let object = context.cluster_of(&component.name).filter(|_| component.tie.is_some());
    object.is_none_or(|(position, object)| {
        let cluster = context.cluster(position);
        cluster.is_watched() && cluster.index.unlisted(kind(object)).is_none()
    })
}

/// Returns `true` if the file of a component was removed from git.
///
/// Without a scan, the message of the component tells.
pub(super) fn is_removed(scan: Option<&ScannedPlaces>, component: &ComponentStatus) -> bool {
    let Some(file) = file(component) else { return false };
    match scan {
        Some(scan) => scan.removed_files.iter().any(|removed| removed == file),
        None => component.message.as_deref() == Some(text(file).as_str()),
    }
}

/// Returns the message of a component whose file was removed.
///
/// Its wording is stored data: [`is_removed`] finds it in the statuses of versions before.
fn text(file: &str) -> String {
    message(&format!("{file} was removed from git"))
}
