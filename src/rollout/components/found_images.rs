//! The image of an object: is it the wanted one?

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use tagboat_api::deployment_status::{ComponentStatus, Tie};

use super::context::{Context, is_same_commit};
use crate::rollout::applier::kustomization;
use crate::rollout::image::{ObjectImage, WantedImage};
use crate::rollout::index::ClusterIndex;
use crate::rollout::place::Place;
use crate::rollout::tie::{TiedPlace, images};
use crate::rollout::watched::{WatchedObject, has_text};
use crate::update::{Field, ObjectIdentifier};

/// The image of an object.
pub(super) struct FoundImages {
    /// The image that the component shows.
    ///
    /// It is the first one of the repository that is not as wanted, or else a wanted one.
    pub(super) shown: Option<String>,
    /// The position of the first tied place whose image the object lacks.
    pub(super) lacking: Option<usize>,
    /// The reason why an image cannot be compared.
    pub(super) problem: Option<String>,
}

/// Compares the images of an object with those that its places want.
///
/// `previous` is the component of the previous status. Without an image of the policy, the object lacks it.
pub(super) fn compare(
    context: &Context<'_>,
    index: &ClusterIndex,
    object: &WatchedObject,
    places: &[TiedPlace<'_>],
    previous: Option<&ComponentStatus>,
) -> FoundImages {
    match object {
        WatchedObject::Other(kind, object) => in_value(
            context,
            &SearchedValue { value: &object.spec, pointer: "/spec", kind: &kind.kind },
            places,
        ),
        WatchedObject::HelmRelease(release) => match release.spec.get() {
            Ok(spec) => {
                let value = &spec.values;
                in_value(
                    context,
                    &SearchedValue { value, pointer: "/spec/values", kind: "HelmRelease" },
                    places,
                )
            }
            Err(error) => unreadable(error),
        },
        WatchedObject::Kustomization(_) => by_revision(context, object, places, previous),
        _ => match images(index, object) {
            Ok(images) => in_containers(context, &images, places),
            Err(error) => unreadable(error),
        },
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> FoundImages {
    let problem = Some(format!("the object cannot be read: {error}"));
    FoundImages { shown: None, lacking: Some(0), problem }
}

/// Compares the images of containers.
fn in_containers(context: &Context<'_>, images: &[&str], places: &[TiedPlace<'_>]) -> FoundImages {
    let parsed: Vec<(&str, Option<ObjectImage>)> =
        images.iter().map(|image| (*image, ObjectImage::parse(image).ok())).collect();
    let of_repository: HashSet<&str> =
        images.iter().copied().filter(|image| context.has_repository(image)).collect();
    let users = images.iter().filter(|image| of_repository.contains(*image)).count();
    let image = context.image.as_ref();
    // The wanted image depends on the field alone.
    let mut wanted: HashMap<Field, (WantedImage, usize)> = HashMap::new();
    for tied in places {
        if let Some(image) = image.filter(|_| !wanted.contains_key(&tied.place().field)) {
            let of_field = tied.place().wanted(image);
            let found = parsed.iter().filter(|(_, image)| meets(image.as_ref(), &of_field)).count();
            wanted.insert(tied.place().field, (of_field, found));
        }
    }
    let needed = needed(places);
    let is_met = |tied: &TiedPlace<'_>| {
        let Some((_, found)) = wanted.get(&tied.place().field) else { return false };
        let needed = needed.get(&(tied.place().field, &tied.place().document)).copied().unwrap_or_default();
        *found >= needed.min(users).max(1)
    };
    let lacking = places.iter().position(|tied| !is_met(tied));
    let has_all =
        |image: &Option<ObjectImage>| wanted.values().all(|(wanted, _)| meets(image.as_ref(), wanted));
    let in_repository = parsed.iter().filter(|(text, _)| of_repository.contains(text));
    let shown = match lacking {
        Some(_) => {
            in_repository.clone().find(|(_, image)| !has_all(image)).or_else(|| in_repository.clone().next())
        }
        None => parsed.iter().find(|(_, image)| has_all(image)).or_else(|| in_repository.clone().next()),
    };
    let invalid = images.iter().find_map(|image| ObjectImage::parse(image).err());
    let problem = invalid.filter(|_| lacking.is_some() && shown.is_none());
    FoundImages {
        shown: shown.map(|(text, _)| *text).or(images.first().copied()).map(str::to_owned),
        lacking,
        problem: problem
            .map(|error| format!("an image of the object is invalid: {}", crate::error::chain(&error))),
    }
}

fn meets(image: Option<&ObjectImage>, wanted: &WantedImage) -> bool {
    image.is_some_and(|image| wanted.is_met_by(image))
}

/// Returns the numbers of containers that must have the image, by field and document.
///
/// Each marker of a whole image or tag in the document of the object is for one container.
fn needed<'p>(places: &[TiedPlace<'p>]) -> HashMap<(Field, &'p ObjectIdentifier), usize> {
    let mut needed = HashMap::new();
    for tied in places.iter().filter(|tied| tied.tie == Tie::Object) {
        *needed.entry((tied.place().field, &tied.place().document)).or_default() += tied.places.len();
    }
    needed
}

