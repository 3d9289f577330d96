//! The components whose objects are not known now, as the previous status has them.
//!
//! Their cluster is lost or still to be listed, or the API server does not serve or permit their kind.

use tagboat_api::ObjectName;
use tagboat_api::deployment_status::{BlockReason, ComponentStatus, State};

use super::context::{Context, file, has_place_in};
use super::{Contact, gone, unscanned};
use crate::rollout::aggregate::{Component, DeploymentError, DeploymentErrorCode};
use crate::rollout::index::Unlisted;
use crate::rollout::place::{Place, ScannedPlaces};

/// Returns the components whose objects are not known now.
///
/// Those of a lost cluster and of a kind that is not watched are pending. They keep the reason why they lack the image,
/// which nothing else tells after a restart without a scan. As long as a list or a scan is expected, nothing changes.
pub(super) fn components(context: &Context<'_>) -> Vec<Component> {
    let mut found = Vec::new();
    for previous in context.previous.values().filter(|previous| previous.state != State::Removed) {
        let is_object = previous.tie.is_some() && is_marked(context, previous);
        let Some((position, object)) = context.cluster_of(&previous.name).filter(|_| is_object) else {
            continue;
        };
        let cluster = context.cluster(position);
        let kind = kind(object);
        let unlisted = cluster.index.unlisted(kind).filter(|_| context.object_of(previous).is_none());
        let pending = |text: String| {
            let (reason, text) = of_file(context, previous).unwrap_or_else(|| (lacking(previous), text));
            let (message, since) = (Some(text), context.now.clone());
            let (state, updated_ready) = (State::Pending, None);
            let new = ComponentStatus { state, reason, error: None, updated_ready, ..(*previous).clone() };
            ComponentStatus { message, since, ..new }
        };
        let status = match (cluster.contact, unlisted) {
            (Contact::Watched, None) => continue,
            (Contact::Watched, Some(Unlisted::Unwatched)) if is_scanned(context, previous) => continue,
            (Contact::Listing, _) | (Contact::Watched, Some(Unlisted::Expected | Unlisted::Unwatched)) => {
                (*previous).clone()
            }
            (Contact::Lost, _) => pending(cluster.describe_contact()),
            (Contact::Watched, Some(unlisted)) => pending(cluster.describe_unlisted(kind, unlisted)),
        };
        let is_unchanged = status.state == previous.state && status.error == previous.error;
        let has_wanted_image = status.reason.is_none() && is_unchanged;
        found.push(Component { status, has_wanted_image });
    }
    found
}

/// Returns the error of a cluster that carried components are in and that is lost.
///
/// A cluster that was lost in the previous status is so until the objects of their kinds are listed again.
pub(super) fn error(context: &Context<'_>, carried: &[Component]) -> Option<DeploymentError> {
    let before = context.inputs.before.previous.and_then(|previous| previous.report.error.as_ref());
    let before = before.filter(|error| error.code == DeploymentErrorCode::HostUnavailable.to_string());
    carried.iter().find_map(|component| {
        let (position, object) = context.cluster_of(&component.status.name)?;
        let cluster = context.cluster(position);
        let source = cluster.name.unwrap_or("the cluster");
        let message = match cluster.contact {
            Contact::Lost => cluster.describe_contact(),
            Contact::Watched if cluster.index.unlisted(kind(object)) != Some(Unlisted::Expected) => {
                return None;
            }
            Contact::Listing | Contact::Watched => {
                before.filter(|error| error.source == source)?.message.clone()
            }
        };
        let code = DeploymentErrorCode::HostUnavailable;
        Some(DeploymentError { code, source: source.to_owned(), message })
    })
}

/// Returns the kind in the name of an object.
pub(super) fn kind(object: &str) -> &str {
    object.split('/').next().unwrap_or_default()
}

/// Returns `true` unless the marker of a component is known to be gone, see `gone`.
fn is_marked(context: &Context<'_>, component: &ComponentStatus) -> bool {
    let Some(view) = context.view(component) else { return false };
    let Some(file) = file(component) else { return false };
    match view.scan {
        Some(scan) => has_place_in(scan, &context.policy, file),
        None => !gone::is_removed(None, component),
    }
}

fn is_scanned(context: &Context<'_>, component: &ComponentStatus) -> bool {
    context.view(component).is_some_and(|view| view.scan.is_some())
}

/// Returns the reason of a component that lacks the image although its file has it.
fn lacking(previous: &ComponentStatus) -> Option<BlockReason> {
    previous.reason.filter(|_| previous.image.is_some()).map(|_| BlockReason::NotApplied)
}

/// Returns the reason and the message of a component whose file lacks the wanted image.
///
/// The marker of the component tells, or the others of the file if it is gone.
fn of_file(context: &Context<'_>, component: &ComponentStatus) -> Option<(Option<BlockReason>, String)> {
    let (view, file) = (context.view(component)?, file(component)?);
    let block = |place: &Place| context.inputs.before.block(&ObjectName::of(view.automation), place);
    let block = match view.scan {
        Some(scan) => {
            let places: Vec<&Place> =
                scan.of_policy(&context.policy).iter().filter(|place| place.file == file).collect();
            match places.iter().find(|place| component.place == Some(place.location())) {
                Some(own) => block(own),
                None => places.into_iter().find_map(block),
            }
        }
        None => block(&unscanned::place(context, component)?),
    };
    block.map(|block| (Some(block.reason), block.message))
}

/// Returns `true` if a carried component has the file of a place.
pub(super) fn has_place(carried: &[Component], scan: &ScannedPlaces, place: &Place) -> bool {
    carried.iter().any(|component| {
        component.status.automation.as_deref() == Some(&scan.automation.name)
            && file(&component.status) == Some(&place.file)
    })
}
