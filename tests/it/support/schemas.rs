//! Checks the documents that the program prints against the committed schemas.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// A kind of document with its schema.
struct Document {
    is_one: fn(&Value) -> bool,
    schema: Validator,
}

static DOCUMENTS: LazyLock<[Document; 4]> = LazyLock::new(|| {
    let document = |name: &str, is_one| Document { is_one, schema: read(name) };
    [
        document("outcome", |document| document["schema"] == "tagboat.dev/outcome/v1"),
        document("history", |document| document["schema"] == "tagboat.dev/history/v1"),
        document("explain-policy", |document| has(document, &["policy", "latest", "tags"])),
        document("explain-automation", |document| has(document, &["automation", "open", "held"])),
    ]
});

fn has(document: &Value, members: &[&str]) -> bool {
    members.iter().all(|name| document.get(name).is_some())
}

/// Asserts that a document is as its schema says, if it has one.
///
/// Members that the schema does not have are refused as well.
#[track_caller]
pub(crate) fn check(document: &Value) {
    if let Some(automations) = document["automations"].as_array() {
        return automations.iter().for_each(check);
    }
    let Some(kind) = DOCUMENTS.iter().find(|kind| (kind.is_one)(document)) else { return };
    let errors: Vec<String> = kind
        .schema
        .iter_errors(document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
}

/// Returns the validator of `docs/NAME.schema.json`.
fn read(name: &str) -> Validator {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/{name}.schema.json"));
    let text = fs::read_to_string(path).expect("the schema is committed");
    let schema = closed(&serde_json::from_str(&text).expect("a schema is JSON"));
    jsonschema::draft202012::new(&schema).expect("the schema is one")
}

/// Returns a schema whose objects have no other members than those that it names.
fn closed(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(closed).collect(),
        Value::Object(members) => {
            let mut result: Map<String, Value> =
                members.iter().map(|(name, value)| (name.clone(), closed(value))).collect();
            if members.get("properties").is_some_and(Value::is_object) && members["type"] == "object" {
                result.entry("additionalProperties").or_insert(json!(false));
            }
            Value::Object(result)
        }
        other => other.clone(),
    }
}
