//! The places of automations that were not scanned in this process.
//!
//! A suspended automation is never scanned after a restart. The components of the previous status have its places, as
//! far as they matter: the object, the file and the key. Such a place wants the whole image, unless its component had only
//! a part of it. An object to which the automation may not lead any more is left out.

use tagboat_api::ObjectName;
use tagboat_api::deployment_status::{BlockReason, ComponentStatus, State, Tie};

use super::context::Context;
use crate::reference::ImageReference;
use crate::rollout::image::{ObjectImage, WantedImage};
use crate::rollout::index::ClusterObject;
use crate::rollout::place::Place;
use crate::rollout::tie::{TiedPlace, Ties};
use crate::update::{Field, ObjectIdentifier};

/// A place as the previous status has it, with its object.
pub(super) struct UnscannedPlace {
    automation: ObjectName,
    place: Place,
    tie: Tie,
    object: ClusterObject,
}

/// Returns the places of automations that were not scanned, for objects that exist.
pub(super) fn places(context: &Context<'_>) -> Vec<UnscannedPlace> {
    let components = context.previous.values().filter(|component| component.state != State::Removed);
    let found = components.filter_map(|component| {
        let view = context.view(component).filter(|view| view.scan.is_none())?;
        let (file, line) = component.place.as_deref()?.rsplit_once(':')?;
        let object = context.object_of(component)?;
        let is_watched = context.cluster(object.cluster).is_watched();
        (is_watched && context.admits(&object.id.namespace)).then_some(())?;
        // The value is not known, but the reason of the component tells if it was committed.
        let is_committed = is_committed(context, component);
        let image = context.image.as_ref().filter(|_| is_committed);
        let field = image.map_or(Field::Reference, |image| field(component, image));
        let value = image.and_then(|image| field.value_in(image)).unwrap_or_default();
        let place = Place {
            policy: context.policy.clone(),
            document: ObjectIdentifier::default(),
            file: file.to_owned(),
            line: line.parse().ok()?,
            field,
            value,
            proposed: None,
            written: None,
        };
        Some(UnscannedPlace {
            automation: ObjectName::of(view.automation),
            place,
            tie: component.tie?,
            object,
        })
    });
    found.collect()
}

/// Returns `true` if the previous status tells that the image was committed.
fn is_committed(context: &Context<'_>, component: &ComponentStatus) -> bool {
    use BlockReason::{AwaitingMerge, NotChosen, NotCommitted};
    let before = context.inputs.before;
    let previous_target = before.previous.and_then(|previous| previous.report.target.as_ref());
    let is_open = matches!(component.reason, Some(NotChosen | NotCommitted | AwaitingMerge));
    !is_open && previous_target == before.target().as_ref()
}

/// Returns the field of a marker, as the image of its component tells it.
///
/// It is that of the whole image unless the object only has a part of the image.
fn field(component: &ComponentStatus, image: &ImageReference) -> Field {
    let Some(shown) = component.image.as_deref() else { return Field::Reference };
    let parsed = ObjectImage::parse(shown).ok();
    let is_met = |field: &Field| {
        let is_value = field.value_in(image).as_deref() == Some(shown);
        let met =
            || parsed.as_ref().is_some_and(|shown| WantedImage::of_field(*field, image).is_met_by(shown));
        component.reason.is_none() && (is_value || met())
    };
    [Field::Reference, Field::Tag, Field::Digest].into_iter().find(is_met).unwrap_or(Field::Reference)
}

/// Adds the places to the ties.
pub(super) fn add<'u>(places: &'u [UnscannedPlace], ties: &mut Ties<'u>) {
    for UnscannedPlace { automation, place, tie, object } in places {
        let tied = TiedPlace { automation, scan: None, place, count: 1, tie: *tie };
        ties.objects.entry(object.clone()).or_default().push(tied);
    }
}
