//! The error document of the distribution specification: `{"errors": [{"code", "message", "detail"}]}`.

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::json::{self, Any, AnyValue, BoundedText};

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

/// The member `errors` of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OciErrors {
    /// The first errors that have a code or a message.
    pub known: Vec<OciError>,
    /// Set if the member has any value but `null` and an empty list.
    pub is_present: bool,
}

/// Parses the errors of a document; returns none if it is not an error document.
pub fn parse(bytes: &[u8]) -> Vec<OciError> {
    json::object(bytes, Any(Document)).map(|errors| errors.known).unwrap_or_default()
}

/// Keeps the errors of a document.
struct Document;

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum DocumentField {
    Errors,
    #[serde(other)]
    Other,
}

impl AnyValue for Document {
    type Kept = OciErrors;

    fn other(self) -> OciErrors {
        OciErrors::default()
    }

    fn object<'de, A: MapAccess<'de>>(self, mut object: A) -> Result<OciErrors, A::Error> {
        let mut errors = OciErrors::default();
        while let Some(field) = object.next_key()? {
            match field {
                DocumentField::Errors => errors = object.next_value_seed(Any(ErrorsMember))?,
                DocumentField::Other => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        Ok(errors)
    }
}

/// Keeps the member `errors` of any type.
pub(super) struct ErrorsMember;

impl AnyValue for ErrorsMember {
    type Kept = OciErrors;

    /// Returns errors in another form than that of the specification.
    fn other(self) -> OciErrors {
        OciErrors { known: Vec::new(), is_present: true }
    }

    fn null(self) -> OciErrors {
        OciErrors::default()
    }

    fn list<'de, A: SeqAccess<'de>>(self, mut list: A) -> Result<OciErrors, A::Error> {
        let mut errors = OciErrors::default();
        while errors.known.len() < MAX_ERRORS {
            let Some(error) = list.next_element_seed(Any(OneError))? else { return Ok(errors) };
            errors.is_present = true;
            errors.known.extend(error);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(errors)
    }
}

/// Keeps one error; `None` for a value that has neither code nor message.
struct OneError;

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum ErrorField {
    Code,
    Message,
    #[serde(other)]
    Other,
}

impl AnyValue for OneError {
    type Kept = Option<OciError>;

    fn other(self) -> Self::Kept {
        None
    }

    fn object<'de, A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Kept, A::Error> {
        let mut error = OciError::default();
        let text = Any(BoundedText { max: MAX_TEXT });
        while let Some(field) = object.next_key()? {
            match field {
                ErrorField::Code => error.code = object.next_value_seed(text)?.unwrap_or_default(),
                ErrorField::Message => error.message = object.next_value_seed(text)?.unwrap_or_default(),
                ErrorField::Other => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Some(error).filter(|error| *error != OciError::default()))
    }
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
