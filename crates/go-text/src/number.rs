//! Parses floating-point numbers as Go's `strconv.ParseFloat` does.

/// The error of a text that is not a number, with Go's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// The text does not have the form of a number.
    #[error("invalid syntax")]
    Syntax,
    /// The number is too large.
    #[error("value out of range")]
    Range,
}

/// Parses a floating-point number, decimal or hexadecimal, `inf` and `nan` included.
///
/// Underscores may separate digits.
///
/// # Errors
///
/// If the text is not a number, or the number is out of range.
pub fn parse_float(text: &str) -> Result<f64, NumberError> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    let lower = unsigned.to_ascii_lowercase();
    match lower.as_str() {
        "inf" | "infinity" => return Ok(sign * f64::INFINITY),
        // `nan` has no sign.
        "nan" if unsigned.len() == text.len() => return Ok(f64::NAN),
        _ => {}
    }
    if !has_proper_underscores(text) {
        return Err(NumberError::Syntax);
    }
    let digits = lower.replace('_', "");
    let number = match digits.strip_prefix("0x") {
        Some(digits) => parse_hex(digits)?,
        None => parse_decimal(&digits)?,
    };
    if number.is_infinite() { Err(NumberError::Range) } else { Ok(sign * number) }
}

fn parse_decimal(text: &str) -> Result<f64, NumberError> {
    // Rust also accepts words and a second sign here; Go accepts digits only.
    if !text.starts_with(|c: char| c == '.' || c.is_ascii_digit()) {
        return Err(NumberError::Syntax);
    }
    text.parse().map_err(|_| NumberError::Syntax)
}

fn parse_hex(text: &str) -> Result<f64, NumberError> {
    let (mantissa, exponent) = text.split_once('p').ok_or(NumberError::Syntax)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = 0u128;
    let mut shift = 0i64;
    if whole.is_empty() && fraction.is_empty() {
        return Err(NumberError::Syntax);
    }
    for (i, c) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = c.to_digit(16).ok_or(NumberError::Syntax)?;
        if digits >> 120 == 0 {
            digits = digits << 4 | u128::from(digit);
            shift -= 4 * i64::from(i >= whole.len());
        } else {
            // Digits beyond the precision can only break a tie.
            digits |= u128::from(digit != 0);
            shift += 4 * i64::from(i < whole.len());
        }
    }
    let exponent_digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if exponent_digits.is_empty() || !exponent_digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(NumberError::Syntax);
    }
    let exponent: i64 = exponent.trim_start_matches('+').parse().unwrap_or(if exponent.starts_with('-') {
        -100_000
    } else {
        100_000
    });
    Ok(scale(digits, exponent.saturating_add(shift)))
}

/// Returns `digits * 2^exponent`, rounded once, half to even.
fn scale(digits: u128, exponent: i64) -> f64 {
    if digits == 0 {
        return 0.0;
    }
    let length = i64::from(128 - digits.leading_zeros());
    // The exponent of the last bit that the result can have.
    let last = (length + exponent - 53).max(-1074);
    let drop = last - exponent;
    let mut mantissa = digits;
    if drop >= 128 {
        mantissa = 0;
    } else if drop > 0 {
        let rest = digits & ((1 << drop) - 1);
        let half = 1u128 << (drop - 1);
        mantissa = digits >> drop;
        if rest > half || rest == half && mantissa & 1 == 1 {
            mantissa += 1;
        }
    }
    let exponent = exponent.max(last);
    if exponent > 1100 {
        return f64::INFINITY;
    }
    // Both factors are exact, and so is each product, except at the very end of the range.
    let mut result = mantissa as f64;
    let mut left = exponent;
    while left != 0 {
        let step = left.clamp(-500, 500);
        result *= 2f64.powi(i32::try_from(step).expect("at most 500"));
        left -= step;
    }
    result
}

/// Returns whether underscores stand only between digits, or between a prefix and a digit.
pub fn has_proper_underscores(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let bytes = text.as_bytes();
    let has_prefix = bytes.first() == Some(&b'0')
        && bytes.get(1).is_some_and(|b| matches!(b.to_ascii_lowercase(), b'b' | b'o' | b'x'));
    let is_hex = has_prefix && bytes[1].eq_ignore_ascii_case(&b'x');
    // The previous kind of byte: a digit (the prefix counts as one), an underscore, another byte, or the start.
    let mut last = if has_prefix { b'0' } else { b'^' };
    for &b in if has_prefix { &bytes[2..] } else { bytes } {
        let is_digit = b.is_ascii_digit() || is_hex && b.is_ascii_hexdigit();
        if b == b'_' {
            if last != b'0' {
                return false;
            }
            last = b'_';
        } else {
            if !is_digit && last == b'_' {
                return false;
            }
            last = if is_digit { b'0' } else { b'!' };
        }
    }
    last != b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_numbers_are_rounded_once() {
        assert_eq!(parse_float("0x1p-2"), Ok(0.25));
        assert_eq!(parse_float("0x1.8p1"), Ok(3.0));
        assert_eq!(parse_float("0x10000000000000081p0"), Ok(18_446_744_073_709_552_000.0 + 4096.0 - 4096.0));
        assert_eq!(parse_float("0x1p-1075"), Ok(0.0));
        assert_eq!(parse_float("1e400"), Err(NumberError::Range));
        assert_eq!(parse_float("1_0.5"), Ok(10.5));
        assert_eq!(parse_float("."), Err(NumberError::Syntax));
    }
}
