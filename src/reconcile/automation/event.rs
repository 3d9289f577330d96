//! The one event of a run (`docs/flux-behaviour.md`, Events).

use tagboat_api::{Condition, Reason};

use super::conclusion::Conclusion;
use crate::git::outcome::{Outcome, Push};
use crate::objects::{Event, EventType};
use crate::reconcile::conditions::{self, ConditionType};

/// The message of Ready after a success, and of the event if nothing was pushed.
pub(super) const UP_TO_DATE: &str = "repository up-to-date";

/// The message of a run for which nothing had changed.
const NO_CHANGE: &str = "no change since last reconciliation";

/// Creates the event of a run from its conclusion and conditions.
///
/// `was_ready` is Ready before the run, and `after` has the conditions after it.
pub(super) fn of(was_ready: bool, after: &[Condition], conclusion: &Conclusion) -> Event {
    let (type_, message) = match conclusion {
        Conclusion::Success { outcome: Outcome::Pushed(push), .. } => (EventType::Normal, summary(push)),
        Conclusion::Success { .. } if !was_ready => (EventType::Normal, UP_TO_DATE.to_owned()),
        Conclusion::Success { outcome: Outcome::NothingNew, .. } => (EventType::Trace, NO_CHANGE.to_owned()),
        Conclusion::Success { .. } => (EventType::Trace, UP_TO_DATE.to_owned()),
        Conclusion::Stall(_) | Conclusion::Failure(_) => {
            // The content of Ready, even if the run stopped for another reason.
            let ready = conditions::find(after, ConditionType::Ready).expect("a run ends with Ready");
            let (reason, message) = (ready.reason.clone(), ready.message.clone());
            return Event { type_: EventType::Warning, reason, message };
        }
    };
    Event { type_, reason: Reason::Succeeded.to_string(), message }
}

/// Returns a summary of a push, in the words of Flux.
fn summary(push: &Push) -> String {
    let mut text = push.to_string();
    if !push.message.is_empty() {
        text.push('\n');
        text.push_str(&push.message);
    }
    text
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::EventType::{Normal, Trace, Warning};
    use super::*;
    use crate::git::checkout::Revision;
    use crate::reconcile::automation::conclusion::{RunFailure, Stage};
    use crate::reconcile::conditions::{ConditionStatus, ConditionsBuilder};

    fn push(message: &str, refspec: Option<&str>) -> Outcome {
        let commit = "00112233445566778899aabbccddeeff00112233".parse().unwrap();
        Outcome::Pushed(Push {
            source: Revision { reference: None, commit },
            branch: "auto/x".parse().unwrap(),
            commit,
            refspec: refspec.map(str::to_owned),
            message: message.to_owned(),
            found: None,
        })
    }

    fn success(outcome: Outcome) -> Conclusion {
        Conclusion::Success { outcome, policies: [].into() }
    }

    #[test]
    fn each_conclusion_has_its_event() {
        let source = Revision { reference: None, commit: "0".repeat(40).parse().unwrap() };
        let looked = || success(Outcome::NothingToCommit { source: source.clone() });
        let pushed = || success(push("Update", None));
        let summary = "pushed commit '0011223' to branch 'auto/x'\nUpdate";
        let failure = || {
            let message = "what stopped the run".to_owned();
            let (stage, reason) = (Stage::Policies, Reason::InvalidPolicySelector);
            RunFailure { stage, reason, message, hint: None, pushed: None }
        };
        for (was_ready, conclusion, type_, reason, message) in [
            (true, pushed(), Normal, "Succeeded", summary),
            (false, pushed(), Normal, "Succeeded", summary),
            (false, looked(), Normal, "Succeeded", "repository up-to-date"),
            (false, success(Outcome::NothingNew), Normal, "Succeeded", "repository up-to-date"),
            (true, Conclusion::Stall(failure()), Warning, "UpdateFailed", "what Ready says"),
            (false, Conclusion::Stall(failure()), Warning, "UpdateFailed", "what Ready says"),
            (true, Conclusion::Failure(failure()), Warning, "UpdateFailed", "what Ready says"),
            (false, Conclusion::Failure(failure()), Warning, "UpdateFailed", "what Ready says"),
            (true, looked(), Trace, "Succeeded", "repository up-to-date"),
            (true, success(Outcome::NothingNew), Trace, "Succeeded", "no change since last reconciliation"),
        ] {
            let mut after = ConditionsBuilder::new(&[], 1);
            let status = ConditionStatus::False;
            after.set(ConditionType::Ready, status, Reason::UpdateFailed, "what Ready says");
            let after = after.build(&[], Timestamp::UNIX_EPOCH);
            let expected = Event { type_, reason: reason.to_owned(), message: message.to_owned() };
            assert_eq!(of(was_ready, &after, &conclusion), expected, "{was_ready} {conclusion:?}");
        }
    }

    #[test]
    fn a_push_is_summed_up_with_refspec_and_message() {
        for (message, refspec, expected) in [
            ("", None, "pushed commit '0011223' to branch 'auto/x'"),
            ("a\n\nb\n", None, "pushed commit '0011223' to branch 'auto/x'\na\n\nb\n"),
            (
                "a",
                Some("refs/heads/auto:refs/heads/copy"),
                "pushed commit '0011223' to branch 'auto/x' and refspecs 'refs/heads/auto:refs/heads/copy'\na",
            ),
            (
                "",
                Some("HEAD:refs/for/main"),
                "pushed commit '0011223' to branch 'auto/x' and refspecs 'HEAD:refs/for/main'",
            ),
        ] {
            let event = of(true, &[], &success(push(message, refspec)));
            assert_eq!(event.message, expected);
        }
    }
}
