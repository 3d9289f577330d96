//! The data of a message.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use super::clean::{clean, cleaned_length};
use super::image::PolicyImage;
use super::recorded;
use crate::reference::ImageReference;
use crate::update::{Change, Marker, ObjectIdentifier, PolicyName, ResultV2};

/// The automation that a message is of. Prints as `namespace/name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutomationName {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for AutomationName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

/// The data of one message: who updated what, from what to what.
///
/// All that others wrote is [cleaned](super::clean) here, once; the values of the automation are as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageData {
    automation: AutomationName,
    values: BTreeMap<String, String>,
    files: BTreeMap<String, BTreeMap<ObjectIdentifier, ObjectUpdate>>,
}

/// The changes in one object of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectUpdate {
    /// The changes in the order of the document, repetitions included.
    pub changes: Vec<Change>,
    /// The images of the policies that changed something in it, each once, in the order of the changes.
    pub images: Vec<PolicyImage>,
}

/// The changes in one object, over all files.
#[derive(Debug, Clone, Default)]
pub struct JoinedUpdate<'d> {
    /// The changes, those of one file behind those of another.
    pub changes: Vec<&'d Change>,
    /// The images, those of one file behind those of another: one that was set in two files stands there twice.
    pub images: Vec<&'d PolicyImage>,
}

/// The images of policies, by which a change finds the one that it is due to.
pub type PolicyImages<'i> = BTreeMap<&'i PolicyName, &'i ImageReference>;

impl MessageData {
    /// The data of an update: what changed, and the images of the policies that were to be written.
    pub fn new(
        automation: &AutomationName,
        values: BTreeMap<String, String>,
        result: &ResultV2,
        images: &PolicyImages<'_>,
    ) -> Self {
        let mut files: BTreeMap<String, BTreeMap<ObjectIdentifier, ObjectUpdate>> = BTreeMap::new();
        for (file, objects) in &result.file_changes {
            // Two names may become one when they are cleaned; then they share an entry, and nothing is lost.
            let file = files.entry(clean(file)).or_default();
            for (object, changes) in objects.iter() {
                let update = file.entry(clean_object(object)).or_default();
                let mut seen: HashSet<PolicyImage> = update.images.iter().cloned().collect();
                changes.iter().for_each(|change| update.add(change, images, &mut seen));
            }
        }
        let automation =
            AutomationName { namespace: clean(&automation.namespace), name: clean(&automation.name) };
        Self { automation, values, files }
    }

    /// The data of an update without its files and objects: its different `changes`, and the images that they are due to.
    ///
    /// [`changes`](Self::changes) and [`images`](Self::images) are the same as those of all data.
    pub(super) fn summary(
        automation: &AutomationName,
        values: BTreeMap<String, String>,
        changes: &[&Change],
        images: &PolicyImages<'_>,
    ) -> Self {
        let (mut all, mut seen) = (ObjectUpdate::default(), HashSet::new());
        changes.iter().for_each(|change| all.add(change, images, &mut seen));
        let objects = BTreeMap::from([(ObjectIdentifier::default(), all)]);
        let data = Self::new(automation, values, &ResultV2::default(), images);
        Self { files: BTreeMap::from([(String::new(), objects)]), ..data }
    }

    /// Made-up data of every kind, for looking at templates.
    pub fn sample() -> Self {
        recorded::sample()
    }

    /// Made-up data of the simplest kind: whole images of which the tags, all of them versions, change.
    pub fn plain_sample() -> Self {
        recorded::plain_sample()
    }

    /// The same data as of another automation.
    #[must_use]
    pub fn of_automation(self, automation: &AutomationName) -> Self {
        let automation =
            AutomationName { namespace: clean(&automation.namespace), name: clean(&automation.name) };
        Self { automation, ..self }
    }

    /// The same data with other `messageTemplateValues`.
    #[must_use]
    pub fn with_values(self, values: BTreeMap<String, String>) -> Self {
        Self { values, ..self }
    }

    /// The automation.
    pub fn automation(&self) -> &AutomationName {
        &self.automation
    }

    /// `messageTemplateValues`, verbatim.
    pub fn values(&self) -> &BTreeMap<String, String> {
        &self.values
    }

    /// The changes, by file and object.
    pub fn files(&self) -> &BTreeMap<String, BTreeMap<ObjectIdentifier, ObjectUpdate>> {
        &self.files
    }

    /// All changes in the order of files and objects, without exact repetitions.
    pub fn changes(&self) -> Vec<&Change> {
        let mut seen = HashSet::new();
        let changes = self.files.values().flat_map(BTreeMap::values).flat_map(|update| &update.changes);
        changes.filter(|change| seen.insert((&change.old_value, &change.new_value, &change.setter))).collect()
    }

