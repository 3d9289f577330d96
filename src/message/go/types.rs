//! The types of the data, named and structured as in Flux.
//!
//! Their names are visible in errors, in `%T` and in `typeOf`.

use tagboat_go_template::{Field, Json, MapType, Method, StructType, TEXT_MAP, Type};

use super::fields::embedded;
use super::image::{IMAGE_REF, TAGGED_IMAGE};
use super::methods;
use super::name::NAMESPACED_NAME;

/// The data of a template.
pub(super) static TEMPLATE_DATA: StructType = StructType {
    name: "source.TemplateData",
    fields: &[
        Field::new("AutomationObject", Type::Struct(&NAMESPACED_NAME)),
        Field::new("Updated", Type::Struct(&RESULT)),
        Field::new("Changed", Type::Struct(&RESULT_V2)),
        Field::new("Values", Type::Map(&TEXT_MAP)),
    ],
    methods: &[],
};

/// The data of the title and body of a pull request.
pub(super) static PULL_REQUEST_DATA: StructType = StructType {
    name: "tagboat.PullRequestData",
    fields: &[
        Field::new("AutomationObject", Type::Struct(&NAMESPACED_NAME)),
        Field::new("Updated", Type::Struct(&RESULT)),
        Field::new("Changed", Type::Struct(&RESULT_V2)),
        Field::new("Values", Type::Map(&TEXT_MAP)),
        Field::new("Branch", Type::String),
        Field::new("Base", Type::String),
    ],
    methods: &[],
};

/// The data of the name of a branch.
pub(super) static BRANCH_DATA: StructType = StructType {
    name: "tagboat.BranchData",
    fields: &[
        Field::new("AutomationObject", Type::Struct(&NAMESPACED_NAME)),
        Field::new("Values", Type::Map(&TEXT_MAP)),
        Field::new("Base", Type::String),
        Field::new("Policy", Type::Struct(&POLICY)),
        Field::new("Image", Type::Struct(&TAGGED_IMAGE)),
    ],
    methods: &[],
};

/// A policy with its labels.
pub(super) static POLICY: StructType = StructType {
    name: "tagboat.Policy",
    fields: &[
        embedded("NamespacedName", &NAMESPACED_NAME, Json::Plain),
        Field::new("Labels", Type::Map(&TEXT_MAP)),
    ],
    methods: &[],
};

/// All changes.
pub(super) static RESULT_V2: StructType = StructType {
    name: "update.ResultV2",
    fields: &[
        Field::new("ImageResult", Type::Struct(&RESULT)),
        Field::new("FileChanges", Type::Map(&FILE_CHANGES)),
    ],
    methods: &[Method::new("Changes", methods::changes), Method::new("Objects", methods::objects)],
};

/// The images that were set.
pub(super) static RESULT: StructType = StructType {
    name: "update.Result",
    fields: &[Field::new("Files", Type::Map(&FILES))],
    methods: &[Method::new("Images", methods::images), Method::new("Objects", methods::image_objects)],
};

/// The images that were set in one file.
pub(super) static FILE_RESULT: StructType = StructType {
    name: "update.FileResult",
    fields: &[Field::new("Objects", Type::Map(&OBJECT_IMAGES))],
    methods: &[],
};

/// An object identifier with its embedded types.
pub(super) static OBJECT_IDENTIFIER: StructType = StructType {
    name: "update.ObjectIdentifier",
    fields: &[embedded("ResourceIdentifier", &RESOURCE_IDENTIFIER, Json::Plain)],
    methods: &[],
};

pub(super) static RESOURCE_IDENTIFIER: StructType = StructType {
    name: "yaml.ResourceIdentifier",
    fields: &[embedded("TypeMeta", &TYPE_META, Json::Inline), embedded("NameMeta", &NAME_META, Json::Inline)],
    methods: &[],
};

pub(super) static TYPE_META: StructType = StructType {
    name: "yaml.TypeMeta",
    fields: &[if_any("APIVersion", "apiVersion"), if_any("Kind", "kind")],
    methods: &[],
};

pub(super) static NAME_META: StructType = StructType {
    name: "yaml.NameMeta",
    fields: &[if_any("Name", "name"), if_any("Namespace", "namespace")],
    methods: &[],
};

/// The replacement of one value.
pub(super) static CHANGE: StructType = StructType {
    name: "update.Change",
    fields: &[
        Field::new("OldValue", Type::String),
        Field::new("NewValue", Type::String),
        Field::new("Setter", Type::String),
    ],
    methods: &[],
};

const OBJECT: Type = Type::Struct(&OBJECT_IDENTIFIER);
pub(super) const A_CHANGE: Type = Type::Struct(&CHANGE);

pub(super) static OBJECT_CHANGES: MapType =
    MapType { name: Some("update.ObjectChanges"), key: OBJECT, value: Type::Slice(&A_CHANGE) };
pub(super) static FILE_CHANGES: MapType =
    MapType { name: None, key: Type::String, value: Type::Map(&OBJECT_CHANGES) };
pub(super) static OBJECT_IMAGES: MapType =
    MapType { name: None, key: OBJECT, value: Type::Slice(&IMAGE_REF) };
pub(super) static FILES: MapType =
    MapType { name: None, key: Type::String, value: Type::Struct(&FILE_RESULT) };

/// A text that JSON omits if it is empty.
const fn if_any(name: &'static str, json: &'static str) -> Field {
    Field { name, of: Type::String, embedded: false, json: Json::OmitEmpty(json) }
}
