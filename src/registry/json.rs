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
/// If the document is not an object, or does not match the seed.
pub(super) fn object<'b, S: DeserializeSeed<'b>>(bytes: &'b [u8], seed: S) -> serde_json::Result<S::Value> {
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(serde_json::Error::custom("it does not begin with a brace"));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// The value of a member that may have any type.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outline {
    Null,
    /// A string, or its begin.
    Text(String),
    EmptyList,
    /// Any other value, which is skipped without being stored.
    Other,
}

/// Deserializes an [`Outline`] with a string of at most so many bytes, cut between characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutlineSeed(pub(super) usize);

impl<'de> DeserializeSeed<'de> for OutlineSeed {
    type Value = Outline;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Outline, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OutlineSeed {
    type Value = Outline;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Outline, E> {
        Ok(Outline::Null)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Outline, E> {
        Ok(Outline::Other)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Outline, E> {
        Ok(Outline::Other)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Outline, E> {
        Ok(Outline::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Outline, E> {
        Ok(Outline::Other)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Outline, E> {
        Ok(Outline::Text(text[..text.floor_char_boundary(self.0)].to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Outline, A::Error> {
        let mut outline = Outline::EmptyList;
        while list.next_element::<IgnoredAny>()?.is_some() {
            outline = Outline::Other;
        }
        Ok(outline)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Outline, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Outline::Other)
    }
}

/// Calls a function for each string of a list, without keeping the strings.
///
/// The list may be `null`.
///
/// As with Go's `encoding/json`, `null` in the list is an empty string, and invalid Unicode is read as U+FFFD.
pub(super) struct EachText<F>(pub(super) F);

impl<'de, F: FnMut(&str)> DeserializeSeed<'de> for EachText<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(&str)> Visitor<'de> for EachText<F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of strings")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(OneText(&mut self.0))?.is_some() {}
        Ok(())
    }
}

/// Deserializes one entry of the list.
struct OneText<'f, F>(&'f mut F);

impl<'de, F: FnMut(&str)> DeserializeSeed<'de> for OneText<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, F: FnMut(&str)> Visitor<'de> for OneText<'_, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        (self.0)("");
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        // As bytes: a string may be invalid Unicode.
        deserializer.deserialize_bytes(self)
    }

    fn visit_bytes<E: Error>(self, text: &[u8]) -> Result<(), E> {
        (self.0)(&String::from_utf8_lossy(text));
        Ok(())
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
    fn a_text_is_cut_and_other_values_are_skipped() {
        let read = |text: &str| {
            let mut deserializer = serde_json::Deserializer::from_str(text);
            OutlineSeed(5).deserialize(&mut deserializer).unwrap()
        };
        assert_eq!(read("\"abcdefg\""), Outline::Text("abcde".to_owned()));
        assert_eq!(read("\"abcdé\""), Outline::Text("abcd".to_owned()));
        assert_eq!((read("null"), read("[ ]")), (Outline::Null, Outline::EmptyList));
        for other in ["true", "-1", "7", "1.5", "[1, [2]]", "{}", "{\"a\": {\"b\": 1}}"] {
            assert_eq!(read(other), Outline::Other, "{other}");
        }
    }
}
