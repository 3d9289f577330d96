//! Fields, entries and items of template values.

use tagboat_go_template::{Field, Json, StructType, Text, Type, Value};

/// Returns an embedded struct as a field of another.
pub(super) const fn embedded(name: &'static str, kind: &'static StructType, json: Json) -> Field {
    Field { name, of: Type::Struct(kind), embedded: true, json }
}

/// Returns a field of a struct, or nil.
pub(super) fn field(value: &Value, name: &str) -> Value {
    match value {
        Value::Struct(object) => object.field(name).unwrap_or(Value::Nil),
        _ => Value::Nil,
    }
}

/// Returns a field that is a text, or the empty text.
pub(super) fn text(value: &Value, name: &str) -> Text {
    as_text(field(value, name))
}

/// Returns a value that is a text, or the empty text.
pub(super) fn as_text(value: Value) -> Text {
    if let Value::String(text) = value { text } else { Text::default() }
}

/// Returns the entries of a map; any other value has none.
pub(super) fn entries(value: &Value) -> Vec<(Value, Value)> {
    if let Value::Map(map) = value { map.entries() } else { Vec::new() }
}

/// Returns the items of a slice; any other value has none.
pub(super) fn items(value: &Value) -> Vec<Value> {
    if let Value::Slice(slice) = value { slice.to_vec() } else { Vec::new() }
}
