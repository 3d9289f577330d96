//! The pause that a server asks for with `Retry-After`.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Parses `Retry-After` (RFC 9110, section 10.2.3): seconds or a date.
///
/// A number of seconds may exceed any integer type. Returns `None` for a value of another form.
pub fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let wait = http_date(value)?.duration_since(TimeZone::UTC.to_datetime(now));
    Some(Duration::try_from(wait).unwrap_or_default())
}

/// Parses a date in any of the three forms of RFC 9110, section 5.6.7.
///
/// The day of the week is ignored.
fn http_date(text: &str) -> Option<DateTime> {
    let (form, date) = match text.split_once(", ") {
        Some((_, date)) if date.contains('-') => ("%d-%b-%y %H:%M:%S GMT", date),
        Some((_, date)) => ("%d %b %Y %H:%M:%S GMT", date),
        None => ("%b %e %H:%M:%S %Y", text.split_once(' ')?.1),
    };
    DateTime::strptime(form, date).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_in_seconds_or_a_date() {
        let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        for (value, expected) in [
            ("30", Some(30)),
            (" 0 ", Some(0)),
            ("Sat, 21 Nov 2026 10:01:00 GMT", Some(60)),
            ("Sat, 21 Nov 2026 09:00:00 GMT", Some(0)),
            ("Saturday, 21-Nov-26 10:01:00 GMT", Some(60)),
            ("Sat Nov 21 10:01:00 2026", Some(60)),
            ("Tue Dec  1 10:00:00 2026", Some(864_000)),
            ("Mon, 21 Nov 2026 10:01:00 GMT", Some(60)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", Some(u64::MAX)),
            (&"9".repeat(400), Some(u64::MAX)),
            ("00000000000000000000000000000000000000030", Some(30)),
            ("+30", None),
            ("1.5", None),
            ("30, 60", None),
            ("Sat, 21 Nov 2026 10:01:00", None),
            ("Sat, 31 Nov 2026 10:01:00 GMT", None),
            ("-1", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(retry_after(value, now), expected.map(Duration::from_secs), "{value}");
        }
    }
}
