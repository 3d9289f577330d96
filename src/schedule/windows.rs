//! A list of windows.

use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;

use super::annotation;
use super::cause::CauseKind;
use super::entry::{Entry, EntryKind, WrittenEntry};
use super::error::{EntryPlace, SettingsError};
use super::period::Phase;

/// The value of `tagboat.dev/windows`: a list of windows.
///
/// It is closed while a `deny` entry is active. If it has `allow` entries, it is open only while one of them is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Windows {
    /// Clones share them: a parsed cron expression takes some KiB.
    entries: Arc<[Entry]>,
}

impl Windows {
    /// The maximum number of entries.
    pub const MAX_ENTRIES: usize = 50;

    /// Returns the entries in their order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the cause if the list is closed, given the phases of its entries.
    pub(super) fn closed_by(&self, phases: &[Phase]) -> Option<CauseKind> {
        if let Some((entry, _)) = self.of_kind(EntryKind::Deny, phases).find(|(_, phase)| phase.is_active) {
            return Some(CauseKind::Deny { entry: entry.name().to_owned() });
        }
        let has_allow = self.entries.iter().any(|entry| entry.kind() == EntryKind::Allow);
        (has_allow && self.active_allow(phases).is_none()).then_some(CauseKind::OutsideAllow)
    }

    /// Returns the first active `allow` entry.
    pub(super) fn active_allow(&self, phases: &[Phase]) -> Option<&Entry> {
        let mut allow = self.of_kind(EntryKind::Allow, phases);
        allow.find(|(_, phase)| phase.is_active).map(|(entry, _)| entry)
    }

    /// Returns whether the list is closed, and the time until which that is certain.
    pub(super) fn closing(&self, phases: &[Phase]) -> Phase {
        let of_kind = |kind| Phase::any(self.of_kind(kind, phases).map(|(_, phase)| phase));
        let has_allow = self.entries.iter().any(|entry| entry.kind() == EntryKind::Allow);
        let outside_allow = has_allow.then(|| of_kind(EntryKind::Allow).inverted());
        Phase::any([of_kind(EntryKind::Deny)].into_iter().chain(outside_allow))
    }

    /// Returns the time until which a closed list is closed for the same cause.
    ///
    /// During a `deny` entry, only those before it matter.
    pub(super) fn cause_holds_until(&self, phases: &[Phase]) -> Option<Timestamp> {
        let is_deny = |index: usize| self.entries[index].kind() == EntryKind::Deny;
        let deny = (0..phases.len()).find(|index| is_deny(*index) && phases[*index].is_active);
        let matters = |index: &usize| deny.is_none_or(|deny| *index <= deny && is_deny(*index));
        (0..phases.len()).filter(matters).filter_map(|index| phases[index].until).min()
    }

    fn of_kind<'a, 'b>(
        &'a self,
        kind: EntryKind,
        phases: &'b [Phase],
    ) -> impl Iterator<Item = (&'a Entry, Phase)> + use<'a, 'b> {
        let entries = self.entries.iter().zip(phases.iter().copied());
        entries.filter(move |(entry, _)| entry.kind() == kind)
    }
}

