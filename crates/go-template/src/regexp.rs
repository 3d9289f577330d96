//! Regular expressions within a budget: what a search costs is paid before it is made.

use tagboat_go_text::{Captures, Expression};

use crate::budget::{Budget, Failure};
use crate::text::first_rune;

pub(crate) use tagboat_go_text::quote_meta;

/// The largest compiled form, in bytes.
const LARGEST: usize = 256 << 10;

/// How many bytes an expression may have.
const LONGEST: usize = 16 << 10;

/// What a search pays a byte for: so many pieces of the expression, each at one byte of the text.
const PIECES_OF_BYTE: usize = 32;

/// What compiling pays a piece for, in bytes.
const BYTES_OF_PIECE: usize = 2_048;

/// How many pieces an expression may have, with repetitions written out.
const MOST_PIECES: usize = 10_000;

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Regexp {
    regexp: tagboat_go_text::Regexp,
    is_blank: bool,
}

impl Regexp {
    /// Compiles an expression; the inner error is Go's.
    pub(crate) fn compile(
        expression: &str,
        budget: &mut Budget<'_>,
    ) -> Result<Result<Self, String>, Failure> {
        budget.step(expression.len())?;
        if expression.len() > LONGEST {
            return Err(Failure(format!("a regular expression is longer than the limit of {LONGEST} bytes")));
        }
        let parsed = match Expression::parse(expression) {
            Ok(parsed) => parsed,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let too_large =
            || Failure(format!("a regular expression is larger than the limit of {MOST_PIECES} pieces"));
        if parsed.size() > MOST_PIECES {
            return Err(too_large());
        }
        budget.step(parsed.size().saturating_mul(BYTES_OF_PIECE))?;
        let regexp = parsed.compile_within(LARGEST).map_err(|_| too_large())?;
        Ok(Ok(Self { regexp, is_blank: expression.is_empty() }))
    }

    /// Pays for a search: at worst each piece is tried at each byte that is left, for each match anew.
    fn pay(&self, length: usize, budget: &mut Budget<'_>) -> Result<(), Failure> {
        budget.step(length.saturating_mul(self.regexp.size()) / PIECES_OF_BYTE)
    }

    pub(crate) fn is_match(&self, text: &[u8], budget: &mut Budget<'_>) -> Result<bool, Failure> {
        self.pay(text.len(), budget)?;
        Ok(self.regexp.is_match(text))
    }

    /// The first match.
    pub(crate) fn find<'t>(
        &self,
        text: &'t [u8],
        budget: &mut Budget<'_>,
    ) -> Result<Option<&'t [u8]>, Failure> {
        self.pay(text.len(), budget)?;
        Ok(self.regexp.find_at(text, 0).map(|place| &text[place]))
    }

    /// The places of at most a number of matches, of all when that is negative.
    pub(crate) fn find_all(
        &self,
        text: &[u8],
        most: i64,
        budget: &mut Budget<'_>,
    ) -> Result<Vec<(usize, usize)>, Failure> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let mut found = Vec::new();
        let mut at = 0;
        let mut end_before = None;
        while at <= text.len() && found.len() < most {
            self.pay(text.len() - at, budget)?;
            let Some(place) = self.regexp.find_at(text, at) else { break };
            let (start, end) = (place.start, place.end);
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
                budget.check_made(found.len())?;
            }
        }
        Ok(found)
    }

    /// The parts of a text between matches.
    pub(crate) fn split<'t>(
        &self,
        text: &'t [u8],
        most: i64,
        budget: &mut Budget<'_>,
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
        budget: &mut Budget<'_>,
        mut replacement: impl FnMut(&mut Vec<u8>, &Captures<'_>, &mut Budget<'_>) -> Result<(), Failure>,
    ) -> Result<Vec<u8>, Failure> {
        let mut out = Vec::new();
        let (mut end_before, mut at) = (0, 0);
        while at <= text.len() {
            self.pay(text.len() - at, budget)?;
            let Some(captures) = self.regexp.captures_at(text, at) else { break };
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
        budget: &mut Budget<'_>,
    ) -> Result<(), Failure> {
        budget.step(template.len())?;
        self.regexp.expand(out, template, captures, |length| budget.check_size(length))
    }
}
