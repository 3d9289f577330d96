//! The starts of a cron expression in a time zone.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::cron::Expression;
use super::local_time::{first_instant, last_change};
use super::period::Phase;

/// A window that begins at the starts of a cron expression.
///
/// Its length is elapsed time, and windows that overlap are one. A start that a clock change skips takes place right
/// after the gap, and one that occurs twice takes place the first time. As in Vixie's cron, this does not hold if
/// the hour is `*`: then the starts follow the clock. Otherwise a window of an hour at each hour would leave an hour
/// uncovered when clocks go back. A list of hours or a step follows the rule, so that no start in a gap is lost.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recurrence {
    expression: Expression,
    length: SignedDuration,
    zone: TimeZone,
}

impl Recurrence {
    pub(super) fn new(expression: Expression, length: SignedDuration, zone: TimeZone) -> Self {
        Self { expression, length, zone }
    }

    /// Returns whether a window is active, and the time until which that is certain.
    ///
    /// The end is that of the last window that has started; another window may start before it.
    pub(super) fn phase(&self, now: Timestamp) -> Phase {
        let end = |start: Timestamp| start.checked_add(self.length).unwrap_or(Timestamp::MAX);
        match self.last_start(now).map(end) {
            Some(end) if now < end => Phase { is_active: true, until: Some(end) },
            _ => Phase { is_active: false, until: self.next_start(now) },
        }
    }

    /// Returns the last start up to a time.
    fn last_start(&self, now: Timestamp) -> Option<Timestamp> {
        let Expression { cron, has_any_hour } = &self.expression;
        if *has_any_hour {
            let now = now.to_zoned(self.zone.clone());
            return cron.find_previous_occurrence(&now, true).ok().map(|start| start.timestamp());
        }
        let local = match self.shown_before(now) {
            Some(end) => cron.find_previous_occurrence(&end, false),
            None => cron.find_previous_occurrence(&self.zone.to_datetime(now), true),
        };
        first_instant(&self.zone, local.ok()?)
    }

    /// Returns the first start after a time.
    fn next_start(&self, now: Timestamp) -> Option<Timestamp> {
        let Expression { cron, has_any_hour } = &self.expression;
        if *has_any_hour {
            let now = now.to_zoned(self.zone.clone());
            return cron.find_next_occurrence(&now, false).ok().map(|start| start.timestamp());
        }
        let local = match self.shown_before(now) {
            Some(end) => cron.find_next_occurrence(&end, true),
            None => cron.find_next_occurrence(&self.zone.to_datetime(now), false),
        };
        first_instant(&self.zone, local.ok()?)
    }

