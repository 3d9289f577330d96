//! Regular expressions in Go's syntax, run by the `regex` crate in linear time.

mod class;
mod translate;

use std::ops::Range;
use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use translate::Translated;

pub use regex::bytes::Captures;

/// The memory of the groups of one search, in bytes.
///
/// Each state of the compiled form stores the positions of all groups, twice.
const GROUP_BYTES: usize = 16 << 20;

/// The size of the smallest state of the compiled form, in bytes.
const STATE_BYTES: usize = 24;

/// The bytes of one group per state, in both sets that a search uses.
const BYTES_PER_GROUP: usize = 2 * 2 * size_of::<usize>();

/// The error of a text that is not a valid expression; the message is Go's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {what}: `{part}`")]
pub struct RegexpError {
    /// The description of the error.
    what: &'static str,
    /// The invalid part of the expression.
    part: String,
}

/// A parsed expression that is not compiled yet.
#[derive(Debug)]
pub struct Expression<'e> {
    text: &'e str,
    translated: Translated,
}

impl<'e> Expression<'e> {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// If the text is not a valid expression.
    pub fn parse(text: &'e str) -> Result<Self, RegexpError> {
        Ok(Self { text, translated: translate::translate(text)? })
    }

    /// Returns the number of pieces, with repetitions expanded.
    pub fn size(&self) -> usize {
        self.translated.size
    }

    /// Compiles the expression into at most `max_bytes` bytes.
    ///
    /// With many groups the limit is lower, because a search needs memory proportional to the number of groups times
    /// the size of the compiled form.
    ///
    /// # Errors
    ///
    /// If the compiled form exceeds the limit.
    pub fn compile_within(self, max_bytes: usize) -> Result<Regexp, RegexpError> {
        let Translated { pattern, names, size } = self.translated;
        let max_bytes = max_bytes.min(GROUP_BYTES / (BYTES_PER_GROUP * names.len().max(1)) * STATE_BYTES);
        match RegexBuilder::new(&pattern).size_limit(max_bytes).build() {
            Ok(regex) => Ok(Regexp { regex, names, size, name: OnceLock::new() }),
            Err(_) => Err(RegexpError { what: "expression too large", part: self.text.to_owned() }),
        }
    }
}

/// Several expressions, compiled into one form that tells whether any of them matches.
#[derive(Debug, Clone)]
pub struct RegexpSet(RegexSet);

/// The error of a set whose expressions are too large together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the expressions take more than {max_bytes} bytes together when compiled")]
pub struct SetTooLarge {
    /// The limit of all expressions together, in bytes.
    pub max_bytes: usize,
}

impl RegexpSet {
    /// Compiles expressions into one form of at most `max_bytes` bytes.
    ///
    /// # Errors
    ///
    /// If the compiled form exceeds the limit.
    pub fn compile_within(expressions: &[Expression<'_>], max_bytes: usize) -> Result<Self, SetTooLarge> {
        let patterns = expressions.iter().map(|expression| &expression.translated.pattern);
        let set = RegexSetBuilder::new(patterns).size_limit(max_bytes).build();
        set.map(Self).map_err(|_| SetTooLarge { max_bytes })
    }

    /// Returns whether an expression matches anywhere in a text.
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }
}

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct Regexp {
    regex: Regex,
    /// The names of the groups; index 0 is the whole match.
    names: Vec<Option<String>>,
    /// The number of pieces, with repetitions expanded.
    size: usize,
    /// Matches a name behind a dollar sign.
    ///
    /// It is compiled only if needed, for names with letters beyond ASCII.
    name: OnceLock<Regex>,
}

impl Regexp {
    /// Parses an expression and compiles it into at most `max_bytes` bytes.
    ///
    /// # Errors
    ///
    /// If the text is not a valid expression, or the compiled form exceeds the limit.
    pub fn compile_within(expression: &str, max_bytes: usize) -> Result<Self, RegexpError> {
        Expression::parse(expression)?.compile_within(max_bytes)
    }

    /// Returns the number of pieces, with repetitions expanded.
    ///
    /// This is the worst-case cost of a search per byte.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns whether the expression matches anywhere in a text.
    pub fn is_match(&self, text: &[u8]) -> bool {
        self.regex.is_match(text)
    }

