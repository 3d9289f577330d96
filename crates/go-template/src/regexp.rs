//! Regular expressions within a budget: a search pays its worst-case cost in advance.

use tagboat_go_text::{Captures, Expression};

use crate::budget::{Budget, Failure};
use crate::text::first_rune;

pub(crate) use tagboat_go_text::quote_meta;

/// The maximum size of a compiled expression, in bytes.
const MAX_SIZE: usize = 256 << 10;

/// The maximum length of an expression, in bytes.
const MAX_LENGTH: usize = 16 << 10;

/// The number of pieces, per byte of text, for which one byte of budget pays.
const PIECES_PER_BYTE: usize = 32;

/// The cost of compiling one piece, in bytes.
const PIECE_BYTES: usize = 2_048;

/// The maximum number of pieces of an expression, with repetitions expanded.
const MAX_PIECES: usize = 10_000;

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
        if expression.len() > MAX_LENGTH {
            return Err(Failure(format!(
                "a regular expression is longer than the limit of {MAX_LENGTH} bytes"
            )));
        }
        let parsed = match Expression::parse(expression) {
            Ok(parsed) => parsed,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let too_large =
            || Failure(format!("a regular expression is larger than the limit of {MAX_PIECES} pieces"));
        if parsed.size() > MAX_PIECES {
            return Err(too_large());
        }
        budget.step(parsed.size().saturating_mul(PIECE_BYTES))?;
        let regexp = parsed.compile_within(MAX_SIZE).map_err(|_| too_large())?;
        Ok(Ok(Self { regexp, is_blank: expression.is_empty() }))
    }

    /// Charges a search to the step budget.
    ///
    /// In the worst case each piece is tried at each remaining byte, again for each match.
    fn pay(&self, length: usize, budget: &mut Budget<'_>) -> Result<(), Failure> {
        budget.step(length.saturating_mul(self.regexp.size()) / PIECES_PER_BYTE)
    }

    pub(crate) fn is_match(&self, text: &[u8], budget: &mut Budget<'_>) -> Result<bool, Failure> {
        self.pay(text.len(), budget)?;
        Ok(self.regexp.is_match(text))
    }

    /// Returns the first match.
    pub(crate) fn find<'t>(
        &self,
        text: &'t [u8],
        budget: &mut Budget<'_>,
    ) -> Result<Option<&'t [u8]>, Failure> {
        self.pay(text.len(), budget)?;
        Ok(self.regexp.find_at(text, 0).map(|place| &text[place]))
    }

    /// Returns the positions of at most `most` matches, of all if `most` is negative.
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
                // An empty match directly behind another match does not count.
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

    /// Returns the parts of a text between matches.
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

    /// Replaces each match by the output of `replacement`.
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

    /// Expands `$1`, `${1}`, `$name` and `$$` in a template and appends the result.
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
