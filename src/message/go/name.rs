//! Names of objects: `types.NamespacedName`.

use tagboat_go_template::{Field, Method, Struct, StructType, Type, Value};

use super::fields::text;

/// The type of an object's name.
pub(super) static NAMESPACED_NAME: StructType = StructType {
    name: "types.NamespacedName",
    fields: &[Field::new("Namespace", Type::String), Field::new("Name", Type::String)],
    methods: &[Method::new("String", full_name)],
};

/// Returns a name as a `types.NamespacedName`.
pub(super) fn namespaced_name(namespace: &str, name: &str) -> Value {
    Struct::new(&NAMESPACED_NAME, vec![namespace.into(), name.into()]).into()
}

/// `types.NamespacedName.String`.
fn full_name(value: &Value, _: &[Value]) -> Result<Value, String> {
    Ok(format!("{}/{}", text(value, "Namespace"), text(value, "Name")).into())
}
