//! The table of the states of a policy.

use super::*;

#[test]
fn the_state_of_a_policy_follows_from_the_status_and_the_time() {
    use PolicyState::{Held, NoImage, Waiting, Written};
    let night = "deny window `night` of automation shop/app";
    let until = "; until 2026-12-02T06:00:00Z";
    let reported = |end: &'static str| ["UpdatesWaiting", "True", "WindowClosed", end];
    for (case, state, reason) in [
        (
            Case { observed: Some("2.0.0"), ..Case::default() },
            Written,
            "the last run that read the files wrote it, or found it there".to_owned(),
        ),
        (
            Case {
                observed: Some("2.0.0"),
                annotations: json!({"tagboat.dev/delivery": "branch"}),
                ..Case::default()
            },
            Written,
            "the last run that read the files put it on its branch, left the branch as it is, or found it in the base".to_owned(),
        ),
        (
            Case {
                observed: Some("2.0.0"),
                annotations: json!({"tagboat.dev/delivery": "branch"}),
                is_suspended: true,
                ..Case::default()
            },
            Written,
            "the last run that read the files put it on its branch, left the branch as it is, or found it in the base; the \
             automation is suspended, so another one that shares the branch may have made it anew without this image"
                .to_owned(),
        ),
        (Case::default(), Written, "not written yet: the next run is due".to_owned()),
        (
            Case { observed: None, ..Case::default() },
            Written,
            "not written yet: the automation has not run yet".to_owned(),
        ),
        (
            Case { origin: Origin::Manifests, ..Case::default() },
            Written,
            "not written yet: tagboat run has not run since it was selected".to_owned(),
        ),
        (
            Case { origin: Origin::Manifests, observed: None, ..Case::default() },
            Written,
            "not written yet: no state of an earlier run is known".to_owned(),
        ),
        (
            Case { is_suspended: true, ..Case::default() },
            Written,
            "not written yet: the automation is suspended".to_owned(),
        ),
        (
            Case { condition: Some(["Ready", "False", "GitOperationFailed", "no host"]), ..Case::default() },
            Written,
            "not written yet: the last run failed: no host (GitOperationFailed)".to_owned(),
        ),
        (
            Case { wanted: None, ..Case::default() },
            NoImage,
            "the policy has selected no image yet".to_owned(),
        ),
        // Windows, now and at another time.
        (
            Case { annotations: own(NIGHT), at: EVENING, ..Case::default() },
            Waiting,
            format!("{night}{until}"),
        ),
        (
            Case { annotations: own(NIGHT), at: EVENING, observed: Some("2.0.0"), ..Case::default() },
            Written,
            "the last run that read the files wrote it, or found it there".to_owned(),
        ),
        (
            Case { annotations: own(NIGHT), is_now: false, ..Case::default() },
            Written,
            "not written yet: a run at that time may write it".to_owned(),
        ),
        // A wait that the status reports.
        (
            Case {
                condition: Some(reported("1 value of web waits: x; until 2026-12-01T13:00:00Z")),
                ..Case::default()
            },
            Waiting,
            "x; until 2026-12-01T13:00:00Z".to_owned(),
        ),
        (
            Case {
                condition: Some(reported("1 value of web waits: x; until 2026-12-01T12:00:00Z")),
                ..Case::default()
            },
            Written,
            "not written yet: the next run is due".to_owned(),
        ),
        (
            Case {
                condition: Some(reported("1 value of web waits: x; until 2026-12-01T13:00:00Z")),
                is_now: false,
                ..Case::default()
            },
            Written,
            "not written yet: a run at that time may write it".to_owned(),
        ),
        // The annotation of the group is gone.
        (
            Case {
                condition: Some([
                    "UpdatesWaiting",
                    "True",
                    "ReleaseGroupIncomplete",
                    "1 value of web waits: x; no end is known",
                ]),
                ..Case::default()
            },
            Written,
            "not written yet: the next run is due".to_owned(),
        ),
        // A quiet period that the last run did not know begins now, and one that is gone delays nothing.
        (
            Case { annotations: json!({"tagboat.dev/quiet-period": "5m"}), ..Case::default() },
            Waiting,
            "quiet period of 5m of automation shop/app (tagboat.dev/quiet-period); until 2026-12-01T12:05:00Z".to_owned(),
        ),
        (
            Case {
                annotations: json!({"tagboat.dev/quiet-period": "5m"}),
                observed: Some("2.0.0"),
                ..Case::default()
            },
            Written,
            "the last run that read the files wrote it, or found it there".to_owned(),
        ),
        (
            Case {
                condition: Some([
                    "UpdatesWaiting",
                    "True",
                    "QuietPeriod",
                    "1 value of web waits: quiet period of 5m; until 2026-12-01T13:00:00Z; changes from \
                     2026-12-01T12:50:00Z to 2026-12-01T12:55:00Z (images 0123456789ab after 0123456789ab)",
                ]),
                ..Case::default()
            },
            Written,
            "not written yet: the next run is due".to_owned(),
        ),
        // Windows of the automation, and of a Namespace, that are gone; a freeze of all namespaces need not be.
        (
            Case {
                condition: Some(reported("1 value of web waits: deny window `a` of automation shop/app; no end is known")),
                ..Case::default()
            },
            Written,
            "not written yet: the next run is due".to_owned(),
        ),
        (
            Case {
                condition: Some(reported(
                    "1 value of web waits: deny window `a` of namespace shop (tagboat.dev/windows); no end is known",
                )),
                ..Case::default()
            },
            Written,
            "not written yet: the next run is due".to_owned(),
        ),
        // A misspelt annotation that was mended.
        (
            Case {
                condition: Some([
                    "UpdatesWaiting",
                    "True",
                    "Frozen",
                    "1 value of web waits: namespace shop has the unknown annotation tagboat.dev/freez: allowed are \
                     tagboat.dev/freeze, tagboat.dev/freeze-all and tagboat.dev/windows; no end is known",
                ]),
                ..Case::default()
            },
            Written,
            "not written yet: the next run is due".to_owned(),
        ),
        (
            Case {
                condition: Some([
                    "UpdatesWaiting",
                    "True",
                    "Frozen",
                    "1 value of web waits: freeze of all namespaces by x; no end is known",
                ]),
                ..Case::default()
            },
            Waiting,
            "freeze of all namespaces by x; no end is known".to_owned(),
        ),
        // A freeze by the namespace of the controller that is over, and one by a namespace that is not read here.
        (
            Case {
                condition: Some([
                    "UpdatesWaiting",
                    "True",
                    "Frozen",
                    "1 value of web waits: freeze of all namespaces by tagboat.dev/freeze-all of namespace flux-system: audit; \
                     no end is known",
                ]),
                ..Case::default()
            },
            Written,
            "not written yet: the next run is due".to_owned(),
        ),
        (
            Case {
                condition: Some([
                    "UpdatesWaiting",
                    "True",
                    "Frozen",
                    "1 value of web waits: freeze of all namespaces by tagboat.dev/freeze-all of namespace flux-system-2: audit; \
                     no end is known",
                ]),
                ..Case::default()
            },
            Waiting,
            "freeze of all namespaces by tagboat.dev/freeze-all of namespace flux-system-2: audit; no end is known"
                .to_owned(),
        ),
        // The image of the last run was to be written in another place as well, when the freeze ended.
        (
            Case {
                condition: Some([
                    "UpdatesWaiting",
                    "True",
                    "Frozen",
                    "1 value of web waits: freeze of namespace shop (tagboat.dev/freeze); no end is known",
                ]),
                observed: Some("2.0.0"),
                origin: Origin::Manifests,
                ..Case::default()
            },
            Written,
            "not written yet: the next run is due".to_owned(),
        ),
        (
            Case {
                condition: Some(reported("1 value of other waits: x; no end is known")),
                ..Case::default()
            },
            Written,
            "not written yet: the next run is due".to_owned(),
        ),
        (
            Case {
                condition: Some([
                    "RevertHeld",
                    "True",
                    "TakenBack",
                    "tagboat.dev/on-revert is hold and keeps out ghcr.io/org/web:2.0.0 of web; y",
                ]),
                annotations: json!({"tagboat.dev/on-revert": "hold", "tagboat.dev/windows": NIGHT}),
                at: EVENING,
                ..Case::default()
            },
            Held,
            "taken back in git; tagboat.dev/on-revert is hold: until the policy selects another image, or the wanted value is in \
             the file"
                .to_owned(),
        ),
        // The policy has selected another image since, which ends the hold.
        (
            Case {
                condition: Some([
                    "RevertHeld",
                    "True",
                    "TakenBack",
                    "tagboat.dev/on-revert is hold and keeps out ghcr.io/org/web:1.9.0 of web; y",
                ]),
                annotations: json!({"tagboat.dev/on-revert": "hold"}),
                ..Case::default()
            },
            Written,
            "not written yet: the next run is due".to_owned(),
        ),
        // The annotation is gone.
        (
            Case {
                condition: Some([
                    "RevertHeld",
                    "True",
                    "TakenBack",
                    "tagboat.dev/on-revert is hold and keeps out ghcr.io/org/web:2.0.0 of web; y",
                ]),
                observed: Some("2.0.0"),
                origin: Origin::Manifests,
                ..Case::default()
            },
            Written,
            "not written yet: the next run is due".to_owned(),
        ),
        (
            Case {
                condition: Some([
                    "RevertHeld",
                    "True",
                    "TakenBack",
                    "tagboat.dev/on-revert is hold and keeps out ghcr.io/org/web:2.0.0 of web; y",
                ]),
                observed: Some("2.0.0"),
                annotations: json!({"tagboat.dev/on-revert": "overwrite"}),
                namespace: json!({"tagboat.dev/freeze": "x"}),
                ..Case::default()
            },
            Waiting,
            "freeze of namespace shop (tagboat.dev/freeze): x; no end is known".to_owned(),
        ),
        (
            Case {
                condition: Some([
                    "RevertHeld",
                    "True",
                    "TakenBack",
                    "tagboat.dev/on-revert is hold and keeps out ghcr.io/org/web:2.0.0 of web; y",
                ]),
                ..Case::default()
            },
            Written,
            "not written yet: the next run is due".to_owned(),
        ),
    ] {
        let explanation = case.explain();
        let [policy] = &explanation.policies[..] else { panic!("{explanation:?}") };
        assert_eq!((policy.state, &policy.reason), (state, &reason));
        let image = case.wanted.map(|tag| format!("ghcr.io/org/web:{tag}"));
        assert_eq!((policy.policy.as_str(), &policy.image), ("shop/web", &image));
        let is_good = matches!(state, Written | NoImage) && explanation.error.is_none();
        let is_waiting = !explanation.waiting.is_empty();
        assert_eq!(explanation.done().is_ok(), is_good && !is_waiting, "{reason}");
    }
}
