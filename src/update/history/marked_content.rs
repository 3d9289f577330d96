//! The marked values of one content of a file.
//!
//! Most versions of a file differ in marked values only. Such a version is not parsed: its values are found at the byte
//! ranges of the version beside it.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use memchr::memmem;

use crate::update::marker::{self, QUOTED_TOKEN};
use crate::update::object::{self, ObjectTracker, Part};
use crate::update::report::ReadError;
use crate::update::result::ObjectIdentifier;
use crate::update::scope::is_yaml_name;
use crate::yaml::{Limits, Scalar, Step, Style, Visit, Walk, YamlError, YamlErrorKind};

/// The identity of a marker within a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MarkerKey {
    /// The object that contains the marker.
    pub object: ObjectIdentifier,
    /// The setter as written, such as `default:podinfo:tag`.
    pub setter: String,
    /// The number of markers above it in the file with the same object and setter.
    pub ordinal: usize,
}

/// A scalar with a marker.
#[derive(Debug, Clone)]
pub struct MarkedValue {
    /// The identity of the marker; versions of a file share it.
    pub key: Rc<MarkerKey>,
    /// The value; empty if the key or list item has none.
    pub value: Rc<str>,
    /// The line of the value, counted from 1.
    pub line: usize,
    /// The bytes of the value in the content.
    ///
    /// `None` if another value there could change more than the value.
    span: Option<Range<usize>>,
}

/// A content of a file with its marked values.
#[derive(Debug, Clone, Default)]
pub struct MarkedContent {
    /// The content; empty if it has no marked value.
    bytes: Vec<u8>,
    /// The marked values in the order of their positions.
    values: Vec<MarkedValue>,
}

/// Returns true if an update reads files of this name.
pub fn is_file_name(name: &[u8]) -> bool {
    is_yaml_name(name)
}

impl MarkedContent {
    /// Finds the marked values of a content.
    ///
    /// A content without the token is not parsed, as in an update.
    ///
    /// # Errors
    ///
    /// If the content has the token and is not YAML within the limits.
    pub fn parse(bytes: Vec<u8>, limits: &Limits) -> Result<Self, ReadError> {
        if memmem::find(&bytes, QUOTED_TOKEN).is_none() {
            return Ok(Self::default());
        }
        if bytes.len() > limits.file_size {
            let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            return Err(ReadError::too_large(size, limits.file_size));
        }
        let source = std::str::from_utf8(&bytes).map_err(|error| YamlError::not_utf8(&bytes, error))?;
        let values = marked_values(source, limits)?;
        Ok(if values.is_empty() { Self::default() } else { Self { bytes, values } })
    }

    /// Returns this content with other values, if `bytes` differ from it in nothing else.
    ///
    /// The new values have characters that mean the same in every style of a scalar. So the bytes would be parsed
    /// alike.
    pub fn with_other_values(&self, bytes: &[u8]) -> Option<Self> {
        if self.values.is_empty() {
            return None;
        }
        let mut values = self.values.clone();
        let (mut old_at, mut new_at) = (0, 0);
        for value in &mut values {
            let Some(span) = value.span.clone() else { continue };
            let before = &self.bytes[old_at..span.start];
            let rest = bytes.get(new_at..)?.strip_prefix(before)?;
            let length = rest.iter().take_while(|byte| is_word_byte(**byte)).count();
            let word = &rest[..length];
            let start = new_at + before.len();
            if word != &self.bytes[span.clone()] {
                value.value = word_of(word)?.into();
            }
            (old_at, new_at) = (span.end, start + length);
            value.span = Some(start..new_at);
        }
        let is_same_end = bytes.get(new_at..)? == &self.bytes[old_at..];
        is_same_end.then(|| Self { bytes: bytes.to_vec(), values })
    }

    /// The marked values in the order of their positions.
    pub fn values(&self) -> &[MarkedValue] {
        &self.values
    }

    /// The approximate size in memory, in bytes.
    pub fn size(&self) -> usize {
        size_of::<Self>() + self.bytes.len() + self.values.len() * (size_of::<MarkedValue>() + 64)
    }
}

/// A marked value of a document whose object is not yet known.
struct Open {
    part: Part,
    setter: String,
    value: Rc<str>,
    line: usize,
    span: Option<Range<usize>>,
}

fn marked_values(source: &str, limits: &Limits) -> Result<Vec<MarkedValue>, YamlError> {
    let mut walk = Walk::new(source, limits);
    let mut values = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut objects = ObjectTracker::default();
    let mut ordinals: HashMap<(ObjectIdentifier, String), usize> = HashMap::new();
    loop {
        let visit = walk.next_visit()?;
        match &visit {
            Some(Visit::Value(scalar, comment)) => {
                objects.record(walk.path(), &scalar.value);
                let marker = comment.as_ref().and_then(|comment| marker::parse(comment.text(source)).ok());
                if let Some(marker) = marker {
                    let (part, _) = object::split(walk.path());
                    let span = replaceable(source, walk.path(), scalar);
                    let (value, line) = (scalar.value.as_ref().into(), scalar.line);
                    open.push(Open { part, setter: marker.setter, value, line, span });
                }
            }
            Some(Visit::Stray(_)) => {}
            Some(Visit::DocumentEnd) | None => {
                let objects = std::mem::take(&mut objects);
                for Open { part, setter, value, line, span } in open.drain(..) {
                    let object = objects.identify(part);
                    let count = ordinals.entry((object.clone(), setter.clone())).or_default();
                    let key = Rc::new(MarkerKey { object, setter, ordinal: *count });
                    *count += 1;
                    values.push(MarkedValue { key, value, line, span });
                }
            }
        }
        if values.len() + open.len() > limits.markers {
            let line = open.last().map_or(1, |open| open.line);
            let cause = YamlErrorKind::TooManyMarkers { limit: limits.markers };
            return Err(YamlError { line, column: 1, cause });
        }
        if visit.is_none() {
            return Ok(values);
        }
    }
}

