//! Functions that cut, join and search strings.

use std::collections::BTreeSet;

use crate::budget::{Budget, Failure};
use crate::format::{printf, quote_bytes};
use crate::functions::{Arguments, Function};
use crate::text::{Text, find, first_rune, push_rune, runes};
use crate::unicode::{to_lower, to_upper};
use crate::value::{ANY, INT, Map, TEXT_MAP, Type, Value};

use super::cast::{text_of, texts_of};

const TEXT: Type = Type::String;

/// The approximate size of a map entry, in bytes.
const ENTRY_BYTES: usize = 128;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("hello", &[], |_, _| Ok("Hello!".into())),
    Function::new("trim", &[TEXT], |a, _| Ok(trim_space(a.bytes(0)).to_vec().into())),
    Function::new("upper", &[TEXT], |a, _| Ok(mapped(a.bytes(0), to_upper).into())),
    Function::new("lower", &[TEXT], |a, _| Ok(mapped(a.bytes(0), to_lower).into())),
    Function::new("trunc", &[INT, TEXT], |a, _| Ok(truncated(a.int(0), a.bytes(1)).to_vec().into())),
    Function::new("substr", &[INT, INT, TEXT], substring),
    Function::new("repeat", &[INT, TEXT], repeat),
    Function::new("trimall", &[TEXT, TEXT], trim_all),
    Function::new("trimAll", &[TEXT, TEXT], trim_all),
    Function::new("trimSuffix", &[TEXT, TEXT], |a, _| {
        let text = a.bytes(1);
        Ok(text.strip_suffix(a.bytes(0)).unwrap_or(text).to_vec().into())
    }),
    Function::new("trimPrefix", &[TEXT, TEXT], |a, _| {
        let text = a.bytes(1);
        Ok(text.strip_prefix(a.bytes(0)).unwrap_or(text).to_vec().into())
    }),
    Function::new("contains", &[TEXT, TEXT], |a, _| Ok(find(a.bytes(1), a.bytes(0)).is_some().into())),
    Function::new("hasPrefix", &[TEXT, TEXT], |a, _| Ok(a.bytes(1).starts_with(a.bytes(0)).into())),
    Function::new("hasSuffix", &[TEXT, TEXT], |a, _| Ok(a.bytes(1).ends_with(a.bytes(0)).into())),
    Function::variadic("quote", &[ANY], |a, budget| {
        joined(a, budget, |value| Ok(quote_bytes(text_of(value, budget)?.as_bytes()).into_bytes()))
    }),
    Function::variadic("squote", &[ANY], |a, budget| {
        joined(a, budget, |value| printf(b"'%v'", std::slice::from_ref(value), budget.most()))
    }),
    Function::variadic("cat", &[ANY], concatenate),
    Function::new("indent", &[INT, TEXT], |a, budget| Ok(indented(a, budget)?.into())),
    Function::new("nindent", &[INT, TEXT], |a, budget| {
        Ok([b"\n", indented(a, budget)?.as_slice()].concat().into())
    }),
    Function::new("replace", &[TEXT, TEXT, TEXT], |a, budget| {
        Ok(replaced(a.bytes(2), a.bytes(0), a.bytes(1), budget)?.into())
    }),
    Function::new("plural", &[TEXT, TEXT, INT], |a, _| Ok(a.value(usize::from(a.int(2) != 1)).clone())),
    Function::new("toString", &[ANY], |a, budget| Ok(text_of(a.value(0), budget)?.into())),
    Function::new("toStrings", &[ANY], |a, budget| Ok(Value::texts(texts_of(a.value(0), budget)?))),
    Function::new("join", &[TEXT, ANY], |a, budget| join(&texts_of(a.value(1), budget)?, a.bytes(0), budget)),
    Function::new("splitList", &[TEXT, TEXT], |a, budget| {
        Ok(Value::texts(split(a.bytes(1), a.bytes(0), -1, budget)?))
    }),
    Function::new("split", &[TEXT, TEXT], |a, budget| {
        numbered(split(a.bytes(1), a.bytes(0), -1, budget)?, budget)
    }),
    Function::new("splitn", &[TEXT, INT, TEXT], |a, budget| {
        numbered(split(a.bytes(2), a.bytes(0), a.int(1), budget)?, budget)
    }),
];

/// Maps each character of a text; invalid UTF-8 becomes U+FFFD.
pub(super) fn mapped(text: &[u8], change: fn(char) -> char) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for (_, c, _) in runes(text) {
        push_rune(&mut out, change(c));
    }
    out
}

/// Trims whitespace from both ends.
pub(super) fn trim_space(text: &[u8]) -> &[u8] {
    trimmed(text, char::is_whitespace)
}

fn trimmed(text: &[u8], is_cut: impl Fn(char) -> bool) -> &[u8] {
    let mut kept = runes(text).filter(|&(_, c, _)| !is_cut(c)).map(|(at, _, width)| (at, at + width));
    let Some((start, first_end)) = kept.next() else { return &[] };
    let end = kept.last().map_or(first_end, |(_, end)| end);
    &text[start..end]
}

fn trim_all(arguments: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    let cut: BTreeSet<char> = runes(arguments.bytes(0)).map(|(_, c, _)| c).collect();
    Ok(trimmed(arguments.bytes(1), |c| cut.contains(&c)).to_vec().into())
}

