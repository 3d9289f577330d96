//! The conditions of Flux's appliers.

use super::{ApplierStatus, Attempt, Block};
use crate::rollout::assess::{Assessment, Counts, Failure, Progress};
use crate::rollout::message::message;
use crate::rollout::objects::{Condition, find};

/// The fields of an applier of Flux that decide about its status.
pub(super) struct Fields<'o> {
    pub(super) generation: Option<i64>,
    pub(super) observed_generation: Option<i64>,
    pub(super) is_suspended: bool,
    pub(super) applied_revision: Option<&'o str>,
    pub(super) conditions: &'o [Condition],
}

/// Returns the status of an applier of Flux.
///
/// `code` gives the code of a failure from the condition `Ready` that is false, or none for a reason that is no
/// failure, such as a dependency that is not ready.
pub(super) fn status(fields: &Fields<'_>, code: impl Fn(&Condition) -> Option<Failure>) -> ApplierStatus {
    let ready = find(fields.conditions, "Ready");
    let is_observed = fields.observed_generation >= fields.generation;
    let (attempt, text) = match ready {
        // A condition of the spec before says nothing about this one.
        Some(ready)
            if ready.observed_generation.is_some_and(|observed| Some(observed) < fields.generation) =>
        {
            (Attempt::InProgress, None)
        }
        Some(ready) if ready.is_false() => match code(ready) {
            Some(failure) => (Attempt::Failed(failure), None),
            None => (Attempt::InProgress, Some(ready.text())),
        },
        Some(ready) if ready.is_true() && is_observed => (Attempt::Succeeded, None),
        Some(ready) if ready.is_true() => (Attempt::InProgress, None),
        Some(ready) => (Attempt::InProgress, Some(ready.text())),
        None => (Attempt::InProgress, None),
    };
    ApplierStatus {
        applied_revision: fields.applied_revision.map(message),
        block: fields.is_suspended.then_some(Block::Suspended),
        attempt,
        message: text.map(message).filter(|text| !text.is_empty()),
    }
}

/// Assesses an applier of Flux that has applied the wanted image to a remote cluster.
pub(super) fn assess(status: ApplierStatus, conditions: &[Condition]) -> Assessment {
    let none = Counts::default();
    let text = status.message.unwrap_or_default();
    match status.attempt {
        Attempt::Failed(failure) => {
            Assessment { progress: Progress::Failed(failure), ..Assessment::in_progress(none, "") }
        }
        Attempt::Succeeded => {
            let ready = find(conditions, "Ready");
            Assessment::complete(none, ready.and_then(|ready| ready.last_transition_time.as_ref()))
        }
        Attempt::InProgress => Assessment::in_progress(none, &text),
    }
}
