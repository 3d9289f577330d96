//! The places of automations that were not scanned in this process.
//!
//! A suspended automation is never scanned after a restart. The components of the previous status have its places, as
//! far as they matter: the object, the file and the key. Such a place wants the whole image, unless its component had only
//! a part of it. The reason of the component tells the value. An object to which the automation may not lead any more is
//! left out.

use std::collections::{HashMap, HashSet};

use tagboat_api::ObjectName;
use tagboat_api::deployment_status::{BlockReason, CommitRef, ComponentStatus, State, Tie};

use super::carried::kind;
use super::context::{Context, file};
use super::{gone, missing};
use crate::reference::ImageReference;
use crate::rollout::image::{ObjectImage, WantedImage, is_any};
use crate::rollout::index::{Cluster, ClusterObject};
use crate::rollout::place::{Place, Written};
use crate::rollout::tie::{Effort, TiedPlace, Ties, images, runners};
use crate::rollout::watched::WatchedObject;
use crate::update::{Field, ObjectIdentifier};

/// A place as the previous status has it, with its object.
pub(super) struct UnscannedPlace {
    automation: ObjectName,
    place: Place,
    tie: Tie,
    object: ClusterObject,
}

/// Returns the places of automations that were not scanned, for objects that exist.
///
/// Beyond [`MAX_TIES`](crate::rollout::tie::MAX_TIES) and
/// [`MAX_COMPARISONS`](crate::rollout::tie::MAX_COMPARISONS), a place without an object stays so.
pub(super) fn places(context: &Context<'_>) -> Vec<UnscannedPlace> {
    let mut components: Vec<&ComponentStatus> = context
        .previous
        .values()
        .copied()
        .filter(|component| component.state != State::Removed && !gone::is_removed(None, component))
        .collect();
    components.sort_by(|left, right| left.name.cmp(&right.name));
    let effort = Effort::new(context.inputs.stop);
    let mut search = Search { context, effort, released: HashMap::new() };
    let mut places = Vec::new();
    for component in components {
        let Some(view) = context.view(component).filter(|view| view.scan.is_none()) else { continue };
        let Some(place) = place(context, component) else { continue };
        for (tie, object) in search.objects(component, &place) {
            if context.cluster(object.cluster).is_watched() && context.admits(&object.id.namespace) {
                let automation = ObjectName::of(view.automation);
                places.push(UnscannedPlace { automation, place: place.clone(), tie, object });
            }
        }
    }
    places
}

/// The search for the objects of places.
struct Search<'c, 'i> {
    context: &'c Context<'i>,
    effort: Effort<'i>,
    /// The objects of releases with the wanted image, by the name of the release.
    released: HashMap<&'i str, Vec<ClusterObject>>,
}

impl<'i> Search<'_, 'i> {
    /// Returns the objects of a component with their keys.
    ///
    /// A component without an object gets that of its name, or those of the release in its document.
    fn objects(&mut self, component: &'i ComponentStatus, place: &Place) -> Vec<(Tie, ClusterObject)> {
        let is_file = file(component) == Some(&component.name);
        match (self.context.object_of(component).filter(|_| !is_file), component.tie) {
            (Some(object), Some(tie)) => vec![(tie, object)],
            (Some(object), None) if has_image(self.context, place, &object) => vec![(Tie::Object, object)],
            (_, Some(_)) | (Some(_), None) => Vec::new(),
            (None, None) if self.effort.is_spent() => Vec::new(),
            (None, None) => {
                let Some(applier) = component.applier.as_deref() else { return Vec::new() };
                if !self.released.contains_key(applier) {
                    let found = self.released(applier, place);
                    self.released.insert(applier, found);
                }
                let found = self.released[applier].clone();
                self.effort.tie(found.len());
                found.into_iter().map(|object| (Tie::Release, object)).collect()
            }
        }
    }

    /// Returns the objects of a release that have the wanted image.
    ///
    /// The applier of a component without an object is the release in its document, if it is a release. Without an
    /// object, all places want the whole image.
    fn released(&self, applier: &str, place: &Place) -> Vec<ClusterObject> {
        let release = self.context.cluster_of(applier);
        let parts: Vec<&str> = release.map_or("", |(_, release)| release).split('/').collect();
        let (["HelmRelease", namespace, name], Some(image)) = (&parts[..], &self.context.image) else {
            return Vec::new();
        };
        let (wanted, clusters) = ([place.wanted(image)], self.context.inputs.clusters);
        let found = clusters.iter().enumerate().flat_map(|(cluster, Cluster { index, .. })| {
            let has_image = |object: &WatchedObject| {
                let images = images(index, object).unwrap_or_default();
                self.effort.compare(images.len());
                images.into_iter().any(|image| is_any(&wanted, image))
            };
            let ids = index.of_release(namespace, name).take_while(|_| !self.effort.is_spent());
            let ids = ids.filter(|id| index.get(id).is_some_and(has_image));
            ids.map(|id| ClusterObject { cluster, id: id.clone() }).collect::<Vec<_>>()
        });
        runners(clusters, found)
    }
}

