//! Tables of explanations.

mod states;

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use serde_json::{Value, json};

use super::facts::{Facts, Origin};
use super::judge::{Moment, explain};
use super::report::{Explanation, PolicyState};
use crate::reconcile::automation::waiting::NamespaceRules;

const NIGHT: &str = "[{name: night, kind: deny, cron: '0 18 * * *', window: 12h}]";
const NOON: &str = "2026-12-01T12:00:00Z";
const EVENING: &str = "2026-12-01T20:00:00Z";

/// An automation with one policy `web`, and what is known about it.
#[derive(Clone)]
struct Case {
    annotations: Value,
    namespace: Value,
    /// The image that the policy wants.
    wanted: Option<&'static str>,
    /// The image that the last run wanted.
    observed: Option<&'static str>,
    /// The condition `type status reason message`, in its parts.
    condition: Option<[&'static str; 4]>,
    is_suspended: bool,
    /// True if there is another policy `api`, whose image `1.0.0` the last run wanted.
    has_api: bool,
    refusals: &'static [&'static str],
    origin: Origin,
    at: &'static str,
    is_now: bool,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            annotations: json!({}),
            namespace: json!({}),
            wanted: Some("2.0.0"),
            observed: Some("1.0.0"),
            condition: None,
            is_suspended: false,
            has_api: false,
            refusals: &[],
            origin: Origin::Cluster { controller: "flux-system".to_owned() },
            at: NOON,
            is_now: true,
        }
    }
}

impl Case {
    fn explain(&self) -> Explanation {
        let image = |tag: &str| json!({"name": "ghcr.io/org/web", "tag": tag});
        let mut status = json!({});
        if let Some(tag) = self.observed {
            status["observedPolicies"] = json!({"web": image(tag)});
            if self.has_api {
                status["observedPolicies"]["api"] = image("1.0.0");
            }
            status["lastAutomationRunTime"] = json!("2026-12-01T00:00:00Z");
        }
        if let Some([type_, is, reason, message]) = self.condition {
            status["conditions"] = json!([{
                "type": type_, "status": is, "reason": reason, "message": message,
                "lastTransitionTime": "2026-12-01T00:00:00Z",
            }]);
        }
        let automation = serde_json::from_value(json!({
            "metadata": {"namespace": "shop", "name": "app", "annotations": self.annotations},
            "spec": {
                "interval": "1m", "suspend": self.is_suspended,
                "sourceRef": {"kind": "GitRepository", "name": "r"},
            },
            "status": status,
        }));
        let policy = |name: &str, tag: Option<&str>| {
            let policy = serde_json::from_value(json!({
                "metadata": {"namespace": "shop", "name": name},
                "spec": {"imageRepositoryRef": {"name": name}, "policy": {"semver": {"range": "*"}}},
                "status": {"latestRef": tag.map(image)},
            }));
            Arc::new(policy.unwrap())
        };
        let api = self.has_api.then(|| policy("api", Some("1.0.0")));
        let namespace: BTreeMap<String, String> = serde_json::from_value(self.namespace.clone()).unwrap();
        let facts = Facts {
            automation: automation.unwrap(),
            repository: None,
            policies: iter::once(policy("web", self.wanted)).chain(api).collect(),
            rules: NamespaceRules::of(&namespace).with_freeze_all("shop", &namespace),
            refusals: self.refusals.iter().map(|refusal| (*refusal).to_owned()).collect(),
            unread: Vec::new(),
            notes: Vec::new(),
            origin: self.origin.clone(),
        };
        explain(
            &facts,
            Moment { at: self.at.parse().unwrap(), now: NOON.parse().unwrap(), is_now: self.is_now },
        )
    }
}

fn own(windows: &str) -> Value {
    json!({"tagboat.dev/windows": windows})
}

