//! The markers whose values an automation sets.

use std::collections::BTreeMap;
use std::fmt;

use crate::update::{MarkerOutcome, ObjectIdentifier, UpdatePlan};

/// The identity of a marker whose policy has an image.
///
/// It is independent of the line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MarkerKey {
    /// The file, relative to `update.path`.
    pub(super) file: String,
    object: ObjectIdentifier,
    setter: String,
    /// The number of equal markers before it.
    count: usize,
}

impl MarkerKey {
    /// Returns the memory that the key takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let Self { file, object, setter, .. } = self;
        let object = [&object.api_version, &object.kind, &object.name, &object.namespace];
        let texts = object.into_iter().chain([file, setter]);
        size_of::<Self>() + texts.map(String::len).sum::<usize>()
    }
}

impl fmt::Display for MarkerKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.file, self.setter)
    }
}

/// The value of a marker, and the value that is wanted there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Values {
    /// `None` for a value that was left out.
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
        write!(formatter, "{found:?} instead of {:?}", self.wanted)
    }
}

/// Returns the markers of a plan with their values.
pub(super) fn marker_values(plan: &UpdatePlan) -> BTreeMap<MarkerKey, Values> {
    // The value of a setter is the same at all of its markers.
    let changes = plan.result.changes().into_iter();
    let wanted: BTreeMap<&str, &str> =
        changes.map(|change| (change.setter.as_str(), change.new_value.as_str())).collect();
    let mut markers = BTreeMap::new();
    let mut counts: BTreeMap<(&str, &ObjectIdentifier, &str), usize> = BTreeMap::new();
    for marker in &plan.markers {
        let wanted = match marker.outcome {
            MarkerOutcome::Current => marker.value.as_deref(),
            MarkerOutcome::Changed => wanted.get(marker.setter.as_str()).copied(),
            _ => None,
        };
        let Some(wanted) = wanted else { continue };
        let count = counts.entry((&marker.file, &marker.object, &marker.setter)).or_default();
        let key = MarkerKey {
            file: marker.file.clone(),
            object: marker.object.clone(),
            setter: marker.setter.clone(),
            count: *count,
        };
        *count += 1;
        markers.insert(key, Values { found: marker.value.clone(), wanted: wanted.to_owned() });
    }
    markers
}