/// The value of an object in which texts are compared.
struct SearchedValue<'o> {
    value: &'o Value,
    /// The JSON Pointer from the object to the value.
    pointer: &'static str,
    /// The kind of the object.
    kind: &'o str,
}

impl SearchedValue<'_> {
    /// Returns true if the text of a place matches.
    ///
    /// If the place is in the object's own document, that is the text at its keys. Else it is any text: the document has
    /// another form than the object.
    fn has(&self, tie: Tie, place: &Place, is_match: &impl Fn(&str) -> bool) -> bool {
        let is_own = tie == Tie::Object && place.document.kind == self.kind;
        match place.pointer.as_deref().filter(|_| is_own) {
            Some(pointer) => self.text_at(pointer).is_some_and(|text| is_match(&text)),
            None => has_text(self.value, is_match),
        }
    }

    /// Returns the text or number at a pointer from the object.
    fn text_at(&self, pointer: &str) -> Option<String> {
        match self.value.pointer(pointer.strip_prefix(self.pointer)?)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }
}

/// Compares the texts of a spec, or of the values of a HelmRelease.
fn in_value(context: &Context<'_>, searched: &SearchedValue<'_>, places: &[TiedPlace<'_>]) -> FoundImages {
    let wanted_text = |place: &Place| context.image.as_ref().and_then(|image| place.field.value_in(image));
    let has = |tie: Tie, place: &Place| {
        let wanted = context.image.as_ref().map(|image| place.wanted(image));
        let text = wanted_text(place).filter(|text| !text.is_empty());
        let is_wanted = |found: &str| {
            text.as_deref() == Some(found)
                || wanted.as_ref().is_some_and(|wanted| {
                    wanted.tag.is_some()
                        && ObjectImage::parse(found).is_ok_and(|image| wanted.is_met_by(&image))
                })
        };
        searched.has(tie, place, &is_wanted)
    };
    // Of equal places, one stands for all.
    let mut known: HashMap<(Field, Tie, Option<&str>), bool> = HashMap::new();
    let lacking = places.iter().position(|tied| {
        tied.places.iter().copied().any(|place| {
            let key = (place.field, tied.tie, place.pointer.as_deref());
            !*known.entry(key).or_insert_with(|| has(tied.tie, place))
        })
    });
    let shown = match lacking {
        None => places.first().and_then(|tied| wanted_text(tied.place())),
        Some(position) => {
            let tied = &places[position];
            let place = tied.place();
            let former = place.written.as_ref().map(|written| &written.former);
            let known = [Some(&place.value), former].into_iter().flatten();
            known
                .into_iter()
                .find(|text| {
                    !text.is_empty() && searched.has(tied.tie, place, &|found| found == text.as_str())
                })
                .cloned()
        }
    };
    FoundImages { shown, lacking, problem: None }
}

/// Compares the revision that a Kustomization has applied to another cluster.
///
/// It has the image of a place if it has applied the scanned revision or our commit. After that, it keeps the image
/// when it applies other revisions.
fn by_revision(
    context: &Context<'_>,
    object: &WatchedObject,
    places: &[TiedPlace<'_>],
    previous: Option<&ComponentStatus>,
) -> FoundImages {
    let WatchedObject::Kustomization(kustomization) = object else {
        return FoundImages { shown: None, lacking: Some(0), problem: None };
    };
    let applied = kustomization::status(kustomization).applied_revision;
    let has = |tied: &TiedPlace<'_>| {
        let wanted = context.image.as_ref().and_then(|image| tied.place().field.value_in(image));
        let is_committed = wanted.is_some_and(|wanted| wanted == tied.place().value);
        let commit = tied.place().written.as_ref().map(|written| written.commit.id.as_str());
        let revisions = context.revision(tied.scan).into_iter().chain(commit);
        let is_applied = applied
            .as_deref()
            .is_some_and(|applied| revisions.into_iter().any(|revision| is_same_commit(applied, revision)));
        let was_applied = previous.is_some_and(|previous| {
            previous.reason.is_none() && previous.image.as_deref() == Some(tied.place().value.as_str())
        });
        is_committed && (is_applied || was_applied)
    };
    let lacking = places.iter().position(|tied| !has(tied));
    let shown = match lacking {
        None => places.first().map(|tied| tied.place().value.clone()),
        Some(_) => previous.and_then(|previous| previous.image.clone()),
    };
    FoundImages { shown, lacking, problem: None }
}
