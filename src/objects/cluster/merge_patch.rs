//! Computes JSON merge patches (RFC 7386).

use serde_json::{Map, Value};

/// Returns the merge patch that turns `old` into `new`; `None` if they are equal.
///
/// Removed members are null, lists are replaced as a whole, and equal members are omitted. Members that are in
/// neither document are not touched.
pub(super) fn difference(old: &Value, new: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return (old != new).then(|| new.clone());
    };
    let mut patch = Map::new();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in new {
        let change = match old.get(name) {
            Some(before) => difference(before, value),
            None => Some(value.clone()),
        };
        patch.extend(change.map(|change| (name.clone(), change)));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Applies a patch as the RFC defines it.
    fn apply(target: Value, patch: &Value) -> Value {
        let Value::Object(patch) = patch else { return patch.clone() };
        let mut object = if let Value::Object(object) = target { object } else { Map::new() };
        for (name, value) in patch {
            if value.is_null() {
                object.remove(name);
            } else {
                let before = object.remove(name).unwrap_or(Value::Null);
                object.insert(name.clone(), apply(before, value));
            }
        }
        Value::Object(object)
    }

    #[test]
    fn the_patch_has_only_the_difference_and_yields_the_new_document() {
        for (old, new, expected) in [
            (json!({}), json!({}), None),
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!({"a": 1}), json!({"a": 2}), Some(json!({"a": 2}))),
            (json!({"a": 1}), json!({}), Some(json!({"a": null}))),
            (json!({}), json!({"a": {"b": 1}}), Some(json!({"a": {"b": 1}}))),
            (
                json!({"policies": {"old": {"tag": "1"}, "kept": {"tag": "1", "digest": "x"}}}),
                json!({"policies": {"kept": {"tag": "1"}, "new": {"tag": "2"}}}),
                Some(json!({"policies": {"old": null, "kept": {"digest": null}, "new": {"tag": "2"}}})),
            ),
            (json!({"list": [1, 2, 3]}), json!({"list": [1, 3]}), Some(json!({"list": [1, 3]}))),
            (json!({"list": [{"a": 1}]}), json!({"list": [{"a": 1}]}), None),
            (json!({"a": {"b": 1}}), json!({"a": 1}), Some(json!({"a": 1}))),
        ] {
            let patch = difference(&old, &new);
            assert_eq!(patch, expected, "{old} {new}");
            if let Some(patch) = patch {
                assert_eq!(apply(old, &patch), new);
            }
        }
    }
}
