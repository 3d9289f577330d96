//! The component of a place without an object.

use tagboat_api::deployment_status::{BlockReason, ComponentStatus, State, Tie};

use super::Cluster;
use super::chain::Chain;
use super::context::Context;
use crate::rollout::aggregate::Component;
use crate::rollout::message::message;
use crate::rollout::place::{Place, ScannedPlaces};
use crate::rollout::watched::{can_be_component, document};

/// The message of a component whose name is that of an absent object.
const NO_OBJECT: &str = "the object does not exist";

/// Returns the component of a place without an object.
///
/// Its name is that of the document if this can be a component, and the file otherwise.
pub(super) fn component(context: &Context<'_>, scan: &ScannedPlaces, place: &Place) -> Component {
    let object = document(&place.document).filter(can_be_component);
    let name = object.as_ref().map_or_else(|| place.file.clone(), ToString::to_string);
    let previous = context.previous.get(name.as_str()).copied();
    let chain = Chain::of_place(context, scan, place);
    let verdict = chain.verdict(Some(scan), place, previous);
    let kind = object.as_ref().map(|object| object.kind.kind());
    let block = context.inputs.before.block(&scan.automation, place);
    let (reason, text) = match (block, unknown(context, kind)) {
        (Some(block), _) => (Some(block.reason), block.message),
        (None, Some(text)) => (None, text),
        (None, None) => match verdict.not_applied {
            Some(text) => (Some(BlockReason::NotApplied), text),
            None => {
                let text = verdict.message.unwrap_or_else(|| absent(kind, place));
                (Some(BlockReason::NotFound), text)
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

/// Returns the sentence about a cluster that may have the object of a place.
///
/// Its objects are not known, or those of the document's kind.
pub(super) fn unknown(context: &Context<'_>, kind: Option<&str>) -> Option<String> {
    let clusters = context.inputs.clusters;
    let unwatched = clusters.iter().find(|cluster| !cluster.is_watched()).map(Cluster::describe_contact);
    unwatched.or_else(|| {
        let kind = kind?;
        clusters
            .iter()
            .find_map(|cluster| Some(cluster.describe_unlisted(kind, cluster.index.unlisted(kind)?)))
    })
}

/// Returns the sentence about a place without an object; `kind` is that of its document.
pub(super) fn absent(kind: Option<&str>, place: &Place) -> String {
    match kind {
        Some(_) => NO_OBJECT.to_owned(),
        None => message(&format!("no object of the file {} uses the image", place.file)),
    }
}
