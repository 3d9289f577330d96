//! Parses one page of a list of tags, keeping only the tags.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::error_document::{self, OciError};
use super::json::{self, EachText, Outline, OutlineSeed};
use crate::reference::Tag;

/// The longest entry, in bytes, after which the next page can be requested.
const MAX_LAST: usize = 1024;

/// The largest document, in bytes, whose errors are parsed.
const MAX_ERROR_DOCUMENT: usize = 64 * 1024;

/// The limits of a list of tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TagLimits {
    /// The maximum number of different tags.
    pub tags: usize,
    /// The maximum of their length together, in bytes.
    pub bytes: usize,
}

/// The different tags of one page or several pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TagSet {
    /// The tags.
    pub tags: HashSet<Box<str>>,
    /// Their length together, in bytes.
    pub bytes: usize,
}

/// One page of a list of tags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TagPage {
    /// The tags.
    pub found: TagSet,
    /// The number of entries, including those that are no tags.
    pub entries: usize,
    /// The number of entries that are no tags.
    pub left_out: usize,
    /// The last entry, if it is short enough to be part of an address.
    pub last: Option<String>,
}

/// Errors of pages without tags.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The document is not a list of tags.
    #[error("it is not a list of tags ({defect})")]
    NotATagList {
        /// The defect, without a quotation of the document.
        defect: String,
    },
    /// The tags exceed the limits.
    #[error("it has too many tags")]
    TooManyTags,
    /// The document has errors in place of tags.
    #[error("it has errors and no tags")]
    Errors(Vec<OciError>),
}

impl TagSet {
    /// Adds a tag and returns whether it is new; `None` if it exceeds the limits.
    pub fn add(&mut self, tag: impl AsRef<str> + Into<Box<str>>, limits: TagLimits) -> Option<bool> {
        if self.tags.contains(tag.as_ref()) {
            return Some(false);
        }
        self.bytes += tag.as_ref().len();
        self.tags.insert(tag.into());
        (self.tags.len() <= limits.tags && self.bytes <= limits.bytes).then_some(true)
    }

    /// Adds the tags of a page.
    /// The result is `true` if one of them is new, and `None` if they exceed the limits.
    pub fn merge(&mut self, page: Self, limits: TagLimits) -> Option<bool> {
        if self.tags.is_empty() {
            *self = page;
            return (self.tags.len() <= limits.tags && self.bytes <= limits.bytes)
                .then_some(!self.tags.is_empty());
        }
        let mut is_news = false;
        for tag in page.tags {
            is_news |= self.add(tag, limits)?;
        }
        Some(is_news)
    }
}

/// Parses a page: `{"tags": [...]}`.
///
/// Entries that are no tags are counted and dropped; so is `null`, which Go reads as an empty string. As with Go's
/// `encoding/json`, member names match in any case, the last of several members counts, and invalid Unicode in a
/// string is read as U+FFFD.
///
/// # Errors
///
/// If the document is not a list of tags, has more tags than `limits` allows, or has errors and no tags.
pub fn parse(bytes: &[u8], limits: TagLimits) -> Result<TagPage, PageError> {
    let mut reader = PageReader { limits, page: TagPage::default(), is_full: false, has_errors: false };
    match json::object(bytes, &mut reader) {
        _ if reader.is_full => Err(PageError::TooManyTags),
        Err(error) => Err(PageError::NotATagList { defect: json::describe(&error) }),
        Ok(()) if reader.has_errors && reader.page.entries == 0 => {
            let document = Some(bytes).filter(|bytes| bytes.len() <= MAX_ERROR_DOCUMENT);
            Err(PageError::Errors(document.map(error_document::parse).unwrap_or_default()))
        }
        Ok(()) => Ok(reader.page),
    }
}

/// Fills a page while the document is parsed.
struct PageReader {
    limits: TagLimits,
    page: TagPage,
    /// Set if there are too many tags.
    is_full: bool,
    /// Set if the member `errors` has any value but `null` and an empty list.
    has_errors: bool,
}

