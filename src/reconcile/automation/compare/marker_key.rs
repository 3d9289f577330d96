//! The places whose values an automation sets.

use std::collections::BTreeMap;
use std::fmt;

use crate::update::{MarkerOutcome, ObjectIdentifier, UpdatePlan};

/// A marker of a policy that has an image, independent of its line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The file, relative to `update.path`.
    pub(super) file: String,
    object: ObjectIdentifier,
    setter: String,
    /// The number of equal markers before it.
    count: usize,
}

impl Place {
    /// Returns the memory that the place takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let Self { file, object, setter, .. } = self;
        let object = [&object.api_version, &object.kind, &object.name, &object.namespace];
        let texts = object.into_iter().chain([file, setter]);
        size_of::<Self>() + texts.map(String::len).sum::<usize>()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.file, self.setter)
    }
}

/// The value at a place, and the value that is wanted there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Values {
    /// `None` at the place of a value that was left out.
    pub(super) found: Option<String>,
    pub(super) wanted: String,
}

impl Values {
    /// Returns whether nothing must change.
    pub(super) fn is_settled(&self) -> bool {
        self.found.as_ref() == Some(&self.wanted)
    }

    /// Returns the memory that the values take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.found.as_ref().map_or(0, String::len) + self.wanted.len()
    }
}

impl fmt::Display for Values {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.found.as_deref().unwrap_or_default();
        write!(formatter, "{found:?} where we have {:?}", self.wanted)
    }
}

/// The places of a plan.
pub(super) fn places(plan: &UpdatePlan) -> BTreeMap<Place, Values> {
    // The value of a setter is the same at all of its places.
    let changes = plan.result.changes().into_iter();
    let wanted: BTreeMap<&str, &str> =
        changes.map(|change| (change.setter.as_str(), change.new_value.as_str())).collect();
    let mut places = BTreeMap::new();
    let mut counts: BTreeMap<(&str, &ObjectIdentifier, &str), usize> = BTreeMap::new();
    for marker in &plan.markers {
        let wanted = match marker.outcome {
            MarkerOutcome::Current => marker.value.as_deref(),
            MarkerOutcome::Changed => wanted.get(marker.setter.as_str()).copied(),
            _ => None,
        };
        let Some(wanted) = wanted else { continue };
        let count = counts.entry((&marker.file, &marker.object, &marker.setter)).or_default();
        let place = Place {
            file: marker.file.clone(),
            object: marker.object.clone(),
            setter: marker.setter.clone(),
            count: *count,
        };
        *count += 1;
        places.insert(place, Values { found: marker.value.clone(), wanted: wanted.to_owned() });
    }
    places
}