/// Parses a YAML list of entries.
impl FromStr for Windows {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let written: Option<Vec<WrittenEntry>> =
            annotation::parse(text).map_err(|defect| SettingsError::NotAList { defect })?;
        // The parser would take an empty text for an empty list, which is always open.
        let written = written.ok_or_else(|| SettingsError::NotAList { defect: "it is empty".to_owned() })?;
        if written.len() > Self::MAX_ENTRIES {
            return Err(SettingsError::TooMany { count: written.len(), maximum: Self::MAX_ENTRIES });
        }
        let entries = written.into_iter().enumerate().map(|(index, written)| {
            let place = match &written.name {
                Some(name) if !name.is_empty() => EntryPlace::Named(name.clone()),
                _ => EntryPlace::Numbered(index + 1),
            };
            Entry::new(written).map_err(|defect| SettingsError::Entry { place, defect })
        });
        Ok(Self { entries: entries.collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<Windows>().unwrap_err().to_string()
    }

    #[test]
    fn a_list_has_both_forms_of_entries() {
        let text = "
- {name: office, kind: allow, cron: '0 9 * * 1-4', window: 7h, timeZone: Europe/Berlin}
- name: holidays
  kind: deny
  from: 2026-12-18T12:00
  until: 2027-01-04T08:00+01:00
";
        let windows: Windows = text.parse().unwrap();
        let entries: Vec<_> = windows.entries().iter().map(|entry| (entry.name(), entry.kind())).collect();
        assert_eq!(entries, [("office", EntryKind::Allow), ("holidays", EntryKind::Deny)]);
        assert_eq!("[]".parse(), Ok(Windows::default()));
        let json = r#"[{"name": "x", "kind": "deny", "cron": "0 0 * * *", "window": "366d"}]"#;
        assert_eq!(json.parse::<Windows>().unwrap().entries().len(), 1);
    }

    #[test]
    fn a_list_with_the_same_name_twice_is_valid() {
        let entry = "{name: x, kind: deny, cron: '0 0 * * *', window: 1h}";
        assert_eq!(format!("[{entry}, {entry}]").parse::<Windows>().unwrap().entries().len(), 2);
    }

    #[test]
    fn every_refused_entry_has_a_sentence() {
        let cron = "name: x, kind: deny, cron: '0 9 * * *'";
        let once = "name: x, kind: deny, from: 2026-12-18T12:00";
        for (entry, sentence) in [
            (
                "kind: deny",
                "entry 1: name is missing or not valid: write 1 to 100 characters that can be printed",
            ),
            (
                "name: '', kind: deny",
                "entry 1: name is missing or not valid: write 1 to 100 characters that can be printed",
            ),
            (
                r#"name: "a\nb", kind: deny"#,
                r"entry `a\nb`: name is missing or not valid: write 1 to 100 characters that can be printed",
            ),
            ("name: x", "entry `x`: kind is missing: write allow or deny"),
            ("name: x, kind: Deny", "entry `x`: kind is `Deny`: write allow or deny"),
            ("name: x, kind: deny", "entry `x`: it has no times: write cron and window, or from and until"),
            (cron, "entry `x`: window is missing: cron requires it"),
            ("name: x, kind: deny, window: 7h", "entry `x`: cron is missing: window requires it"),
            (once, "entry `x`: until is missing: from requires it"),
            ("name: x, kind: deny, until: 2026-12-18T12:00", "entry `x`: from is missing: until requires it"),
            (
                &format!("{cron}, window: 7h, from: 2026-12-18T12:00"),
                "entry `x`: it has cron or window, and from or until: write either cron and window, or from and until",
            ),
            (
                &format!("{once}, until: 2026-12-19T12:00, window: 7h"),
                "entry `x`: it has cron or window, and from or until: write either cron and window, or from and until",
            ),
            (
                &format!("{cron}, window: 7h, timeZone: Mars/Olympus"),
                "entry `x`: timeZone is `Mars/Olympus`, which is unknown: write a name of the IANA database, such as \
                 Europe/Berlin",
            ),
            (
                "name: x, kind: deny, cron: '0 0 9 * * 1-4', window: 7h",
                "entry `x`: cron is `0 0 9 * * 1-4`, which has 6 fields: write minute, hour, day of month, month and \
                 day of week",
            ),
            (
                "name: x, kind: deny, cron: '0 25 * * *', window: 7h",
                "entry `x`: cron is `0 25 * * *`, and its hour is not valid: write 0 to 23 or *, a list such as 1,3, a \
                 range such as 1-3, or a step such as */2",
            ),
            (
                "name: x, kind: deny, cron: '0 9 30 2 *', window: 7h",
                "entry `x`: cron is `0 9 30 2 *`, which never occurs: change the day of month or the month",
            ),
            (
                &format!("{cron}, window: soon"),
                "entry `x`: window is `soon`, which is not a duration: write it in w, d, h, m, s and ms, such as 7h",
            ),
            (
                &format!("{cron}, window: -7h"),
                "entry `x`: window is `-7h`, which is not a duration: write it in w, d, h, m, s and ms, such as 7h",
            ),
            (&format!("{cron}, window: 0s"), "entry `x`: window is `0s`: write more than 0 and at most 366d"),
            (
                &format!("{cron}, window: 0"),
                "entry `x`: window is `0`, which is not a duration: write it in w, d, h, m, s and ms, such as 7h",
            ),
            (
                &format!("{cron}, window: 366d1ms"),
                "entry `x`: window is `366d1ms`: write more than 0 and at most 366d",
            ),
            (
                "name: x, kind: deny, from: tomorrow, until: 2026-12-18T12:00",
                "entry `x`: from is `tomorrow`, which is not a time: write it like 2026-12-18T12:00, or with an \
                 offset like 2026-12-18T12:00+01:00",
            ),
            (
                &format!("{once}, until: 2026-12-19"),
                "entry `x`: until is `2026-12-19`, which is not a time: write it like 2026-12-18T12:00, or with an \
                 offset like 2026-12-18T12:00+01:00",
            ),
            (
                &format!("{once}, until: 2026-12-18T13:00+01:00"),
                "entry `x`: until is `2026-12-18T13:00+01:00`, which is not after from, `2026-12-18T12:00`: write a \
                 later time",
            ),
            // Clocks skip both times, or one, or neither.
            (
                "name: x, kind: deny, from: 2027-03-28T02:10, until: 2027-03-28T02:50, timeZone: Europe/Berlin",
                "entry `x`: until is `2027-03-28T02:50`, which is the same moment as from, `2027-03-28T02:10`: clocks in \
                 Europe/Berlin go forward then; write a later time",
            ),
            (
                "name: x, kind: deny, from: 2027-03-28T02:10, until: 2027-03-28T03:00, timeZone: Europe/Berlin",
                "entry `x`: until is `2027-03-28T03:00`, which is the same moment as from, `2027-03-28T02:10`: clocks in \
                 Europe/Berlin go forward then; write a later time",
            ),
            (
                "name: x, kind: deny, from: 2027-03-28T02:50, until: 2027-03-28T02:10, timeZone: Europe/Berlin",
                "entry `x`: until is `2027-03-28T02:10`, which is not after from, `2027-03-28T02:50`: write a later time",
            ),
        ] {
            assert_eq!(error(&format!("[{{{entry}}}]")), sentence, "{entry}");
        }
    }

    #[test]
    fn a_value_that_is_no_list_is_refused() {
        for text in [
            "",
            "~",
            "office",
            "{name: x}",
            "[office]",
            "[{name: x, kind: deny, days: 1}]",
            "[{name: x, name: y}]",
            "[{name: [x]}]",
            "- {name: x",
            "[]\n---\n[]",
        ] {
            let sentence = error(text);
            assert!(sentence.starts_with("it is not a list of windows: "), "{text}: {sentence}");
            assert!(!sentence.contains('\n'), "{text}: {sentence}");
        }
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place() {
        let text = "- name: x\n  kind: deny\n  days: 1\n";
        assert_eq!(
            error(text),
            "it is not a list of windows: line 3, column 3: unknown field `days`, expected one of name, kind, cron, \
             window, from, until, timeZone: write a YAML list of entries with name and kind, and with cron and window \
             or from and until"
        );
    }

    #[test]
    fn more_than_fifty_entries_are_refused() {
        let entry = "- {name: x, kind: deny, cron: '0 0 * * *', window: 1h}\n";
        assert_eq!(entry.repeat(50).parse::<Windows>().unwrap().entries().len(), 50);
        assert_eq!(
            error(&entry.repeat(51)),
            "it has 51 windows: at most 50 are allowed, so combine some of them"
        );
    }
}
