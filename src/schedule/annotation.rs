//! The YAML of an annotation.

use serde::de::DeserializeOwned;

/// Parses the YAML of an annotation, or returns the position and the defect.
///
/// The size of annotations is bounded by the API server, and the parser bounds nesting and aliases.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        // The parser's message may end with the position and with names of its options.
        let message = error.to_string();
        let message = message.split([';', '\n']).next().unwrap_or_default();
        let message = message.split(", set DuplicateKeyPolicy").next().unwrap_or_default();
        let message = message.split(" at line ").next().unwrap_or_default();
        match error.location() {
            Some(location) => format!("line {}, column {}: {message}", location.line(), location.column()),
            None => message.to_owned(),
        }
    })
}
