//! The run of a Job, by its conditions.
//!
//! Source: "Terminal Job conditions" in the documentation of Jobs of Kubernetes. `SuccessCriteriaMet` and
//! `FailureTarget` precede `Complete` and `Failed`, until the remaining pods have ended.

use super::{Assessment, Counts};
use crate::rollout::objects::{Condition, Job, Unreadable, find};

/// Assesses a Job that has the wanted image.
///
/// The code is the reason of the condition `Failed`, such as `BackoffLimitExceeded` or `DeadlineExceeded`. `ready`
/// counts the pods that succeeded.
#[must_use]
pub fn assess(object: &Job) -> Assessment {
    read(object).unwrap_or_else(Assessment::unreadable)
}

fn read(object: &Job) -> Result<Assessment, &Unreadable> {
    let (spec, status) = (object.spec.get()?, object.status.get()?);
    let all = status.active.saturating_add(status.succeeded);
    let counts = Counts::new(spec.completions.unwrap_or(1), all, status.succeeded, Some(all));
    let holds = |kind| find(&status.conditions, kind).filter(|condition| condition.is_true());
    Ok(if let Some(complete) = holds("Complete") {
        let finished = status.completion_time.as_ref().or(complete.last_transition_time.as_ref());
        Assessment::complete(counts, finished)
    } else if let Some(failed) = holds("Failed") {
        Assessment::failed(counts, code(failed), failed.text())
    } else if let Some(condition) = holds("FailureTarget").or_else(|| holds("Suspended")) {
        Assessment::in_progress(counts, condition.text())
    } else if holds("SuccessCriteriaMet").is_some() {
        Assessment::in_progress(counts, "the Job has succeeded, and its last pods end")
    } else {
        let text = format!("succeeded pods: {} of {}", counts.ready, counts.desired);
        Assessment::in_progress(counts, &text)
    })
}

fn code(failed: &Condition) -> &str {
    Some(failed.reason()).filter(|reason| !reason.is_empty()).unwrap_or("Failed")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{complete, failed, in_progress, summary};
    use super::*;

    fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastProbeTime": "2026-11-02T10:04:11Z", "lastTransitionTime": "2026-11-02T10:04:11Z",
        })
    }

    #[test]
    fn every_row_of_the_rule() {
        let reached = "Reached expected number of succeeded pods";
        let limit = "Job has reached the specified backoff limit";
        let table = [
            (
                "complete",
                json!({"completions": 2}),
                json!({"succeeded": 2, "completionTime": "2026-11-02T10:04:10Z", "conditions": [
                    condition("SuccessCriteriaMet", "True", "CompletionsReached", reached),
                    condition("Complete", "True", "CompletionsReached", reached),
                ]}),
                complete(2, 2, 2, Some("2026-11-02T10:04:10Z")),
            ),
            (
                "complete, of an older API server",
                json!({}),
                json!({"succeeded": 1, "conditions": [condition("Complete", "True", "", "")]}),
                complete(1, 1, 1, Some("2026-11-02T10:04:11Z")),
            ),
            (
                "failed",
                json!({"completions": 1, "backoffLimit": 3}),
                json!({"failed": 4, "conditions": [
                    condition("FailureTarget", "True", "BackoffLimitExceeded", limit),
                    condition("Failed", "True", "BackoffLimitExceeded", limit),
                ]}),
                failed(1, 0, 0, "BackoffLimitExceeded", limit),
            ),
            (
                "failed without a reason",
                json!({}),
                json!({"conditions": [condition("Failed", "True", "", "")]}),
                failed(1, 0, 0, "Failed", ""),
            ),
            (
                "failing",
                json!({}),
                json!({"active": 1, "conditions": [condition("FailureTarget", "True", "DeadlineExceeded", "late")]}),
                in_progress(1, 1, 0, "late"),
            ),
            (
                "succeeding",
                json!({"completions": 3}),
                json!({"active": 2, "succeeded": 1,
                    "conditions": [condition("SuccessCriteriaMet", "True", "SuccessPolicy", "rule 0")]}),
                in_progress(3, 3, 1, "the Job has succeeded, and its last pods end"),
            ),
            (
                "running",
                json!({"completions": 3, "parallelism": 2}),
                json!({"active": 2, "succeeded": 1, "ready": 2, "startTime": "2026-11-02T10:00:00Z"}),
                in_progress(3, 3, 1, "succeeded pods: 1 of 3"),
            ),
            (
                "suspended",
                json!({"suspend": true}),
                json!({"conditions": [condition("Suspended", "True", "JobSuspended", "Job suspended")]}),
                in_progress(1, 0, 0, "Job suspended"),
            ),
            (
                "resumed",
                json!({}),
                json!({"active": 1, "conditions": [condition("Suspended", "False", "JobResumed", "Job resumed")]}),
                in_progress(1, 1, 0, "succeeded pods: 0 of 1"),
            ),
            ("new", json!({}), json!(null), in_progress(1, 0, 0, "succeeded pods: 0 of 1")),
        ];
        for (name, spec, status, expected) in table {
            let object =
                json!({"metadata": {"name": "migrate", "generation": 1}, "spec": spec, "status": status});
            assert_eq!(summary(&assess(&serde_json::from_value(object).unwrap())), expected, "{name}");
        }
    }
}
