//! The schemas of the fields of a NodePool: lengths, patterns, and rules with sentences.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::{MAX_DURATION, MAX_HOOKS, MAX_REFERENCE, MAX_REQUIREMENTS, OWN_PREFIX};

/// The pattern of a reference: a tag, a digest, or both follow the name.
const REFERENCE_PATTERN: &str =
    r"^[^\s@]+(:[A-Za-z0-9_.-]{1,128}(@sha256:[0-9a-f]{64})?|@sha256:[0-9a-f]{64})$";

/// The pattern of a label's key, except for the length of its prefix.
const KEY_PATTERN: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";

/// The pattern of the value of a label.
const VALUE_PATTERN: &str = "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$";

/// The pattern of the durations of pools.
///
/// Numbers are bounded, so that the sum cannot exceed the longest duration of the API server, which would answer with
/// another error.
const DURATION_PATTERN: &str = r"^([0-9]{1,5}(\.[0-9]+)?h|[0-9]{1,7}(\.[0-9]+)?m|[0-9]{1,9}(\.[0-9]+)?m?s)+$";

/// The message for a text that is no duration.
const DURATION_ADVICE: &str =
    "write a duration of h, m, s and ms, such as 90s, 5m or 1h30m, of at most 99999h";

/// The maximum length of a label's key: a prefix, a slash, and a name.
const MAX_KEY: usize = 253 + 1 + 63;

/// Returns the schema of a text that matches a pattern.
///
/// It is a rule with a message: the error of a `pattern` would show the expression, which tells few users what to write.
fn text(max_length: usize, pattern: &str, advice: &str) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": max_length,
        "x-kubernetes-validations": [rule(&matches(pattern), advice)],
    })
}

fn rule(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

/// Returns an expression that is true for a text that matches a pattern.
fn matches(pattern: &str) -> String {
    format!("self.matches(r'{pattern}')")
}

pub(super) fn reference(_: &mut SchemaGenerator) -> Schema {
    text(
        MAX_REFERENCE,
        REFERENCE_PATTERN,
        "write an image with a tag, a digest, or both: NAME:TAG, NAME@sha256:DIGEST or NAME:TAG@sha256:DIGEST, with 64 \
         hexadecimal digits",
    )
}

pub(super) fn start(_: &mut SchemaGenerator) -> Schema {
    text(5, "^([01][0-9]|2[0-3]):[0-5][0-9]$", "write a time of the day, such as 09:00 or 23:30")
}

fn key() -> Schema {
    text(
        MAX_KEY,
        KEY_PATTERN,
        "write a key of a label, such as role or example.com/role: at most 63 letters, digits, '-', '_' and '.', after a \
         domain in lower case or none",
    )
}

fn value() -> Schema {
    text(
        63,
        VALUE_PATTERN,
        "write a value of a label: at most 63 letters, digits, '-', '_' and '.', with a letter or a digit at both ends",
    )
}

/// Returns the schema of a label selector that selects by at least one requirement.
///
/// The keys of `matchLabels` have no pattern: the API server could not limit the cost of a rule on them.
pub(super) fn selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-validations": [{
            "rule": "(has(self.matchLabels) && size(self.matchLabels) > 0) || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
            "message": "an empty selector is invalid: write matchLabels or matchExpressions",
        }],
        "properties": {
            "matchExpressions": {
                "description": "Requirements on labels, all of which must be met.",
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "maxItems": MAX_REQUIREMENTS,
                "items": {
                    "description": "Requirement on a label.",
                    "type": "object",
                    "required": ["key", "operator"],
                    "x-kubernetes-validations": [{
                        "rule": "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
                        "message": "In and NotIn need values; Exists and DoesNotExist take none",
                    }],
                    "properties": {
                        "key": described("Name of the label.", key()),
                        "operator": {
                            "description": "Operator.",
                            "type": "string",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                        },
                        "values": {
                            "description": "Values for In and NotIn; none for other operators.",
                            "type": "array",
                            "items": value(),
                            "maxItems": MAX_REQUIREMENTS,
                            "x-kubernetes-list-type": "atomic",
                        },
                    },
                },
            },
            "matchLabels": {
                "description": "Required labels with their values.",
                "type": "object",
                "maxProperties": MAX_REQUIREMENTS,
                "additionalProperties": value(),
            },
        },
    })
}

/// Adds a description to a schema.
fn described(description: &str, mut schema: Schema) -> Schema {
    schema.insert("description".to_owned(), description.into());
    schema
}

/// Returns the schema of a number, or of a percentage.
pub(super) fn max_unavailable(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "maxLength": 16,
        "x-kubernetes-validations": [rule(
            &format!("type(self) == int ? self >= 0 && self <= {} : {}", i32::MAX, matches("^(100|[1-9]?[0-9])%$")),
            "write a number of nodes, such as 1, or a percentage from \"0%\" to \"100%\"",
        )],
    })
}

pub(super) fn duration(_: &mut SchemaGenerator) -> Schema {
    text(MAX_DURATION, DURATION_PATTERN, DURATION_ADVICE)
}

/// Returns the schema of a duration of which a condition must be true.
///
/// The condition is not evaluated for a text that is no duration, as its evaluation would be another error.
fn bounded_duration(condition: &str, advice: &str) -> Schema {
    let is_duration = matches(DURATION_PATTERN);
    json_schema!({
        "type": "string",
        "maxLength": MAX_DURATION,
        "x-kubernetes-validations": [
            rule(&is_duration, DURATION_ADVICE),
            rule(&format!("!{is_duration} || ({condition})"), advice),
        ],
    })
}

/// Returns the schema of the time limit of a stage.
pub(super) fn limit(_: &mut SchemaGenerator) -> Schema {
    let condition = "duration(self) > duration('0s')";
    bounded_duration(condition, "must be more than 0; for no limit, leave it out")
}

pub(super) fn window_length(_: &mut SchemaGenerator) -> Schema {
    let condition = "duration(self) > duration('0s') && duration(self) <= duration('168h')";
    bounded_duration(condition, "must be more than 0 and at most a week, which is 168h")
}

pub(super) fn days(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 7,
        "x-kubernetes-list-type": "set",
        "items": { "type": "string", "enum": ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] },
    })
}

pub(super) fn zone(_: &mut SchemaGenerator) -> Schema {
    let pattern = "^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$";
    text(64, pattern, "write a time zone of the IANA database, such as Europe/Berlin")
}

/// Returns the schema of the keys of hooks: keys of labels, except Tagboat's own.
pub(super) fn hook_keys(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": MAX_HOOKS,
        "x-kubernetes-list-type": "set",
        "items": {
            "type": "string",
            "maxLength": MAX_KEY,
            "x-kubernetes-validations": [
                rule(
                    &matches(KEY_PATTERN),
                    "write a key of a label, such as example.com/drained: at most 63 letters, digits, '-', '_' and '.', \
                     after a domain in lower case or none",
                ),
                rule("self.indexOf('/') <= 253", "the prefix of a key has at most 253 characters"),
                rule(
                    &format!("!self.startsWith('{OWN_PREFIX}')"),
                    "a hook cannot confirm with a key of Tagboat's own: use one of your own, such as example.com/drained",
                ),
            ],
        },
    })
}
