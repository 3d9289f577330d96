//! Reasons that several kinds have.

use super::super::state::Judge::{ArgoCd, Kstatus, Kubectl};
use super::super::state::Outcome::{Complete, Deleted, Failed, InProgress, None};
use super::super::state::{Judge, Row};
use super::reason::DifferenceReason;

pub(super) const REASONS: &[DifferenceReason] = &[
    DifferenceReason {
        name: "kind without a viewer",
        text: "`kubectl rollout status` knows Deployments, StatefulSets and DaemonSets only.",
        judges: &[Kubectl],
        ours: &[InProgress, Complete, Failed, Deleted],
        theirs: &[None],
        holds: |row, _| !has_viewer(row),
    },
    DifferenceReason {
        name: "strategy without a viewer",
        text: "`kubectl rollout status` refuses the strategy `OnDelete`.",
        judges: &[Kubectl],
        ours: &[InProgress, Complete, Failed, Deleted],
        theirs: &[None],
        holds: |row, _| row.is_on_delete(),
    },
    DifferenceReason {
        name: "generation as text",
        text: "Argo Rollouts write `observedGeneration` as text, which kstatus cannot read.",
        judges: &[Kstatus],
        ours: &[InProgress, Complete, Failed],
        theirs: &[None],
        holds: |row, _| row.object["status"]["observedGeneration"].is_string(),
    },
    DifferenceReason {
        name: "deleted object",
        text: "An object that is being deleted is `removing`. Argo CD calls it Progressing, and kubectl ignores the \
               deletion.",
        judges: &[Kubectl, ArgoCd],
        ours: &[Deleted],
        theirs: &[InProgress, Complete, Failed],
        holds: |row, judge| row.is_deleted() && (judge == ArgoCd || is_viewed(row)),
    },
    DifferenceReason {
        name: "change after the end",
        text: "A change that the controller has not seen does not undo a finished rollout of the same image.",
        judges: &Judge::ALL,
        ours: &[Complete],
        theirs: &[InProgress],
        holds: |row, judge| {
            let is_silent = row.kind() == "StatefulSet" && row.is_observed_or_silent();
            let is_answered = match judge {
                Kubectl => is_viewed(row),
                Kstatus => has_viewer(row) && !is_silent,
                ArgoCd => has_viewer(row),
            };
            is_answered && row.installed && !row.is_observed()
        },
    },
    DifferenceReason {
        name: "newer generation",
        text: "kstatus waits when `observedGeneration` is greater than the generation, as after a restored backup.",
        judges: &[Kstatus],
        ours: &[Complete, Failed],
        theirs: &[InProgress],
        holds: |row, _| {
            let (generation, observed) = row.generations();
            observed > generation
        },
    },
];

fn has_viewer(row: &Row) -> bool {
    matches!(row.kind(), "Deployment" | "StatefulSet" | "DaemonSet")
}

fn is_viewed(row: &Row) -> bool {
    has_viewer(row) && !row.is_on_delete()
}
