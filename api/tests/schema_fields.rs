//! Compares the generated schemas with the field tables of Flux.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use tagboat_api::{IMAGE_GROUP, OWN_GROUP, OWN_VERSION, SOURCE_GROUP, crds};

/// The type name of a standard condition in the tables.
///
/// Its fields are in a table of their own.
const CONDITION: &str = "Condition";

/// The validations in a line of a table, in their order.
///
/// They follow type, requirement and default.
const VALIDATIONS: [&str; 8] = [
    "enum",
    "pattern",
    "maxItems",
    "maxLength",
    "minLength",
    "minimum",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

/// The keywords of a schema beside the validations.
///
/// Any other keyword would be missing in the tables.
const STRUCTURE: [&str; 8] =
    ["type", "format", "description", "default", "properties", "required", "items", "additionalProperties"];

#[test]
fn image_update_automation() {
    compare(IMAGE_GROUP, "ImageUpdateAutomation", include_str!("field_tables/ImageUpdateAutomation.txt"));
}

#[test]
fn image_repository() {
    compare(IMAGE_GROUP, "ImageRepository", include_str!("field_tables/ImageRepository.txt"));
}

#[test]
fn image_policy() {
    compare(IMAGE_GROUP, "ImagePolicy", include_str!("field_tables/ImagePolicy.txt"));
}

#[test]
fn git_repository() {
    compare(SOURCE_GROUP, "GitRepository", include_str!("field_tables/GitRepository.txt"));
}

#[test]
fn every_field_is_described() {
    for crd in crds::all() {
        let (group, kind) = (&crd.spec.group, &crd.spec.names.kind);
        let schema = schema_of(group, "v1", kind);
        described(kind, &schema);
    }
    let own = [crds::rollout(), crds::nodes()];
    for kind in ["DeploymentStatus", "NodePool"] {
        let schema = crds::schema(&own, OWN_GROUP, OWN_VERSION, kind).expect("the kind is one of ours");
        described(kind, &serde_json::to_value(schema).expect("a schema can be written as JSON"));
    }
}

#[test]
fn v1beta2_differs_in_one_field() {
    for crd in crds::all() {
        let (group, kind) = (&crd.spec.group, &crd.spec.names.kind);
        let (newer, older) =
            (flatten(&schema_of(group, "v1", kind)), flatten(&schema_of(group, "v1beta2", kind)));
        let gone: Vec<_> =
            newer.keys().filter(|path| !older.contains_key(*path)).map(String::as_str).collect();
        let expected: &[&str] =
            if kind == "ImageUpdateAutomation" { &["spec.git.commit.signingKey.type"] } else { &[] };
        assert_eq!(gone, expected, "{kind}");
        assert!(older.iter().all(|(path, line)| newer.get(path) == Some(line)), "{kind}");
    }
}

fn compare(group: &str, kind: &str, table: &str) {
    let expected = read_table(table);
    let generated = flatten(&schema_of(group, "v1", kind));
    let paths: BTreeSet<&String> = expected.keys().chain(generated.keys()).collect();
    let mut differences = Vec::new();
    for path in paths {
        let (wanted, found) = (expected.get(path), generated.get(path));
        if wanted != found {
            differences.push(format!("{path}\n  table:  {wanted:?}\n  schema: {found:?}"));
        }
    }
    assert!(differences.is_empty(), "{kind}:\n{}", differences.join("\n"));
}

/// Returns the schema in the form of the API server.
fn schema_of(group: &str, version: &str, kind: &str) -> Value {
    let all = crds::all();
    let schema = crds::schema(&all, group, version, kind).expect("the kind is one of ours");
    serde_json::to_value(schema).expect("a schema can be written as JSON")
}

/// Parses a table into lines by path.
///
/// Each standard condition is replaced by its own table.
fn read_table(table: &str) -> BTreeMap<String, String> {
    let mut lines = BTreeMap::new();
    for line in table.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let path = words.next().expect("a line has a path").to_owned();
        let rest: Vec<&str> = words.collect();
        let text = if rest == [CONDITION] {
            for (field, text) in read_table(include_str!("field_tables/Condition.txt")) {
                lines.insert(format!("{path}.{field}"), text);
            }
            "object".to_owned()
        } else {
            rest.join(" ")
        };
        assert_eq!(lines.insert(path.clone(), text), None, "{path} stands twice in a table");
    }
    lines
}

/// Formats a schema in the notation of the tables.
fn flatten(root: &Value) -> BTreeMap<String, String> {
    let mut lines = BTreeMap::new();
    let required = required(root);
    assert!(required.is_empty(), "an object as a whole requires nothing");
    for (name, property) in properties(root) {
        flatten_field(name, property, false, &mut lines);
    }
    lines
}

fn flatten_field(path: &str, schema: &Value, is_required: bool, lines: &mut BTreeMap<String, String>) {
    let keywords = schema.as_object().expect("a schema is an object");
    lines.insert(path.to_owned(), line(path, keywords, is_required));
    let required = required(schema);
    for (name, property) in properties(schema) {
        flatten_field(&format!("{path}.{name}"), property, required.contains(name.as_str()), lines);
    }
    if let Some(items) = keywords.get("items") {
        flatten_field(&format!("{path}[]"), items, false, lines);
    }
    if let Some(values) = keywords.get("additionalProperties") {
        flatten_field(&format!("{path}{{}}"), values, false, lines);
    }
}

fn line(path: &str, keywords: &Map<String, Value>, is_required: bool) -> String {
    let type_ = if keywords.contains_key("additionalProperties") { "map" } else { text(&keywords["type"]) };
    let mut words = vec![match keywords.get("format") {
        Some(format) => format!("{type_}({})", text(format)),
        None => type_.to_owned(),
    }];
    if is_required {
        words.push("required".to_owned());
    }
    if let Some(default) = keywords.get("default") {
        words.push(format!("default={default}"));
    }
    let names = VALIDATIONS.into_iter().chain(["x-kubernetes-preserve-unknown-fields"]);
    for name in names.clone() {
        if let Some(value) = keywords.get(name) {
            words.push(format!("{name}={}", validation(value)));
        }
    }
    for name in keywords.keys().map(String::as_str) {
        let known = STRUCTURE.contains(&name) || names.clone().any(|known| known == name);
        // The rules have a test of their own.
        assert!(known || name == "x-kubernetes-validations", "{path} has the keyword {name}");
    }
    words.join(" ")
}

fn validation(value: &Value) -> String {
    match value {
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(","),
        Value::Number(number) => number.as_f64().expect("a limit is a number").to_string(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn described(path: &str, schema: &Value) {
    for (name, property) in properties(schema) {
        let path = format!("{path}.{name}");
        let description = property.get("description").map_or("", text);
        assert!(description.ends_with('.'), "{path} is not described by a sentence: {description:?}");
        described(&path, property);
        for inner in [property.get("items"), property.get("additionalProperties")].into_iter().flatten() {
            described(&path, inner);
        }
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn required(schema: &Value) -> BTreeSet<&str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().map(text).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("the keyword is a text")
}
