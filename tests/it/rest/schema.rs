//! A validator of documents.
//!
//! It knows the keywords of JSON Schema that the description of the API uses. Another keyword fails the test, so none is
//! ignored in silence.

use serde_json::{Map, Value};

/// Keywords that restrict nothing.
const ANNOTATIONS: [&str; 4] = ["description", "title", "default", "examples"];

/// The schemas of a description, to which references lead.
pub(super) struct Schemas<'d> {
    root: &'d Value,
}

impl<'d> Schemas<'d> {
    pub(super) fn new(root: &'d Value) -> Self {
        Self { root }
    }

    /// Returns the errors of a document, each with its place.
    pub(super) fn errors(&self, schema: &Value, document: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        self.check(schema, document, "", &mut errors);
        errors
    }

    fn check(&self, schema: &Value, document: &Value, at: &str, errors: &mut Vec<String>) {
        let keywords = match schema {
            Value::Bool(true) => return,
            Value::Object(keywords) => keywords,
            _ => panic!("no schema: {schema}"),
        };
        for (keyword, value) in keywords {
            let is_valid = match keyword.as_str() {
                "$ref" => {
                    let pointer = value.as_str().unwrap().strip_prefix('#').unwrap();
                    self.check(self.root.pointer(pointer).unwrap(), document, at, errors);
                    true
                }
                "oneOf" => self.matching(value, document) == 1,
                "anyOf" => self.matching(value, document) > 0,
                "type" => has_type(value, document),
                "enum" => value.as_array().unwrap().contains(document),
                "const" => value == document,
                "properties" => {
                    self.check_members(value.as_object().unwrap(), document, at, errors);
                    true
                }
                "additionalProperties" => {
                    let known = keywords.get("properties").and_then(Value::as_object);
                    let members = document.as_object().into_iter().flatten();
                    for (name, member) in
                        members.filter(|(name, _)| !known.is_some_and(|k| k.contains_key(*name)))
                    {
                        self.check(value, member, &format!("{at}/{name}"), errors);
                    }
                    true
                }
                "required" => document.as_object().is_none_or(|members| {
                    value.as_array().unwrap().iter().all(|name| members.contains_key(name.as_str().unwrap()))
                }),
                "items" => {
                    for (place, item) in document.as_array().into_iter().flatten().enumerate() {
                        self.check(value, item, &format!("{at}/{place}"), errors);
                    }
                    true
                }
                "maxItems" => within(document.as_array().map(Vec::len), |length| length <= size(value)),
                "minLength" => within(length(document), |length| length >= size(value)),
                "maxLength" => within(length(document), |length| length <= size(value)),
                "minimum" => document.as_f64().is_none_or(|number| number >= value.as_f64().unwrap()),
                "maximum" => document.as_f64().is_none_or(|number| number <= value.as_f64().unwrap()),
                "pattern" => is_match(value.as_str().unwrap(), document),
                "format" => has_format(value.as_str().unwrap(), document),
                keyword if ANNOTATIONS.contains(&keyword) => true,
                keyword => panic!("unknown keyword {keyword}"),
            };
            if !is_valid {
                errors.push(format!("{at}: {keyword} {value}: {document}"));
            }
        }
    }

    fn check_members(
        &self,
        properties: &Map<String, Value>,
        document: &Value,
        at: &str,
        errors: &mut Vec<String>,
    ) {
        for (name, schema) in properties {
            if let Some(member) = document.get(name) {
                self.check(schema, member, &format!("{at}/{name}"), errors);
            }
        }
    }

    /// Returns the number of schemas that a document matches.
    fn matching(&self, schemas: &Value, document: &Value) -> usize {
        let schemas = schemas.as_array().unwrap().iter();
        schemas.filter(|schema| self.errors(schema, document).is_empty()).count()
    }
}

fn size(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// The length of a text in characters.
fn length(document: &Value) -> Option<usize> {
    document.as_str().map(|text| text.chars().count())
}

/// A keyword about sizes does not restrict other types.
fn within(size: Option<usize>, is_allowed: impl Fn(usize) -> bool) -> bool {
    size.is_none_or(is_allowed)
}

fn has_type(types: &Value, document: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => document.is_object(),
        "array" => document.is_array(),
        "string" => document.is_string(),
        "integer" => document.is_i64() || document.is_u64(),
        "number" => document.is_number(),
        "boolean" => document.is_boolean(),
        "null" => document.is_null(),
        name => panic!("unknown type {name}"),
    };
    match types {
        Value::Array(names) => names.iter().any(|name| is(name.as_str().unwrap())),
        name => is(name.as_str().unwrap()),
    }
}

fn has_format(format: &str, document: &Value) -> bool {
    match (format, document) {
        ("date-time", Value::String(text)) => text.parse::<jiff::Timestamp>().is_ok(),
        ("date-time", _) => true,
        ("int64", _) => document.as_f64().is_none_or(|_| document.is_i64()),
        ("uint16", _) => document.as_u64().is_none_or(|number| number < 1 << 16),
        (format, _) => panic!("unknown format {format}"),
    }
}

fn is_match(pattern: &str, document: &Value) -> bool {
    let expression = tagboat_go_text::regexp::Regexp::compile_within(pattern, 1 << 20).unwrap();
    document.as_str().is_none_or(|text| expression.is_match(text.as_bytes()))
}
