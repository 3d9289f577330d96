//! JSON of servers: visitors that keep a bounded part, and errors without quotations.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

/// Describes a JSON error by its kind and place.
///
/// The parser's own message would quote the document.
pub(super) fn describe(error: &serde_json::Error) -> String {
    let kind = match error.classify() {
        Category::Io | Category::Syntax => "it is no JSON",
        Category::Eof => "the JSON ends too early",
        Category::Data => "a member has an unexpected type",
    };
    match (error.line(), error.column()) {
        (0, _) => kind.to_owned(),
        (line, column) => format!("{kind}, at line {line} column {column}"),
    }
}

/// Deserializes a whole document, which must be an object.
///
/// Serde would accept a list with all members in order as well.
///
/// # Errors
///
/// When the document is not an object, or does not match the seed.
pub(super) fn object<'b, S: DeserializeSeed<'b>>(bytes: &'b [u8], seed: S) -> serde_json::Result<S::Value> {
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(serde_json::Error::custom("it does not begin with a brace"));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// A string of at most `max` bytes, cut between characters; `None` for a value of another type.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoundedText {
    /// The maximum in bytes.
    pub(super) max: usize,
}

impl<'de> DeserializeSeed<'de> for BoundedText {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BoundedText {
    type Value = Option<String>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text[..text.floor_char_boundary(self.max)].to_owned()))
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

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

/// Folds the elements of a list, or `null`, into a value, without keeping them.
pub(super) struct Fold<T, V, F> {
    value: V,
    fold: F,
    element: PhantomData<T>,
}

impl<T, V, F: FnMut(&mut V, T)> Fold<T, V, F> {
    pub(super) fn new(value: V, fold: F) -> Self {
        Self { value, fold, element: PhantomData }
    }
}

impl<'de, T: serde::Deserialize<'de>, V, F: FnMut(&mut V, T)> DeserializeSeed<'de> for Fold<T, V, F> {
    type Value = V;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: serde::Deserialize<'de>, V, F: FnMut(&mut V, T)> Visitor<'de> for Fold<T, V, F> {
    type Value = V;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_unit<E: Error>(self) -> Result<V, E> {
        Ok(self.value)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<V, A::Error> {
        while let Some(element) = list.next_element()? {
            (self.fold)(&mut self.value, element);
        }
        Ok(self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_tells_the_place_and_quotes_nothing() {
        let read =
            |text: &str| object(text.as_bytes(), PhantomData::<std::collections::BTreeMap<String, u8>>);
        for (text, expected) in [
            ("{\"a\": 1", "the JSON ends too early, at line 1 column 7"),
            ("{secret", "it is no JSON, at line 1 column 2"),
            ("{\"a\": \"secret\"}", "a member has an unexpected type, at line 1 column 14"),
            ("[\"secret\"]", "a member has an unexpected type"),
            ("", "a member has an unexpected type"),
        ] {
            assert_eq!(describe(&read(text).unwrap_err()), expected, "{text}");
        }
        assert!(read(" {\"a\": 1} ").is_ok());
        assert!(read("{} {}").is_err());
    }

    #[test]
    fn a_text_is_cut_and_other_values_are_none() {
        let read = |text: &str| {
            let mut deserializer = serde_json::Deserializer::from_str(text);
            BoundedText { max: 5 }.deserialize(&mut deserializer).unwrap()
        };
        assert_eq!(read("\"abcdefg\"").as_deref(), Some("abcde"));
        assert_eq!(read("\"abcdé\"").as_deref(), Some("abcd"));
        for other in ["null", "true", "-1", "7", "1.5", "[1, [2]]", "{\"a\": {\"b\": 1}}"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
