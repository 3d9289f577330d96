//! The methods of Flux's types in templates.

use std::collections::HashSet;

use tagboat_go_template::{Map, Slice, Text, Value};

use super::fields::{as_text, entries, field, items, text};
use super::image::IMAGE_REF;
use super::types::{A_CHANGE, OBJECT_CHANGES, OBJECT_IMAGES};

/// `update.ResultV2.Changes`: all changes by file and object, without repetitions.
pub(super) fn changes(value: &Value, _: &[Value]) -> Result<Value, String> {
    let mut seen = HashSet::new();
    let files = entries(&field(value, "FileChanges")).into_iter();
    let changes = files.flat_map(|(_, objects)| entries(&objects)).flat_map(|(_, changes)| items(&changes));
    let changes: Vec<Value> = changes
        .filter(|change| seen.insert(["OldValue", "NewValue", "Setter"].map(|name| text(change, name))))
        .collect();
    Ok(if changes.is_empty() { Slice::nil(&A_CHANGE) } else { Slice::new(&A_CHANGE, changes) }.into())
}

/// `update.ResultV2.Objects`: the changes by object, over all files in their order.
pub(super) fn objects(value: &Value, _: &[Value]) -> Result<Value, String> {
    let files = entries(&field(value, "FileChanges")).into_iter();
    let mut joined = Joined::default();
    for (object, changes) in files.flat_map(|(_, objects)| entries(&objects)) {
        joined.add(object, items(&changes));
    }
    let objects =
        joined.objects.into_iter().map(|(object, changes)| (object, Slice::new(&A_CHANGE, changes).into()));
    Ok(Map::new(&OBJECT_CHANGES, objects).into())
}

/// `update.Result.Images`: all images by file and object, without repetitions.
pub(super) fn images(value: &Value, _: &[Value]) -> Result<Value, String> {
    let files = entries(&field(value, "Files")).into_iter();
    let images =
        files.flat_map(|(_, file)| entries(&field(&file, "Objects"))).flat_map(|(_, images)| items(&images));
    let images = deduplicated(images);
    Ok(if images.is_empty() { Slice::nil(&IMAGE_REF) } else { Slice::new(&IMAGE_REF, images) }.into())
}

/// `update.Result.Objects`: the images by object, over all files in their order.
///
/// An image that was set in two files of an object is there twice, as in Flux 0.41.
pub(super) fn image_objects(value: &Value, _: &[Value]) -> Result<Value, String> {
    let files = entries(&field(value, "Files")).into_iter();
    let mut joined = Joined::default();
    for (object, images) in files.flat_map(|(_, file)| entries(&field(&file, "Objects"))) {
        joined.add(object, items(&images));
    }
    let objects =
        joined.objects.into_iter().map(|(object, images)| (object, Slice::new(&IMAGE_REF, images).into()));
    Ok(Map::new(&OBJECT_IMAGES, objects).into())
}

/// Joins the items of one object over several files.
#[derive(Default)]
struct Joined {
    objects: Vec<(Value, Vec<Value>)>,
    positions: std::collections::HashMap<[Text; 4], usize>,
}

impl Joined {
    fn add(&mut self, object: Value, found: Vec<Value>) {
        let key = ["APIVersion", "Kind", "Name", "Namespace"].map(|name| text(&object, name));
        let position = *self.positions.entry(key).or_insert(self.objects.len());
        match self.objects.get_mut(position) {
            Some((_, items)) => items.extend(found),
            None => self.objects.push((object, found)),
        }
    }
}

/// Images without repetitions; images are equal if their texts and policies are.
fn deduplicated(images: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut seen = HashSet::new();
    images
        .filter(|image| {
            let policy = field(image, "policy");
            let image = field(&field(image, "Reference"), "original");
            seen.insert((as_text(image), text(&policy, "Namespace"), text(&policy, "Name")))
        })
        .collect()
}
