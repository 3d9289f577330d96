//! The data from which a message is rendered.

use std::collections::{BTreeMap, HashSet};

use tagboat_api::ObjectName;

use super::escape::{escape, escaped_length};
use super::image::PolicyImage;
use super::recorded;
use crate::reference::ImageReference;
use crate::update::{Change, Marker, ObjectIdentifier, ResultV2};

/// The data of one message: the automation, its values, and the changes with their images.
///
/// All foreign text is [escaped](super::escape) here, once; the automation's values are unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageData {
    automation: ObjectName,
    values: BTreeMap<String, String>,
    files: BTreeMap<String, BTreeMap<ObjectIdentifier, ObjectUpdate>>,
}

/// The changes in one object of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectUpdate {
    /// The changes, in the order of the document, including repetitions.
    pub changes: Vec<Change>,
    /// The images of the policies that changed the object, without repetitions.
    ///
    /// They are in the order of the changes.
    pub images: Vec<PolicyImage>,
}

/// The changes in one object over all files.
#[derive(Debug, Clone, Default)]
pub struct JoinedUpdate<'d> {
    /// The changes, in the order of the files.
    pub changes: Vec<&'d Change>,
    /// The images, in the order of the files.
    ///
    /// An image that was set in two files is there twice.
    pub images: Vec<&'d PolicyImage>,
}

/// The images of policies, for finding the image that a change is due to.
pub type PolicyImages<'i> = BTreeMap<&'i ObjectName, &'i ImageReference>;

impl MessageData {
    /// The data of an update: its changes, with the images of the policies.
    pub fn new(
        automation: &ObjectName,
        values: BTreeMap<String, String>,
        result: &ResultV2,
        images: &PolicyImages<'_>,
    ) -> Self {
        let mut files: BTreeMap<String, BTreeMap<ObjectIdentifier, ObjectUpdate>> = BTreeMap::new();
        for (file, objects) in &result.file_changes {
            // Two names may become equal when escaped; they share an entry then, and nothing is lost.
            let file = files.entry(escape(file)).or_default();
            for (object, changes) in objects.iter() {
                let update = file.entry(escape_object(object)).or_default();
                let mut seen = update.images.iter().skip(1).cloned().collect();
                changes.iter().for_each(|change| update.add(change, images, &mut seen));
            }
        }
        let automation =
            ObjectName { namespace: escape(&automation.namespace), name: escape(&automation.name) };
        Self { automation, values, files }
    }

    /// The data of an update without its files and objects.
    ///
    /// It has only the distinct `changes` and the images that they are due to: [`changes`](Self::changes) and
    /// [`images`](Self::images) return the same as for the full data.
    pub(super) fn summary(
        automation: &ObjectName,
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

    /// Sample data of every kind, for testing templates.
    pub fn sample() -> Self {
        recorded::sample()
    }

    /// Returns sample data of the simplest kind.
    ///
    /// Only the tags of whole images change, and all are versions.
    pub fn plain_sample() -> Self {
        recorded::plain_sample()
    }

    /// Replaces the automation.
    #[must_use]
    pub fn of_automation(self, automation: &ObjectName) -> Self {
        let automation =
            ObjectName { namespace: escape(&automation.namespace), name: escape(&automation.name) };
        Self { automation, ..self }
    }

    /// Replaces `messageTemplateValues`.
    #[must_use]
    pub fn with_values(self, values: BTreeMap<String, String>) -> Self {
        Self { values, ..self }
    }

    /// The automation.
    pub fn automation(&self) -> &ObjectName {
        &self.automation
    }

    /// `messageTemplateValues`, verbatim.
    pub fn values(&self) -> &BTreeMap<String, String> {
        &self.values
    }

    /// The changes by file and object.
    pub fn files(&self) -> &BTreeMap<String, BTreeMap<ObjectIdentifier, ObjectUpdate>> {
        &self.files
    }

    /// All changes in the order of files and objects, without exact repetitions.
    pub fn changes(&self) -> Vec<&Change> {
        let mut seen = HashSet::new();
        let changes = self.files.values().flat_map(BTreeMap::values).flat_map(|update| &update.changes);
        changes.filter(|change| seen.insert((&change.old_value, &change.new_value, &change.setter))).collect()
    }

    /// All images in the order of files and objects, without repetitions.
    pub fn images(&self) -> Vec<&PolicyImage> {
        let mut seen = HashSet::new();
        let images = self.files.values().flat_map(BTreeMap::values).flat_map(|update| &update.images);
        images.filter(|image| seen.insert(*image)).collect()
    }

    /// The changes by object, over all files in their order.
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
    pub fn count(&self) -> usize {
        self.files.values().flat_map(BTreeMap::values).map(|update| update.changes.len()).sum()
    }

    /// The estimated size in bytes, including the values of a template.
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

/// The estimated size in bytes of the data with all files, including template values.
///
/// Images and names are not counted.
pub(super) fn min_size(result: &ResultV2) -> usize {
    let changes = result.file_changes.values().flat_map(|objects| objects.values()).flatten();
    result.file_changes.len() * (SIZE_OF_FILE + SIZE_OF_OBJECT) + size_of_changes(changes)
}

/// The estimated size in bytes of changes in the data and as template values.
///
/// It is computed before they are copied.
pub(super) fn size_of_changes<'c>(changes: impl IntoIterator<Item = &'c Change>) -> usize {
    let size = |change: &Change| {
        let texts = [&change.old_value, &change.new_value, &change.setter];
        SIZE_OF_CHANGE + COPIES_OF_TEXT * texts.map(|text| escaped_length(text)).iter().sum::<usize>()
    };
    changes.into_iter().map(size).sum()
}

/// The number of copies of a change's text.
///
/// One copy is in the data and one in the template values.
const COPIES_OF_TEXT: usize = 2;

/// The size in bytes of an entry of `messageTemplateValues`, without its text.
const SIZE_OF_VALUE: usize = 256;

/// The size in bytes of a file without its objects.
///
/// It is that of entries of two maps, and of two maps.
const SIZE_OF_FILE: usize = 3_500;

/// The size in bytes of an object without its texts and changes.
const SIZE_OF_OBJECT: usize = 1_500;

/// The size in bytes of a change without its texts.
const SIZE_OF_CHANGE: usize = 700;

/// The size in bytes of a policy's image without its text.
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
    /// Adds a change.
    ///
    /// The image that the change is due to is added unless the object has it. `seen` holds the images from
    /// the second on.
    fn add(&mut self, change: &Change, images: &PolicyImages<'_>, seen: &mut HashSet<PolicyImage>) {
        let policy = Marker::of_setter(&change.setter).policy;
        if let Some(image) = images.get(&policy) {
            let policy = ObjectName { namespace: escape(&policy.namespace), name: escape(&policy.name) };
            let image = PolicyImage { policy, image: (*image).clone() };
            // Most objects have one image, which needs no set.
            let is_new = match self.images.first() {
                Some(first) => *first != image && seen.insert(image.clone()),
                None => true,
            };
            if is_new {
                self.images.push(image);
            }
        }
        self.changes.push(Change {
            old_value: escape(&change.old_value),
            new_value: escape(&change.new_value),
            setter: escape(&change.setter),
            line: change.line,
        });
    }
}

fn escape_object(object: &ObjectIdentifier) -> ObjectIdentifier {
    ObjectIdentifier {
        api_version: escape(&object.api_version),
        kind: escape(&object.kind),
        name: escape(&object.name),
        namespace: escape(&object.namespace),
    }
}
