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

impl AnyValue for BoundedText {
    type Kept = Option<String>;

    fn other(self) -> Self::Kept {
        None
    }

    fn string(self, text: &str) -> Self::Kept {
        Some(text[..text.floor_char_boundary(self.max)].to_owned())
    }
}

/// Keeps a part of a value of any type; the rest is skipped without being stored.
pub(super) trait AnyValue: Sized {
    /// The part that is kept.
    type Kept;

    /// Returns the result for values of all other types.
    fn other(self) -> Self::Kept;

    /// Keeps `null`.
    fn null(self) -> Self::Kept {
        self.other()
    }

    /// Keeps a string.
    fn string(self, _: &str) -> Self::Kept {
        self.other()
    }

    /// Keeps a part of a list.
    fn list<'de, A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Kept, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self.other())
    }

    /// Keeps a part of an object.
    fn object<'de, A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Kept, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self.other())
    }
}

/// Deserializes a value of any type, of which a part is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Any<K>(pub(super) K);

impl<'de, K: AnyValue> DeserializeSeed<'de> for Any<K> {
    type Value = K::Kept;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<K::Kept, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, K: AnyValue> Visitor<'de> for Any<K> {
    type Value = K::Kept;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<K::Kept, E> {
        Ok(self.0.null())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<K::Kept, E> {
        Ok(self.0.other())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<K::Kept, E> {
        Ok(self.0.other())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<K::Kept, E> {
        Ok(self.0.other())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<K::Kept, E> {
        Ok(self.0.other())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<K::Kept, E> {
        Ok(self.0.string(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<K::Kept, A::Error> {
        self.0.list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<K::Kept, A::Error> {
        self.0.object(object)
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
            Any(BoundedText { max: 5 }).deserialize(&mut deserializer).unwrap()
        };
        assert_eq!(read("\"abcdefg\"").as_deref(), Some("abcde"));
        assert_eq!(read("\"abcdé\"").as_deref(), Some("abcd"));
        for other in ["null", "true", "-1", "7", "1.5", "[1, [2]]", "{\"a\": {\"b\": 1}}"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
