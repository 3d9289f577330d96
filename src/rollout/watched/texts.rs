//! The texts in a value of any form, such as the values of a HelmRelease.

use serde_json::Value;

/// Returns `true` if a text or number anywhere in a value matches.
pub fn has_text(value: &Value, is_match: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_match(text),
        Value::Number(number) => is_match(&number.to_string()),
        Value::Array(items) => items.iter().any(|item| has_text(item, is_match)),
        Value::Object(fields) => fields.values().any(|field| has_text(field, is_match)),
        Value::Null | Value::Bool(_) => false,
    }
}

/// Returns the approximate size of a value in memory, in bytes.
pub(super) fn texts_bytes(value: &Value) -> usize {
    let inner = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(texts_bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(key, field)| key.len() + texts_bytes(field)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inner
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_and_numbers_are_found_at_any_depth() {
        let value = json!({"image": {"tag": "1.0", "replicas": 3}, "list": [{"x": "y"}], "on": true});
        for (text, expected) in [("1.0", true), ("3", true), ("y", true), ("true", false), ("tag", false)] {
            assert_eq!(has_text(&value, &|found| found == text), expected, "{text}");
        }
    }
}
