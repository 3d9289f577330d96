//! Label selectors, held against Kubernetes' rules.
//!
//! An API server takes any text for a key or a value here, and only the controller looks closer. A selector with a
//! key that no label can have would select nothing, or everything, in silence.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::core::{Expression, Selector};

use crate::label::{key_defects, value_defects};

/// The maximum size of a selector in bytes.
///
/// It counts keys and values, with [`OVERHEAD`] for each. A selector is parsed with every run, and with every
/// change of a policy of its namespace.
const LARGEST: usize = 16 * 1024;

/// The bytes that a key or a value counts beside its own.
const OVERHEAD: usize = 4;

/// The error of a selector that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// An operator that does not exist.
    #[error("{operator:?} is not a valid label selector operator")]
    UnknownOperator {
        /// The operator as written.
        operator: String,
    },
    /// More keys and values than a selection needs.
    #[error(
        "its keys and values take more than {} KiB: select by fewer of them, or give the objects one label of their own",
        LARGEST >> 10
    )]
    TooLarge,
    /// A requirement that is invalid, with all of its defects.
    #[error("{}", join_defects(.0))]
    Requirement(Vec<RequirementDefect>),
}

/// A defect of a requirement of a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequirementDefect {
    /// A key that no label has.
    #[error("key: Invalid value: {key:?}: {}", .defects.join("; "))]
    Key {
        /// The key.
        key: String,
        /// The defect.
        defects: Vec<&'static str>,
    },
    /// An operator that needs values and has none.
    #[error("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")]
    NoValues,
    /// An operator that takes no values and has some.
    #[error(
        "values: Invalid value: {}: values set must be empty for exists and does not exist",
        serde_json::Value::from(values.as_slice())
    )]
    Values {
        /// The values.
        values: Vec<String>,
    },
    /// A value that no label has.
    #[error("values[{index}][{key}]: Invalid value: {value:?}: {}", .defects.join("; "))]
    Value {
        /// The index of the value.
        index: usize,
        /// The key that it belongs to.
        key: String,
        /// The value.
        value: String,
        /// The defect.
        defects: Vec<&'static str>,
    },
}

/// Joins defects; several are put in brackets.
fn join_defects(defects: &[RequirementDefect]) -> String {
    let texts: Vec<String> = defects.iter().map(ToString::to_string).collect();
    if let [one] = texts.as_slice() { one.clone() } else { format!("[{}]", texts.join(", ")) }
}

/// Parses a selector.
///
/// # Errors
///
/// If the selector is too large, or a requirement is invalid. Labels are checked before expressions.
pub fn parse(selector: &LabelSelector) -> Result<Selector, SelectorError> {
    if size(selector) > LARGEST {
        return Err(SelectorError::TooLarge);
    }
    let selector = selector.clone();
    let labels = selector.match_labels.into_iter().flatten().map(|(key, value)| {
        check(&key, std::slice::from_ref(&value), Vec::new())?;
        Ok(Expression::Equal(key, value))
    });
    let expressions = selector.match_expressions.into_iter().flatten().map(expression);
    labels.chain(expressions).collect()
}

/// The size of a selector as [`LARGEST`] counts it.
fn size(selector: &LabelSelector) -> usize {
    let labels = selector.match_labels.iter().flatten().flat_map(|(key, value)| [key, value]);
    let expressions = selector.match_expressions.iter().flatten();
    let expressions = expressions.flat_map(|requirement| {
        let values = requirement.values.iter().flatten();
        [&requirement.key, &requirement.operator].into_iter().chain(values)
    });
    labels.chain(expressions).map(|text| text.len() + OVERHEAD).sum()
}

