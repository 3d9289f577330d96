//! The rollout of a workload that is the target of a Flagger Canary.
//!
//! Users change the target. Flagger scales it up, analyses it, copies its template to `NAME-primary`, and scales it
//! to zero, also after a failed analysis. So the counts of the target say nothing. Source: the phases in
//! `pkg/apis/flagger/v1beta1/status.go` of Flagger.

use jiff::Timestamp;

use super::{Assessment, Counts};
use crate::rollout::objects::{Canary, Unreadable, find};

/// The facts about a target that its Canary does not have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Target {
    /// The counts of `NAME-primary`; none if it does not exist.
    pub primary: Option<Counts>,
    /// True if `NAME-primary` has the wanted image.
    pub is_promoted: bool,
    /// The time at which the target got the wanted image, if we observed it.
    pub has_image_since: Option<Timestamp>,
}

/// Assesses the target of a Canary; the target has the wanted image.
///
/// The phase is that of the image before, until Flagger sees the change. So the phases of success count only if
/// the primary has the image, and the failure only if it is not older than the image. The code is `CanaryFailed`.
#[must_use]
pub fn assess(canary: &Canary, target: &Target) -> Assessment {
    read(canary, target).unwrap_or_else(Assessment::unreadable)
}

fn read<'c>(canary: &'c Canary, target: &Target) -> Result<Assessment, &'c Unreadable> {
    let status = canary.status.get()?;
    let mut counts = target.primary.unwrap_or_default();
    if !target.is_promoted {
        counts.updated_ready = 0;
    }
    let changed = status.last_transition_time.as_ref();
    Ok(match status.phase.as_deref().unwrap_or_default() {
        "Succeeded" | "Initialized" if target.is_promoted => Assessment::complete(counts, changed),
        "Failed" if !is_older(changed.map(|time| time.0), target.has_image_since) => {
            let text = find(&status.conditions, "Promoted").map_or("", |condition| condition.text());
            Assessment::failed(counts, "CanaryFailed", text)
        }
        "Succeeded" | "Initialized" | "Failed" | "" => {
            Assessment::in_progress(counts, "Flagger has not observed the change yet")
        }
        phase => Assessment::in_progress(counts, &format!("the canary is in phase {phase}")),
    })
}

fn is_older(changed: Option<Timestamp>, has_image_since: Option<Timestamp>) -> bool {
    has_image_since.is_some_and(|since| changed.is_some_and(|changed| changed < since))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{complete, failed, in_progress, summary};
    use super::*;

    #[test]
    fn every_phase() {
        let counts = Counts::new(2, 2, 2, Some(2));
        let promoted = Target { primary: Some(counts), is_promoted: true, has_image_since: None };
        let changed = Target { is_promoted: false, ..promoted };
        let since = |time: &str| Target { has_image_since: Some(time.parse().unwrap()), ..changed };
        let ended = Some("2026-11-02T10:04:11Z");
        let unobserved = in_progress(2, 2, 2, "Flagger has not observed the change yet");
        let in_phase = |phase: &str| in_progress(2, 2, 2, &format!("the canary is in phase {phase}"));
        let text = "Canary analysis failed, Deployment scaled to zero.";
        let table = [
            ("Succeeded", promoted, complete(2, 2, 2, ended)),
            ("Initialized", promoted, complete(2, 2, 2, ended)),
            ("Succeeded", changed, unobserved.clone()),
            ("Initialized", changed, unobserved.clone()),
            (
                "Initialized",
                Target::default(),
                in_progress(0, 0, 0, "Flagger has not observed the change yet"),
            ),
            ("Failed", changed, failed(2, 2, 2, "CanaryFailed", text)),
            ("Failed", since("2026-11-02T10:00:00Z"), failed(2, 2, 2, "CanaryFailed", text)),
            ("Failed", since("2026-11-02T10:05:00Z"), unobserved.clone()),
            ("", changed, unobserved),
            ("Initializing", promoted, in_phase("Initializing")),
            ("Waiting", changed, in_phase("Waiting")),
            ("Progressing", changed, in_phase("Progressing")),
            ("WaitingPromotion", changed, in_phase("WaitingPromotion")),
            ("Promoting", promoted, in_phase("Promoting")),
            ("Finalising", promoted, in_phase("Finalising")),
            ("Terminating", promoted, in_phase("Terminating")),
        ];
        for (phase, target, expected) in table {
            let canary: Canary = serde_json::from_value(json!({
                "apiVersion": "flagger.app/v1beta1", "kind": "Canary",
                "metadata": {"name": "podinfo", "namespace": "apps"},
                "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "podinfo"},
                    "analysis": {"interval": "1m", "threshold": 5}},
                "status": {"phase": phase, "failedChecks": 5, "canaryWeight": 0, "iterations": 0,
                    "lastAppliedSpec": "5978589476", "lastTransitionTime": "2026-11-02T10:04:11Z",
                    "conditions": [{"type": "Promoted", "status": "False", "reason": phase, "message": text,
                        "lastTransitionTime": "2026-11-02T10:04:11Z"}]},
            }))
            .unwrap();
            assert_eq!(Canary::primary_name(canary.spec.get().unwrap()), "podinfo-primary");
            let assessment = assess(&canary, &target);
            assert_eq!(summary(&assessment), expected, "{phase}, {target:?}");
            // Until the promotion, the primary has the image before.
            let updated_ready = if target.is_promoted { 2 } else { 0 };
            assert_eq!(assessment.counts.updated_ready, updated_ready, "{phase}, {target:?}");
        }
    }
}
