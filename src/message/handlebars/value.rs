//! The data of a message as plain objects and lists, under the names that Go's templates have for them. What is a
//! method there is a member here, and a map by objects is a list of objects.

use ::handlebars::JsonValue as Json;
use serde_json::json;

use crate::message::data::MessageData;
use crate::message::image::PolicyImage;
use crate::update::{Change, ObjectIdentifier};

/// The data as a template is given them.
pub(super) fn template_data(data: &MessageData) -> Json {
    let files: serde_json::Map<String, Json> = data
        .files()
        .iter()
        .map(|(file, objects)| {
            let objects = objects.iter();
            let objects =
                objects.map(|(object, update)| with(object, "Images", update.images.iter().map(image)));
            (file.clone(), json!({ "Objects": objects.collect::<Vec<_>>() }))
        })
        .collect();
    let image_objects = data.objects();
    let image_objects = image_objects
        .iter()
        .map(|(object, joined)| with(object, "Images", joined.images.iter().map(|of| image(of))));
    let updated = json!({
        "Files": files,
        "Images": data.images().into_iter().map(image).collect::<Vec<_>>(),
        "Objects": image_objects.collect::<Vec<_>>(),
    });
    let name = data.automation();
    json!({
        "AutomationObject": full_name(&name.namespace, &name.name),
        "Changed": changed(data, &updated),
        "Updated": updated,
        "Values": data.values(),
    })
}

fn changed(data: &MessageData, images: &Json) -> Json {
    let files: serde_json::Map<String, Json> = data
        .files()
        .iter()
        .map(|(file, objects)| {
            let objects = objects
                .iter()
                .map(|(object, update)| with(object, "Changes", update.changes.iter().map(change)));
            (file.clone(), objects.collect())
        })
        .collect();
    let objects = data.objects();
    let objects = objects
        .iter()
        .map(|(object, joined)| with(object, "Changes", joined.changes.iter().map(|of| change(of))));
    json!({
        "FileChanges": files,
        "Changes": data.changes().into_iter().map(change).collect::<Vec<_>>(),
        "Objects": objects.collect::<Vec<_>>(),
        "ImageResult": images,
    })
}

/// An object with what happened in it.
fn with(object: &ObjectIdentifier, name: &str, items: impl Iterator<Item = Json>) -> Json {
    json!({
        "APIVersion": object.api_version,
        "Kind": object.kind,
        "Name": object.name,
        "Namespace": object.namespace,
        name: items.collect::<Vec<_>>(),
    })
}

fn change(change: &Change) -> Json {
    json!({"OldValue": change.old_value, "NewValue": change.new_value, "Setter": change.setter})
}

fn image(image: &PolicyImage) -> Json {
    json!({
        "String": image.image.to_string(),
        "Identifier": image.identifier(),
        "Registry": image.registry(),
        "Repository": image.repository(),
        "Name": image.name(),
        "Policy": full_name(&image.policy.namespace, &image.policy.name),
    })
}

fn full_name(namespace: &str, name: &str) -> Json {
    json!({"Namespace": namespace, "Name": name, "String": format!("{namespace}/{name}")})
}
