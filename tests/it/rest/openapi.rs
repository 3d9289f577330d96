//! The description of the API: the committed one, and the responses that it describes.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::answer::Answer;
use super::schema::Schemas;

/// The committed description.
static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| {
    let text = fs::read_to_string(file()).unwrap();
    serde_json::from_str(&text).unwrap()
});

fn file() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json")
}

/// Validates a response to a request for a path.
/// A path that the description does not have must not exist.
pub(super) fn validate(path: &str, answer: &Answer) {
    let route = path.split('?').next().unwrap();
    let paths = DESCRIPTION["paths"].as_object().unwrap();
    let Some(item) = paths.iter().find(|(template, _)| is_match(template, route)).map(|(_, item)| item)
    else {
        assert_problem(answer);
        return;
    };
    let response = &item["get"]["responses"][answer.status.to_string()];
    assert!(response.is_object(), "{path} may not have the status: {answer:?}");
    let Some(content) = response["content"].as_object() else {
        assert_eq!(answer.body, "", "{path}");
        return;
    };
    let content_type = answer.header("content-type").split(';').next().unwrap();
    let schema = &content[content_type]["schema"];
    match content_type {
        "text/event-stream" => assert_eq!(schema["type"], "string"),
        _ => assert_valid(schema, &answer.json(), path),
    }
}

/// The paths of the description, in which parameters have a name in braces.
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    DESCRIPTION["paths"].as_object().unwrap().keys().map(String::as_str)
}

/// Validates a problem with a status of a path.
pub(super) fn validate_status(path: &str, status: u16, problem: &Value) {
    let response = &DESCRIPTION["paths"][path]["get"]["responses"][status.to_string()];
    let schema = &response["content"]["application/problem+json"]["schema"];
    assert!(schema.is_object(), "{path} may not have the status {status}: {response}");
    assert_valid(schema, problem, path);
}

/// A response that no path of the description has.
fn assert_problem(answer: &Answer) {
    assert!(answer.status >= 400, "{answer:?}");
    assert_eq!(answer.header("content-type"), "application/problem+json");
    assert_valid(&json!({"$ref": "#/components/schemas/Problem"}), &answer.json(), "a problem");
}

/// Validates a document with a schema of the description.
pub(super) fn assert_valid(schema: &Value, document: &Value, what: &str) {
    let errors = errors(schema, document);
    assert!(errors.is_empty(), "{what}: {errors:#?}\n{document:#}");
}

fn errors(schema: &Value, document: &Value) -> Vec<String> {
    Schemas::new(&DESCRIPTION).errors(schema, document)
}

/// Returns whether a path has the form of a template such as `/a/{id}`.
fn is_match(template: &str, path: &str) -> bool {
    let (template, path) = (template.split('/'), path.split('/'));
    template.clone().count() == path.clone().count()
        && template.zip(path).all(|(part, given)| part == given || part.starts_with('{') && !given.is_empty())
}

#[test]
fn the_committed_description_is_that_of_the_types() {
    let found = format!("{:#}\n", tagboat::web::openapi());
    if std::env::var_os("TAGBOAT_REGENERATE").is_some() {
        fs::write(file(), &found).unwrap();
    }
    let committed = fs::read_to_string(file()).unwrap_or_default();
    assert!(committed == found, "docs/openapi.json is stale; TAGBOAT_REGENERATE=1 writes it anew");
}

#[test]
fn references_of_the_description_have_a_target() {
    fn references<'d>(value: &'d Value, found: &mut Vec<&'d str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    references(&DESCRIPTION, &mut found);
    assert!(found.len() > 20, "{found:?}");
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(DESCRIPTION.pointer(pointer).is_some(), "{reference}");
    }
    assert_eq!(DESCRIPTION["openapi"], "3.1.0");
}

#[test]
fn the_validator_finds_errors() {
    let problem = json!({"$ref": "#/components/schemas/Problem"});
    let good = json!({"type": "about:blank", "title": "Not Found", "status": 404, "detail": "no"});
    assert_eq!(errors(&problem, &good), Vec::<String>::new());
    for (member, value) in [("status", json!("404")), ("status", json!(200)), ("detail", json!(""))] {
        let mut bad = good.clone();
        bad[member] = value;
        assert_eq!(errors(&problem, &bad).len(), 1, "{bad}");
    }
    let clusters = json!({"$ref": "#/components/schemas/ClusterList"});
    let bad = json!({"items": [{"name": "a", "state": "down", "since": "yesterday"}]});
    assert_eq!(errors(&clusters, &bad).len(), 1);
}
