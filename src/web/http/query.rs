//! The parameters of a request.

use std::collections::BTreeMap;

use axum::http::Uri;

use super::problem::Problem;

/// The parameters of a request that have a value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::web) struct Query(BTreeMap<&'static str, String>);

impl Query {
    /// Parses the query of a URI.
    ///
    /// An empty value counts as none, as forms of pages send it.
    ///
    /// # Errors
    ///
    /// If a parameter is not in `known`, or is given twice.
    pub(in crate::web) fn parse(uri: &Uri, known: &[&'static str]) -> Result<Self, Problem> {
        let mut values = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            let Some(name) = known.iter().find(|known| **known == name) else {
                return Err(Problem::bad_request(unknown(&name, known)));
            };
            if values.insert(*name, value.into_owned()).is_some() {
                return Err(Problem::bad_request(format!("the parameter {name} is given twice")));
            }
        }
        values.retain(|_, value| !value.is_empty());
        Ok(Self(values))
    }

    /// Returns the value of a parameter.
    pub(in crate::web) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

fn unknown(name: &str, known: &[&str]) -> String {
    if known.is_empty() {
        format!("there is no parameter {name:?}: the resource has none")
    } else {
        format!("there is no parameter {name:?}: the resource has {}", known.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<[Option<String>; 2], String> {
        let uri = format!("/path{query}").parse().unwrap();
        let query = Query::parse(&uri, &["form", "state"]).map_err(|problem| problem.to_string())?;
        Ok(["form", "state"].map(|name| query.get(name).map(str::to_owned)))
    }

    #[test]
    fn known_parameters_are_decoded() {
        let expected = ["a b&c", "ä"].map(|value| Some(value.to_owned()));
        assert_eq!(parse("?form=a+b%26c&state=%C3%A4"), Ok(expected));
        for query in ["", "?", "?&&", "?form=&state="] {
            assert_eq!(parse(query), Ok([None, None]), "{query}");
        }
    }

    #[test]
    fn unknown_and_repeated_parameters_are_errors() {
        for (query, expected) in [
            ("?from=a", "400 Bad Request: there is no parameter \"from\": the resource has form, state"),
            ("?=", "400 Bad Request: there is no parameter \"\": the resource has form, state"),
            ("?form=a&form=a", "400 Bad Request: the parameter form is given twice"),
        ] {
            assert_eq!(parse(query), Err(expected.to_owned()));
        }
    }
}