enum Field {
    Tags,
    Errors,
    Other,
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // As bytes: a string may be invalid Unicode.
        deserializer.deserialize_bytes(FieldVisitor)
    }
}

struct FieldVisitor;

impl Visitor<'_> for FieldVisitor {
    type Value = Field;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a member")
    }

    fn visit_bytes<E: Error>(self, name: &[u8]) -> Result<Field, E> {
        Ok(match name {
            name if name.eq_ignore_ascii_case(b"tags") => Field::Tags,
            name if name.eq_ignore_ascii_case(b"errors") => Field::Errors,
            _ => Field::Other,
        })
    }
}

impl<'de> DeserializeSeed<'de> for &mut PageReader {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut PageReader {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with tags")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key()? {
            match field {
                Field::Tags => {
                    self.page = TagPage::default();
                    map.next_value_seed(EachText(|tag: &str| self.add(tag)))?;
                }
                Field::Errors => {
                    let errors = map.next_value_seed(OutlineSeed(0))?;
                    self.has_errors = !matches!(errors, Outline::Null | Outline::EmptyList);
                }
                Field::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl PageReader {
    /// Adds an entry of the list, unless there were too many before it.
    fn add(&mut self, text: &str) {
        let Self { limits, page, is_full, .. } = self;
        if *is_full {
            return;
        }
        page.entries += 1;
        match &mut page.last {
            // The buffer is reused: a page has very many entries.
            Some(last) if text.len() <= MAX_LAST => {
                last.clear();
                last.push_str(text);
            }
            last => *last = (text.len() <= MAX_LAST).then(|| text.to_owned()),
        }
        if !Tag::is_well_formed(text) {
            page.left_out += 1;
        } else if page.found.add(text, *limits).is_none() {
            *is_full = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: TagLimits = TagLimits { tags: 4, bytes: 40 };

    fn tags(page: &TagPage) -> Vec<&str> {
        let mut tags: Vec<&str> = page.found.tags.iter().map(|tag| &**tag).collect();
        tags.sort_unstable();
        tags
    }

    #[test]
    fn tags_are_kept_and_other_names_are_counted() {
        let long = "x".repeat(129);
        let huge = "x".repeat(1025);
        for (list, expected, left_out, last) in [
            (r#"["1.0.0", "v2", "1.0.0"]"#.to_owned(), vec!["1.0.0", "v2"], 0, Some("1.0.0")),
            (r#"["a", "", ".b", "-c", "d e", "é", null]"#.to_owned(), vec!["a"], 6, Some("")),
            (format!(r#"["a", "{long}"]"#), vec!["a"], 1, Some(long.as_str())),
            (format!(r#"["a", "{huge}"]"#), vec!["a"], 1, None),
            (format!(r#"["{huge}", "a"]"#), vec!["a"], 1, Some("a")),
            ("[]".to_owned(), vec![], 0, None),
            ("null".to_owned(), vec![], 0, None),
        ] {
            let page =
                parse(format!(r#"{{"name": "x", "tags": {list}, "errors": null}}"#).as_bytes(), LIMITS);
            let page = page.unwrap();
            assert_eq!(
                (tags(&page), page.left_out, page.last.as_deref()),
                (expected, left_out, last),
                "{list}"
            );
            assert_eq!(page.entries, list.matches(',').count() + usize::from(list.len() > 4));
        }
    }

    #[test]
    fn a_page_without_tags_says_why() {
        let no_list = |defect: &str| PageError::NotATagList { defect: defect.to_owned() };
        let error = OciError { code: "A".to_owned(), message: "b".to_owned() };
        for (body, expected) in [
            (r#"{"tags": ["a", 1]}"#, no_list("a member has an unexpected type, at line 1 column 16")),
            (r#"{"tags": ["a", [1]]}"#, no_list("a member has an unexpected type, at line 1 column 16")),
            (r#"{"tags": "a"}"#, no_list("a member has an unexpected type, at line 1 column 12")),
            (r#"["a"]"#, no_list("a member has an unexpected type")),
            (r#"{"tags": ["a"#, no_list("the JSON ends too early, at line 1 column 12")),
            (r#"{"tags": ["a", "b", "c", "d", "e"]}"#, PageError::TooManyTags),
            (r#"{"tags": ["aaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbb"]}"#, PageError::TooManyTags),
            (r#"{"errors": [{"code": "A", "message": "b"}]}"#, PageError::Errors(vec![error])),
            (r#"{"tags": [], "errors": "x"}"#, PageError::Errors(Vec::new())),
        ] {
            assert_eq!(parse(body.as_bytes(), LIMITS), Err(expected), "{body}");
        }
        assert_eq!(parse(br#"{"tags": ["a"], "errors": [0]}"#, LIMITS).unwrap().entries, 1);
    }

    /// A tag of invalid Unicode, or a repeated member, does not fail the list.
    /// Formerly, either failed the whole list; Go reads both.
    #[test]
    fn a_list_is_parsed_as_in_go() {
        for (body, expected, entries, left_out, last) in [
            (r#"{"tags": ["a", "b"], "tags": ["c"]}"#, vec!["c"], 1, 0, Some("c")),
            (r#"{"tags": ["a", "-"], "tags": null}"#, vec![], 0, 0, None),
            (r#"{"Tags": ["a"], "name": "x"}"#, vec!["a"], 1, 0, Some("a")),
            (r#"{"tags": ["a"], "TAGS": ["b", "c"]}"#, vec!["b", "c"], 2, 0, Some("c")),
            (r#"{"tags": ["a", "\ud800", "b"]}"#, vec!["a", "b"], 3, 1, Some("b")),
            (r#"{"tags": ["a\ud800", "\udc00x", "\ud800\u0041", "b"]}"#, vec!["b"], 4, 3, Some("b")),
            (r#"{"tags": ["\ud83d\ude00", "b"]}"#, vec!["b"], 2, 1, Some("b")),
            (r#"{"\ud800": 1, "name": "\udfff", "tags": ["b"]}"#, vec!["b"], 1, 0, Some("b")),
            (r#"{"tags": ["\u0061"]}"#, vec!["a"], 1, 0, Some("a")),
        ] {
            let page = parse(body.as_bytes(), LIMITS).unwrap();
            let found = (tags(&page), page.entries, page.left_out, page.last.as_deref());
            assert_eq!(found, (expected, entries, left_out, last), "{body}");
        }
        let bytes = parse(b"{\"tags\": [\"a\", \"\xff\", \"b\"]}", LIMITS).unwrap();
        assert_eq!((tags(&bytes), bytes.left_out), (vec!["a", "b"], 1));
        let many =
            format!(r#"{{"tags": ["a","b","c"], "tags": ["d","e","f"]{}}}"#, r#", "tags": ["g"]"#.repeat(9));
        assert_eq!(tags(&parse(many.as_bytes(), LIMITS).unwrap()), ["g"]);
        assert_eq!(
            parse(br#"{"tags": ["a","b","c","d","e"], "tags": []}"#, LIMITS),
            Err(PageError::TooManyTags)
        );
        assert!(parse(br#"{"tags": ["a", "\x"]}"#, LIMITS).is_err());
    }

    #[test]
    fn repeated_tags_count_once_for_the_limit() {
        let list = vec!["\"a\""; 10_000].join(",");
        let page = parse(format!(r#"{{"tags": [{list}]}}"#).as_bytes(), LIMITS).unwrap();
        assert_eq!((tags(&page), page.entries), (vec!["a"], 10_000));
        let mut gathered = TagSet::default();
        assert_eq!(gathered.merge(page.found.clone(), LIMITS), Some(true));
        assert_eq!(gathered.merge(page.found, LIMITS), Some(false));
        assert_eq!((gathered.tags.len(), gathered.bytes), (1, 1));
        for (tag, expected) in [("b", Some(true)), ("c", Some(true)), ("d", Some(true)), ("e", None)] {
            assert_eq!(gathered.add(tag, LIMITS), expected);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_page_or_an_error(body in any::<Vec<u8>>()) {
            let _ = parse(&body, LIMITS);
        }
    }
}
