//! Reasons for Deployments.

use super::super::state::Judge::{ArgoCd, Kstatus, Kubectl};
use super::super::state::Outcome::{Complete, Failed, InProgress};
use super::super::state::{Judge, Row};
use super::reason::DifferenceReason;

pub(super) const REASONS: &[DifferenceReason] = &[
    DifferenceReason {
        name: "zero replicas",
        text: "A Deployment with zero replicas is installed at once. The others wait for the controller and for old \
               pods, and remember an exceeded deadline.",
        judges: &Judge::ALL,
        ours: &[Complete],
        theirs: &[InProgress, Failed],
        holds: |row, judge| is_deployment(row) && row.desired() == 0 && !is_complete(row, judge),
    },
    DifferenceReason {
        name: "unavailable pods",
        text: "A finished rollout stays installed while pods are unavailable: `Progressing` keeps its reason \
               `NewReplicaSetAvailable`.",
        judges: &Judge::ALL,
        ours: &[Complete],
        theirs: &[InProgress],
        holds: |row, _| {
            is_deployment(row)
                && row.desired() > 0
                && row.count("availableReplicas") < row.count("updatedReplicas")
        },
    },
    DifferenceReason {
        name: "scaled up",
        text: "A finished rollout stays installed while a user scales up, or a pod is replaced.",
        judges: &Judge::ALL,
        ours: &[Complete],
        theirs: &[InProgress],
        holds: |row, _| is_deployment(row) && row.count("updatedReplicas") < row.desired(),
    },
    DifferenceReason {
        name: "scaled down",
        text: "kstatus waits for the pods that end when a user scales down.",
        judges: &[Kstatus],
        ours: &[Complete],
        theirs: &[InProgress],
        holds: |row, _| is_deployment(row) && row.desired() > 0 && row.count("replicas") > row.desired(),
    },
    DifferenceReason {
        name: "refused pods",
        text: "`ReplicaFailure` is a failure: the API server refuses pods. None of the others reads the condition.",
        judges: &Judge::ALL,
        ours: &[Failed],
        theirs: &[InProgress, Complete],
        holds: |row, judge| {
            let is_suspended = judge == ArgoCd && is_paused(row);
            is_deployment(row) && row.is_true("ReplicaFailure") && (is_suspended || !is_late(row))
        },
    },
    DifferenceReason {
        name: "paused",
        text: "A paused Deployment is never installed. kubectl and kstatus do not read `paused`.",
        judges: &[Kubectl, Kstatus],
        ours: &[InProgress],
        theirs: &[Complete, Failed],
        holds: |row, judge| {
            let has_failed = is_late(row) && is_current(row, judge);
            is_deployment(row) && is_paused(row) && (has_failed || is_complete(row, judge))
        },
    },
    DifferenceReason {
        name: "condition not set yet",
        text: "The counts are complete, and the controller has not set `NewReplicaSetAvailable` yet. kubectl and Argo \
               CD do not read it.",
        judges: &[Kubectl, ArgoCd],
        ours: &[InProgress],
        theirs: &[Complete],
        holds: |row, judge| {
            let reason = row.condition("Progressing").map(|(_, reason)| reason);
            is_deployment(row)
                && !is_paused(row)
                && has_deadline(row)
                && reason != Some("NewReplicaSetAvailable")
                && is_complete(row, judge)
        },
    },
    DifferenceReason {
        name: "scaled down without a deadline",
        text: "Without a deadline the counts decide, so the pods that end when a user scales down must be gone. \
               kubectl and Argo CD do not count them.",
        judges: &[Kubectl, ArgoCd],
        ours: &[InProgress],
        theirs: &[Complete],
        holds: |row, judge| {
            is_deployment(row)
                && !is_paused(row)
                && !has_deadline(row)
                && row.count("replicas") > row.desired()
                && is_complete(row, judge)
        },
    },
    DifferenceReason {
        name: "no condition and no deadline",
        text: "Without a deadline the counts decide. kstatus needs the condition `Available`, too.",
        judges: &[Kstatus],
        ours: &[Complete],
        theirs: &[InProgress],
        holds: |row, _| is_deployment(row) && !has_deadline(row) && row.condition("Available").is_none(),
    },
];

fn is_deployment(row: &Row) -> bool {
    row.kind() == "Deployment"
}

fn is_paused(row: &Row) -> bool {
    row.object["spec"]["paused"] == true
}

fn has_deadline(row: &Row) -> bool {
    row.spec("/progressDeadlineSeconds", i64::from(i32::MAX)) != i64::from(i32::MAX)
}

fn is_late(row: &Row) -> bool {
    row.condition("Progressing").is_some_and(|(_, reason)| reason == "ProgressDeadlineExceeded")
}

/// Returns `true` if a judge trusts the status.
fn is_current(row: &Row, judge: Judge) -> bool {
    match judge {
        Kubectl | ArgoCd => row.is_observed(),
        Kstatus => row.is_observed_or_silent(),
    }
}

/// Returns `true` if the counts and conditions that a judge reads say complete.
fn is_complete(row: &Row, judge: Judge) -> bool {
    let [replicas, updated, ready, available] =
        ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"].map(|key| row.count(key));
    let desired = row.desired();
    let is_updated = updated >= desired && available >= updated;
    is_current(row, judge)
        && !is_late(row)
        && is_updated
        && match judge {
            Kubectl | ArgoCd => replicas <= updated,
            Kstatus => {
                let is_available = row.condition("Progressing") == Some(("True", "NewReplicaSetAvailable"));
                let has_ended = is_available || !has_deadline(row);
                replicas == desired && ready >= desired && has_ended && row.is_true("Available")
            }
        }
}
