//! The component of a place without an object.

use tagboat_api::deployment_status::{BlockReason, ComponentStatus, State, Tie};

use super::Cluster;
use super::chain::Chain;
use super::context::Context;
use crate::rollout::aggregate::Component;
use crate::rollout::message::message;
use crate::rollout::place::{Place, ScannedPlaces};
use crate::rollout::watched::{WatchedId, can_be_component, document};

/// The message of a component whose name is that of an absent object.
pub(super) const NO_OBJECT: &str = "the object does not exist";

/// Returns the component of a place without an object.
///
/// Its name is that of the document if this can be a component, and the file otherwise.
pub(super) fn component(context: &Context<'_>, scan: &ScannedPlaces, place: &Place) -> Component {
    let object = document(&place.document).filter(can_be_component);
    let name = object.as_ref().map_or_else(|| place.file.clone(), ToString::to_string);
    let previous = context.previous.get(name.as_str()).copied();
    let chain = Chain::of_place(context, scan, place);
    let verdict = chain.verdict(Some(scan), place, previous);
    let unwatched = context.inputs.clusters.iter().find(|cluster| !cluster.is_watched());
    let unknown = unwatched.map(Cluster::describe_contact).or_else(|| unlisted(context, object.as_ref()?));
    let (reason, text) = match (context.inputs.before.block(&scan.automation, place), unknown) {
        (Some(block), _) => (Some(block.reason), block.message),
        (None, Some(text)) => (None, text),
        (None, None) => match verdict.not_applied {
            Some(text) => (Some(BlockReason::NotApplied), text),
            None => {
                let absent = || match &object {
                    Some(_) => NO_OBJECT.to_owned(),
                    None => message(&format!("no object of the file {} uses the image", place.file)),
                };
                (Some(BlockReason::NotFound), verdict.message.unwrap_or_else(absent))
            }
        },
    };
    let mut status = ComponentStatus::new(name, State::Pending, context.now.clone());
    status.reason = reason;
    status.message = Some(text);
    status.automation = Some(scan.automation.name.clone());
    status.place = Some(place.location());
    // It tells that an object with the same image is another one.
    status.tie = previous.and_then(|previous| previous.tie).filter(|tie| *tie == Tie::Object);
    if let Some((applier, revision)) = chain.applier() {
        status.applier = Some(applier.to_owned());
        status.applied_revision = revision.map(str::to_owned);
    }
    if let Some(failure) = verdict.failure {
        status.state = State::Failed;
        status.error = Some(failure);
    }
    Component { status, has_wanted_image: false }
}

/// Returns the sentence about a cluster without the objects of a document's kind.
fn unlisted(context: &Context<'_>, object: &WatchedId) -> Option<String> {
    let kind = object.kind.kind();
    context.inputs.clusters.iter().find_map(|cluster| {
        let unlisted = cluster.index.unlisted(kind)?;
        Some(cluster.describe_unlisted(kind, unlisted))
    })
}
