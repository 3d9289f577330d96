//! Label selectors as text, in the form that `kubectl --selector` accepts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::core::{Expression, Selector};

use tagboat_api::selector::{self, SelectorError};

/// The error of a text that is not a label selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidSelector {
    /// A requirement in none of the forms.
    #[error("{requirement:?} is not a requirement: write a=b, a!=b, a in (b,c), a notin (b,c), a or !a")]
    Form {
        /// The requirement as written.
        requirement: String,
    },
    /// A key or a value that no label has.
    #[error("{0}")]
    Requirement(#[source] SelectorError),
}

/// Parses a selector: requirements separated by commas, all of which must hold.
pub(super) fn parse(text: &str) -> Result<Selector, InvalidSelector> {
    let mut expressions = Vec::new();
    for requirement in split(text) {
        let parsed = parse_requirement(requirement.trim());
        let invalid = || InvalidSelector::Form { requirement: requirement.trim().to_owned() };
        let requirement = parsed.ok_or_else(invalid)?;
        let alone = LabelSelector { match_labels: None, match_expressions: Some(vec![requirement]) };
        let selector = selector::parse(&alone).map_err(InvalidSelector::Requirement)?;
        expressions.push(selector);
    }
    Ok(expressions.into_iter().flatten().collect::<Vec<Expression>>().into_iter().collect())
}

/// Splits a selector at the commas that are not between parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut is_list) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '(' => is_list = true,
            ')' => is_list = false,
            ',' if !is_list => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Parses one requirement; keys and values are checked later.
fn parse_requirement(text: &str) -> Option<LabelSelectorRequirement> {
    let requirement = |key: &str, operator: &str, values: Option<Vec<String>>| {
        let key = key.trim();
        let is_word = !key.is_empty() && !key.contains(|c: char| c.is_whitespace() || "=!()<>".contains(c));
        is_word.then(|| LabelSelectorRequirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values,
        })
    };
    let one = |value: &str| {
        let value = value.trim();
        (!value.contains(|c: char| c.is_whitespace() || "=!()<>,".contains(c)))
            .then(|| vec![value.to_owned()])
    };
    if let Some((key, value)) = text.split_once("!=") {
        return requirement(key, "NotIn", Some(one(value)?));
    }
    if let Some((key, value)) = text.split_once('=') {
        return requirement(key, "In", Some(one(value.strip_prefix('=').unwrap_or(value))?));
    }
    if let Some(list) = text.strip_suffix(')') {
        let (head, values) = list.split_once('(')?;
        let mut words = head.split_whitespace();
        let operator = match (words.next(), words.next(), words.next()) {
            (Some(key), Some("in"), None) => (key, "In"),
            (Some(key), Some("notin"), None) => (key, "NotIn"),
            _ => return None,
        };
        let values: Option<Vec<String>> = values.split(',').map(|value| Some(one(value)?.concat())).collect();
        return requirement(operator.0, operator.1, Some(values?));
    }
    match text.strip_prefix('!') {
        Some(key) => requirement(key, "DoesNotExist", None),
        None => requirement(text, "Exists", None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_requirements_are_parsed() {
        for (text, expected) in [
            ("a=b", "a in (b)"),
            ("a==b", "a in (b)"),
            ("a = b", "a in (b)"),
            ("a=", "a in ()"),
            ("a!=b", "a notin (b)"),
            ("a in (b, c)", "a in (b,c)"),
            ("a  notin (b)", "a notin (b)"),
            ("example.com/a in(b,)", "example.com/a in (,b)"),
            ("a", "a"),
            ("!a", "!a"),
            ("! a , b=c,d in (e,f) ,g", "!a,b in (c),d in (e,f),g"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "", ",", "a,", "a b", "a=b c", "a===b", "a=b=c", "a!b", "a in b", "a in (b", "a is (b)", "a>1",
            "(a)",
        ] {
            assert!(matches!(parse(text), Err(InvalidSelector::Form { .. })), "{text}");
        }
        for text in ["a b/c=d", "a=-", "-a", "a/b/c", "a in (b,ä)"] {
            let error = parse(text).unwrap_err();
            assert!(!error.to_string().is_empty(), "{text}");
        }
    }
}
