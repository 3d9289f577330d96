//! Refused values of the settings that delay writes.

use serde_json::{Value, json};

use super::scene::Scene;
use super::waiting::{annotated, condition, namespace, report};

/// No further arguments.
const NONE: [&str; 0] = [];

/// Lists of windows that are refused, each with a part of its sentence.
fn refused_windows() -> Vec<(String, &'static str)> {
    let entry = |fields: &str| format!("[{{name: a, kind: deny, {fields}}}]");
    let every_night = "cron: '0 0 * * *'";
    vec![
        (
            entry(&format!("{every_night}, window: 1h, timeZone: Europe/Nowhere")),
            "timeZone is `Europe/Nowhere`",
        ),
        (entry("cron: '0 0 0 * * *', window: 1h"), "which has 6 fields"),
        (entry("cron: '0 0 30 2 *', window: 1h"), "which never occurs"),
        (entry(&format!("{every_night}, window: 0s")), "window is `0s`"),
        (entry(&format!("{every_night}, window: 367d")), "window is `367d`"),
        (entry("from: 2026-01-02T00:00, until: 2026-01-02T00:00"), "which is not after from"),
        (entry("from: 2026-01-02T00:00, until: 2026-01-01T00:00"), "which is not after from"),
        (
            entry(&format!("{every_night}, window: 1h, from: 2026-01-01T00:00, until: 2026-01-02T00:00")),
            "it has cron or window, and from or until",
        ),
        (format!("- {{name: a, kind: deny, {every_night}, window: 1h}}\n").repeat(51), "it has 51 windows"),
        (entry(&format!("{every_night}, window: 1h, days: 1")), "unknown field `days`"),
        ("{name: a}".to_owned(), "it is not a list of windows"),
    ]
}

fn invalid(annotation: &str, value: &str) -> (Value, String) {
    (json!({annotation: value}), format!("annotation {annotation} has the value `{value}`: allowed "))
}

/// Asserts that an automation with these annotations is stalled, with a sentence.
#[track_caller]
fn assert_stalls(annotations: &Value, begin: &str, part: &str) {
    let scene = Scene::new().local();
    annotated(&scene, annotations);
    let run = scene.run_with_state(NONE).with_status(1);
    assert!(run.only_error().starts_with(&format!("default/fleet: {begin}")), "{run:?}");
    let stalled = condition(&scene, "Stalled").unwrap();
    assert!(stalled.starts_with(&format!("True InvalidSettings {begin}")), "{stalled}");
    assert!(stalled.contains(part), "{stalled}");
    assert_eq!(scene.tag("main"), "4.0.6");
}

#[test]
fn each_refused_list_of_windows_stalls_an_automation() {
    for (windows, part) in refused_windows() {
        assert_stalls(&json!({"tagboat.dev/windows": windows}), "annotation tagboat.dev/windows: ", part);
    }
}

#[test]
fn each_other_refused_setting_stalls_an_automation() {
    for (annotation, value) in [
        ("tagboat.dev/on-revert", "keep"),
        ("tagboat.dev/on-revert", ""),
        ("tagboat.dev/quiet-period", "soon"),
        ("tagboat.dev/quiet-period", "-5m"),
        ("tagboat.dev/quiet-period", "5"),
        ("tagboat.dev/longest-wait", "soon"),
        ("tagboat.dev/longest-wait", "-5m"),
    ] {
        let (annotations, begin) = invalid(annotation, value);
        assert_stalls(&annotations, &begin, "");
    }
}

#[test]
fn each_refused_setting_of_a_namespace_freezes_its_automations() {
    let windows = refused_windows().into_iter().map(|(value, part)| ("tagboat.dev/windows", value, part));
    let freezes = ["tagboat.dev/freeze", "tagboat.dev/freeze-all"].into_iter().flat_map(|annotation| {
        [
            ("{reson: typo}", "unknown field `reson`"),
            ("{until: friday}", "until is `friday`, which is not a time"),
            ("{from: 2026-01-02T00:00, until: 2026-01-01T00:00}", "which is not after from"),
            ("{reason: audit", "it is not a freeze"),
        ]
        .map(|(value, part)| (annotation, value.to_owned(), part))
    });
    for (annotation, value, part) in windows.chain(freezes) {
        let scene = Scene::new().local();
        namespace(&scene, "default", &json!({annotation: value}));
        let report = report(&scene.run_with_state(["--output", "json"]).with_status(0));
        let waiting = &report["waiting"][0];
        let found = (&report["outcome"], &waiting["reason"], &waiting["until"]);
        assert_eq!(found, (&json!("waiting"), &json!("Frozen"), &Value::Null), "{annotation} {value}");
        let by = waiting["by"].as_str().unwrap();
        let begin = match annotation {
            "tagboat.dev/freeze-all" => {
                format!("invalid setting of all namespaces by {annotation} of namespace default: ")
            }
            _ => format!("invalid setting of namespace default ({annotation}): "),
        };
        assert!(by.starts_with(&begin) && by.contains(part), "{by}");
        assert_eq!(scene.tag("main"), "4.0.6");
    }
}

/// A policy whose annotation is no name waits alone.
#[test]
fn a_refused_release_group_holds_its_policy() {
    for value in ["", "the shop", "sh@p"] {
        let scene = Scene::new().local();
        let policy = json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1", "kind": "ImagePolicy",
            "metadata": {"name": "podinfo", "namespace": "default", "annotations": {"tagboat.dev/release-group": value}},
            "spec": {"imageRepositoryRef": {"name": "podinfo"}, "policy": {"semver": {"range": "*"}}},
            "status": {"latestRef": {"name": "ghcr.io/stefanprodan/podinfo", "tag": "5.0.3"}},
        });
        scene.write("policy.yaml", &policy.to_string());
        let report = report(&scene.run_with_state(["--output", "json"]));
        assert_eq!(report["waiting"][0]["reason"], "ReleaseGroupIncomplete", "{value:?} {report:#}");
        let by = "the annotation tagboat.dev/release-group of podinfo is not valid";
        assert_eq!(report["waiting"][0]["by"], by);
        assert_eq!(scene.tag("main"), "4.0.6");
    }
}
