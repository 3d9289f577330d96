//! Converts the data of a message into plain objects and lists.
//!
//! Names are those of Go's templates. Go's methods are members here, and its maps by object are lists of objects.

use std::collections::BTreeMap;

use ::handlebars::JsonValue as Json;

use crate::message::data::MessageData;
use crate::message::delivery::{BranchData, TemplateData};
use crate::message::image::PolicyImage;
use crate::update::{Change, ObjectIdentifier};

/// Converts the data into the template's data.
pub(super) fn template_data(data: &TemplateData<'_>) -> Json {
    let name = data.automation();
    let automation = full_name(&name.namespace, &name.name);
    let values = texts(data.values());
    match data {
        TemplateData::Message(message) => {
            let (updated, changed) = updated_and_changed(message);
            members([
                ("AutomationObject", automation),
                ("Changed", changed),
                ("Updated", updated),
                ("Values", values),
            ])
        }
        TemplateData::PullRequest(pull_request) => {
            let (updated, changed) = updated_and_changed(pull_request.message);
            members([
                ("AutomationObject", automation),
                ("Base", pull_request.base.into()),
                ("Branch", pull_request.branch.into()),
                ("Changed", changed),
                ("Updated", updated),
                ("Values", values),
            ])
        }
        TemplateData::Branch(branch) => members([
            ("AutomationObject", automation),
            ("Base", branch.base.into()),
            ("Image", tagged_image(branch.image)),
            ("Policy", policy(branch)),
            ("Values", values),
        ]),
    }
}

fn updated_and_changed(data: &MessageData) -> (Json, Json) {
    let files = data.files().iter().map(|(file, objects)| {
        let objects =
            objects.iter().map(|(object, update)| with(object, "Images", update.images.iter().map(image)));
        (file.as_str(), members([("Objects", objects.collect())]))
    });
    let files = members(files);
    let objects = data.objects();
    let objects = objects
        .iter()
        .map(|(object, joined)| with(object, "Images", joined.images.iter().map(|of| image(of))));
    let updated = members([
        ("Files", files),
        ("Images", data.images().into_iter().map(image).collect()),
        ("Objects", objects.collect()),
    ]);
    let changed = changed(data, updated.clone());
    (updated, changed)
}

fn policy(branch: &BranchData<'_>) -> Json {
    let mut policy = full_name(&branch.image.policy.namespace, &branch.image.policy.name);
    policy["Labels"] = texts(&branch.escaped_labels().collect());
    policy
}

fn tagged_image(of_policy: &PolicyImage) -> Json {
    let mut tagged = image(of_policy);
    tagged["Tag"] = of_policy.image.tag.as_str().into();
    tagged["Digest"] = of_policy.image.digest.as_ref().map_or("", |digest| digest.as_str()).into();
    tagged
}

fn texts(texts: &BTreeMap<String, String>) -> Json {
    members(texts.iter().map(|(key, value)| (key.as_str(), value.as_str().into())))
}

fn changed(data: &MessageData, images: Json) -> Json {
    let files = data.files().iter().map(|(file, objects)| {
        let objects =
            objects.iter().map(|(object, update)| with(object, "Changes", update.changes.iter().map(change)));
        (file.as_str(), objects.collect())
    });
    let objects = data.objects();
    let objects = objects
        .iter()
        .map(|(object, joined)| with(object, "Changes", joined.changes.iter().map(|of| change(of))));
    members([
        ("FileChanges", members(files)),
        ("Changes", data.changes().into_iter().map(change).collect()),
        ("Objects", objects.collect()),
        ("ImageResult", images),
    ])
}

/// An object with its changes or images.
fn with(object: &ObjectIdentifier, name: &str, items: impl Iterator<Item = Json>) -> Json {
    members([
        ("APIVersion", object.api_version.as_str().into()),
        ("Kind", object.kind.as_str().into()),
        ("Name", object.name.as_str().into()),
        ("Namespace", object.namespace.as_str().into()),
        (name, items.collect()),
    ])
}

fn change(change: &Change) -> Json {
    members([
        ("OldValue", change.old_value.as_str().into()),
        ("NewValue", change.new_value.as_str().into()),
        ("Setter", change.setter.as_str().into()),
    ])
}

fn image(image: &PolicyImage) -> Json {
    members([
        ("String", image.image.to_string().into()),
        ("Identifier", image.identifier().into()),
        ("Registry", image.image.name.registry().into()),
        ("Repository", image.image.name.repository().into()),
        ("Name", image.name().into()),
        ("Policy", full_name(&image.policy.namespace, &image.policy.name)),
    ])
}

fn full_name(namespace: &str, name: &str) -> Json {
    members([
        ("Namespace", namespace.into()),
        ("Name", name.into()),
        ("String", format!("{namespace}/{name}").into()),
    ])
}

/// An object with these members.
///
/// The macro `json!` would copy each part once more per level above it.
fn members<'n>(members: impl IntoIterator<Item = (&'n str, Json)>) -> Json {
    Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}
