//! Regular expressions in Go's syntax, run by the `regex` crate in linear time.

mod class;
mod translate;

use regex::bytes::{Captures, Regex, RegexBuilder};

use crate::text::first_rune;

/// The largest compiled form, in bytes.
const LARGEST: usize = 1 << 20;

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Regexp {
    regex: Regex,
    /// The names of the groups, the whole match first.
    names: Vec<Option<String>>,
    is_blank: bool,
}

impl Regexp {
    /// Compiles an expression; the error is Go's.
    pub(crate) fn compile(expression: &str) -> Result<Self, String> {
        let translated = translate::translate(expression)?;
        let regex = RegexBuilder::new(&translated.pattern).size_limit(LARGEST).build();
        let regex =
            regex.map_err(|_| format!("error parsing regexp: expression too large: `{expression}`"))?;
        Ok(Self { regex, names: translated.names, is_blank: expression.is_empty() })
    }

    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        self.regex.is_match(text)
    }

    /// The first match.
    pub(crate) fn find<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        self.regex.find(text).map(|found| found.as_bytes())
    }

    /// The places of at most a number of matches, of all when that is negative.
    pub(crate) fn find_all(&self, text: &[u8], most: i64) -> Vec<(usize, usize)> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let mut found = Vec::new();
        let mut at = 0;
        let mut end_before = None;
        while at <= text.len() && found.len() < most {
            let Some(place) = self.regex.find_at(text, at) else { break };
            let (start, end) = (place.start(), place.end());
            let mut is_counted = true;
            if end == at {
                // Nothing right behind another match is no match.
                is_counted = end_before != Some(start);
                at += first_rune(&text[at..]).map_or(1, |(_, width)| width);
            } else {
                at = end;
            }
            end_before = Some(end);
            if is_counted {
                found.push((start, end));
            }
        }
        found
    }

    /// The parts of a text between matches.
    pub(crate) fn split<'t>(&self, text: &'t [u8], most: i64) -> Option<Vec<&'t [u8]>> {
        if most == 0 {
            return None;
        }
        if !self.is_blank && text.is_empty() {
            return Some(vec![text]);
        }
        let mut parts = Vec::new();
        let (mut begin, mut end) = (0, 0);
        for (start, stop) in self.find_all(text, most) {
            if usize::try_from(most).is_ok_and(|most| parts.len() + 1 == most) {
                break;
            }
            end = start;
            if stop != 0 {
                parts.push(&text[begin..end]);
            }
            begin = stop;
        }
        if end != text.len() {
            parts.push(&text[begin..]);
        }
        Some(parts)
    }

    /// The text with what `replacement` gives in the place of each match; it may refuse to go on.
    pub(crate) fn replace_all<E>(
        &self,
        text: &[u8],
        mut replacement: impl FnMut(&mut Vec<u8>, &Captures<'_>) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        let mut out = Vec::new();
        let (mut end_before, mut at) = (0, 0);
        while at <= text.len() {
            let Some(captures) = self.regex.captures_at(text, at) else { break };
            let (start, end) = captures.get(0).map_or((at, at), |whole| (whole.start(), whole.end()));
            out.extend_from_slice(&text[end_before..start]);
            if end > end_before || start == 0 {
                replacement(&mut out, &captures)?;
            }
            end_before = end;
            let width = first_rune(&text[at..]).map_or(1, |(_, width)| width);
            at = if at + width > end { at + width } else { end };
        }
        out.extend_from_slice(&text[end_before..]);
        Ok(out)
    }

    /// Appends a template with `$1`, `${1}`, `$name` and `$$` filled in.
    pub(crate) fn expand(&self, out: &mut Vec<u8>, template: &[u8], captures: &Captures<'_>) {
        let mut rest = template;
        while let Some(at) = rest.iter().position(|&byte| byte == b'$') {
            out.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            if rest.get(1) == Some(&b'$') {
                out.push(b'$');
                rest = &rest[2..];
                continue;
            }
            let Some((name, after)) = reference(rest) else {
                out.push(b'$');
                rest = &rest[1..];
                continue;
            };
            rest = after;
            if let Some(group) = self.group(name, captures) {
                out.extend_from_slice(group);
            }
        }
        out.extend_from_slice(rest);
    }

    fn group<'t>(&self, name: &str, captures: &Captures<'t>) -> Option<&'t [u8]> {
        if name.bytes().all(|byte| byte.is_ascii_digit()) && (name.len() == 1 || !name.starts_with('0')) {
            let number: usize = name.parse().ok()?;
            return captures.get(number).map(|group| group.as_bytes());
        }
        let named = self.names.iter().enumerate().filter(|(_, known)| known.as_deref() == Some(name));
        named.filter_map(|(i, _)| captures.get(i)).next().map(|group| group.as_bytes())
    }
}

/// The name behind a dollar sign, and what follows it.
fn reference(text: &[u8]) -> Option<(&str, &[u8])> {
    let rest = &text[1..];
    let has_brace = rest.first() == Some(&b'{');
    let rest = &rest[usize::from(has_brace)..];
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let end = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
    if end == 0 {
        return None;
    }
    let name = std::str::from_utf8(&rest[..end]).ok()?;
    let after = &rest[end..];
    if has_brace { Some((name, after.strip_prefix(b"}")?)) } else { Some((name, after)) }
}

/// A text as an expression that matches it and nothing else.
pub(crate) fn quote_meta(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        if br"\.+*?()|[]{}^$".contains(&byte) {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}
