//! The error document of the distribution specification: `{"errors": [{"code", "message", "detail"}]}`.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::json::{self, BoundedText};

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
    json::object(bytes, Document).map(|errors| errors.known).unwrap_or_default()
}

/// Deserializes a document of which only the errors are kept.
struct Document;

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum DocumentField {
    Errors,
    #[serde(other)]
    Other,
}

impl<'de> DeserializeSeed<'de> for Document {
    type Value = OciErrors;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<OciErrors, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document {
    type Value = OciErrors;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an error document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OciErrors, A::Error> {
        let mut errors = OciErrors::default();
        while let Some(field) = map.next_key()? {
            match field {
                DocumentField::Errors => errors = map.next_value_seed(ErrorsSeed)?,
                DocumentField::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(errors)
    }
}

/// Deserializes the member `errors` of any type.
pub(super) struct ErrorsSeed;

impl<'de> DeserializeSeed<'de> for ErrorsSeed {
    type Value = OciErrors;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<OciErrors, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl OciErrors {
    /// Errors in another form than that of the specification.
    fn unknown() -> Self {
        Self { known: Vec::new(), is_present: true }
    }
}

impl<'de> Visitor<'de> for ErrorsSeed {
    type Value = OciErrors;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<OciErrors, E> {
        Ok(OciErrors::default())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<OciErrors, E> {
        Ok(OciErrors::unknown())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<OciErrors, E> {
        Ok(OciErrors::unknown())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<OciErrors, E> {
        Ok(OciErrors::unknown())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<OciErrors, E> {
        Ok(OciErrors::unknown())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<OciErrors, E> {
        Ok(OciErrors::unknown())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OciErrors, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(OciErrors::unknown())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OciErrors, A::Error> {
        let mut errors = OciErrors::default();
        while errors.known.len() < MAX_ERRORS {
            let Some(error) = list.next_element_seed(ErrorSeed)? else { return Ok(errors) };
            errors.is_present = true;
            errors.known.extend(error);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(errors)
    }
}

/// Deserializes one error; `None` for a value that has neither code nor message.
struct ErrorSeed;

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum ErrorField {
    Code,
    Message,
    #[serde(other)]
    Other,
}

impl<'de> DeserializeSeed<'de> for ErrorSeed {
    type Value = Option<OciError>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ErrorSeed {
    type Value = Option<OciError>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut error = OciError::default();
        let text = BoundedText { max: MAX_TEXT };
        while let Some(field) = map.next_key()? {
            match field {
                ErrorField::Code => error.code = map.next_value_seed(text)?.unwrap_or_default(),
                ErrorField::Message => error.message = map.next_value_seed(text)?.unwrap_or_default(),
                ErrorField::Other => drop(map.next_value::<IgnoredAny>()?),
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
