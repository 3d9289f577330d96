//! A wait as the condition `UpdatesWaiting` reports it.

use jiff::Timestamp;
use tagboat_api::Condition;

use super::quiet::ImageChanges;
use super::wait::WaitReason;
use crate::reconcile::conditions::{self, ConditionType};

/// A wait that the last run reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedWait {
    /// The reason of the condition.
    pub reason: String,
    /// The message of the condition.
    pub message: String,
    /// The rule that delays the images, as a phrase.
    pub by: String,
    /// The end of the wait, if it is known.
    pub until: Option<Timestamp>,
    /// The names of the policies that wait.
    pub policies: Vec<String>,
    /// True if policies wait that the message does not name.
    pub has_more: bool,
}

impl ReportedWait {
    /// Returns the wait that conditions report.
    ///
    /// Of a message that was cut, all of it is the phrase.
    pub fn of(conditions: &[Condition]) -> Option<Self> {
        let condition = conditions::find(conditions, ConditionType::UpdatesWaiting)?;
        if condition.status != "True" {
            return None;
        }
        let Condition { reason, message, .. } = condition.clone();
        let (by, until, policies, has_more) =
            parts(&message).unwrap_or_else(|| (message.clone(), None, Vec::new(), true));
        Some(Self { reason, message, by, until, policies, has_more })
    }

    /// Returns the reason; none if it is that of another version.
    pub fn reason(&self) -> Option<WaitReason> {
        WaitReason::ALL.into_iter().find(|one| one.reason().to_string() == self.reason)
    }

    /// Returns true if it is the wait of a policy.
    pub fn is_of(&self, policy: &str) -> bool {
        self.policies.iter().any(|name| name == policy)
    }
}

/// Returns the rule, the end, the policies, and true if there are more of them.
fn parts(message: &str) -> Option<(String, Option<Timestamp>, Vec<String>, bool)> {
    let (message, _) = ImageChanges::split(message);
    let (subject, rest) = message.split_once(": ")?;
    let (by, end) = rest.rsplit_once("; ")?;
    let until = match end.strip_prefix("until ") {
        Some(until) => Some(until.parse().ok()?),
        None if end == "no end is known" => None,
        None => return None,
    };
    let subject = [" waits", " wait"].iter().find_map(|verb| subject.strip_suffix(verb)).unwrap_or(subject);
    let names = subject.split_once(" of ").map(|(_, names)| names);
    let (names, has_more) = match names.and_then(|names| names.split_once(" and ")) {
        Some((names, _)) => (Some(names), true),
        None => (names, false),
    };
    let names = names.into_iter().flat_map(|names| names.split(", "));
    Some((by.to_owned(), until, names.map(str::to_owned).collect(), has_more))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::automation::waiting::{Closed, Wait};

    fn reported(status: &str, message: &str) -> Option<ReportedWait> {
        let condition = serde_json::from_value(serde_json::json!({
            "type": "UpdatesWaiting", "status": status, "reason": "WindowClosed", "message": message,
            "lastTransitionTime": "2026-12-01T00:00:00Z",
        }));
        ReportedWait::of(&[condition.unwrap()])
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let many: Vec<String> = (0..501).map(|number| format!("p{number}")).collect();
        for (by, until, policies, values) in [
            ("deny window `night` of automation shop/app", Some("2026-12-02T06:00:00Z"), &["web"][..], 1),
            ("freeze of namespace shop (tagboat.dev/freeze): db: down; see x", None, &["api", "web"], 3),
            ("deny window `a of b and c` of automation shop/app", None, &[], 0),
            ("x", None, &many.iter().map(String::as_str).collect::<Vec<_>>(), 600),
        ] {
            let until: Option<Timestamp> = until.map(|until: &str| until.parse().unwrap());
            let names: Vec<String> = policies.iter().map(|name| (*name).to_owned()).collect();
            let closed = Closed {
                reason: WaitReason::WindowClosed,
                by: by.to_owned(),
                until,
                look_again: None,
                changes: None,
            };
            let message = Wait::at(closed, names.clone(), values).to_string();
            let found = reported("True", &message).unwrap();
            assert_eq!((found.by.as_str(), found.until, &found.message), (by, until, &message));
            assert_eq!(found.reason(), Some(WaitReason::WindowClosed));
            let named = names.len().min(500);
            assert_eq!((&found.policies[..], found.has_more), (&names[..named], names.len() > named));
            assert!(found.policies.iter().all(|name| found.is_of(name)) && !found.is_of("other"));
        }
        assert_eq!(reported("False", "no image waits"), None);
        let cut = reported("True", "3 values of api, we...").unwrap();
        assert_eq!((cut.by.as_str(), cut.has_more), ("3 values of api, we...", true));
    }
}
