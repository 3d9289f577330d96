//! Reasons for pods, ReplicaSets and kinds of other projects.

use super::super::state::Judge::{ArgoCd, Kstatus};
use super::super::state::Outcome::{Complete, Failed, InProgress, None};
use super::super::state::{Judge, Row};
use super::reason::DifferenceReason;

pub(super) const REASONS: &[DifferenceReason] = &[
    DifferenceReason {
        name: "unschedulable pod",
        text: "A pod that no node takes is in progress, with a message. kstatus calls it Failed after 15 seconds.",
        judges: &[Kstatus],
        ours: &[InProgress],
        theirs: &[Failed],
        holds: |row, _| {
            is_pod(row) && row.condition("PodScheduled").is_some_and(|(_, reason)| reason == "Unschedulable")
        },
    },
    DifferenceReason {
        name: "waiting container of a pod",
        text: "A container that waits with an error fails the pod at once. kstatus reads only `CrashLoopBackOff`. Argo \
               CD does not know all reasons, and ignores them unless the pod restarts always.",
        judges: &[Kstatus, ArgoCd],
        ours: &[Failed],
        theirs: &[InProgress],
        holds: |row, judge| match judge {
            Judge::Kstatus => is_pod(row) && row.text("phase") == "Pending",
            _ => is_pod(row) && (!restarts_always(row) || waiting_reason(row) == "InvalidImageName"),
        },
    },
    DifferenceReason {
        name: "failed pod",
        text: "A pod that has ended is Current for kstatus, whose rule we take. Argo CD calls it Degraded if it failed.",
        judges: &[ArgoCd],
        ours: &[Complete],
        theirs: &[Failed],
        holds: |row, _| is_pod(row) && row.text("phase") == "Failed",
    },
    DifferenceReason {
        name: "pod that runs to its end",
        text: "Argo CD waits for the end of a pod that is not restarted always. For us it is installed when it is ready.",
        judges: &[ArgoCd],
        ours: &[Complete],
        theirs: &[InProgress],
        holds: |row, _| is_pod(row) && row.text("phase") == "Running" && !restarts_always(row),
    },
    DifferenceReason {
        name: "restarted pod",
        text: "Argo CD calls an unready pod Degraded after one restart.",
        judges: &[ArgoCd],
        ours: &[InProgress],
        theirs: &[Failed],
        holds: |row, _| {
            let ended = row.object["status"].pointer("/containerStatuses/0/lastState/terminated");
            is_pod(row) && restarts_always(row) && ended.is_some()
        },
    },
    DifferenceReason {
        name: "pod without a phase",
        text: "Argo CD calls a new pod Unknown.",
        judges: &[ArgoCd],
        ours: &[InProgress],
        theirs: &[None],
        holds: |row, _| is_pod(row) && row.text("phase").is_empty(),
    },
    DifferenceReason {
        name: "refused pods of a ReplicaSet",
        text: "A ReplicaSet follows kstatus, for which `ReplicaFailure` is no end. Argo CD calls it Degraded.",
        judges: &[ArgoCd],
        ours: &[InProgress],
        theirs: &[Failed],
        holds: |row, _| is_replica_set(row) && row.is_observed() && row.is_true("ReplicaFailure"),
    },
    DifferenceReason {
        name: "other counts of a ReplicaSet",
        text: "Argo CD reads only the available pods of a ReplicaSet, and not the surplus ones or their labels.",
        judges: &[ArgoCd],
        ours: &[InProgress],
        theirs: &[Complete],
        holds: |row, _| {
            is_replica_set(row)
                && row.is_observed()
                && !row.is_true("ReplicaFailure")
                && row.count("availableReplicas") >= row.desired()
        },
    },
    DifferenceReason {
        name: "kind without a script",
        text: "Argo CD does not assess a kind for which it has no script.",
        judges: &[ArgoCd],
        ours: &[InProgress, Complete, Failed],
        theirs: &[None],
        holds: |row, _| row.kind() == "Database",
    },
    DifferenceReason {
        name: "condition that is False",
        text: "Argo CD calls a Service of Knative Degraded when any condition is `False`. For kstatus that is no end.",
        judges: &[ArgoCd],
        ours: &[InProgress],
        theirs: &[Failed],
        holds: |row, _| is_knative(row) && statuses(row).any(|status| status == "False"),
    },
    DifferenceReason {
        name: "generation of a Service of Knative",
        text: "Argo CD does not read `observedGeneration` of a Service of Knative.",
        judges: &[ArgoCd],
        ours: &[InProgress],
        theirs: &[Complete],
        holds: |row, _| {
            is_knative(row) && statuses(row).count() == 3 && statuses(row).all(|status| status == "True")
        },
    },
    DifferenceReason {
        name: "object without conditions",
        text: "An object without conditions is Current for kstatus. The scripts of Argo CD wait for a status.",
        judges: &[ArgoCd],
        ours: &[Complete],
        theirs: &[InProgress, None],
        holds: |row, _| has_script(row) && row.object["status"]["conditions"].is_null(),
    },
    DifferenceReason {
        name: "condition of a Prometheus",
        text: "Argo CD reads the condition `Available` of a Prometheus, which kstatus does not know.",
        judges: &[ArgoCd],
        ours: &[Complete],
        theirs: &[InProgress, Failed],
        holds: |row, _| {
            row.kind() == "Prometheus"
                && row.condition("Available").is_some_and(|(status, _)| status != "True")
        },
    },
    DifferenceReason {
        name: "phase of a PostgreSQL cluster",
        text: "Argo CD reads the phase of a Cluster of CloudNativePG, and calls interrupted service Degraded. kstatus \
               reads `Ready`.",
        judges: &[ArgoCd],
        ours: &[InProgress],
        theirs: &[Failed],
        holds: |row, _| {
            row.kind() == "Cluster"
                && matches!(
                    row.text("phase"),
                    "Failing over"
                        | "Primary instance is being restarted in-place"
                        | "Waiting for user action"
                )
        },
    },
];

fn is_pod(row: &Row) -> bool {
    row.kind() == "Pod"
}

fn restarts_always(row: &Row) -> bool {
    row.object["spec"]["restartPolicy"] == "Always"
}

fn waiting_reason(row: &Row) -> &str {
    let reason = row.object["status"].pointer("/containerStatuses/0/state/waiting/reason");
    reason.and_then(serde_json::Value::as_str).unwrap_or_default()
}

fn is_replica_set(row: &Row) -> bool {
    row.kind() == "ReplicaSet"
}

fn is_knative(row: &Row) -> bool {
    row.kind() == "Service"
}

fn has_script(row: &Row) -> bool {
    matches!(row.kind(), "Service" | "Prometheus" | "Cluster")
}

/// Returns the statuses of all conditions.
fn statuses(row: &Row) -> impl Iterator<Item = &str> {
    let conditions = row.object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.filter_map(|condition| condition["status"].as_str())
}
