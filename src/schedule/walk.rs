//! Compares agendas with a walk over every minute of a year.

use jiff::Timestamp;
use jiff::civil::{Date, Weekday, date};
use jiff::tz::TimeZone;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::local_time::time_zone;
use super::{Agenda, Rule, Source};

/// Time zones, each with a year.
///
/// In some of these years, clocks change in an uncommon way.
const ZONES: [(&str, i16); 12] = [
    ("UTC", 2026),
    ("Europe/Berlin", 2026),
    ("Europe/Dublin", 2025),
    ("America/New_York", 2027),
    ("America/St_Johns", 2011),
    ("America/Sao_Paulo", 2018),
    ("Africa/Casablanca", 2026),
    ("Asia/Kathmandu", 1985),
    ("Asia/Tehran", 2022),
    ("Australia/Lord_Howe", 2026),
    ("Pacific/Apia", 2011),
    ("Pacific/Chatham", 2026),
];

/// The number of compared times in each zone.
const TIMES: usize = 500;

/// The number of minutes of a year.
const MINUTES: usize = 365 * 24 * 60;

/// The number of minutes before the year, which are those of the longest window.
const MARGIN: usize = 4 * 24 * 60;

/// The number of minutes in which the next change is compared.
const AHEAD: usize = 30 * 24 * 60;

/// A window, and its starts in another form.
struct Window {
    cron: &'static str,
    minutes: usize,
    starts_at: fn(&Local) -> bool,
    /// The hour is `*`.
    is_hourly: bool,
}

/// A minute as a clock shows it.
struct Local {
    minute: i64,
    hour: i64,
    day: i8,
    month: i8,
    weekday: Weekday,
}

const WINDOWS: [Window; 10] = [
    Window {
        cron: "30 2 * * *",
        minutes: 45,
        starts_at: |local| local.hour == 2 && local.minute == 30,
        is_hourly: false,
    },
    Window {
        cron: "0 0 * * *",
        minutes: 61,
        starts_at: |local| local.hour == 0 && local.minute == 0,
        is_hourly: false,
    },
    Window {
        cron: "10,50 0-3 * * *",
        minutes: 25,
        starts_at: |local| local.hour <= 3 && [10, 50].contains(&local.minute),
        is_hourly: false,
    },
    Window { cron: "*/20 * * * *", minutes: 10, starts_at: |local| local.minute % 20 == 0, is_hourly: true },
    Window {
        cron: "5 */2 * * *",
        minutes: 90,
        starts_at: |local| local.hour % 2 == 0 && local.minute == 5,
        is_hourly: false,
    },
    Window {
        cron: "0 9 * * 1-4",
        minutes: 7 * 60,
        starts_at: |local| {
            let is_day = (1..=4).contains(&local.weekday.to_sunday_zero_offset());
            is_day && local.hour == 9 && local.minute == 0
        },
        is_hourly: false,
    },
    Window {
        cron: "59 23 1,15 * sun",
        minutes: 26 * 60,
        starts_at: |local| {
            let is_day = [1, 15].contains(&local.day) || local.weekday == Weekday::Sunday;
            is_day && local.hour == 23 && local.minute == 59
        },
        is_hourly: false,
    },
    Window {
        cron: "0 1 */7 mar-nov sat,sun",
        minutes: 4 * 24 * 60,
        starts_at: |local| {
            let is_weekend = matches!(local.weekday, Weekday::Saturday | Weekday::Sunday);
            let is_day = local.day % 7 == 1 && (3..=11).contains(&local.month) && is_weekend;
            is_day && local.hour == 1 && local.minute == 0
        },
        is_hourly: false,
    },
    Window {
        cron: "15 0-23 * * 0",
        minutes: 30,
        starts_at: |local| local.weekday == Weekday::Sunday && local.minute == 15,
        is_hourly: false,
    },
    Window { cron: "* 2 * * *", minutes: 1, starts_at: |local| local.hour == 2, is_hourly: false },
];

/// Clocks of a zone, minute by minute.
struct Clock {
    zone: TimeZone,
    /// The date of a count of days, computed once a day.
    today: (i64, Date),
}

impl Clock {
    /// Returns the minutes that a clock in UTC would show, counted from 1970.
    fn shown(&self, minute: i64) -> i64 {
        let at = Timestamp::from_second(minute * 60).unwrap();
        minute + i64::from(self.zone.to_offset(at).seconds()) / 60
    }