    /// Returns the end of the repeated local times, if `now` is in the second half.
    ///
    /// Until then, the clock shows times that it has shown before.
    fn shown_before(&self, now: Timestamp) -> Option<DateTime> {
        let (_, end) = last_change(&self.zone, now)?;
        (self.zone.to_datetime(now) < end).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cron;
    use super::super::local_time::time_zone;
    use super::*;

    fn recurrence(cron: &str, minutes: i64, zone: &str) -> Recurrence {
        let length = SignedDuration::from_mins(minutes);
        Recurrence::new(cron::parse(cron).unwrap(), length, time_zone(Some(zone)).unwrap())
    }

    /// The starts after a time; each is also the last start up to itself.
    fn starts(recurrence: &Recurrence, from: &str, count: usize) -> Vec<String> {
        let mut now: Timestamp = from.parse().unwrap();
        let starts = std::iter::from_fn(|| {
            let next = recurrence.next_start(now)?;
            assert_eq!(recurrence.last_start(next), Some(next));
            let just_before = next.checked_sub(SignedDuration::from_millis(1)).unwrap();
            assert!(recurrence.last_start(just_before).unwrap() <= now, "{next}");
            now = next;
            Some(next.strftime("%dT%H:%M").to_string())
        });
        starts.take(count).collect()
    }

    /// Starts in UTC, in nights with clock changes in Berlin.
    ///
    /// 2026-03-29 has no 02:00 to 02:59, and 2026-10-25 has them twice.
    #[test]
    fn starts_follow_vixies_rules_when_clocks_change() {
        let spring = "2026-03-28T12:00:00Z";
        let autumn = "2026-10-24T12:00:00Z";
        for (cron, from, expected) in [
            ("30 2 * * *", spring, ["29T01:00", "30T00:30", "31T00:30"]),
            ("0 2 * * *", spring, ["29T01:00", "30T00:00", "31T00:00"]),
            ("0 3 * * *", spring, ["29T01:00", "30T01:00", "31T01:00"]),
            ("0,30 2 * * *", spring, ["29T01:00", "30T00:00", "30T00:30"]),
            ("30 1-3 * * *", spring, ["29T00:30", "29T01:00", "29T01:30"]),
            ("30 2,9 * * 0", spring, ["29T01:00", "29T07:30", "05T00:30"]),
            ("0 */2 * * 0", spring, ["28T23:00", "29T01:00", "29T02:00"]),
            ("30 2 * * *", autumn, ["25T00:30", "26T01:30", "27T01:30"]),
            ("0 2 * * *", autumn, ["25T00:00", "26T01:00", "27T01:00"]),
            ("0 3 * * *", autumn, ["25T02:00", "26T02:00", "27T02:00"]),
            ("30 1-3 * * *", autumn, ["24T23:30", "25T00:30", "25T02:30"]),
            ("0 */2 * * 0", autumn, ["24T22:00", "25T00:00", "25T03:00"]),
            // Any hour: the starts follow the clock. With a list of all hours, each takes place once.
            ("30 * 29 3 *", spring, ["28T23:30", "29T00:30", "29T01:30"]),
            ("30 * * * *", "2026-10-24T23:40:00Z", ["25T00:30", "25T01:30", "25T02:30"]),
            ("30 */1 * * *", "2026-10-24T23:40:00Z", ["25T00:30", "25T01:30", "25T02:30"]),
            ("30 0-23 * * *", "2026-10-24T23:40:00Z", ["25T00:30", "25T02:30", "25T03:30"]),
            ("30 0-23 29 3 *", spring, ["28T23:30", "29T00:30", "29T01:00"]),
        ] {
            assert_eq!(starts(&recurrence(cron, 60, "Europe/Berlin"), from, 3), expected, "{cron} {from}");
        }
    }

    #[test]
    fn a_skipped_day_has_its_starts_right_after_it() {
        // 2011-12-30 was skipped in Apia, from UTC-10 to UTC+14.
        let apia = recurrence("0 9 * * *", 60, "Pacific/Apia");
        assert_eq!(starts(&apia, "2011-12-29T00:00:00Z", 3), ["29T19:00", "30T10:00", "30T19:00"]);
    }

    #[test]
    fn the_length_of_a_window_is_elapsed_time() {
        let night = recurrence("0 22 * * *", 8 * 60, "Europe/Berlin");
        for (now, is_active, until) in [
            ("2026-03-28T20:59:59.999Z", false, "2026-03-28T21:00:00Z"),
            ("2026-03-28T21:00:00Z", true, "2026-03-29T05:00:00Z"),
            ("2026-03-29T04:59:59.999Z", true, "2026-03-29T05:00:00Z"),
            ("2026-03-29T05:00:00Z", false, "2026-03-29T20:00:00Z"),
            ("2026-10-25T03:59:59Z", true, "2026-10-25T04:00:00Z"),
            ("2026-10-25T04:00:00Z", false, "2026-10-25T21:00:00Z"),
        ] {
            let expected = Phase { is_active, until: Some(until.parse().unwrap()) };
            assert_eq!(night.phase(now.parse().unwrap()), expected, "{now}");
        }
    }

    #[test]
    fn a_window_at_every_hour_leaves_no_gap() {
        let always = recurrence("0 * * * *", 60, "Europe/Berlin");
        let mut now: Timestamp = "2026-10-24T12:00:00Z".parse().unwrap();
        for _ in 0..48 * 60 {
            assert!(always.phase(now).is_active, "{now}");
            now = now.checked_add(SignedDuration::from_mins(1)).unwrap();
        }
    }

    #[test]
    fn a_rare_start_is_found() {
        let leap_day = recurrence("0 0 29 2 *", 60, "UTC");
        let now = "2026-11-28T00:00:00Z".parse().unwrap();
        assert_eq!(leap_day.last_start(now).unwrap().to_string(), "2024-02-29T00:00:00Z");
        assert_eq!(leap_day.next_start(now).unwrap().to_string(), "2028-02-29T00:00:00Z");
    }
}
