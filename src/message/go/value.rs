//! The data of a message as values of Flux's types.

use std::collections::{BTreeMap, HashMap};

use tagboat_go_template::{Map, Slice, Struct, TEXT_MAP, Value};

use super::image::{IMAGE_REF, image_ref, tagged_image};
use super::name::namespaced_name;
use super::types::{
    A_CHANGE, BRANCH_DATA, CHANGE, FILE_CHANGES, FILE_RESULT, FILES, NAME_META, OBJECT_CHANGES,
    OBJECT_IDENTIFIER, OBJECT_IMAGES, POLICY, PULL_REQUEST_DATA, RESOURCE_IDENTIFIER, RESULT, RESULT_V2,
    TEMPLATE_DATA, TYPE_META,
};
use crate::message::data::MessageData;
use crate::message::delivery::{BranchData, TemplateData};
use crate::message::image::PolicyImage;
use crate::update::{Change, ObjectIdentifier};

/// Converts the data into the template's data.
pub(super) fn template_data(data: &TemplateData<'_>) -> Value {
    let automation = namespaced_name(&data.automation().namespace, &data.automation().name);
    let values = text_map(data.values());
    match data {
        TemplateData::Message(message) => {
            let (updated, changed) = updated_and_changed(message);
            structure(&TEMPLATE_DATA, vec![automation, updated, changed, values])
        }
        TemplateData::PullRequest(pull_request) => {
            let (updated, changed) = updated_and_changed(pull_request.message);
            let names = [pull_request.branch, pull_request.base].map(Value::from);
            let fields = [automation, updated, changed, values].into_iter().chain(names);
            structure(&PULL_REQUEST_DATA, fields.collect())
        }
        TemplateData::Branch(branch) => {
            let fields =
                vec![automation, values, branch.base.into(), policy(branch), tagged_image(branch.image)];
            structure(&BRANCH_DATA, fields)
        }
    }
}

fn updated_and_changed(data: &MessageData) -> (Value, Value) {
    let mut objects = Objects::default();
    let images = images(data, &mut objects);
    let changed = structure(&RESULT_V2, vec![images.clone(), file_changes(data, &mut objects)]);
    (images, changed)
}

fn policy(branch: &BranchData<'_>) -> Value {
    let name = &branch.image.policy;
    let labels = branch.escaped_labels().collect();
    structure(&POLICY, vec![namespaced_name(&name.namespace, &name.name), text_map(&labels)])
}

fn structure(kind: &'static tagboat_go_template::StructType, fields: Vec<Value>) -> Value {
    Struct::new(kind, fields).into()
}

fn text_map(texts: &BTreeMap<String, String>) -> Value {
    if texts.is_empty() {
        return Map::nil(&TEXT_MAP).into();
    }
    Map::new(&TEXT_MAP, texts.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into()))).into()
}

/// The values of objects, shared between several maps.
#[derive(Default)]
struct Objects<'d>(HashMap<&'d ObjectIdentifier, Value>);

impl<'d> Objects<'d> {
    fn value(&mut self, identifier: &'d ObjectIdentifier) -> Value {
        self.0.entry(identifier).or_insert_with(|| object(identifier)).clone()
    }
}

fn file_changes<'d>(data: &'d MessageData, objects_made: &mut Objects<'d>) -> Value {
    let files = data.files().iter().map(|(file, objects)| {
        let objects = objects.iter().map(|(identifier, update)| {
            let changes = update.changes.iter().map(change).collect();
            (objects_made.value(identifier), Slice::new(&A_CHANGE, changes).into())
        });
        (file.as_str().into(), Map::new(&OBJECT_CHANGES, objects).into())
    });
    Map::new(&FILE_CHANGES, files).into()
}

fn change(change: &Change) -> Value {
    let texts = [&change.old_value, &change.new_value, &change.setter];
    structure(&CHANGE, texts.map(|text| text.as_str().into()).into())
}

fn object(object: &ObjectIdentifier) -> Value {
    let kind = structure(&TYPE_META, vec![object.api_version.as_str().into(), object.kind.as_str().into()]);
    let name = structure(&NAME_META, vec![object.name.as_str().into(), object.namespace.as_str().into()]);
    structure(&OBJECT_IDENTIFIER, vec![structure(&RESOURCE_IDENTIFIER, vec![kind, name])])
}

/// The `update.Result`: the images by file and object.
fn images<'d>(data: &'d MessageData, objects_made: &mut Objects<'d>) -> Value {
    let mut made: HashMap<&PolicyImage, Value> = HashMap::new();
    let files = data.files().iter().map(|(file, objects)| {
        let mut found = Vec::new();
        for (identifier, update) in objects.iter().filter(|(_, update)| !update.images.is_empty()) {
            let images = update.images.iter();
            let images = images.map(|image| made.entry(image).or_insert_with(|| image_ref(image)).clone());
            found.push((objects_made.value(identifier), Slice::new(&IMAGE_REF, images.collect()).into()));
        }
        let objects = Map::new(&OBJECT_IMAGES, found);
        (file.as_str().into(), structure(&FILE_RESULT, vec![objects.into()]))
    });
    structure(&RESULT, vec![Map::new(&FILES, files.collect::<Vec<_>>()).into()])
}
