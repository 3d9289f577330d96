//! Places that lead to the same objects and want the same image.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use tagboat_api::ObjectName;

use crate::rollout::place::{Place, ScannedPlaces};
use crate::update::{Field, ObjectIdentifier};

/// Places of one file and document that have the same values.
///
/// A file can have thousands of equal markers. They are matched once.
#[derive(Clone, Debug)]
pub(super) struct PlaceGroup<'i> {
    pub(super) scan: &'i ScannedPlaces,
    /// The first of the places.
    pub(super) place: &'i Place,
    /// All of the places.
    pub(super) places: Vec<&'i Place>,
}

#[derive(PartialEq, Eq, Hash)]
struct Key<'i> {
    automation: &'i ObjectName,
    document: &'i ObjectIdentifier,
    file: &'i str,
    field: Field,
    value: &'i str,
    proposed: Option<&'i str>,
    /// The value before, and the commit that changed it.
    former: Option<(&'i str, &'i str)>,
}

/// Groups places, in the order of their first ones.
pub(super) fn groups<'i>(places: &[(&'i ScannedPlaces, &'i Place)]) -> Vec<PlaceGroup<'i>> {
    let mut groups: Vec<PlaceGroup<'i>> = Vec::new();
    let mut positions: HashMap<Key<'i>, usize> = HashMap::new();
    for (scan, place) in places {
        let written = place.written.as_ref();
        let key = Key {
            automation: &scan.automation,
            document: &place.document,
            file: &place.file,
            field: place.field,
            value: &place.value,
            proposed: place.proposed.as_deref(),
            former: written.map(|written| (written.former.as_str(), written.commit.id.as_str())),
        };
        match positions.entry(key) {
            Entry::Occupied(position) => groups[*position.get()].places.push(place),
            Entry::Vacant(entry) => {
                entry.insert(groups.len());
                groups.push(PlaceGroup { scan, place, places: vec![place] });
            }
        }
    }
    groups
}
