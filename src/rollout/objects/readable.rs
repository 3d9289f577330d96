//! A spec or status that may be unreadable.
//!
//! A list of objects is parsed as a whole, so one error would hide all of them. Only the object that has it is
//! unreadable here.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A field in use has a value of the wrong type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct Unreadable {
    /// The path of the field, such as `status.replicas`.
    path: String,
    problem: String,
}

/// A part of an object, or the reason why it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readable<T>(Result<T, Unreadable>);

impl<T> Readable<T> {
    /// Returns the part.
    ///
    /// # Errors
    ///
    /// A field in use has a value of the wrong type.
    pub fn get(&self) -> Result<&T, &Unreadable> {
        self.0.as_ref()
    }
}

impl<T: Default> Default for Readable<T> {
    /// Returns an absent part, which has the defaults of its fields.
    fn default() -> Self {
        Self(Ok(T::default()))
    }
}

/// Parses the status of a generic object; null gives the type's default.
///
/// # Errors
///
/// A field in use has a value of the wrong type.
pub fn parse_status<'v, T: Deserialize<'v> + Default>(status: &'v Value) -> Result<T, Unreadable> {
    parse("status", status)
}

/// Parses a part of an object, of which `name` is the first element of paths.
fn parse<'v, T: Deserialize<'v> + Default>(name: &str, value: &'v Value) -> Result<T, Unreadable> {
    if value.is_null() {
        return Ok(T::default());
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = match error.path().to_string().as_str() {
            "." => name.to_owned(),
            path => format!("{name}.{path}"),
        };
        Unreadable { path, problem: error.into_inner().to_string() }
    })
}

/// Deserializes the field `spec`; fails only if the document is not JSON.
pub(super) fn spec<'de, D, T>(deserializer: D) -> Result<Readable<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(Readable(parse("spec", &Value::deserialize(deserializer)?)))
}

/// Deserializes the field `status`; fails only if the document is not JSON.
pub(super) fn status<'de, D, T>(deserializer: D) -> Result<Readable<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(Readable(parse("status", &Value::deserialize(deserializer)?)))
}

/// Deserializes a value; null gives the type's default.
///
/// Go writes an empty list as null.
pub(super) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Deployment, GenericObject, Pod};
    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default)]
    struct Part {
        replicas: Option<i64>,
        #[serde(deserialize_with = "or_default")]
        names: Vec<String>,
    }

    #[test]
    fn a_part_has_defaults_or_names_the_wrong_field() {
        let parts = [
            (json!(null), Ok(Part::default())),
            (json!({}), Ok(Part::default())),
            (json!({"names": null, "replicas": null}), Ok(Part::default())),
            (json!({"replicas": 3, "other": {"x": 1}}), Ok(Part { replicas: Some(3), names: Vec::new() })),
            (json!({"replicas": "3"}), Err("status.replicas: invalid type: string \"3\", expected i64")),
            (
                json!({"names": ["a", 1]}),
                Err("status.names[1]: invalid type: integer `1`, expected a string"),
            ),
            (json!(7), Err("status: invalid type: integer `7`, expected struct Part")),
        ];
        for (value, expected) in parts {
            let found = parse_status::<Part>(&value).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{value}");
        }
    }

    /// A list is parsed as a whole.
    #[test]
    fn an_unreadable_object_does_not_hide_the_others() {
        let list = json!([
            {"metadata": {"name": "a"}, "status": {"replicas": []}},
            {"metadata": {"name": "b"}, "spec": "none", "status": {"replicas": 2}},
            {"metadata": {"name": "c"}, "spec": {"strategy": 7}, "status": {"collisionCount": "many"}},
            {"spec": {"template": null}},
            {"spec": {"template": {"spec": null}}},
            {},
        ]);
        let deployments: Vec<Deployment> = serde_json::from_value(list.clone()).unwrap();
        let readable: Vec<(bool, bool)> = deployments
            .iter()
            .map(|deployment| (deployment.spec.get().is_ok(), deployment.status.get().is_ok()))
            .collect();
        assert_eq!(readable[..2], [(true, false), (false, true)]);
        assert_eq!(readable[2..], [(true, true); 4]);
        assert_eq!(deployments[1].metadata.name.as_deref(), Some("b"));
        assert_eq!(serde_json::from_value::<Vec<Pod>>(list.clone()).unwrap().len(), 6);
        assert_eq!(serde_json::from_value::<Vec<GenericObject>>(list).unwrap().len(), 6);
    }
}
