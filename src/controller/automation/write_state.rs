//! The waiting of an automation as metrics.

use crate::metrics::{WaitingImages, WriteState, WriteWindows};
use crate::reconcile::automation::waiting::{Closed, GateState, WaitOutcome, WaitReason};

/// Returns the metrics of an automation after a run.
///
/// There are none if the run ended before they were known.
/// `held` is the number of policies that are held; none if reverts are overwritten.
pub(super) fn write_state(
    gate: Option<&GateState>,
    outcome: &WaitOutcome,
    held: Option<usize>,
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
    let is_by_window = |closed: &Closed| closed.reason != WaitReason::QuietPeriod;
    let windows = gate.filter(|gate| gate.has_windows).map(|gate| WriteWindows {
        is_open: !gate.closed.as_ref().is_some_and(is_by_window),
        changes: gate.changes.clone(),
    });
    Some(WriteState { windows, waiting, held })
}
