//! Parses integers.

use tagboat_go_text::number::has_proper_underscores;

use super::NumberError;

/// Parses an unsigned integer; base 0 follows the prefix and allows underscores.
pub(crate) fn parse_uint(text: &str, base: u32) -> Result<u64, NumberError> {
    let (mut radix, mut digits) = (base, text);
    if base == 0 {
        (radix, digits) = match text.as_bytes() {
            [b'0', b'b' | b'B', _, ..] => (2, &text[2..]),
            [b'0', b'o' | b'O', _, ..] => (8, &text[2..]),
            [b'0', b'x' | b'X', _, ..] => (16, &text[2..]),
            [b'0', ..] => (8, &text[1..]),
            _ => (10, text),
        };
        if text == "0" {
            return Ok(0);
        }
    }
    if text.is_empty() {
        return Err(NumberError::Syntax);
    }
    let mut number: Option<u64> = Some(0);
    let mut has_underscore = false;
    for c in digits.chars() {
        if c == '_' && base == 0 {
            has_underscore = true;
            continue;
        }
        let digit = c.to_digit(radix).ok_or(NumberError::Syntax)?;
        number = number.and_then(|n| n.checked_mul(radix.into())?.checked_add(digit.into()));
    }
    if has_underscore && !has_proper_underscores(text) {
        return Err(NumberError::Syntax);
    }
    number.ok_or(NumberError::Range)
}

/// Parses a signed integer.
pub(crate) fn parse_int(text: &str, base: u32) -> Result<i64, NumberError> {
    let is_negative = text.starts_with('-');
    let magnitude = parse_uint(text.strip_prefix(['+', '-']).unwrap_or(text), base)?;
    if is_negative {
        0i64.checked_sub_unsigned(magnitude).ok_or(NumberError::Range)
    } else {
        i64::try_from(magnitude).map_err(|_| NumberError::Range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_parsed_as_in_go() {
        for (text, expected) in [
            ("0", Ok(0)),
            ("-0", Ok(0)),
            ("017", Ok(15)),
            ("0o17", Ok(15)),
            ("0x_ff", Ok(255)),
            ("0b101", Ok(5)),
            ("1_000", Ok(1000)),
            ("1__0", Err(NumberError::Syntax)),
            ("_1", Err(NumberError::Syntax)),
            ("08", Err(NumberError::Syntax)),
            ("0x", Err(NumberError::Syntax)),
            ("", Err(NumberError::Syntax)),
            ("+5", Ok(5)),
            ("-9223372036854775808", Ok(i64::MIN)),
            ("9223372036854775808", Err(NumberError::Range)),
        ] {
            assert_eq!(parse_int(text, 0), expected, "{text}");
        }
    }
}