/// Returns the bytes of a value that another word could replace.
///
/// Names of objects are excluded, since they identify other values.
fn replaceable(source: &str, path: &[Step<'_>], scalar: &Scalar<'_>) -> Option<Range<usize>> {
    let is_identity = matches!(path, [.., Step::Key(key)]
        if matches!(key.as_ref(), "apiVersion" | "kind" | "name" | "namespace"));
    let Range { start, end } = scalar.span;
    let span = match scalar.style {
        Style::Plain => start..end,
        Style::SingleQuoted | Style::DoubleQuoted => start + 1..end.checked_sub(1)?,
        Style::Literal | Style::Folded | Style::Absent => return None,
    };
    let text = source.get(span.clone())?;
    (!is_identity && text == scalar.value && word_of(text.as_bytes()).is_some()).then_some(span)
}

/// Returns true for a byte that is text in plain and quoted scalars.
fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._/:@+-".contains(&byte)
}

/// Returns bytes as text, if they are the same scalar with and without quotes.
fn word_of(bytes: &[u8]) -> Option<&str> {
    let is_word = bytes.iter().all(|byte| is_word_byte(*byte))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric);
    if is_word { std::str::from_utf8(bytes).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: &str = r#"# {"$imagepolicy": "n:p:tag"}"#;

    fn parse(text: &str) -> MarkedContent {
        MarkedContent::parse(text.replace('@', M).into_bytes(), &Limits::default()).unwrap()
    }

    fn show(content: &MarkedContent) -> Vec<(String, String, usize, usize)> {
        let row = |value: &MarkedValue| {
            let MarkerKey { object, ordinal, .. } = &*value.key;
            (object.to_string(), value.value.to_string(), value.line, *ordinal)
        };
        content.values().iter().map(row).collect()
    }

    #[test]
    fn values_have_their_object_line_and_ordinal() {
        let text = "kind: A\nmetadata: {name: x, namespace: y}\na: v1 @\nb: 'v2' @\nc: @\n---\nkind: B\na: |- @\n  v3\n";
        let row =
            |object: &str, value: &str, line, ordinal| (object.to_owned(), value.to_owned(), line, ordinal);
        assert_eq!(
            show(&parse(text)),
            [
                row("A/y/x", "v1", 3, 0),
                row("A/y/x", "v2", 4, 1),
                row("A/y/x", "", 5, 2),
                row("B//", "v3", 8, 0)
            ]
        );
        for without in ["a: v1\n", "@\na: v1\n", "a: {b: v1} @\n", "a: [ # no token\n"] {
            assert!(parse(without).values().is_empty(), "{without:?}");
        }
        for bad in [&b"a: [ # {\"$imagepolicy\": \"n:p\"}"[..], b"a: \xff # {\"$imagepolicy\": \"n:p\"}"] {
            assert!(MarkedContent::parse(bad.to_vec(), &Limits::default()).is_err());
        }
    }

    /// A derived content has exactly the values that its text has when it is parsed.
    #[test]
    fn a_version_with_other_values_is_not_parsed() {
        for (before, after, is_derived) in [
            ("a: v1 @\n", "a: v2-long.1 @\n", true),
            ("a: v1 @\nb: x\nc: v1 @\n", "a: v1 @\nb: x\nc: v3 @\n", true),
            ("a: \"1.10\" @\n", "a: \"1.9\" @\n", true),
            ("a: {b: v1, c: v1} @\n", "a: {b: v2, c: v1} @\n", false),
            ("a: [v1, @\n v1] @\n", "a: [v2, @\n v1] @\n", true),
            ("a: v1 @\n", "a: v1 @\n", true),
            ("kind: A\na: v1 @\n", "kind: B\na: v1 @\n", false),
            ("kind: v1 @\n", "kind: v2 @\n", false),
            ("- name: v1 @\n- v1 @\n", "- name: v2 @\n- v1 @\n", false),
            ("- name: v1 @\n- v1 @\n", "- name: v1 @\n- v2 @\n", true),
            ("a: v1 @\n", "a: \"v2\" @\n", false),
            ("a: v1 @\n", "a: v2: @\n", false),
            ("a: v1 @\n", "a: -v2 @\n", false),
            ("a: v1 @\n", "a: @\n", false),
            ("a: v1 @\n", "a: v1 b @\n", false),
            ("a: v1 @\n", "a: v1 @\nb: c\n", false),
            ("a: v1 @\n", "a: v1#x @\n", false),
            ("a: |- @\n  v1\n", "a: |- @\n  v2\n", false),
            ("a: 'it''s' @\n", "a: 'v2' @\n", false),
        ] {
            let Ok(after) = MarkedContent::parse(after.replace('@', M).into_bytes(), &Limits::default())
            else {
                let derived = parse(before).with_other_values(after.replace('@', M).as_bytes());
                assert!(derived.is_none(), "{before:?} {after:?}");
                continue;
            };
            let derived = parse(before).with_other_values(&after.bytes);
            assert_eq!(derived.as_ref().map(show), is_derived.then(|| show(&after)), "{before:?}");
            if let Some(derived) = derived {
                let spans = |content: &MarkedContent| -> Vec<_> {
                    content.values.iter().map(|value| value.span.clone()).collect()
                };
                assert_eq!(spans(&derived), spans(&after), "{before:?}");
            }
        }
    }
}