fn truncated(count: i64, text: &[u8]) -> &[u8] {
    let magnitude = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if magnitude >= text.len() {
        text
    } else if count < 0 {
        &text[text.len() - magnitude..]
    } else {
        &text[..magnitude]
    }
}

fn substring(arguments: Arguments<'_>, _: &mut Budget<'_>) -> Result<Value, Failure> {
    let (start, end, text) = (arguments.int(0), arguments.int(1), arguments.bytes(2));
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let (start, end, is_open) = if start < 0 {
        (0, end, false)
    } else {
        (start, if end < 0 || end > length { length } else { end }, end < 0 || end > length)
    };
    let place = |at: i64| usize::try_from(at).ok();
    if let (Some(from), Some(to)) = (place(start), place(end))
        && let Some(part) = text.get(from..to)
    {
        return Ok(part.to_vec().into());
    }
    let message = if end < 0 {
        format!("slice bounds out of range [:{end}]")
    } else if end > length {
        format!("slice bounds out of range [:{end}] with length {length}")
    } else if is_open {
        format!("slice bounds out of range [{start}:{length}]")
    } else {
        format!("slice bounds out of range [{start}:{end}]")
    };
    Err(format!("runtime error: {message}").into())
}

fn repeat(arguments: Arguments<'_>, budget: &mut Budget<'_>) -> Result<Value, Failure> {
    let text = arguments.bytes(1);
    let Ok(count) = usize::try_from(arguments.int(0)) else {
        return Err("strings: negative Repeat count".into());
    };
    budget.check_size(text.len().saturating_mul(count))?;
    Ok(text.repeat(count).into())
}

/// Converts the arguments that are not nil to strings and joins them with spaces.
fn joined(
    arguments: Arguments<'_>,
    budget: &Budget<'_>,
    make: impl Fn(&Value) -> Result<Vec<u8>, Failure>,
) -> Result<Value, Failure> {
    let mut parts = Vec::new();
    let mut size = 0;
    for value in arguments.from(0) {
        if !matches!(value, Value::Nil) {
            let part = make(value)?;
            size += part.len() + 1;
            budget.check_size(size.saturating_sub(1))?;
            parts.push(part);
        }
    }
    Ok(parts.join(b" ".as_slice()).into())
}

fn concatenate(arguments: Arguments<'_>, budget: &mut Budget<'_>) -> Result<Value, Failure> {
    let values: Vec<Value> =
        arguments.from(0).iter().filter(|value| !matches!(value, Value::Nil)).cloned().collect();
    let format = vec!["%v"; values.len()].join(" ");
    Ok(printf(format.as_bytes(), &values, budget.most())?.into())
}

fn indented(arguments: Arguments<'_>, budget: &mut Budget<'_>) -> Result<Vec<u8>, Failure> {
    let text = arguments.bytes(1);
    let Ok(width) = usize::try_from(arguments.int(0)) else {
        return Err("strings: negative Repeat count".into());
    };
    budget.check_size(width)?;
    let pad = b" ".repeat(width);
    Ok([pad.as_slice(), &replaced(text, b"\n", &[b"\n", pad.as_slice()].concat(), budget)?].concat())
}

/// Replaces all occurrences of a part.
fn replaced(text: &[u8], old: &[u8], new: &[u8], budget: &Budget<'_>) -> Result<Vec<u8>, Failure> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    if old.is_empty() {
        // An empty pattern matches before each character and at the end.
        while let Some((_, width)) = first_rune(rest) {
            out.extend_from_slice(new);
            out.extend_from_slice(&rest[..width]);
            rest = &rest[width..];
            budget.check_size(out.len())?;
        }
        out.extend_from_slice(new);
        return Ok(out);
    }
    while let Some(at) = find(rest, old) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(new);
        rest = &rest[at + old.len()..];
        budget.check_size(out.len())?;
    }
    out.extend_from_slice(rest);
    Ok(out)
}

fn join(parts: &[Text], separator: &[u8], budget: &Budget<'_>) -> Result<Value, Failure> {
    let size: usize = parts.iter().map(|part| part.len() + separator.len()).sum();
    budget.check_size(size.saturating_sub(separator.len()))?;
    let parts: Vec<&[u8]> = parts.iter().map(Text::as_bytes).collect();
    Ok(parts.join(separator).into())
}

/// Splits a text at separators into at most `most` parts, without limit if negative.
fn split(text: &[u8], separator: &[u8], most: i64, budget: &Budget<'_>) -> Result<Vec<Text>, Failure> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    if most == 0 {
        return Ok(parts);
    }
    let mut rest = text;
    while parts.len() + 1 < most {
        let cut = if separator.is_empty() {
            first_rune(rest).map(|(_, width)| width).filter(|&width| width < rest.len())
        } else {
            find(rest, separator)
        };
        let Some(at) = cut else { break };
        parts.push(rest[..at].into());
        budget.check_made(parts.len())?;
        rest = &rest[at + separator.len()..];
    }
    if !separator.is_empty() || !rest.is_empty() {
        parts.push(rest.into());
    }
    Ok(parts)
}

fn numbered(parts: Vec<Text>, budget: &mut Budget<'_>) -> Result<Value, Failure> {
    // Each part is stored with its key and its map entry.
    budget.check_made(parts.len().saturating_mul(4))?;
    budget.step(parts.len().saturating_mul(ENTRY_BYTES))?;
    let entries = parts.into_iter().enumerate().map(|(i, part)| (format!("_{i}").into(), part.into()));
    Ok(Map::new(&TEXT_MAP, entries).into())
}
