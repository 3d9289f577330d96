//! The waiting of an automation as metrics.

use jiff::Timestamp;

use crate::metrics::{WaitingImages, WriteState, WriteWindows};
use crate::reconcile::automation::waiting::{GateState, WaitOutcome};

/// Returns the metrics of an automation after a run.
///
/// There are none if the run ended before they were known.
/// `held` is the number of policies that are held; none if reverts are overwritten. Windows that a person overrides count.
pub(super) fn write_state(
    gate: Option<&GateState>,
    outcome: &WaitOutcome,
    held: Option<usize>,
    now: Timestamp,
) -> Option<WriteState> {
    let waiting = match outcome {
        WaitOutcome::Unknown => return None,
        WaitOutcome::NoRules | WaitOutcome::Nothing => None,
        WaitOutcome::Waiting(wait) => Some(WaitingImages {
            reason: wait.reason.reason().to_string(),
            policies: wait.policies.len(),
            until: wait.until,
        }),
    };
    let windows = gate.filter(|gate| gate.has_windows).map(|gate| match gate.agenda.clone() {
        Some(agenda) => WriteWindows::new(agenda, now),
        None => WriteWindows::Unknown,
    });
    Some(WriteState { windows, waiting, held })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Agenda, Rule, Source};

    /// After a forced run, a closed window was shown as open.
    #[test]
    fn an_override_opens_no_window() {
        let now: Timestamp = "2026-12-01T20:00:00Z".parse().unwrap();
        let windows = "[{name: night, kind: deny, cron: '0 18 * * *', window: 12h}]".parse().unwrap();
        let agenda = Agenda::new(vec![Source { name: "app".to_owned(), rule: Rule::Windows(windows) }]);
        let gate = |agenda| GateState { has_windows: true, has_rules: true, closed: None, agenda };
        for (agenda, expected) in
            [(Some(agenda.clone()), WriteWindows::new(agenda, now)), (None, WriteWindows::Unknown)]
        {
            let state = write_state(Some(&gate(agenda)), &WaitOutcome::Nothing, None, now).unwrap();
            assert_eq!(state.windows, Some(expected));
        }
        assert_eq!(write_state(None, &WaitOutcome::Unknown, None, now), None);
    }
}