/// The rule that the last run reported was shown with its former end.
#[test]
fn a_rule_that_has_changed_since_the_last_run_is_shown_as_it_is_now() {
    let message = |by: &str, until: &str| -> &'static str {
        let end = if until.is_empty() { "no end is known".to_owned() } else { format!("until {until}") };
        format!("1 value of web waits: {by}; {end}").leak()
    };
    let freeze = |reason: &str| format!("freeze of namespace shop (tagboat.dev/freeze): {reason}");
    let window = |name: &str| format!("deny window `{name}` of automation shop/app");
    let list = |name: &str| own(&NIGHT.replace("night", name));
    let (first, second) = ("2026-12-02T00:00:00Z", "2026-12-24T00:00:00Z");
    let morning = "2026-12-02T06:00:00Z";
    let frozen = |value: &str| json!({"tagboat.dev/freeze": value});
    let audit = (freeze("audit"), first);
    let quiet = "quiet period of 5m of automation shop/app (tagboat.dev/quiet-period)".to_owned();
    let others = "automation shop/other, which changes the same branch and waits".to_owned();
    for (reason, (by, until), annotations, namespace, expected) in [
        // It is the same.
        (
            "Frozen",
            audit.clone(),
            json!({}),
            frozen("{reason: audit, until: 2026-12-02T00:00}"),
            (freeze("audit"), first),
        ),
        (
            "Frozen",
            audit.clone(),
            json!({}),
            frozen("{reason: incident, until: 2026-12-24T00:00}"),
            (freeze("incident"), second),
        ),
        (
            "Frozen",
            audit.clone(),
            json!({}),
            frozen("{reason: audit, until: 2026-12-24T00:00}"),
            (freeze("audit"), second),
        ),
        ("Frozen", audit.clone(), json!({}), frozen("audit"), (freeze("audit"), "")),
        ("Frozen", audit, list("night"), json!({}), (window("night"), morning)),
        ("WindowClosed", (window("a"), morning), list("b"), json!({}), (window("b"), morning)),
        // A freeze comes first.
        ("WindowClosed", (window("night"), morning), list("night"), frozen("x"), (freeze("x"), "")),
        (
            "QuietPeriod",
            (quiet, "2026-12-01T20:04:00Z"),
            json!({"tagboat.dev/quiet-period": "5m"}),
            frozen("x"),
            (freeze("x"), ""),
        ),
        ("Frozen", (others.clone(), ""), json!({}), frozen("x"), (freeze("x"), "")),
        ("QuietPeriod", (others.clone(), ""), json!({}), json!({}), (others, "")),
    ] {
        for observed in ["1.0.0", "2.0.0"] {
            let explanation = Case {
                condition: Some(["UpdatesWaiting", "True", reason, message(&by, until)]),
                annotations: annotations.clone(),
                namespace: namespace.clone(),
                observed: Some(observed),
                at: EVENING,
                ..Case::default()
            }
            .explain();
            let [wait] = &explanation.waiting[..] else { panic!("{explanation:?}") };
            let end =
                |until: Option<jiff::Timestamp>| until.map(|until| until.to_string()).unwrap_or_default();
            assert_eq!((wait.by.as_str(), end(wait.until).as_str()), (expected.0.as_str(), expected.1));
            let [policy] = &explanation.policies[..] else { panic!("{explanation:?}") };
            assert_eq!(policy.state, PolicyState::Waiting);
            assert!(policy.reason.starts_with(&expected.0), "{}", policy.reason);
            assert!(wait.message.contains(&expected.0), "{}", wait.message);
            if let Some(closed) = &explanation.closed {
                assert_eq!(
                    (closed.by.as_str(), end(closed.until).as_str()),
                    (expected.0.as_str(), expected.1)
                );
            }
        }
    }
}

