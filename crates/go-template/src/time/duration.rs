//! Durations, in nanoseconds.

use super::parse::quote;

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Formats a duration as Go does, for example `1h2m3.5s`.
pub(crate) fn show_duration(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let total = nanoseconds.unsigned_abs();
    let text = match total {
        0 => "0s".to_owned(),
        1..1_000 => format!("{total}ns"),
        1_000..1_000_000 => with_fraction(total, 3) + "µs",
        1_000_000..1_000_000_000 => with_fraction(total, 6) + "ms",
        _ => {
            let minutes = total / 60_000_000_000;
            let seconds = with_fraction(total % 60_000_000_000, 9);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

/// Formats a number with a decimal point before its last `digits` digits, without trailing zeros.
fn with_fraction(number: u64, digits: u32) -> String {
    let power = 10u64.pow(digits);
    let fraction = format!("{:0width$}", number % power, width = digits as usize);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{}{point}{fraction}", number / power)
}

/// Parses a duration; the error is Go's.
pub(crate) fn parse_duration(text: &[u8]) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {}", quote(text));
    let is_negative = text.first() == Some(&b'-');
    let mut rest = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    if rest == b"0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0u64;
    while !rest.is_empty() {
        let whole = digits(&mut rest);
        let mut fraction = &rest[..0];
        let has_point = rest.first() == Some(&b'.');
        if has_point {
            rest = &rest[1..];
            fraction = digits(&mut rest);
        }
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = rest.iter().position(|byte| *byte == b'.' || byte.is_ascii_digit()).unwrap_or(rest.len());
        let (unit, after) = rest.split_at(end);
        rest = after;
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {}", quote(text)));
        }
        let Some(&(_, size)) = UNITS.iter().find(|(name, _)| name.as_bytes() == unit) else {
            return Err(format!("time: unknown unit {} in duration {}", quote(unit), quote(text)));
        };
        let part = length(whole, fraction, size).ok_or_else(invalid)?;
        total = total.checked_add(part).filter(|&total| total <= 1 << 63).ok_or_else(invalid)?;
    }
    if is_negative {
        return Ok(0i64.wrapping_sub_unsigned(total));
    }
    i64::try_from(total).map_err(|_| invalid())
}

fn digits<'t>(rest: &mut &'t [u8]) -> &'t [u8] {
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, after) = rest.split_at(count);
    *rest = after;
    digits
}

fn length(whole: &[u8], fraction: &[u8], unit: u64) -> Option<u64> {
    let read = |number: u64, digit: &u8| number.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    let mut whole = whole.iter().try_fold(0, read).filter(|&number| number <= 1 << 63)?;
    whole = whole.checked_mul(unit).filter(|&number| number <= 1 << 63)?;
    let (mut part, mut scale) = (0u64, 1f64);
    for digit in fraction {
        let Some(next) = read(part, digit).filter(|&next| next <= 1 << 63) else { break };
        part = next;
        scale *= 10.0;
    }
    if part > 0 {
        whole = whole.checked_add((part as f64 * (unit as f64 / scale)) as u64)?;
    }
    Some(whole).filter(|&number| number <= 1 << 63)
}
