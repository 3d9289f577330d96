//! The published description of an API, against which calls are checked.

use std::path::Path;

use serde_json::{Map, Value, json};

/// A description in OpenAPI 3.0.
pub(crate) struct Description(Value);

impl Description {
    /// Reads a file of `testdata/forges`.
    pub(crate) fn load(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/forges").join(name);
        let mut document = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        allow_nulls(&mut document);
        Self(document)
    }

    /// Checks the body of a request, whose members must all be described.
    pub(crate) fn check_request(&self, method: &str, path: &str, body: &Value) -> Result<(), String> {
        let operation = self.operation(method, path)?;
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            return if body.is_null() { Ok(()) } else { Err(format!("{method} {path} has no body: {body}")) };
        }
        let known = self.resolved(schema)["properties"].as_object().cloned().unwrap_or_default();
        if let Some(unknown) =
            body.as_object().and_then(|body| body.keys().find(|name| !known.contains_key(*name)))
        {
            return Err(format!("{method} {path} has no member {unknown}"));
        }
        self.check(schema, body).map_err(|error| format!("{method} {path}: {error} in {body}"))
    }

    /// Checks the body of a response.
    pub(super) fn check_response(
        &self,
        method: &str,
        path: &str,
        status: u16,
        body: &Value,
    ) -> Result<(), String> {
        let operation = self.operation(method, path)?;
        let response = self.resolved(&operation["responses"][status.to_string()]);
        if response.is_null() {
            return Err(format!("{method} {path} does not answer {status}"));
        }
        let schema = &response["content"]["application/json"]["schema"];
        if schema.is_null() {
            return Ok(());
        }
        self.check(schema, body).map_err(|error| format!("{method} {path}: {status}: {error} in {body}"))
    }

    fn operation(&self, method: &str, path: &str) -> Result<&Value, String> {
        let paths = self.0["paths"].as_object().unwrap();
        let found = paths.iter().find(|(template, _)| {
            let (template, path): (Vec<&str>, Vec<&str>) =
                (template.split('/').collect(), path.split('/').collect());
            template.len() == path.len()
                && template
                    .iter()
                    .zip(&path)
                    .all(|(wanted, given)| wanted.starts_with('{') || wanted == given)
        });
        let operation = found.and_then(|(_, operations)| operations.get(method.to_ascii_lowercase()));
        operation.ok_or_else(|| format!("the API has no {method} {path}"))
    }

    /// Follows a reference.
    fn resolved<'v>(&'v self, value: &'v Value) -> &'v Value {
        match value["$ref"].as_str().and_then(|reference| self.0.pointer(reference.strip_prefix('#')?)) {
            Some(target) => self.resolved(target),
            None => value,
        }
    }

    fn check(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let whole = json!({"components": self.0["components"], "allOf": [schema]});
        let validator =
            jsonschema::draft4::new(&whole).map_err(|error| format!("a defective description: {error}"))?;
        validator.validate(value).map_err(|error| format!("{error} at {}", error.instance_path()))
    }
}

/// Turns `nullable` of OpenAPI into types of JSON Schema.
fn allow_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(allow_nulls);
            if members.get("nullable") == Some(&Value::Bool(true)) {
                allow_null(members);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(allow_nulls),
        _ => {}
    }
}

fn allow_null(members: &mut Map<String, Value>) {
    if let Some(kind) = members.get("type").cloned().filter(Value::is_string) {
        members.insert("type".to_owned(), json!([kind, "null"]));
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.push(Value::Null);
    }
}
