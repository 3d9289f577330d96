//! Reasons for StatefulSets and DaemonSets.

use super::super::state::Judge::{ArgoCd, Kstatus, Kubectl};
use super::super::state::Outcome::{Complete, InProgress};
use super::super::state::{Judge, Row};
use super::reason::DifferenceReason;

pub(super) const REASONS: &[DifferenceReason] = &[
    DifferenceReason {
        name: "pods of a finished StatefulSet",
        text: "A finished rollout stays installed while pods are replaced, unready or scaled.",
        judges: &Judge::ALL,
        ours: &[Complete],
        theirs: &[InProgress],
        holds: |row, judge| {
            is_stateful_set(row) && row.installed && is_viewed(row, judge) && !is_complete(row, judge)
        },
    },
    DifferenceReason {
        name: "surplus pods of a StatefulSet",
        text: "All pods have the revision and enough are ready. kstatus also waits for the pods that end when a user \
               scales down.",
        judges: &[Kstatus],
        ours: &[Complete],
        theirs: &[InProgress],
        holds: |row, _| {
            is_stateful_set(row)
                && !row.installed
                && !row.is_on_delete()
                && row.count("replicas") > row.desired()
        },
    },
    DifferenceReason {
        name: "old pods with OnDelete",
        text: "A StatefulSet with `OnDelete` is installed when no pod has the old revision and all are ready. kstatus \
               calls it Current in any state, and Argo CD Healthy when its pods are ready.",
        judges: &[Kstatus, ArgoCd],
        ours: &[InProgress],
        theirs: &[Complete],
        holds: |row, judge| is_stateful_set(row) && row.is_on_delete() && is_complete(row, judge),
    },
    DifferenceReason {
        name: "old pods below the partition",
        text: "A StatefulSet with a partition is installed when no pod has the old revision. The others stop at the \
               partition.",
        judges: &Judge::ALL,
        ours: &[InProgress],
        theirs: &[Complete],
        holds: |row, judge| {
            is_stateful_set(row) && !row.is_on_delete() && partition(row) > 0 && is_complete(row, judge)
        },
    },
    DifferenceReason {
        name: "revision not current yet",
        text: "All pods are updated and ready, and the controller has not made the revision the current one yet. The \
               others do not read the revisions, since the API server always sets a partition.",
        judges: &Judge::ALL,
        ours: &[InProgress],
        theirs: &[Complete],
        holds: |row, judge| {
            let is_other = row.text("currentRevision") != row.text("updateRevision");
            is_stateful_set(row)
                && !row.is_on_delete()
                && partition(row) == 0
                && is_other
                && is_complete(row, judge)
        },
    },
    DifferenceReason {
        name: "pods of no revision",
        text: "A terminating pod is one of no revision, and must end first. kubectl and Argo CD do not compare the \
               number of all pods.",
        judges: &[Kubectl, ArgoCd],
        ours: &[InProgress],
        theirs: &[Complete],
        holds: |row, judge| {
            is_stateful_set(row)
                && !row.is_on_delete()
                && partition(row) == 0
                && row.count("replicas") > row.count("updatedReplicas")
                && is_complete(row, judge)
        },
    },
    DifferenceReason {
        name: "StatefulSet without a status",
        text: "kstatus does not wait for the first status of a StatefulSet with zero replicas.",
        judges: &[Kstatus],
        ours: &[InProgress],
        theirs: &[Complete],
        holds: |row, _| {
            is_stateful_set(row)
                && !row.is_on_delete()
                && row.desired() == 0
                && row.object["status"]["observedGeneration"].is_null()
        },
    },
    DifferenceReason {
        name: "pods of a finished DaemonSet",
        text: "A finished rollout stays installed while nodes come, and pods are replaced or unavailable.",
        judges: &Judge::ALL,
        ours: &[Complete],
        theirs: &[InProgress],
        holds: |row, judge| {
            let counts = ["updatedNumberScheduled", "numberAvailable"].map(|key| row.count(key));
            let others = ["currentNumberScheduled", "numberReady"].map(|key| row.count(key));
            let desired = row.count("desiredNumberScheduled");
            let is_short = |count: &i64| *count < desired;
            row.kind() == "DaemonSet"
                && row.installed
                && (judge == Kstatus || !row.is_on_delete())
                && (counts.iter().any(is_short) || judge == Kstatus && others.iter().any(is_short))
        },
    },
    DifferenceReason {
        name: "DaemonSet with OnDelete",
        text: "A DaemonSet with `OnDelete` is installed when its pods are updated and available, as any other. Argo CD \
               calls it Healthy in any state.",
        judges: &[ArgoCd],
        ours: &[InProgress],
        theirs: &[Complete],
        holds: |row, _| row.kind() == "DaemonSet" && row.is_on_delete() && row.is_observed(),
    },
];

fn is_stateful_set(row: &Row) -> bool {
    row.kind() == "StatefulSet"
}

fn is_viewed(row: &Row, judge: Judge) -> bool {
    judge != Kubectl || !row.is_on_delete()
}

fn partition(row: &Row) -> i64 {
    row.spec("/updateStrategy/rollingUpdate/partition", 0)
}

/// Returns `true` if what a judge reads says complete.
fn is_complete(row: &Row, judge: Judge) -> bool {
    let desired = row.desired();
    let is_ready = row.count("readyReplicas") >= desired;
    let is_updated = row.count("updatedReplicas") >= desired - partition(row);
    match judge {
        Kubectl => row.is_observed() && is_ready && is_updated,
        ArgoCd => row.is_observed() && is_ready && (is_updated || row.is_on_delete()),
        Kstatus => {
            let has_pods = row.count("replicas") == desired;
            row.is_observed_or_silent() && (row.is_on_delete() || has_pods && is_ready && is_updated)
        }
    }
}
