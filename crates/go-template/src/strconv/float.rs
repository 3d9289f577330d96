//! Formats floating-point numbers.

/// The largest number of decimals of any float; all further digits are zeros.
///
/// Rust's own formatting ends at 65,535 digits.
const MAX_DECIMALS: usize = 1_100;

/// The notation of a float.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FloatFormat {
    /// `-ddd.dddd`.
    Plain,
    /// `-d.dddde±dd`.
    Exponent,
    /// The shorter of both notations.
    General,
    /// `-ddddp±ddd`, with a binary exponent.
    Binary,
    /// `-0x1.yyyyp±dd`.
    Hex,
}

/// Formats a float with a precision.
///
/// Without a precision it uses the fewest digits that identify the float.
pub(crate) fn format_float(number: f64, format: FloatFormat, precision: Option<usize>) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let magnitude = number.abs();
    let text = match format {
        FloatFormat::Plain => plain(magnitude, precision),
        FloatFormat::Exponent => exponent(magnitude, precision),
        FloatFormat::General => general(magnitude, precision),
        FloatFormat::Binary => binary(magnitude),
        FloatFormat::Hex => hex(magnitude, precision),
    };
    format!("{sign}{text}")
}

fn plain(number: f64, precision: Option<usize>) -> String {
    let Some(precision) = precision else { return format!("{number}") };
    let exact = precision.min(MAX_DECIMALS);
    format!("{number:.exact$}") + &"0".repeat(precision - exact)
}

/// Returns the digits without a point, and the decimal exponent of the first digit.
fn digits(number: f64, precision: Option<usize>) -> (String, i32) {
    let text = match precision.map(|precision| precision.min(MAX_DECIMALS)) {
        Some(exact) => format!("{number:.exact$e}"),
        None => format!("{number:e}"),
    };
    let (mantissa, exponent) = text.split_once('e').expect("Rust writes an exponent here");
    (mantissa.replace('.', ""), exponent.parse().expect("Rust writes a number here"))
}

fn exponent(number: f64, precision: Option<usize>) -> String {
    let (mut digits, exponent) = digits(number, precision);
    let missing = precision.unwrap_or(0).saturating_sub(MAX_DECIMALS);
    digits.push_str(&"0".repeat(missing));
    with_exponent(&digits, exponent)
}

fn with_exponent(digits: &str, exponent: i32) -> String {
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{first}{point}{rest}e{sign}{:02}", exponent.abs())
}

fn general(number: f64, precision: Option<usize>) -> String {
    let precision = precision.map(|precision| precision.max(1));
    let (mut digits, exponent) = digits(number, precision.map(|precision| precision - 1));
    let kept = digits.trim_end_matches('0').len().max(1);
    digits.truncate(kept);
    // The exponent from which on the exponent notation is used.
    let limit = match precision {
        None => 6,
        Some(precision) if precision > digits.len() && digits.len() as i32 > exponent => digits.len(),
        Some(precision) => precision,
    };
    if exponent < -4 || i64::from(exponent) >= limit as i64 {
        return with_exponent(&digits, exponent);
    }
    let decimals = i64::from(digits.len() as i32 - 1 - exponent).max(0);
    let mut text = String::new();
    if exponent < 0 {
        text.push_str("0.");
        text.extend(std::iter::repeat_n('0', exponent.unsigned_abs() as usize - 1));
        text.push_str(&digits);
        return text;
    }
    let whole = exponent.unsigned_abs() as usize + 1;
    for i in 0..whole {
        text.push(digits.chars().nth(i).unwrap_or('0'));
    }
    if decimals > 0 {
        text.push('.');
        text.push_str(&digits[whole..]);
    }
    text
}

/// Returns the mantissa, and the binary exponent of its last bit.
fn parts(number: f64) -> (u64, i32) {
    let bits = number.to_bits();
    let exponent = i32::try_from(bits >> 52 & 0x7ff).expect("eleven bits");
    let fraction = bits & ((1 << 52) - 1);
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

fn binary(number: f64) -> String {
    let (mantissa, exponent) = parts(number);
    format!("{mantissa}p{exponent:+}")
}

fn hex(number: f64, precision: Option<usize>) -> String {
    let (mut mantissa, mut exponent) = parts(number);
    if mantissa == 0 {
        exponent = 0;
    } else {
        // The first bit is at bit 60, right before the point.
        let shift = mantissa.leading_zeros() - 3;
        mantissa <<= shift;
        exponent += 60 - i32::try_from(shift).expect("at most 63");
    }
    if let Some(precision) = precision.filter(|&precision| precision < 15) {
        let shift = u32::try_from(precision * 4).expect("at most 56");
        let extra = (mantissa << shift) & ((1 << 60) - 1);
        mantissa >>= 60 - shift;
        if (extra | (mantissa & 1)) > 1 << 59 {
            mantissa += 1;
        }
        mantissa <<= 60 - shift;
        if mantissa & (1 << 61) != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let mut digits = format!("{:015x}", mantissa & ((1 << 60) - 1));
    match precision {
        None => digits.truncate(digits.trim_end_matches('0').len()),
        Some(precision) => {
            digits.truncate(precision);
            digits.push_str(&"0".repeat(precision - digits.len()));
        }
    }
    let point = if digits.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("0x{}{point}{digits}p{sign}{:02}", mantissa >> 60, exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_formatted_as_in_go() {
        for (number, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1e20, "1e+20"),
            (123_456.0, "123456"),
            (1_234_567.0, "1.234567e+06"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (123_456_789.0, "1.23456789e+08"),
            (100.0, "100"),
            (3.25, "3.25"),
            (f64::MAX, "1.7976931348623157e+308"),
        ] {
            assert_eq!(format_float(number, FloatFormat::General, None), expected);
        }
        assert_eq!(format_float(1234.5678, FloatFormat::General, Some(3)), "1.23e+03");
        assert_eq!(format_float(100.0, FloatFormat::General, Some(3)), "100");
        assert_eq!(format_float(0.5, FloatFormat::Plain, Some(0)), "0");
        assert_eq!(format_float(1.0, FloatFormat::Hex, None), "0x1p+00");
        assert_eq!(format_float(3.25, FloatFormat::Hex, Some(1)), "0x1.ap+01");
        assert_eq!(format_float(1.0, FloatFormat::Binary, None), "4503599627370496p-52");
    }

    #[test]
    fn any_precision_can_be_asked_for() {
        let zeros = "0".repeat(99_998);
        for (format, expected) in [
            (FloatFormat::Plain, format!("1.25{zeros}")),
            (FloatFormat::Exponent, format!("1.25{zeros}e+00")),
            (FloatFormat::Hex, format!("0x1.40{zeros}p+00")),
            (FloatFormat::General, "1.25".to_owned()),
        ] {
            assert_eq!(format_float(1.25, format, Some(100_000)), expected, "{format:?}");
        }
        let least = format_float(f64::from_bits(1), FloatFormat::Plain, Some(2_000));
        assert!(least.trim_end_matches('0').len() == 1_076 && least.len() == 2_002);
    }
}
