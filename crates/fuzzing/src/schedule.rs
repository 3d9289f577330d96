//! A time in the first line, and any text as windows and as a freeze.

use jiff::{SignedDuration, Timestamp};
use tagboat::printable::is_unprintable;
use tagboat::schedule::{Agenda, Freeze, Rule, SettingsError, Source, Windows};

use crate::text::text_of;

/// The maximum length of a reason: 301 characters, each of which may be escaped.
const MAX_REASON: usize = 301 * 10;

/// The number of changes that are looked at.
const CHANGES: usize = 3;

/// Parses a time in the first line, and the rest as windows and a freeze.
///
/// A refusal is one printable sentence. Changes are in their order, and the state changes at each of them.
pub fn schedule(input: &[u8]) {
    let text = text_of(input);
    let (time, value) = text.split_once('\n').unwrap_or(("", text));
    let now: Timestamp = time.parse().unwrap_or_default();
    let windows = value.parse::<Windows>();
    if let Ok(windows) = &windows {
        assert!(windows.entries().len() <= Windows::MAX_ENTRIES);
    }
    let windows = windows.map_or_else(refused, Rule::Windows);
    let freeze =
        Freeze::parse(value).map_or_else(|error| Some(refused(error)), |freeze| freeze.map(Rule::Freeze));
    if let Some(Rule::Freeze(freeze)) = &freeze {
        let reason = freeze.reason().unwrap_or_default();
        assert!(reason.len() <= MAX_REASON && !reason.contains(is_unprintable), "{reason:?}");
    }
    let both: Vec<Rule> = [windows.clone()].into_iter().chain(freeze).collect();
    for rules in [vec![windows], both] {
        let sources = rules.into_iter().map(|rule| Source { name: "x".to_owned(), rule });
        check(&Agenda::new(sources.collect()), now);
    }
}

/// Makes a rule of a value that is not valid, which closes an agenda.
fn refused(error: SettingsError) -> Rule {
    let sentence = error.to_string();
    assert!(!sentence.is_empty() && sentence.len() < 4096, "{sentence:?}");
    assert!(!sentence.contains(is_unprintable), "{sentence:?}");
    Rule::Invalid(error)
}

fn check(agenda: &Agenda, now: Timestamp) {
    let outlook = agenda.outlook(now);
    assert_eq!(outlook.state, agenda.state(now));
    assert_eq!(outlook.next, agenda.changes(now).next());
    assert!(outlook.valid_until.is_none_or(|until| until > now), "{outlook:?} at {now}");
    let (mut last, mut is_open) = (now, outlook.state.is_open());
    for change in agenda.changes(now).take(CHANGES) {
        assert!(change.at > last && change.is_open != is_open, "{change:?} after {last}");
        assert_eq!(agenda.state(change.at).is_open(), change.is_open, "{change:?}");
        let before = change.at - SignedDuration::from_nanos(1);
        assert_eq!(agenda.state(before).is_open(), is_open, "before {change:?}");
        (last, is_open) = (change.at, change.is_open);
    }
}