    fn local(&mut self, shown: i64) -> Local {
        let days = shown.div_euclid(24 * 60);
        if self.today.0 != days {
            let date = date(1970, 1, 1).checked_add(jiff::Span::new().days(days)).unwrap();
            self.today = (days, date);
        }
        let (rest, date) = (shown.rem_euclid(24 * 60), self.today.1);
        Local {
            minute: rest % 60,
            hour: rest / 60,
            day: date.day(),
            month: date.month(),
            weekday: date.weekday(),
        }
    }
}

/// Returns for each window the minutes in which it is active, from a first one.
fn walk(zone: &TimeZone, first: i64) -> Vec<Vec<bool>> {
    let mut clock = Clock { zone: zone.clone(), today: (i64::MIN, Date::MIN) };
    let mut highest = clock.shown(first - 1);
    let mut remaining = [0; WINDOWS.len()];
    let mut active = vec![Vec::with_capacity(MARGIN + MINUTES); WINDOWS.len()];
    for minute in (first..).take(MARGIN + MINUTES) {
        let shown = clock.shown(minute);
        let now = clock.local(shown);
        // Minutes that the clock shows for the first time, or skips: more than one after a gap, else one or none.
        let new: Vec<Local> = (highest + 1..=shown).map(|minute| clock.local(minute)).collect();
        highest = highest.max(shown);
        for (index, window) in WINDOWS.iter().enumerate() {
            let minutes = if window.is_hourly { std::slice::from_ref(&now) } else { &new };
            if minutes.iter().any(window.starts_at) {
                remaining[index] = window.minutes;
            }
            active[index].push(remaining[index] > 0);
            remaining[index] = remaining[index].saturating_sub(1);
        }
    }
    active
}

/// Makes an agenda of a window that denies, and one that allows or none.
fn agenda(zone: &str, allow: Option<&Window>, deny: &Window) -> Agenda {
    let entry = |kind, window: &Window| {
        let (cron, minutes) = (window.cron, window.minutes);
        format!("- {{name: x, kind: {kind}, cron: '{cron}', window: {minutes}m, timeZone: {zone}}}\n")
    };
    let list = entry("deny", deny) + &allow.map(|allow| entry("allow", allow)).unwrap_or_default();
    Agenda::new(vec![Source { name: "x".to_owned(), rule: Rule::Windows(list.parse().unwrap()) }])
}

#[test]
fn an_agenda_agrees_with_a_walk_over_every_minute() {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    for (index, (name, year)) in ZONES.into_iter().enumerate() {
        let zone = time_zone(Some(name)).unwrap();
        let begin = date(year, 1, 1).to_zoned(TimeZone::UTC).unwrap().timestamp().as_second() / 60;
        let first = begin - i64::try_from(MARGIN).unwrap();
        // Minutes around the clock changes of the year, which are half of the compared ones.
        let start = Timestamp::from_second(begin * 60).unwrap();
        let changes = zone.following(start).map(|change| change.timestamp().as_second() / 60 - first);
        let changes: Vec<i64> = changes.take_while(|minute| *minute < (MARGIN + MINUTES) as i64).collect();
        let walked = walk(&zone, first);
        for pair in 0..WINDOWS.len() {
            // Each zone has other pairs.
            let (allow, deny) = ((pair + 1 + index % 9) % WINDOWS.len(), pair);
            let with_allow = pair % 2 == 0;
            let agenda = agenda(name, with_allow.then_some(&WINDOWS[allow]), &WINDOWS[deny]);
            let is_open = |minute: usize| !walked[deny][minute] && (!with_allow || walked[allow][minute]);
            for time in 0..TIMES / WINDOWS.len() {
                let anywhere = MARGIN + random.next_u32() as usize % MINUTES;
                let minute = if time % 2 == 0 || changes.is_empty() {
                    anywhere
                } else {
                    let change = changes[random.next_u32() as usize % changes.len()];
                    let near = change + i64::from(random.next_u32() % 400) - 200;
                    usize::try_from(near).unwrap().clamp(MARGIN, MARGIN + MINUTES - 1)
                };
                let second = (first + minute as i64) * 60 + i64::from(random.next_u32() % 60);
                let now = Timestamp::from_second(second).unwrap();
                let label = format!("{name} {now} {} {}", WINDOWS[allow].cron, WINDOWS[deny].cron);
                let outlook = agenda.outlook(now);
                assert_eq!(outlook.state.is_open(), is_open(minute), "{label}");
                let mut ahead = (minute..MARGIN + MINUTES).take(AHEAD);
                let Some(change) = ahead.find(|later| is_open(*later) != is_open(minute)) else { continue };
                let next = outlook.next.expect(&label);
                assert_eq!(next.at.as_second(), (first + change as i64) * 60, "{label}");
                assert_eq!(next.is_open, !is_open(minute), "{label}");
            }
        }
    }
}
