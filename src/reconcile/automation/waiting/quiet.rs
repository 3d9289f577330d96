//! The quiet period of an automation, in which its images wait until they stop changing.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp, TimestampRound, Unit};
use tagboat_api::automation::ImageUpdateAutomationStatus;
use tagboat_api::settings::AutomationSettings;
use tagboat_api::{ImageRef, ObjectName};

use crate::reconcile::conditions::{self, ConditionType};
use crate::secrets::Fingerprint;

/// The number of bytes of a checksum.
const CHECKSUM: usize = 6;

/// The begin of the changes in a message.
const CHANGES: &str = "; changes from ";

/// Debounces writes: images wait until they have not changed for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuietPeriod {
    /// The time for which the images must not change.
    period: SignedDuration,
    /// The maximum time from the first change.
    longest: SignedDuration,
    /// The images that were written last; nothing waits if there are none.
    written: BTreeMap<String, ImageRef>,
    /// The changes of the images since then.
    changes: Option<ImageChanges>,
}

/// The changes of the wanted images since the last write.
///
/// The condition `UpdatesWaiting` has them, so that a restart continues the wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageChanges {
    /// The time of the first change, in whole seconds.
    first: Timestamp,
    /// The time of the last change, in whole seconds.
    last: Timestamp,
    /// The checksum of the wanted images.
    wanted: String,
    /// The checksum of the images that were written last.
    written: String,
}

impl QuietPeriod {
    /// Creates the quiet period of an automation, if it has one.
    ///
    /// The changes are those that its last run reported.
    pub fn new(settings: &AutomationSettings, status: Option<&ImageUpdateAutomationStatus>) -> Option<Self> {
        let (period, longest) = (settings.quiet_period.duration(), settings.longest_wait.duration());
        let signed = |duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        let changes = status.and_then(|status| {
            let condition = conditions::find(&status.conditions, ConditionType::UpdatesWaiting)?;
            ImageChanges::split(&condition.message).1
        });
        let written = status.map(|status| status.observed_policies.clone()).unwrap_or_default();
        let quiet = Self { period: signed(period), longest: signed(longest), written, changes };
        (!period.is_zero()).then_some(quiet)
    }

    /// Compares the wanted images with those of the last look.
    ///
    /// The wait begins anew if it began before the last write, or in the future of a clock that was set back.
    pub fn observe(&mut self, images: &BTreeMap<String, ImageRef>, now: Timestamp) {
        let earlier = self.changes.take();
        if self.written.is_empty() || self.written == *images {
            return;
        }
        // A time that is rounded up shortens no wait.
        let round = TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Ceil);
        let now = now.round(round).unwrap_or(now);
        let (wanted, written) = (checksum(images), checksum(&self.written));
        let earlier = earlier.filter(|earlier| earlier.written == written && earlier.last <= now);
        self.changes = Some(match earlier {
            Some(earlier) if earlier.wanted == wanted => earlier,
            Some(earlier) => ImageChanges { last: now, wanted, ..earlier },
            None => ImageChanges { first: now, last: now, wanted, written },
        });
    }

    /// Returns the changes that have not been written.
    pub fn changes(&self) -> Option<&ImageChanges> {
        self.changes.as_ref()
    }

    /// Returns the rule that delays the images, as a phrase, and its end.
    pub fn delay(&self, now: Timestamp, automation: &ObjectName) -> Option<(String, Timestamp)> {
        let changes = self.changes.as_ref()?;
        let end = |begin: Timestamp, length| begin.checked_add(length).unwrap_or(Timestamp::MAX);
        let (quiet, longest) = (end(changes.last, self.period), end(changes.first, self.longest));
        let until = quiet.min(longest);
        let by = if quiet <= longest {
            format!("quiet period of {:#} of automation {automation} (tagboat.dev/quiet-period)", self.period)
        } else {
            format!(
                "longest wait of {:#} of automation {automation} (tagboat.dev/longest-wait)",
                self.longest
            )
        };
        (now < until).then_some((by, until))
    }
}