    /// Returns the groups of the first match.
    pub fn captures<'t>(&self, text: &'t [u8]) -> Option<Captures<'t>> {
        self.regex.captures(text)
    }

    /// Returns the position of the first match at or behind `at`.
    pub fn find_at(&self, text: &[u8], at: usize) -> Option<Range<usize>> {
        self.regex.find_at(text, at).map(|found| found.range())
    }

    /// Returns the groups of the first match at or behind `at`.
    pub fn captures_at<'t>(&self, text: &'t [u8], at: usize) -> Option<Captures<'t>> {
        self.regex.captures_at(text, at)
    }

    /// Expands `$1`, `${1}`, `$name` and `$$` in a template and appends the result.
    ///
    /// # Errors
    ///
    /// The error of `check`, which is called with the length of the result after each group.
    pub fn expand<E>(
        &self,
        out: &mut Vec<u8>,
        template: &[u8],
        captures: &Captures<'_>,
        mut check: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = template;
        while let Some(at) = rest.iter().position(|&byte| byte == b'$') {
            out.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            if rest.get(1) == Some(&b'$') {
                out.push(b'$');
                rest = &rest[2..];
                continue;
            }
            let Some((name, after)) = self.reference(rest) else {
                out.push(b'$');
                rest = &rest[1..];
                continue;
            };
            rest = after;
            if let Some(group) = self.group(name, captures) {
                out.extend_from_slice(group);
                check(out.len())?;
            }
        }
        out.extend_from_slice(rest);
        Ok(())
    }

    /// Returns the groups that a template of [`Regexp::expand`] names and that do not exist.
    pub fn unknown_groups<'t>(&self, template: &'t str) -> Vec<&'t str> {
        let mut unknown = Vec::new();
        let mut rest = template.as_bytes();
        while let Some(at) = rest.iter().position(|&byte| byte == b'$') {
            rest = &rest[at..];
            if rest.get(1) == Some(&b'$') {
                rest = &rest[2..];
                continue;
            }
            let Some((name, after)) = self.reference(rest) else {
                rest = &rest[1..];
                continue;
            };
            rest = after;
            if !self.has_group(name) {
                unknown.push(name);
            }
        }
        unknown
    }

    fn has_group(&self, name: &str) -> bool {
        match number_of(name) {
            Some(number) => number.is_some_and(|number| number < self.names.len()),
            None => self.names.iter().any(|known| known.as_deref() == Some(name)),
        }
    }

    /// Splits off the name behind a dollar sign.
    fn reference<'t>(&self, text: &'t [u8]) -> Option<(&'t str, &'t [u8])> {
        let rest = &text[1..];
        let has_brace = rest.first() == Some(&b'{');
        let rest = &rest[usize::from(has_brace)..];
        let (name, after) = rest.split_at(self.length_of_name(rest));
        let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
        if has_brace { Some((name, after.strip_prefix(b"}")?)) } else { Some((name, after)) }
    }

    /// Returns the length of the name at the beginning of a text, in bytes.
    ///
    /// A name has letters and digits of any script, and underscores.
    fn length_of_name(&self, text: &[u8]) -> usize {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let plain = text.iter().position(|byte| !is_part(byte)).unwrap_or(text.len());
        if text.get(plain).is_none_or(u8::is_ascii) {
            return plain;
        }
        let name = self.name.get_or_init(|| {
            Regex::new(r"\A[\pL\p{Nd}_]*").expect("the expression is a constant and is valid")
        });
        name.find(text).map_or(0, |found| found.end())
    }

    fn group<'t>(&self, name: &str, captures: &Captures<'t>) -> Option<&'t [u8]> {
        if let Some(number) = number_of(name) {
            return captures.get(number?).map(|group| group.as_bytes());
        }
        let named = self.names.iter().enumerate().filter(|(_, known)| known.as_deref() == Some(name));
        named.filter_map(|(i, _)| captures.get(i)).next().map(|group| group.as_bytes())
    }
}

/// Parses the number of a group; `None` if the text is a name.
///
/// The inner value is `None` if no group can have the number.
fn number_of(name: &str) -> Option<Option<usize>> {
    let is_number =
        name.bytes().all(|byte| byte.is_ascii_digit()) && (name.len() == 1 || !name.starts_with('0'));
    is_number.then(|| name.parse().ok())
}

/// Escapes a text, so that it matches literally.
pub fn quote_meta(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        if br"\.+*?()|[]{}^$".contains(&byte) {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search stores the positions of all groups for each state.
    ///
    /// Ten thousand of both once took gigabytes.
    #[test]
    fn the_memory_of_groups_is_bounded() {
        assert!(Regexp::compile_within(&"(a)".repeat(20), 10 << 20).is_ok());
        assert!(Regexp::compile_within(r"^v?(\d+)\.(\d+)\.(\d+)-(\pL+)\.(?P<build>\d+)$", 1 << 20).is_ok());
        let error = Regexp::compile_within(&"(a)".repeat(10_000), 10 << 20).unwrap_err();
        assert!(error.to_string().starts_with("error parsing regexp: expression too large"), "{error}");
        assert!(Regexp::compile_within(&"(?:a)".repeat(10_000), 10 << 20).is_ok());
    }

    #[test]
    fn a_set_matches_if_one_of_its_expressions_does() {
        let expressions = ["^a$", "(?i)bc", r"\.sig$"].map(|text| Expression::parse(text).unwrap());
        let set = RegexpSet::compile_within(&expressions, 1 << 20).unwrap();
        for (text, expected) in
            [("a", true), ("aa", false), ("xBCx", true), ("1.0.sig", true), ("1.0.sigs", false)]
        {
            assert_eq!(set.is_match(text.as_bytes()), expected, "{text}");
        }
        assert!(!RegexpSet::compile_within(&[], 1 << 20).unwrap().is_match(b"a"));
        assert!(RegexpSet::compile_within(&expressions, 10).is_err());
    }
}
