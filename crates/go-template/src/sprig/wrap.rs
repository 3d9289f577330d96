//! Wraps lines at a width.

use crate::budget::{Budget, Failure};
use crate::functions::Function;
use crate::text::find_last;
use crate::value::{INT, Type};

const TEXT: Type = Type::String;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("wrap", &[INT, TEXT], |a, budget| {
        Ok(wrapped(a.bytes(1), a.int(0), b"", false, budget)?.into())
    }),
    Function::new("wrapWith", &[INT, TEXT, TEXT], |a, budget| {
        Ok(wrapped(a.bytes(2), a.int(0), a.bytes(1), true, budget)?.into())
    }),
];

/// Breaks lines at spaces, and inside words only if requested.
fn wrapped(
    text: &[u8],
    width: i64,
    line_break: &[u8],
    breaks_words: bool,
    budget: &mut Budget<'_>,
) -> Result<Vec<u8>, Failure> {
    let line_break = if line_break.is_empty() { b"\n" } else { line_break };
    let width = usize::try_from(width).unwrap_or(0).max(1);
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while rest.len() > width {
        if rest[0] == b' ' {
            rest = &rest[1..];
            continue;
        }
        budget.step(width)?;
        budget.check_size(out.len())?;
        let at_blank = find_last(&rest[..=width], b" ");
        let (end, next) = if let Some(blank) = at_blank {
            (blank, blank + 1)
        } else if breaks_words {
            (width, width)
        } else if let Some(distance) = rest[width..].iter().position(|&byte| byte == b' ') {
            (width + distance, width + distance + 1)
        } else {
            break;
        };
        out.extend_from_slice(&rest[..end]);
        out.extend_from_slice(line_break);
        rest = &rest[next..];
    }
    out.extend_from_slice(rest);
    Ok(out)
}
