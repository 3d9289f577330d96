//! `filterTags`: filters tags, and extracts the value that the rule compares.

use std::borrow::Cow;
use std::convert::Infallible;

use tagboat_api::policy::TagFilter;
use tagboat_go_text::{Regexp, RegexpError};

/// The maximum size of a compiled pattern in bytes.
const MAX_PATTERN_SIZE: usize = 10 << 20;

/// The maximum length of `extract` in bytes: the value of each tag grows with it.
const MAX_EXTRACT_LENGTH: usize = 512;

/// The maximum length of a tag in characters, as in OCI.
const MAX_TAG_LENGTH: usize = 128;

/// The maximum size of all extracted values together, in bytes.
pub(super) const MAX_VALUE_BYTES: usize = 32 << 20;

/// A filter of tags.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    pattern: Regexp,
    /// The template of the value; `None` if the value is the tag itself.
    extract: Option<String>,
}

impl Filter {
    /// Parses a filter.
    pub(super) fn new(filter: &TagFilter) -> Result<Self, FilterError> {
        let pattern = filter.pattern.as_deref().unwrap_or_default();
        let compiled = Regexp::compile_within(pattern, MAX_PATTERN_SIZE)
            .map_err(|cause| FilterError::Pattern { pattern: pattern.to_owned(), cause })?;
        let extract = filter.extract.clone().filter(|extract| !extract.is_empty());
        let length = extract.as_ref().map_or(0, String::len);
        if length > MAX_EXTRACT_LENGTH {
            return Err(FilterError::LongExtract { length });
        }
        Ok(Self { pattern: compiled, extract })
    }

    /// Returns the value of a tag; `None` if the pattern does not match.
    pub(super) fn value<'t>(&self, tag: &'t str) -> Option<Cow<'t, str>> {
        let Some(extract) = &self.extract else {
            return self.pattern.is_match(tag.as_bytes()).then_some(Cow::Borrowed(tag));
        };
        let captures = self.pattern.captures(tag.as_bytes())?;
        let mut value = Vec::new();
        let admitted: Result<(), Infallible> =
            self.pattern.expand(&mut value, extract.as_bytes(), &captures, |_| Ok(()));
        let Ok(()) = admitted;
        Some(Cow::Owned(String::from_utf8_lossy(&value).into_owned()))
    }

    /// The maximum size in bytes of the values of `tags` tags.
    ///
    /// Tags are taken to have at most 128 characters.
    pub(super) fn max_value_bytes(&self, tags: usize) -> usize {
        // A reference in `extract` has at least two characters.
        let references = self.extract.as_ref().map_or(0, |extract| extract.len() / 2);
        (references * MAX_TAG_LENGTH).saturating_mul(tags).min(MAX_VALUE_BYTES)
    }

    /// Returns true if values may differ from tags.
    pub(super) fn extracts(&self) -> bool {
        self.extract.is_some()
    }
}

/// The error of an invalid filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The pattern is not a regular expression.
    #[error("invalid regular expression pattern '{pattern}'")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The cause, in Go's words.
        #[source]
        cause: RegexpError,
    },
    /// `extract` is too long.
    #[error("filterTags.extract has {length} bytes; at most {MAX_EXTRACT_LENGTH} are allowed")]
    LongExtract {
        /// Its length in bytes.
        length: usize,
    },
    /// The extracted values are too large.
    #[error("filterTags.extract produces more than {} MiB for all tags together: extract less of each", MAX_VALUE_BYTES >> 20)]
    LargeValues,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(pattern: &str, extract: &str) -> Filter {
        Filter::new(&TagFilter { pattern: Some(pattern.to_owned()), extract: Some(extract.to_owned()) })
            .unwrap()
    }

    #[test]
    fn tags_become_values_as_in_flux() {
        let long = "123-123.123.abcd123";
        for (tag, pattern, extract, value) in [
            ("a", "", "", Some("a")),
            ("ver1", "^ver", "", Some("ver1")),
            ("rel1", "^ver", "", None),
            ("ver3", r"ver(\d+)", "$1", Some("3")),
            (long, r"^(123-[0-9]+\.[0-9]+\.[a-z0-9]+-debug)", "", None),
            (
                "123-123.123.abcd123-debug",
                r"^(?P<tag>123-[0-9]+\.[0-9]+\.[a-z0-9]+[^-debug])",
                "$tag",
                Some(long),
            ),
            ("foo-zzz", "foo-(?P<word>[a-z]+)", "$word", Some("zzz")),
            ("foo-zzz", "foo-(?P<word>[a-z]+)", "${word}x", Some("zzzx")),
            ("foo-zzz", "foo-(?P<word>[a-z]+)", "$wordx", Some("")),
            ("a", "", "$0", Some("")),
        ] {
            assert_eq!(filter(pattern, extract).value(tag).as_deref(), value, "{tag} {pattern} {extract}");
        }
        let long = TagFilter { pattern: None, extract: Some("$0".repeat(257)) };
        let refusal = Filter::new(&long).unwrap_err().to_string();
        assert_eq!(refusal, "filterTags.extract has 514 bytes; at most 512 are allowed");
        assert_eq!(Filter::new(&TagFilter::default()).unwrap().value("a").as_deref(), Some("a"));
    }
}
