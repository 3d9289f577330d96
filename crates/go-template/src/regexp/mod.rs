//! Regular expressions in Go's syntax, run by the `regex` crate in linear time.

mod class;
mod translate;

use regex::bytes::{Captures, Regex, RegexBuilder};

use crate::budget::{Budget, Failure};
use crate::text::first_rune;

use translate::Translated;

/// The largest compiled form, in bytes.
const LARGEST: usize = 1 << 20;

/// What a search pays a byte for: so many pieces of the expression, each at one byte of the text.
const PIECES_OF_BYTE: usize = 32;

/// What compiling pays a piece for, in bytes.
const BYTES_OF_PIECE: usize = 2_048;

/// How many pieces an expression may have, with repetitions written out.
const MOST_PIECES: usize = 10_000;

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Regexp {
    regex: Regex,
    /// The names of the groups, the whole match first.
    names: Vec<Option<String>>,
    is_blank: bool,
    /// How many pieces it has, with repetitions written out.
    size: usize,
}

impl Regexp {
    /// Compiles an expression; the inner error is Go's.
    pub(crate) fn compile(expression: &str, budget: &mut Budget) -> Result<Result<Self, String>, Failure> {
        budget.step(expression.len())?;
        let Translated { pattern, names, size } = match translate::translate(expression) {
            Ok(translated) => translated,
            Err(message) => return Ok(Err(message)),
        };
        let too_large =
            |_| Failure(format!("a regular expression is larger than the limit of {MOST_PIECES} pieces"));
        if size > MOST_PIECES {
            return Err(too_large(()));
        }
        budget.step(size.saturating_mul(BYTES_OF_PIECE))?;
        let regex = RegexBuilder::new(&pattern).size_limit(LARGEST).build().map_err(|_| too_large(()))?;
        Ok(Ok(Self { regex, names, is_blank: expression.is_empty(), size }))
    }

    /// Pays for a search: at worst each piece is tried at each byte that is left, for each match anew.
    fn pay(&self, length: usize, budget: &mut Budget) -> Result<(), Failure> {
        budget.step(length.saturating_mul(self.size) / PIECES_OF_BYTE)
    }

    pub(crate) fn is_match(&self, text: &[u8], budget: &mut Budget) -> Result<bool, Failure> {
        self.pay(text.len(), budget)?;
        Ok(self.regex.is_match(text))
    }

    /// The first match.
    pub(crate) fn find<'t>(&self, text: &'t [u8], budget: &mut Budget) -> Result<Option<&'t [u8]>, Failure> {
        self.pay(text.len(), budget)?;
        Ok(self.regex.find(text).map(|found| found.as_bytes()))
    }

    /// The places of at most a number of matches, of all when that is negative.
    pub(crate) fn find_all(
        &self,
        text: &[u8],
        most: i64,
        budget: &mut Budget,
    ) -> Result<Vec<(usize, usize)>, Failure> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let mut found = Vec::new();
        let mut at = 0;
        let mut end_before = None;
        while at <= text.len() && found.len() < most {
            self.pay(text.len() - at, budget)?;
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
        Ok(found)
    }

    /// The parts of a text between matches.
    pub(crate) fn split<'t>(
        &self,
        text: &'t [u8],
        most: i64,
        budget: &mut Budget,
    ) -> Result<Option<Vec<&'t [u8]>>, Failure> {
        if most == 0 {
            return Ok(None);
        }
        if !self.is_blank && text.is_empty() {
            return Ok(Some(vec![text]));
        }
        let mut parts = Vec::new();
        let (mut begin, mut end) = (0, 0);
        for (start, stop) in self.find_all(text, most, budget)? {
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
        Ok(Some(parts))
    }

    /// The text with what `replacement` appends in the place of each match.
    pub(crate) fn replace_all(
        &self,
        text: &[u8],
        budget: &mut Budget,
        mut replacement: impl FnMut(&mut Vec<u8>, &Captures<'_>, &mut Budget) -> Result<(), Failure>,
    ) -> Result<Vec<u8>, Failure> {
        let mut out = Vec::new();
        let (mut end_before, mut at) = (0, 0);
        while at <= text.len() {
            self.pay(text.len() - at, budget)?;
            let Some(captures) = self.regex.captures_at(text, at) else { break };
            let (start, end) = captures.get(0).map_or((at, at), |whole| (whole.start(), whole.end()));
            out.extend_from_slice(&text[end_before..start]);
            if end > end_before || start == 0 {
                replacement(&mut out, &captures, budget)?;
                budget.check_size(out.len())?;
            }
            end_before = end;
            let width = first_rune(&text[at..]).map_or(1, |(_, width)| width);
            at = if at + width > end { at + width } else { end };
        }
        out.extend_from_slice(&text[end_before..]);
        Ok(out)
    }

    /// Appends a template with `$1`, `${1}`, `$name` and `$$` filled in.
    pub(crate) fn expand(
        &self,
        out: &mut Vec<u8>,
        template: &[u8],
        captures: &Captures<'_>,
        budget: &mut Budget,
    ) -> Result<(), Failure> {
        budget.step(template.len())?;
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
                budget.check_size(out.len())?;
            }
        }
        out.extend_from_slice(rest);
        Ok(())
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