/// They were called open, and a run refuses to begin.
#[test]
fn without_valid_settings_nothing_is_open() {
    const DEFECT: &str =
        "Namespace shop is defined twice, with different values of tagboat.dev/freeze: keep one";
    for (case, by) in [
        (Case { refusals: &[DEFECT], origin: Origin::Manifests, ..Case::default() }, DEFECT),
        (
            Case { annotations: own("foo"), ..Case::default() },
            "annotation tagboat.dev/windows: it is not a list of windows: ",
        ),
        (
            Case {
                annotations: json!({"tagboat.dev/window": "x"}),
                namespace: json!({"tagboat.dev/windows": NIGHT}),
                ..Case::default()
            },
            "annotation tagboat.dev/window (value `x`) is not a setting of ImageUpdateAutomation",
        ),
    ] {
        for at in [NOON, EVENING] {
            let explanation = Case { at, ..case.clone() }.explain();
            assert!(!explanation.open && explanation.next.is_empty(), "{explanation:?}");
            assert!(explanation.closed.as_ref().unwrap().by.starts_with(by), "{explanation:?}");
            assert!(explanation.error.as_ref().unwrap().contains(by), "{explanation:?}");
        }
        let reason = case.explain().policies[0].reason.clone();
        assert!(reason.starts_with(&format!("not written yet: {by}")), "{reason}");
    }
}

/// They were called written. The status names pull requests, and no branches.
#[test]
fn an_image_of_a_pull_request_that_a_person_has_closed_is_held() {
    use PolicyState::{Held, Written};
    const ONE: &str = "refused by a person: #9";
    let shared = || json!({"tagboat.dev/delivery": "pull-request"});
    let each =
        || json!({"tagboat.dev/delivery": "pull-request", "tagboat.dev/push-branch": "{{ .Policy.Name }}"});
    for (annotations, has_api, [observed, wanted], message, expected, has_note) in [
        (shared(), false, ["2.0.0", "2.0.0"], ONE, &[Held][..], false),
        (shared(), false, ["2.0.0", "2.0.0"], "1 open: #10", &[Written], false),
        // Another image ends the refusal of the branch.
        (shared(), false, ["1.0.0", "2.0.0"], ONE, &[Written], false),
        (shared(), true, ["1.0.0", "2.0.0"], ONE, &[Written, Written], false),
        (shared(), true, ["2.0.0", "2.0.0"], ONE, &[Held, Held], false),
        (each(), true, ["2.0.0", "2.0.0"], "refused by a person: #8, #9", &[Held, Held], false),
        (each(), true, ["1.0.0", "2.0.0"], "refused by a person: #8, #9", &[Held, Written], false),
        // One of the two is refused.
        (each(), true, ["2.0.0", "2.0.0"], ONE, &[Written, Written], true),
        (each(), true, ["2.0.0", "2.0.0"], "1 open: #8; refused by a person: #9", &[Written, Written], true),
        // The delivery was changed since.
        (json!({}), false, ["2.0.0", "2.0.0"], ONE, &[Written], false),
    ] {
        let explanation = Case {
            annotations: annotations.clone(),
            has_api,
            observed: Some(observed),
            wanted: Some(wanted),
            condition: Some(["Delivery", "True", "Current", message]),
            ..Case::default()
        }
        .explain();
        let mut states: Vec<_> = explanation.policies.iter().map(|one| (&one.policy, one.state)).collect();
        states.sort_by_key(|(policy, _)| *policy);
        let states: Vec<PolicyState> = states.into_iter().map(|(_, state)| state).collect();
        assert_eq!(states, expected, "{annotations} {message}");
        assert_eq!(explanation.notes.len(), usize::from(has_note), "{annotations} {message}");
        let held = explanation.policies.iter().filter(|one| one.state == Held);
        for one in held {
            assert!(one.reason.starts_with("a person has closed pull request"), "{}", one.reason);
        }
        assert_eq!(explanation.done().is_ok(), !expected.contains(&Held), "{annotations} {message}");
    }
}

