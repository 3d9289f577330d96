//! The error document of the distribution specification: `{"errors": [{"code", "message", "detail"}]}`.

use serde_json::Value;

/// The number of errors of one document that are kept.
const MAX_ERRORS: usize = 8;

/// The bytes of a code, or of a message, that are kept.
const MAX_TEXT: usize = 2048;

/// One error, without its `detail`, which may have any content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OciError {
    /// The code, such as `NAME_UNKNOWN`.
    pub code: String,
    /// The message.
    pub message: String,
}

/// Parses the errors of a document; returns none if it is not an error document.
///
/// The document must be small: parsing takes many times its memory.
pub fn parse(bytes: &[u8]) -> Vec<OciError> {
    let document: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let errors = document["errors"].as_array().into_iter().flatten();
    let errors =
        errors.map(|error| OciError { code: text(&error["code"]), message: text(&error["message"]) });
    errors.filter(|error| *error != OciError::default()).take(MAX_ERRORS).collect()
}

/// Returns the begin of a string; an empty one for any other value.
fn text(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: &str, message: &str) -> OciError {
        OciError { code: code.to_owned(), message: message.to_owned() }
    }

    #[test]
    fn codes_and_messages_are_kept_and_details_are_not() {
        for (body, expected) in [
            (r#"{"errors":[{"code":"A","message":"one","detail":{"a":[1]}}]}"#, vec![error("A", "one")]),
            (r#"{"errors":[{"message":"slow down"},{"code":7},"x",null,[1]]}"#, vec![error("", "slow down")]),
            (r#"{"errors":"secret"}"#, vec![]),
            (r#"{"errors":{"code":"A"}}"#, vec![]),
            (r#"{"errors":[]}"#, vec![]),
            (r#"{"token":"secret"}"#, vec![]),
            ("[]", vec![]),
            ("<html>", vec![]),
            (r#"{"errors":[{"code":"A"}"#, vec![]),
        ] {
            assert_eq!(parse(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn number_and_length_are_bounded() {
        let one = format!(r#"{{"code":"{}","message":"é"}}"#, "x".repeat(100_000));
        let many = vec![one; 100].join(",");
        let errors = parse(format!(r#"{{"errors":[{many}]}}"#).as_bytes());
        assert_eq!(errors.len(), MAX_ERRORS);
        assert!(errors.iter().all(|error| error.code.len() == MAX_TEXT && error.message == "é"));
    }
}
