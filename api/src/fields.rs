//! The field names of a kind, as a tree.
//!
//! It has the fields of the CRD's schema, without other properties. Many commands make it at their start, and a
//! schema with everything that an API server needs takes ten times as long.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// A value and its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    /// The fields that a mapping may have; if empty, any.
    pub(crate) named: BTreeMap<String, Fields>,
    /// The values of a mapping with free keys.
    pub(crate) values: Option<Box<Fields>>,
    /// The items of a list.
    pub(crate) items: Option<Box<Fields>>,
    /// True if a mapping may have further fields.
    pub(crate) is_open: bool,
    /// The strings that a value may be; if empty, any.
    pub(crate) choices: Vec<String>,
}

impl Fields {
    /// Returns the fields of a type.
    pub(crate) fn of<T: JsonSchema>() -> Self {
        let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
        Self::in_schema(settings.into_generator().into_root_schema_for::<T>().as_value())
    }

    /// Returns the fields of a JSON schema without references.
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
        // An optional field has two alternatives: its type, and null.
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

    /// Removes the field at a path.
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