/// Such an image was called written.
#[test]
fn an_image_that_did_not_get_on_a_branch_is_held() {
    use PolicyState::{Held, Written};
    const FAILED: &str = "h cannot be reached; not delivered: api; the next retry is at 2026-12-01T12:00:05Z";
    const INVALID: &str = "ImagePolicy shop/web has no branch; not delivered: web; 1 open: #7";
    const REFUSED: &str = "1 open: #8; refused by a person: #9; not delivered: web (#9)";
    let closed = "a person has closed pull request #9 without a merge; ";
    let failed =
        |message: &str| format!("the last run did not put it on a branch; `Delivery` says: {message} (");
    let by_failure = failed(FAILED);
    for (condition, observed, api, web) in [
        (
            ["False", "ForgeUnavailable", FAILED],
            "2.0.0",
            (Held, by_failure.as_str()),
            (Written, "the last run"),
        ),
        (["False", "InvalidBranch", INVALID], "2.0.0", (Written, "the last run"), (Held, &failed(INVALID))),
        (["True", "Current", REFUSED], "2.0.0", (Written, "the last run"), (Held, closed)),
        (
            ["False", "ForgeUnavailable", "h; not delivered: api, web (#9); 1 open: #8"],
            "2.0.0",
            (Held, "the last run did not put it on a branch; `Delivery` says: h; "),
            (Held, closed),
        ),
        // The image has changed since.
        (["True", "Current", REFUSED], "1.0.0", (Written, "the last run"), (Written, "not written yet: ")),
        (
            ["False", "InvalidBranch", INVALID],
            "1.0.0",
            (Written, "the last run"),
            (Written, "not written yet: "),
        ),
        // All of them, and only some: an image in the base is not refused.
        (
            ["True", "Current", "refused by a person: #9; not delivered: web (#9)"],
            "2.0.0",
            (Written, ""),
            (Held, closed),
        ),
    ] {
        let [is, reason, message] = condition;
        let name = "{{ .Policy.Name }}";
        let annotations = json!({"tagboat.dev/delivery": "pull-request", "tagboat.dev/push-branch": name});
        let explanation = Case {
            annotations,
            has_api: true,
            observed: Some(observed),
            condition: Some(["Delivery", is, reason, message]),
            ..Case::default()
        }
        .explain();
        let mut found = explanation.policies.iter().collect::<Vec<_>>();
        found.sort_by_key(|one| &one.policy);
        for (one, (state, reason)) in found.into_iter().zip([api, web]) {
            assert_eq!(one.state, state, "{message}: {one:?}");
            assert!(one.reason.starts_with(reason), "{message}: {one:?}");
        }
        assert!(explanation.notes.is_empty(), "{message}");
        let is_held = explanation.policies.iter().any(|one| one.state == Held);
        assert_eq!(explanation.done().is_err(), is_held || is == "False", "{message}");
    }
}

/// The sentence of a stall stood there twice.
#[test]
fn an_error_has_each_sentence_once() {
    let of = |refusals| {
        let mut case = Case { refusals, origin: Origin::Manifests, ..Case::default() };
        case.condition = Some(["Ready", "False", "InvalidBranch", "no branch"]);
        case
    };
    assert_eq!(of(&[]).explain().error.as_deref(), Some("the last run failed: no branch (InvalidBranch)"));
    assert_eq!(of(&["no branch"]).explain().error.as_deref(), Some("no branch"));
}

/// It was called open: a controller waits for a change of an object.
#[test]
fn a_stalled_automation_of_a_cluster_is_not_open() {
    let stalled = Some(["Stalled", "True", "InvalidSourceConfiguration", "no forge"]);
    let cluster = Origin::Cluster { controller: "flux-system".to_owned() };
    for (origin, expected) in [(cluster, false), (Origin::Manifests, true)] {
        let explanation = Case { condition: stalled, origin, ..Case::default() }.explain();
        assert_eq!(explanation.open, expected);
        let error = "the last run failed: no forge (InvalidSourceConfiguration)";
        assert_eq!(explanation.error.as_deref(), Some(error));
        assert_eq!(explanation.policies[0].reason, format!("not written yet: {error}"));
    }
}

