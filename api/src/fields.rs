//! The fields of a kind and their types, as a tree.
//!
//! It has the fields of the CRD's schema, with few of their other properties. Many commands make it at their start, and a
//! schema with everything that an API server needs takes ten times as long.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// A type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ValueType {
    Mapping,
    List,
    String,
    Boolean,
    Integer,
    Number,
}

impl ValueType {
    /// Returns the type with a name in JSON schemas, except null.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Mapping,
            "array" => Self::List,
            "string" => Self::String,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            _ => return None,
        })
    }

    /// Returns whether a value has this type; null, which an API server drops, has each.
    pub(crate) fn matches(self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Object(_) => self == Self::Mapping,
            Value::Array(_) => self == Self::List,
            Value::String(_) => self == Self::String,
            Value::Bool(_) => self == Self::Boolean,
            Value::Number(number) => self == Self::Number || (self == Self::Integer && !number.is_f64()),
        }
    }
}

/// Formats a type with its article.
impl fmt::Display for ValueType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Mapping => "a mapping",
            Self::List => "a list",
            Self::String => "a string",
            Self::Boolean => "true or false",
            Self::Integer => "a whole number",
            Self::Number => "a number",
        })
    }
}

/// A value and its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    /// The types that the value may have; if empty, any.
    pub(crate) types: BTreeSet<ValueType>,
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
        let types = match &schema["type"] {
            Value::Array(names) => names.as_slice(),
            name => std::slice::from_ref(name),
        };
        let mut fields = Self {
            types: types.iter().filter_map(|name| ValueType::named(name.as_str()?)).collect(),
            named: named.map(|(name, schema)| (name.clone(), Self::in_schema(schema))).collect(),
            values: child(&schema["additionalProperties"]),
            items: child(&schema["items"]),
            is_open: schema["x-kubernetes-preserve-unknown-fields"] == true,
            choices: texts(&schema["enum"]),
        };
        // An optional field has two alternatives: its type, and null.
        for alternatives in ["allOf", "anyOf", "oneOf"] {
            for alternative in schema[alternatives].as_array().into_iter().flatten() {
                let Self { types, named, values, items, is_open, choices } = Self::in_schema(alternative);
                fields.types.extend(types);
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