fn expression(requirement: LabelSelectorRequirement) -> Result<Expression, SelectorError> {
    let LabelSelectorRequirement { key, operator, values } = requirement;
    let values = values.unwrap_or_default();
    let is_set = matches!(operator.as_str(), "In" | "NotIn");
    let mut defects = Vec::new();
    if is_set && values.is_empty() {
        defects.push(RequirementDefect::NoValues);
    } else if !is_set && !values.is_empty() {
        defects.push(RequirementDefect::Values { values: values.clone() });
    }
    let make = match operator.as_str() {
        "In" => |key, values: Vec<String>| Expression::In(key, values.into_iter().collect()),
        "NotIn" => |key, values: Vec<String>| Expression::NotIn(key, values.into_iter().collect()),
        "Exists" => |key, _| Expression::Exists(key),
        "DoesNotExist" => |key, _| Expression::DoesNotExist(key),
        _ => return Err(SelectorError::UnknownOperator { operator }),
    };
    check(&key, &values, defects)?;
    Ok(make(key, values))
}

/// Checks key and values; `defects` are those of the number of values.
fn check(key: &str, values: &[String], defects: Vec<RequirementDefect>) -> Result<(), SelectorError> {
    let mut all = Vec::new();
    let of_key = key_defects(key);
    if !of_key.is_empty() {
        all.push(RequirementDefect::Key { key: key.to_owned(), defects: of_key });
    }
    all.extend(defects);
    for (index, value) in values.iter().enumerate() {
        let defects = value_defects(value);
        if !defects.is_empty() {
            let (key, value) = (key.to_owned(), value.clone());
            all.push(RequirementDefect::Value { index, key, value, defects });
        }
    }
    if all.is_empty() { Ok(()) } else { Err(SelectorError::Requirement(all)) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn message(selector: serde_json::Value) -> String {
        parse(&serde_json::from_value(selector).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn valid_requirements_become_a_selector() {
        let selector = json!({
            "matchLabels": {"team": "x", "tier": ""},
            "matchExpressions": [
                {"key": "example.com/stage", "operator": "NotIn", "values": ["test", "dev"]},
                {"key": "stage", "operator": "In", "values": ["live"]},
                {"key": "a", "operator": "Exists"},
                {"key": "b", "operator": "DoesNotExist", "values": []},
            ],
        });
        let selector = parse(&serde_json::from_value(selector).unwrap()).unwrap();
        assert_eq!(
            selector.to_string(),
            "team=x,tier=,example.com/stage notin (dev,test),stage in (live),a,!b"
        );
    }

    /// One of 250,000 values was parsed for each change of a policy.
    #[test]
    fn a_selector_beyond_the_bound_is_refused() {
        let of = |count: usize, value: &str| {
            let values = vec![value; count];
            json!({"matchExpressions": [{"key": "team", "operator": "In", "values": values}]})
        };
        assert!(parse(&serde_json::from_value(of(1_000, "some-team-00")).unwrap()).is_ok());
        let labels: BTreeMap<String, String> =
            (0..2_000).map(|number| (format!("a{number}"), String::new())).collect();
        for selector in [of(250_000, ""), of(1, &"x".repeat(20_000)), json!({"matchLabels": labels})] {
            assert_eq!(
                message(selector),
                "its keys and values take more than 16 KiB: select by fewer of them, or give the objects one label of \
                 their own"
            );
        }
    }

    #[test]
    fn invalid_selectors_are_refused_with_the_messages_of_kubernetes() {
        let long = "x".repeat(64);
        let name = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        for (selector, expected) in [
            (
                json!({"matchExpressions": [{"key": "a b", "operator": "Bogus"}]}),
                "\"Bogus\" is not a valid label selector operator".to_owned(),
            ),
            (json!({"matchLabels": {"a b": "x"}}), format!("key: Invalid value: \"a b\": name part {name}")),
            (
                json!({"matchLabels": {"a": long}}),
                format!("values[0][a]: Invalid value: \"{long}\": must be no more than 63 bytes"),
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
                "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
                    .to_owned(),
            ),
            (
                json!({"matchExpressions": [{"key": "", "operator": "Exists", "values": ["x", "y"]}]}),
                format!(
                    "[key: Invalid value: \"\": name part must be non-empty; name part {name}, values: Invalid value: \
                     [\"x\",\"y\"]: values set must be empty for exists and does not exist]"
                ),
            ),
        ] {
            assert_eq!(message(selector), expected);
        }
    }
}
