//! Reasons for Rollouts of Argo Rollouts.

use super::super::state::Judge::{ArgoCd, Kstatus};
use super::super::state::Outcome::{Complete, Failed, InProgress, None};
use super::super::state::Row;
use super::reason::DifferenceReason;

pub(super) const REASONS: &[DifferenceReason] = &[
    DifferenceReason {
        name: "change after the end of a Rollout",
        text: "A change of the Rollout or of its workload that the controller has not seen does not undo a finished \
               rollout of the same image.",
        judges: &[ArgoCd],
        ours: &[Complete],
        theirs: &[InProgress],
        holds: |row, _| is_rollout(row) && row.installed && !is_observed(row),
    },
    DifferenceReason {
        name: "pods of a finished Rollout",
        text: "A promoted Rollout stays installed while its pods restart. Its phase is Progressing then.",
        judges: &[ArgoCd],
        ours: &[Complete],
        theirs: &[InProgress],
        holds: |row, _| is_rollout(row) && row.installed && row.text("phase") == "Progressing",
    },
    DifferenceReason {
        name: "aborted just now",
        text: "An aborted Rollout has failed at once. Argo CD reads the phase, which changes later.",
        judges: &[ArgoCd],
        ours: &[Failed],
        theirs: &[InProgress],
        holds: |row, _| {
            is_rollout(row) && row.object["status"]["abort"] == true && row.text("phase") == "Progressing"
        },
    },
    DifferenceReason {
        name: "Rollout without a phase",
        text: "Argo Rollouts before version 1.0 write no phase. Argo CD then derives it from conditions and counts.",
        judges: &[ArgoCd],
        ours: &[InProgress],
        theirs: &[Complete, Failed],
        holds: |row, _| {
            is_rollout(row)
                && is_before_phases(row)
                && !row.object["status"]["conditions"].is_null()
                && (has_failed(row) || is_promoted(row))
        },
    },
    DifferenceReason {
        name: "Rollout without phase and conditions",
        text: "The script of Argo CD fails without the conditions, and the result is Unknown.",
        judges: &[ArgoCd],
        ours: &[InProgress, Failed],
        theirs: &[None],
        holds: |row, _| {
            is_rollout(row) && is_before_phases(row) && row.object["status"]["conditions"].is_null()
        },
    },
    DifferenceReason {
        name: "Rollout without an observation",
        text: "kstatus calls a Rollout without status Current, as any object of a kind that it does not know.",
        judges: &[Kstatus],
        ours: &[InProgress],
        theirs: &[Complete],
        holds: |row, _| is_rollout(row) && row.object["status"]["observedGeneration"].is_null(),
    },
];

fn is_rollout(row: &Row) -> bool {
    row.kind() == "Rollout"
}

/// Returns `true` if the status describes the Rollout and the workload to which it refers.
fn is_observed(row: &Row) -> bool {
    let observed = |key: &str| row.text(key).parse::<i64>().ok();
    let (generation, _) = row.generations();
    observed("observedGeneration").is_none_or(|observed| observed >= generation)
        && observed("workloadObservedGeneration") == row.workload_generation()
}

/// Returns `true` for a status of a version before 1.0.
fn is_before_phases(row: &Row) -> bool {
    !row.object["status"].is_null() && row.text("phase").is_empty() && is_observed(row)
}

fn has_failed(row: &Row) -> bool {
    let reason = row.condition("Progressing").map(|(_, reason)| reason);
    row.condition("InvalidSpec").is_some()
        || matches!(reason, Some("RolloutAborted" | "ProgressDeadlineExceeded"))
}

fn is_promoted(row: &Row) -> bool {
    let [replicas, updated, available] =
        ["replicas", "updatedReplicas", "availableReplicas"].map(|key| row.count(key));
    let (status, hash) = (&row.object["status"], row.text("currentPodHash"));
    let is_canary = row.object["spec"]["strategy"]["canary"].is_object();
    let is_served =
        if is_canary { replicas <= updated } else { status["blueGreen"]["activeSelector"] == hash };
    status["pauseConditions"].is_null()
        && updated >= row.desired()
        && available >= updated
        && row.text("stableRS") == hash
        && is_served
}
