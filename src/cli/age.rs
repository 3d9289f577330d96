//! The age of something, as a column of a table.

use jiff::Timestamp;

/// Returns the time since `begin` in its largest unit, such as `5m`; zero before it.
pub(super) fn age(begin: Timestamp, now: Timestamp) -> String {
    const UNITS: [(i64, &str); 4] = [(365 * 86_400, "y"), (86_400, "d"), (3600, "h"), (60, "m")];
    let seconds = now.duration_since(begin).as_secs().max(0);
    let unit = UNITS.iter().find(|(size, _)| seconds >= *size);
    unit.map_or_else(|| format!("{seconds}s"), |(size, name)| format!("{}{name}", seconds / size))
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        let now: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        for (seconds, expected) in [
            (-5, "0s"),
            (59, "59s"),
            (60, "1m"),
            (7199, "1h"),
            (86_400, "1d"),
            (364 * 86_400, "364d"),
            (800 * 86_400, "2y"),
        ] {
            let since = now - SignedDuration::from_secs(seconds);
            assert_eq!(age(since, now), expected);
        }
    }
}