    /// All images in the order of files and objects, each once.
    pub fn images(&self) -> Vec<&PolicyImage> {
        let mut seen = HashSet::new();
        let images = self.files.values().flat_map(BTreeMap::values).flat_map(|update| &update.images);
        images.filter(|image| seen.insert(*image)).collect()
    }

    /// The changes by object, joined over all files in their order.
    pub fn objects(&self) -> BTreeMap<&ObjectIdentifier, JoinedUpdate<'_>> {
        let mut objects: BTreeMap<&ObjectIdentifier, JoinedUpdate<'_>> = BTreeMap::new();
        for (object, update) in self.files.values().flatten() {
            let joined = objects.entry(object).or_default();
            joined.changes.extend(&update.changes);
            joined.images.extend(&update.images);
        }
        objects
    }

    /// The number of changes.
    pub(super) fn count(&self) -> usize {
        self.files.values().flat_map(BTreeMap::values).map(|update| update.changes.len()).sum()
    }

    /// The bytes that it takes together with its values of a template, estimated.
    pub(super) fn size(&self) -> usize {
        let values = self.values.iter().map(|(key, value)| SIZE_OF_VALUE + key.len() + value.len());
        let files = self.files.iter().map(|(file, objects)| {
            SIZE_OF_FILE
                + file.len()
                + objects.iter().map(|(object, update)| size_of(object, update)).sum::<usize>()
        });
        values.sum::<usize>() + files.sum::<usize>()
    }
}

/// The bytes that the data of an update with all its files take together with their values of a template, estimated
/// without images and names.
pub(super) fn least_size(result: &ResultV2) -> usize {
    let changes = result.file_changes.values().flat_map(|objects| objects.values()).flatten();
    result.file_changes.len() * (SIZE_OF_FILE + SIZE_OF_OBJECT) + size_of_changes(changes)
}

/// The bytes that changes take in the data and as values of a template, estimated before they are copied.
pub(super) fn size_of_changes<'c>(changes: impl IntoIterator<Item = &'c Change>) -> usize {
    let size = |change: &Change| {
        let texts = [&change.old_value, &change.new_value, &change.setter];
        SIZE_OF_CHANGE + COPIES_OF_TEXT * texts.map(|text| cleaned_length(text)).iter().sum::<usize>()
    };
    changes.into_iter().map(size).sum()
}

/// The text of a change stands in the data, and in their values.
const COPIES_OF_TEXT: usize = 2;

/// The bytes that a text of `messageTemplateValues` takes beside its own.
const SIZE_OF_VALUE: usize = 256;

/// The bytes that a file takes beside its objects: entries of two maps, and two maps.
const SIZE_OF_FILE: usize = 3_500;

/// The bytes that an object takes beside its texts and changes.
const SIZE_OF_OBJECT: usize = 1_500;

/// The bytes that a change takes beside its texts.
const SIZE_OF_CHANGE: usize = 700;

/// The bytes that the image of a policy takes beside its text.
const SIZE_OF_IMAGE: usize = 1_800;

fn size_of(object: &ObjectIdentifier, update: &ObjectUpdate) -> usize {
    let image = |image: &PolicyImage| SIZE_OF_IMAGE + 4 * image.image.name.as_str().len();
    let texts = [&object.api_version, &object.kind, &object.namespace, &object.name];
    SIZE_OF_OBJECT
        + texts.map(String::len).iter().sum::<usize>()
        + size_of_changes(&update.changes)
        + update.images.iter().map(image).sum::<usize>()
}

impl ObjectUpdate {
    /// Adds a change, and the image that it is due to where that is not among those that were `seen`.
    fn add(&mut self, change: &Change, images: &PolicyImages<'_>, seen: &mut HashSet<PolicyImage>) {
        let policy = Marker::of_setter(&change.setter).policy;
        if let Some(image) = images.get(&policy) {
            let policy = PolicyName { namespace: clean(&policy.namespace), name: clean(&policy.name) };
            let image = PolicyImage { policy, image: (*image).clone() };
            if seen.insert(image.clone()) {
                self.images.push(image);
            }
        }
        self.changes.push(Change {
            old_value: clean(&change.old_value),
            new_value: clean(&change.new_value),
            setter: clean(&change.setter),
            line: change.line,
        });
    }
}

fn clean_object(object: &ObjectIdentifier) -> ObjectIdentifier {
    ObjectIdentifier {
        api_version: clean(&object.api_version),
        kind: clean(&object.kind),
        name: clean(&object.name),
        namespace: clean(&object.namespace),
    }
}
