//! Selectors of labels written as text, as `kubectl --selector` takes them.
//!
//! An API server refuses a bad one with every request; whoever is given one on the command line says so before.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

use super::selector::{self, SelectorError};

/// Why a text is no selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorTextError {
    /// Something else should stand somewhere.
    #[error("{} where {wanted} should stand", found.as_ref().map_or("it ends".to_owned(), |found| format!("{found:?} stands")))]
    Unexpected {
        /// What stands there; nothing at the end.
        found: Option<String>,
        /// What should.
        wanted: &'static str,
    },
    /// A comparison of sizes with something that is no whole number.
    #[error("{value:?} stands behind < or >, where a whole number should stand")]
    NoNumber {
        /// What stands there.
        value: String,
    },
    /// A key or a value that no label has.
    #[error(transparent)]
    Requirement(#[from] SelectorError),
}

/// Checks a selector such as `app in (web, api), tier != test, !canary`; an empty one selects everything.
///
/// # Errors
///
/// What is wrong with it, where something is.
pub fn check(text: &str) -> Result<(), SelectorTextError> {
    let mut words = Words::of(text);
    if words.peek().is_none() {
        return Ok(());
    }
    loop {
        requirement(&mut words)?;
        match words.next() {
            None => return Ok(()),
            Some(",") => {}
            found => return Err(unexpected(found, "a comma")),
        }
    }
}

fn requirement(words: &mut Words<'_>) -> Result<(), SelectorTextError> {
    let is_negated = words.take("!");
    let key = words.name("the name of a label")?;
    if is_negated || matches!(words.peek(), None | Some(",")) {
        return checked(key, "Exists", Vec::new());
    }
    let (operator, values) = match words.next() {
        Some("=" | "==") => ("In", vec![value(words)]),
        Some("!=") => ("NotIn", vec![value(words)]),
        Some("in") => ("In", list(words)?),
        Some("notin") => ("NotIn", list(words)?),
        Some("<" | ">") => {
            let value = value(words);
            if value.parse::<i64>().is_err() {
                return Err(SelectorTextError::NoNumber { value: value.to_owned() });
            }
            ("In", vec![value])
        }
        found => return Err(unexpected(found, "a comma or one of =, ==, !=, in, notin, <, >")),
    };
    checked(key, operator, values)
}

/// A value, which may be empty.
fn value<'t>(words: &mut Words<'t>) -> &'t str {
    words.name("a value").unwrap_or_default()
}

/// Values in brackets.
fn list<'t>(words: &mut Words<'t>) -> Result<Vec<&'t str>, SelectorTextError> {
    if !words.take("(") {
        return Err(unexpected(words.next(), "an opening bracket"));
    }
    let mut values = vec![value(words)];
    loop {
        match words.next() {
            Some(")") => return Ok(values),
            Some(",") => values.push(value(words)),
            found => return Err(unexpected(found, "a comma or a closing bracket")),
        }
    }
}

fn checked(key: &str, operator: &str, values: Vec<&str>) -> Result<(), SelectorTextError> {
    let values = values.into_iter().map(str::to_owned).collect();
    let (key, operator) = (key.to_owned(), operator.to_owned());
    Ok(selector::check_requirement(LabelSelectorRequirement { key, operator, values: Some(values) })?)
}

fn unexpected(found: Option<&str>, wanted: &'static str) -> SelectorTextError {
    SelectorTextError::Unexpected { found: found.map(str::to_owned), wanted }
}

/// The names and signs of a text, one after the other.
struct Words<'t> {
    rest: &'t str,
}

impl<'t> Words<'t> {
    const SIGNS: [char; 7] = ['(', ')', ',', '!', '=', '<', '>'];

    fn of(text: &'t str) -> Self {
        Self { rest: text.trim_start() }
    }

    fn peek(&self) -> Option<&'t str> {
        let length = if ["==", "!="].iter().any(|sign| self.rest.starts_with(sign)) {
            2
        } else if self.rest.starts_with(Self::SIGNS) {
            1
        } else {
            let is_end = |c: char| c.is_whitespace() || Self::SIGNS.contains(&c);
            self.rest.find(is_end).unwrap_or(self.rest.len())
        };
        Some(&self.rest[..length]).filter(|word| !word.is_empty())
    }

    fn next(&mut self) -> Option<&'t str> {
        let word = self.peek()?;
        self.rest = self.rest[word.len()..].trim_start();
        Some(word)
    }

    /// Takes a sign if it is next.
    fn take(&mut self, sign: &str) -> bool {
        self.peek() == Some(sign) && self.next().is_some()
    }

    /// Takes what is no sign.
    fn name(&mut self, wanted: &'static str) -> Result<&'t str, SelectorTextError> {
        match self.peek() {
            Some(word) if !word.starts_with(Self::SIGNS) => Ok(self.next().unwrap_or(word)),
            found => Err(unexpected(found, wanted)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubectl_takes_is_a_selector() {
        for text in [
            "",
            "  ",
            "sharding.fluxcd.io/key=shard1",
            "a == b",
            "a!=b",
            "a=",
            "a=,b",
            "!a",
            "! a, b",
            "a in (x,y)",
            "a notin ( x , ,y)",
            "a in ()",
            "in in (in, notin)",
            "x>1,y<20",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_selector_is_said() {
        for (text, wanted) in [
            ("a b", "\"b\" stands where a comma or one of =, ==, !=, in, notin, <, > should stand"),
            ("a=b,", "it ends where the name of a label should stand"),
            ("=b", "\"=\" stands where the name of a label should stand"),
            ("!a=b", "\"=\" stands where a comma should stand"),
            ("a in x", "\"x\" stands where an opening bracket should stand"),
            ("a in (x", "it ends where a comma or a closing bracket should stand"),
            ("a in (x y)", "\"y\" stands where a comma or a closing bracket should stand"),
            ("a=b c", "\"c\" stands where a comma should stand"),
            ("a>b", "\"b\" stands behind < or >, where a whole number should stand"),
            ("/a", "key: Invalid value: \"/a\": prefix part must be non-empty"),
        ] {
            assert_eq!(check(text).map_err(|error| error.to_string()), Err(wanted.to_owned()), "{text}");
        }
        assert!(check("a=b!").is_err() && check(&format!("a={}", "b".repeat(64))).is_err());
    }
}
