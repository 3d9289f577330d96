//! Converts values to strings and numbers, as sprig and `spf13/cast` do.

use crate::budget::{Budget, Failure};
use crate::format::print_value;
use crate::strconv::{parse_float, parse_int};
use crate::text::Text;
use crate::value::{IntKind, Value};

/// Converts a value to a string.
pub(super) fn text_of(value: &Value, budget: &Budget<'_>) -> Result<Text, Failure> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Slice(slice) if let Some(bytes) = slice.bytes() => Ok(bytes.into()),
        other => Ok(print_value(other, budget.most())?.into()),
    }
}

/// Converts a value to a list of strings; nil elements are skipped.
pub(super) fn texts_of(value: &Value, budget: &mut Budget<'_>) -> Result<Vec<Text>, Failure> {
    match value {
        Value::Nil => Ok(Vec::new()),
        Value::Slice(slice) => {
            let mut texts = Vec::new();
            let mut size = 0;
            slice.try_each(|_, item| {
                if matches!(item, Value::Nil) {
                    return Ok::<(), Failure>(());
                }
                let text = text_of(item, budget)?;
                size += text.len();
                budget.check_size(size)?;
                budget.check_made(texts.len())?;
                budget.step(text.len())?;
                texts.push(text);
                Ok(())
            })?;
            Ok(texts)
        }
        other => Ok(vec![text_of(other, budget)?]),
    }
}

/// Converts a value to an `int64`, 0 if that is impossible.
pub(super) fn int_of(value: &Value) -> i64 {
    match value.indirect() {
        Value::Int(number, kind) if is_number(kind) => number,
        Value::Uint(number, _) => number.cast_signed(),
        Value::Float(number) => truncated(number),
        Value::Bool(truth) => i64::from(truth),
        Value::String(text) => std::str::from_utf8(text.as_bytes())
            .ok()
            .and_then(|text| parse_int(without_zero_decimals(text), 0).ok())
            .unwrap_or(0),
        _ => 0,
    }
}

/// Converts a value to a `float64`, 0 if that is impossible.
pub(super) fn float_of(value: &Value) -> f64 {
    match value.indirect() {
        Value::Int(number, kind) if is_number(kind) => number as f64,
        Value::Uint(number, _) => number as f64,
        Value::Float(number) => number,
        Value::Bool(truth) => f64::from(u8::from(truth)),
        Value::String(text) => {
            std::str::from_utf8(text.as_bytes()).ok().and_then(|text| parse_float(text).ok()).unwrap_or(0.0)
        }
        _ => 0.0,
    }
}

/// Converts a float to an integer as Go does on amd64.
///
/// A number out of range gives the minimum integer.
pub(super) fn truncated(number: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

/// Removes a zero fraction from a number, with the special cases of the library.
fn without_zero_decimals(text: &str) -> &str {
    let mut has_zero = false;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b'.' if has_zero => return &text[..at],
            b'.' => {}
            b'0' => has_zero = true,
            _ => break,
        }
    }
    text
}

/// Returns whether the library treats an integer type as a number.
fn is_number(kind: IntKind) -> bool {
    match kind {
        IntKind::Named(named) => matches!(named.name, "time.Month" | "time.Weekday"),
        _ => true,
    }
}