/// Returns `true` if an object has the wanted or a former image of a place.
///
/// The object may be that of another policy.
fn has_image(context: &Context<'_>, place: &Place, found: &ClusterObject) -> bool {
    let clusters = context.inputs.clusters;
    let wanted: Vec<WantedImage> = context.image.iter().map(|image| place.wanted(image)).collect();
    found.get(clusters).is_some_and(|object| {
        images(clusters[found.cluster].index, object).is_ok_and(|images| {
            images.iter().any(|image| is_any(&wanted, image))
                || context.evidence(place).holds(object, &images, None)
        })
    })
}

/// Returns the automations and locations of places.
pub(super) fn locations(places: &[UnscannedPlace]) -> HashSet<(&str, String)> {
    places.iter().map(|found| (found.automation.name.as_str(), found.place.location())).collect()
}

/// Returns `true` if the place of a component has an object.
pub(super) fn has_object(locations: &HashSet<(&str, String)>, component: &ComponentStatus) -> bool {
    let own = component.automation.as_deref().zip(component.place.clone());
    own.is_some_and(|own| locations.contains(&own))
}

/// Returns the component of a place without an object.
///
/// If it had none before, the appliers of its file are as in the previous status.
pub(super) fn without_object(
    context: &Context<'_>,
    automation: &ObjectName,
    previous: &ComponentStatus,
) -> ComponentStatus {
    // The component of places that were not matched has no place of its own.
    let Some(place) = place(context, previous).filter(|place| place.location() != previous.name) else {
        return previous.clone();
    };
    let had_object = previous.image.is_some();
    let is_file = file(previous) == Some(&previous.name);
    let kind = context.cluster_of(&previous.name).filter(|_| !is_file).map(|(_, object)| kind(object));
    let (reason, text) = match context.inputs.before.block(automation, &place) {
        Some(block) => (Some(block.reason), block.message),
        None if !had_object && previous.reason.is_some() => return previous.clone(),
        None => match missing::unknown(context, kind) {
            Some(text) => (None, text),
            None => (Some(BlockReason::NotFound), missing::absent(kind, &place)),
        },
    };
    let (reason, message) = (reason, Some(text));
    if !had_object {
        return ComponentStatus { reason, message, ..previous.clone() };
    }
    let ComponentStatus { name, automation, place, tie, applier, applied_revision, .. } = previous.clone();
    let absent = ComponentStatus::new(name, State::Pending, context.now.clone());
    ComponentStatus { reason, message, automation, place, tie, applier, applied_revision, ..absent }
}

/// Returns the place of a component.
///
/// Its value is that of the image if the previous status tells that it was committed, and otherwise that of the object.
pub(super) fn place(context: &Context<'_>, component: &ComponentStatus) -> Option<Place> {
    use BlockReason::{AwaitingMerge, NotApplied, NotChosen, NotCommitted, NotFound};
    let (file, line) = component.place.as_deref()?.rsplit_once(':')?;
    let before = context.inputs.before;
    let report = before.previous.map(|previous| &previous.report)?;
    let image = context.image.as_ref().filter(|_| report.target == before.target());
    let field = image.map_or(Field::Reference, |image| field(component, image));
    let wanted = image.and_then(|image| field.value_in(image));
    let (value, proposed) = match component.reason {
        None | Some(NotApplied | NotFound) => (wanted, None),
        Some(AwaitingMerge) => (None, wanted),
        Some(NotChosen | NotCommitted) => (None, None),
    };
    let former = component.image.clone().unwrap_or_default();
    let is_own = |commit: &&CommitRef| Some(&commit.automation) == component.automation.as_ref();
    let commit = report.commit.as_ref().filter(|_| value.is_some()).filter(is_own);
    Some(Place {
        policy: context.policy.clone(),
        document: ObjectIdentifier::default(),
        file: file.to_owned(),
        line: line.parse().ok()?,
        field,
        pointer: None,
        proposed,
        written: commit.map(|commit| Written { former: former.clone(), commit: commit.clone() }),
        value: value.unwrap_or(former),
    })
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
        let tied = TiedPlace { automation, scan: None, places: [place].into(), tie: *tie };
        ties.objects.entry(object.clone()).or_default().push(tied);
    }
}
