//! The names of the fields that a kind has, as a tree.
//!
//! It says the same of fields as the schema in the kind's CRD, from which it differs in that it is made at the start of
//! many a command: what an API server wants of a schema beyond its fields takes ten times as long to make.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// A value and the fields in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    /// The fields that a mapping may have; none: any.
    pub(crate) named: BTreeMap<String, Fields>,
    /// The values of a mapping whose keys are free.
    pub(crate) values: Option<Box<Fields>>,
    /// The items of a list.
    pub(crate) items: Option<Box<Fields>>,
    /// Whether a mapping may have fields that are not named here.
    pub(crate) is_open: bool,
    /// The texts that a value may be; none: any.
    pub(crate) choices: Vec<String>,
}

impl Fields {
    /// The fields of a type.
    pub(crate) fn of<T: JsonSchema>() -> Self {
        let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
        Self::in_schema(settings.into_generator().into_root_schema_for::<T>().as_value())
    }

    /// The fields that a JSON schema without references has.
    pub(crate) fn in_schema(schema: &Value) -> Self {
        let child = |value: &Value| value.is_object().then(|| Box::new(Self::in_schema(value)));
        let named = schema["properties"].as_object().into_iter().flatten();
        let mut fields = Self {
            named: named.map(|(name, schema)| (name.clone(), Self::in_schema(schema))).collect(),
            values: child(&schema["additionalProperties"]),
            items: child(&schema["items"]),
            is_open: schema["x-kubernetes-preserve-unknown-fields"] == true,
            choices: texts(&schema["enum"]),
        };
        // A field that may be absent is one of two: what it is, or null.
        for alternatives in ["allOf", "anyOf", "oneOf"] {
            for alternative in schema[alternatives].as_array().into_iter().flatten() {
                let Self { named, values, items, is_open, choices } = Self::in_schema(alternative);
                fields.named.extend(named);
                fields.values = fields.values.or(values);
                fields.items = fields.items.or(items);
                fields.is_open |= is_open;
                fields.choices.extend(choices);
            }
        }
        fields
    }

    /// Takes a field, named by its path, out.
    pub(crate) fn remove(&mut self, path: &[&str]) {
        let Some((name, rest)) = path.split_first() else { return };
        if rest.is_empty() {
            self.named.remove(*name);
        } else if let Some(field) = self.named.get_mut(*name) {
            field.remove(rest);
        }
    }
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}