/// A change counts when a run sees it, and none has seen this image.
#[test]
fn the_next_run_begins_the_quiet_period_of_an_image_anew() {
    let by = "quiet period of 1h of automation shop/app (tagboat.dev/quiet-period)";
    let cluster = Origin::Cluster { controller: "flux-system".to_owned() };
    for (origin, expected) in [
        (Origin::Manifests, format!("{by}, which the next run begins anew; no end is known")),
        (cluster, format!("{by}; until 2026-12-01T13:00:00Z")),
    ] {
        let annotations = json!({"tagboat.dev/quiet-period": "1h"});
        let explanation = Case { annotations, origin, ..Case::default() }.explain();
        assert_eq!(explanation.policies[0].reason, expected);
        assert_eq!(explanation.waiting[0].reason, "QuietPeriod");
    }
}

#[test]
fn everything_that_is_wrong_is_an_error() {
    for (case, error) in [
        (Case::default(), None),
        // A suspended automation has written everything.
        (Case { is_suspended: true, observed: Some("2.0.0"), ..Case::default() }, None),
        (Case { is_suspended: true, ..Case::default() }, Some("the automation is suspended")),
        (
            Case { condition: Some(["Stalled", "True", "AccessDenied", "no"]), ..Case::default() },
            Some("the last run failed: no (AccessDenied)"),
        ),
        (
            Case { condition: Some(["Delivery", "False", "EditedByOthers", "bot/web"]), ..Case::default() },
            Some("not every branch is delivered: bot/web (EditedByOthers)"),
        ),
        (
            Case { annotations: own("[]x"), ..Case::default() },
            Some("annotation tagboat.dev/windows: it is not a list of windows: "),
        ),
        (
            Case { annotations: json!({"tagboat.dev/window": "x"}), ..Case::default() },
            Some("annotation tagboat.dev/window (value `x`) is not a setting of ImageUpdateAutomation"),
        ),
        (
            Case { namespace: json!({"tagboat.dev/freeze": "{until: friday}"}), ..Case::default() },
            Some("invalid setting of namespace shop (tagboat.dev/freeze): the freeze: until is `friday`"),
        ),
        (
            Case { namespace: json!({"tagboat.dev/freez": ""}), ..Case::default() },
            Some("namespace shop has the unknown annotation tagboat.dev/freez: "),
        ),
    ] {
        let found = case.explain().error;
        match error {
            None => assert_eq!(found, None),
            Some(error) => assert!(found.as_ref().is_some_and(|found| found.starts_with(error)), "{found:?}"),
        }
    }
    let closed = Case { namespace: json!({"tagboat.dev/freez": ""}), ..Case::default() }.explain();
    assert!(!closed.open && closed.waiting[0].reason == "Frozen", "{closed:?}");
}

#[test]
fn the_next_changes_and_each_rule_are_shown() {
    let namespace = json!({
        "tagboat.dev/freeze-all": "{reason: audit, until: '2026-12-01T13:00'}",
        "tagboat.dev/windows": "[{name: holidays, kind: deny, from: 2026-12-18T12:00, until: 2027-01-04T08:00}]",
    });
    let explanation = Case { annotations: own(NIGHT), namespace, ..Case::default() }.explain();
    let rules: Vec<_> =
        explanation.rules.iter().map(|rule| (rule.name.as_str(), rule.closed_by.is_some())).collect();
    let expected = [
        ("freeze of all namespaces by tagboat.dev/freeze-all of namespace shop", true),
        ("windows of namespace shop (tagboat.dev/windows)", false),
        ("windows of automation shop/app", false),
    ];
    assert_eq!(rules, expected);
    let next: Vec<String> =
        explanation.next.iter().map(|change| format!("{} {}", change.at, change.open)).collect();
    let expected = [
        "2026-12-01T13:00:00Z true",
        "2026-12-01T18:00:00Z false",
        "2026-12-02T06:00:00Z true",
        "2026-12-02T18:00:00Z false",
        "2026-12-03T06:00:00Z true",
    ];
    assert_eq!(next, expected);
    assert_eq!(explanation.waiting[0].until.unwrap().to_string(), "2026-12-01T13:00:00Z");
    let message = "shop/web waits: freeze of all namespaces by tagboat.dev/freeze-all of namespace shop: audit; until \
                   2026-12-01T13:00:00Z";
    assert_eq!(explanation.waiting[0].message, message);
}