impl ImageChanges {
    /// Splits the changes off the end of a message.
    pub fn split(message: &str) -> (&str, Option<Self>) {
        let parsed = message.rsplit_once(CHANGES).and_then(|(rest, text)| Some((rest, Self::parse(text)?)));
        match parsed {
            Some((rest, changes)) => (rest, Some(changes)),
            None => (message, None),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (first, rest) = text.split_once(" to ")?;
        let (last, rest) = rest.split_once(" (images ")?;
        let (wanted, rest) = rest.split_once(" after ")?;
        let written = rest.strip_suffix(')')?;
        let is_checksum =
            |text: &str| text.len() == 2 * CHECKSUM && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (first, last): (Timestamp, Timestamp) = (first.parse().ok()?, last.parse().ok()?);
        let is_good = first <= last && [wanted, written].into_iter().all(is_checksum);
        is_good.then(|| Self { first, last, wanted: wanted.to_owned(), written: written.to_owned() })
    }
}

/// Prints the end of a message, which [`ImageChanges::split`] reads.
impl fmt::Display for ImageChanges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, wanted, written } = self;
        write!(formatter, "{CHANGES}{first} to {last} (images {wanted} after {written})")
    }
}

/// Returns a checksum of images by the name of their policy.
fn checksum(images: &BTreeMap<String, ImageRef>) -> String {
    let mut parts = Vec::new();
    for (policy, image) in images {
        parts.extend([policy.clone(), image.to_string()]);
    }
    Fingerprint::of(&parts).prefix(CHECKSUM)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::automation::waiting::{Closed, Wait, WaitReason};
    use crate::reconcile::conditions::{ConditionStatus, ConditionsBuilder};
    use tagboat_api::Reason;

    fn images(tags: &[&str]) -> BTreeMap<String, ImageRef> {
        let image = |tag: &str| ImageRef { name: "img".to_owned(), tag: tag.to_owned(), digest: None };
        tags.iter().enumerate().map(|(policy, tag)| (format!("p{policy}"), image(tag))).collect()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn settings(period: &str, longest: Option<&str>) -> AutomationSettings {
        let mut annotations = BTreeMap::from([("tagboat.dev/quiet-period".to_owned(), period.to_owned())]);
        annotations
            .extend(longest.map(|longest| ("tagboat.dev/longest-wait".to_owned(), longest.to_owned())));
        AutomationSettings::from_annotations(&annotations).unwrap()
    }

    /// A status of an automation that wrote images, with the message of a wait.
    fn status(written: &[&str], message: Option<&str>) -> ImageUpdateAutomationStatus {
        let mut builder = ConditionsBuilder::new(&[], 1);
        if let Some(message) = message {
            builder.set(ConditionType::UpdatesWaiting, ConditionStatus::True, Reason::QuietPeriod, message);
        }
        ImageUpdateAutomationStatus {
            observed_policies: images(written),
            conditions: builder.build(&[], at(0)),
            ..Default::default()
        }
    }

    fn name() -> ObjectName {
        ObjectName { namespace: "shop".to_owned(), name: "app".to_owned() }
    }

    /// Returns the ends of the waits of some runs, each of a new process.
    fn waits(written: &[&str], runs: &[(i64, &[&str])]) -> Vec<Option<i64>> {
        let mut message = None;
        let run = |(second, wanted): &(i64, &[&str])| {
            let status = status(written, message.as_deref());
            let mut quiet = QuietPeriod::new(&settings("60s", None), Some(&status)).unwrap();
            quiet.observe(&images(wanted), at(*second));
            let delay = quiet.delay(at(*second), &name());
            message = delay.clone().map(|(by, until)| {
                let (reason, changes) = (WaitReason::QuietPeriod, quiet.changes().cloned());
                let closed = Closed { reason, by, until: Some(until), look_again: None, changes };
                Wait::at(closed, vec!["p0".to_owned()], 1).to_string()
            });
            delay.map(|(_, until)| until.duration_since(at(0)).as_secs())
        };
        runs.iter().map(run).collect()
    }

    #[test]
    fn images_wait_until_they_have_not_changed_for_the_period() {
        type Runs<'r> = &'r [(i64, &'r [&'r str])];
        type Case<'r> = (&'r str, &'r [&'r str], Runs<'r>, &'r [Option<i64>]);
        let cases: [Case<'_>; 7] = [
            ("nothing was written before", &[], &[(0, &["2"])], &[None]),
            ("nothing has changed", &["1"], &[(0, &["1"])], &[None]),
            (
                "one change",
                &["1"],
                &[(0, &["2"]), (30, &["2"]), (59, &["2"]), (60, &["2"])],
                &[Some(60), Some(60), Some(60), None],
            ),
            (
                "each change counts",
                &["1", "1"],
                &[(0, &["2", "1"]), (50, &["2", "2"]), (109, &["2", "2"]), (110, &["2", "2"])],
                &[Some(60), Some(110), Some(110), None],
            ),
            (
                "the change is withdrawn",
                &["1"],
                &[(0, &["2"]), (30, &["1"]), (40, &["3"])],
                &[Some(60), None, Some(100)],
            ),
            (
                "a steady stream ends after six times the period",
                &["1"],
                &[
                    (0, &["2"]),
                    (50, &["3"]),
                    (100, &["4"]),
                    (150, &["5"]),
                    (200, &["6"]),
                    (250, &["7"]),
                    (300, &["8"]),
                    (350, &["9"]),
                    (360, &["10"]),
                ],
                &[
                    Some(60),
                    Some(110),
                    Some(160),
                    Some(210),
                    Some(260),
                    Some(310),
                    Some(360),
                    Some(360),
                    None,
                ],
            ),
            ("the clock was set back", &["1"], &[(1_000, &["2"]), (10, &["2"])], &[Some(1_060), Some(70)]),
        ];
        for (case, written, runs, expected) in cases {
            assert_eq!(waits(written, runs), expected, "{case}");
        }
    }

    /// Another controller has written, and the condition stayed.
    #[test]
    fn a_wait_that_began_before_the_last_write_begins_anew() {
        let quiet_after = |written: &str, message: &str| {
            let status = status(&[written], Some(message));
            QuietPeriod::new(&settings("60s", Some("1h")), Some(&status)).unwrap()
        };
        let mut quiet = quiet_after("1", "");
        quiet.observe(&images(&["2"]), at(0));
        let message = quiet.changes().unwrap().to_string();
        for (written, first) in [("1", 0), ("2", 340), ("0", 340)] {
            let mut quiet = quiet_after(written, &message);
            quiet.observe(&images(&["3"]), at(340));
            let changes = quiet.changes().unwrap();
            assert_eq!((changes.first, changes.last), (at(first), at(340)), "{written}");
            assert_eq!(quiet.delay(at(340), &name()).unwrap().1, at(400));
        }
        let mut quiet = quiet_after("2", &message);
        quiet.observe(&images(&["2"]), at(340));
        assert_eq!(quiet.changes(), None);
    }

    #[test]
    fn the_longest_wait_may_be_shorter_than_the_period_and_the_message_says_which_holds() {
        for (period, longest, expected) in [
            ("5m", None, (300, "quiet period of 5m of automation shop/app (tagboat.dev/quiet-period)")),
            ("5m", Some("2m"), (120, "longest wait of 2m of automation shop/app (tagboat.dev/longest-wait)")),
            ("1d", None, (86_400, "quiet period of 24h of automation shop/app (tagboat.dev/quiet-period)")),
        ] {
            let mut quiet =
                QuietPeriod::new(&settings(period, longest), Some(&status(&["1"], None))).unwrap();
            quiet.observe(&images(&["2"]), at(0));
            let (by, until) = quiet.delay(at(0), &name()).unwrap();
            assert_eq!((until, by.as_str()), (at(expected.0), expected.1));
        }
        let none = |longest| {
            let mut quiet = QuietPeriod::new(&settings("5m", longest), Some(&status(&["1"], None)))?;
            quiet.observe(&images(&["2"]), at(0));
            quiet.delay(at(0), &name())
        };
        assert_eq!(none(Some("0s")), None);
        assert_eq!(QuietPeriod::new(&settings("0s", None), None), None);
    }

    #[test]
    fn the_changes_are_read_as_they_were_written() {
        let mut quiet = QuietPeriod::new(&settings("5m", None), Some(&status(&["1"], None))).unwrap();
        quiet.observe(&images(&["2"]), at(0) + SignedDuration::from_nanos(1));
        let changes = quiet.changes().unwrap().clone();
        assert_eq!((changes.first, changes.last), (at(1), at(1)));
        let message = format!("1 value of web waits: x; until 2026-12-02T06:00:00Z{changes}");
        let (rest, found) = ImageChanges::split(&message);
        assert_eq!(
            (rest, found),
            ("1 value of web waits: x; until 2026-12-02T06:00:00Z", Some(changes.clone()))
        );
        for broken in [
            "no image waits".to_owned(),
            message.replace(" to ", " until "),
            message.replace(" after ", " after x"),
            message.replace(&changes.last.to_string(), "2020-01-01"),
            message.trim_end_matches(')').to_owned(),
        ] {
            assert_eq!(ImageChanges::split(&broken), (broken.as_str(), None));
        }
    }
}
