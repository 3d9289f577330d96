//! The published description of an API (Swagger 2.0), and the check of exchanges against it.
//!
//! ```text
//! let description = Description::read("gitea-1.26.4.json");
//! description.check(&exchange); // panics if the request or the response is another one than described
//! ```

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::wire::Exchange;

/// The description of one API.
pub(crate) struct Description {
    root: Value,
    /// The segments of the base path, which requests of ours lack, such as the organization.
    base: Vec<String>,
    /// Statuses that the server has, though its description lacks them.
    undescribed: Vec<(&'static str, u16)>,
}

impl Description {
    /// Reads a file of `testdata/forges`.
    pub(crate) fn read(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/forges").join(name);
        let root = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        Self { root, base: Vec::new(), undescribed: Vec::new() }
    }

    /// Adds the first segments of paths, which the base URL of the transport has already.
    pub(crate) fn below(mut self, segment: &str) -> Self {
        self.base.push(segment.to_owned());
        self
    }

    /// Allows a status that the description lacks, for requests whose path ends in a segment.
    pub(crate) fn with_status(mut self, last: &'static str, status: u16) -> Self {
        self.undescribed.push((last, status));
        self
    }

    /// Panics if an exchange does not conform.
    pub(crate) fn check(&self, exchange: &Exchange) {
        let Exchange { method, path, query, body, status, response } = exchange;
        let path: Vec<_> = self.base.iter().chain(path).map(String::as_str).collect();
        let place = format!("{method} {}", path.join("/"));
        let (parameters, operation) =
            self.operation(method, &path).unwrap_or_else(|| panic!("{place} is not described"));
        for (name, value) in query {
            let parameter =
                parameters.iter().find(|one| one["in"] == "query" && one["name"] == name.as_str());
            let parameter = parameter.unwrap_or_else(|| panic!("{place} has no parameter {name}"));
            self.check_parameter(parameter, value, &place);
        }
        for required in parameters.iter().filter(|one| one["in"] == "query" && one["required"] == true) {
            assert!(
                query.iter().any(|(name, _)| required["name"] == name.as_str()),
                "{place} lacks {required}"
            );
        }
        let described = parameters.iter().find(|one| one["in"] == "body");
        match (described, body) {
            (Some(parameter), Some(body)) => self.validate(&parameter["schema"], body, Side::Request, &place),
            (Some(parameter), None) => assert!(parameter["required"] != true, "{place} lacks a body"),
            (None, Some(body)) => panic!("{place} has no body, and {body} was sent"),
            (None, None) => {}
        }
        let responses = &operation["responses"];
        let known = responses.get(status.to_string()).or_else(|| responses.get("default"));
        match known {
            Some(described) => {
                let schema = &self.resolved(described)["schema"];
                // Azure DevOps puts lists into an object, and its description does not.
                let list = (schema["type"] == "array").then(|| response.get("value")).flatten();
                if !schema.is_null() {
                    self.validate(schema, list.unwrap_or(response), Side::Response, &place);
                }
            }
            // Failures of the server are described for few operations.
            None if *status >= 400 => {}
            None => {
                let last = path.last().copied().unwrap_or_default();
                assert!(self.undescribed.contains(&(last, *status)), "{place} has no status {status}");
            }
        }
    }

    /// Finds an operation with all of its parameters; fixed segments win over placeholders.
    fn operation(&self, method: &str, path: &[&str]) -> Option<(Vec<&Value>, &Value)> {
        let paths = self.root["paths"].as_object().unwrap();
        let matching = paths.iter().filter(|(template, _)| {
            let segments: Vec<_> = template.split('/').skip(1).collect();
            let is_same = |(segment, found): (&&str, &&str)| {
                segment.starts_with('{') || segment.eq_ignore_ascii_case(found)
            };
            segments.len() == path.len() && segments.iter().zip(path).all(is_same)
        });
        let methods = matching.filter_map(|(template, item)| Some((template, item, item.get(method)?)));
        let (_, item, operation) = methods.min_by_key(|(template, ..)| template.matches('{').count())?;
        let lists = [&item["parameters"], &operation["parameters"]];
        let parameters = lists.into_iter().filter_map(Value::as_array).flatten();
        Some((parameters.map(|parameter| self.resolved(parameter)).collect(), operation))
    }

    fn resolved<'v>(&'v self, value: &'v Value) -> &'v Value {
        match value["$ref"].as_str() {
            Some(reference) => self.root.pointer(reference.trim_start_matches('#')).expect("a definition"),
            None => value,
        }
    }

    fn check_parameter(&self, parameter: &Value, value: &str, place: &str) {
        if let Some(allowed) = parameter["enum"].as_array() {
            assert!(allowed.iter().any(|one| one == value), "{place}: {value:?} is not in {allowed:?}");
        }
        match parameter["type"].as_str() {
            Some("integer") => assert!(value.parse::<i64>().is_ok(), "{place}: {value:?} is no number"),
            Some("boolean") => assert!(value.parse::<bool>().is_ok(), "{place}: {value:?} is no boolean"),
            _ => {}
        }
    }

    fn validate(&self, schema: &Value, instance: &Value, side: Side, place: &str) {
        let mut definitions = Map::new();
        for (name, definition) in self.root["definitions"].as_object().unwrap() {
            definitions.insert(name.clone(), self.prepared(definition, side));
        }
        let mut whole = self.prepared(schema, side);
        whole["definitions"] = Value::Object(definitions);
        let validator = jsonschema::draft4::new(&whole).unwrap_or_else(|error| panic!("{place}: {error}"));
        let errors: Vec<_> = validator
            .iter_errors(instance)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{place} {side:?}: {errors:#?}\n{instance:#}");
    }

    /// Turns a schema of Swagger into one of JSON Schema.
    ///
    /// Requests may have described members only. In responses, each member may be null, which Swagger cannot say.
    fn prepared(&self, schema: &Value, side: Side) -> Value {
        let Some(members) = schema.as_object() else { return schema.clone() };
        if members.contains_key("$ref") {
            return schema.clone();
        }
        let of = |one: &Value| match side {
            Side::Request => self.prepared(one, side),
            Side::Response => json!({"anyOf": [self.prepared(one, side), {"type": "null"}]}),
        };
        let mut result = Map::new();
        for (name, value) in members {
            let value = match name.as_str() {
                "items" | "additionalProperties" => self.prepared(value, side),
                // Of Swagger's own, without a meaning here.
                "example" | "default" | "format" | "discriminator" | "allOf" | "properties" => continue,
                _ => value.clone(),
            };
            result.insert(name.clone(), value);
        }
        let mut properties = Map::new();
        self.collect_properties(schema, &mut properties);
        if !properties.is_empty() {
            let is_open = side == Side::Response || members.contains_key("additionalProperties");
            let prepared = properties.iter().map(|(name, one)| (name.clone(), of(one))).collect();
            result.insert("properties".to_owned(), Value::Object(prepared));
            if !is_open {
                result.insert("additionalProperties".to_owned(), json!(false));
            }
        }
        Value::Object(result)
    }

    /// Collects the properties of a schema and of those that it extends.
    fn collect_properties(&self, schema: &Value, found: &mut Map<String, Value>) {
        let schema = self.resolved(schema);
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.collect_properties(part, found);
        }
        for (name, one) in schema["properties"].as_object().into_iter().flatten() {
            found.insert(name.clone(), one.clone());
        }
    }
}

/// A request or a response.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    Request,
    Response,
}
