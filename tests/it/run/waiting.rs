//! Windows and freezes, in which nothing is written.

use serde_json::{Value, json};

use super::scene::Scene;
use crate::support::fleet::{podinfo, tag_line};
use crate::support::git_host::{Operation, Settings};
use crate::support::program::{Run, update};

/// A list of windows that is closed until the year 2200.
const CLOSED: &str = "[{name: long, kind: deny, from: 2020-01-01T00:00, until: 2200-01-01T00:00}]";

/// No further arguments.
const NONE: [&str; 0] = [];

/// Writes the automation with an annotation.
pub(super) fn annotated(scene: &Scene, annotations: &Value) {
    scene.automation_with(json!({"metadata": {"annotations": annotations}}));
}

/// Writes a policy of the release group `shop` with its image.
fn release_group_member(scene: &Scene, name: &str, tag: &str) {
    let object = json!({
        "apiVersion": "image.toolkit.fluxcd.io/v1", "kind": "ImagePolicy",
        "metadata": {"name": name, "namespace": "default", "annotations": {"tagboat.dev/release-group": "shop"}},
        "spec": {"imageRepositoryRef": {"name": name}, "policy": {"semver": {"range": "*"}}},
        "status": {"latestRef": {"name": "ghcr.io/stefanprodan/podinfo", "tag": tag}},
    });
    let file = if name == "podinfo" { "policy.yaml".to_owned() } else { format!("policy-{name}.yaml") };
    scene.write(&file, &object.to_string());
}

pub(super) fn namespace(scene: &Scene, name: &str, annotations: &Value) {
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations},
    });
    scene.write(&format!("namespace-{name}.yaml"), &object.to_string());
}

#[track_caller]
pub(super) fn report(run: &Run) -> Value {
    run.json()["automations"][0].clone()
}

/// The condition of a status as `Status Reason message`, if it has it.
pub(super) fn condition(scene: &Scene, type_: &str) -> Option<String> {
    let status = scene.status();
    let found = status["conditions"].as_array().unwrap().iter().find(|one| one["type"] == type_).cloned()?;
    let text = |name: &str| found[name].as_str().unwrap().to_owned();
    Some(format!("{} {} {}", text("status"), text("reason"), text("message")))
}

#[test]
fn an_image_waits_while_a_window_is_closed_and_is_written_once_it_opens() {
    let scene = Scene::new().local();
    annotated(&scene, &json!({"tagboat.dev/windows": CLOSED}));
    let before = scene.repository.id("main");
    let message = "1 value of podinfo waits: deny window `long` of automation default/fleet; until 2200-01-01T00:00:00Z";
    for _ in 0..2 {
        let run = scene.run_with_state(["--output", "json"]).with_status(0);
        let report = report(&run);
        assert_eq!(
            (report["outcome"].as_str(), report["message"].as_str()),
            (Some("waiting"), Some(message))
        );
        let expected = json!([{
            "policies": ["default/podinfo"], "reason": "WindowClosed",
            "by": "deny window `long` of automation default/fleet", "until": "2200-01-01T00:00:00Z",
            "message": message,
        }]);
        assert_eq!(report["waiting"], expected);
        assert_eq!(report["markers"][0]["outcome"], "waiting");
        assert_eq!(scene.repository.id("main"), before);
        assert_eq!(condition(&scene, "UpdatesWaiting").unwrap(), format!("True WindowClosed {message}"));
        assert_eq!(condition(&scene, "Ready").unwrap(), format!("True Succeeded {message}"));
        assert!(scene.status()["observedPolicies"].is_null());
    }
    // The text says it as well, and a dry run shows the change.
    let run = scene.run_with_state(["--dry-run"]).with_status(0);
    assert!(run.output.contains(message) && run.output.contains("+tag: 5.0.3"), "{run:?}");
    annotated(&scene, &json!({"tagboat.dev/windows": "[]"}));
    assert_eq!(report(&scene.run_with_state(["--output", "json"]).with_status(0))["outcome"], "pushed");
    assert_eq!(scene.tag("main"), "5.0.3");
    assert_eq!(condition(&scene, "UpdatesWaiting"), None);
    // Nothing waits any more, and the next image does.
    annotated(&scene, &json!({"tagboat.dev/windows": CLOSED}));
    let report_after = report(&scene.run_with_state(["--output", "json"]).with_status(0));
    assert_eq!(report_after["outcome"], "unchanged");
    assert_eq!(condition(&scene, "UpdatesWaiting").unwrap(), "False NothingWaiting no image waits");
    scene.latest("6.0.0");
    assert_eq!(report(&scene.run_with_state(["--output", "json"]).with_status(0))["outcome"], "waiting");
    assert_eq!(scene.status()["observedPolicies"]["podinfo"]["tag"], "5.0.3");
}

/// The template was first read when the window opened, and the images missed it.
#[test]
fn a_message_that_cannot_be_made_is_an_error_while_the_window_is_closed() {
    let scene = Scene::new().local();
    let before = scene.repository.id("main");
    let with = |template: &str| {
        scene.automation_with(json!({
            "metadata": {"annotations": {"tagboat.dev/windows": CLOSED}},
            "spec": {"git": {"commit": {"messageTemplate": template}}},
        }));
    };
    for template in ["{{ nope }}", "{{ index .Changed.Objects 7 }}"] {
        with(template);
        for arguments in [&["--output", "json"][..], &["--output", "json", "--dry-run"]] {
            let run = scene.run_with_state(arguments).with_status(1);
            let report = report(&run);
            assert_eq!(report["outcome"], "failed", "{template}");
            assert_eq!(report["markers"][0]["outcome"], "waiting");
            assert!(run.errors.contains("template"), "{run:?}");
        }
        assert!(condition(&scene, "Ready").unwrap().starts_with("False GitOperationFailed "));
    }
    with("Update");
    let run = scene.run_with_state(["--output", "json"]).with_status(0);
    assert_eq!(report(&run)["outcome"], "waiting");
    assert_eq!(scene.repository.id("main"), before);
}

#[test]
fn now_overrides_the_own_windows_but_no_freeze_and_no_window_of_the_namespace() {
    for (own, of_namespace, expected) in [
        (json!({"tagboat.dev/windows": CLOSED}), json!({}), "pushed"),
        (json!({}), json!({"tagboat.dev/windows": CLOSED}), "waiting"),
        (json!({}), json!({"tagboat.dev/freeze": "incident 4711"}), "waiting"),
        (json!({}), json!({"tagboat.dev/freeze": "{reason: gone, until: 2020-01-01T00:00:00Z}"}), "pushed"),
        (json!({}), json!({"tagboat.dev/freeze": "false"}), "pushed"),
    ] {
        let scene = Scene::new().local();
        annotated(&scene, &own);
        namespace(&scene, "default", &of_namespace);
        let run = scene.run_with_state(["--output", "json", "--now"]).with_status(0);
        assert_eq!(report(&run)["outcome"], expected, "{of_namespace} {run:?}");
    }
}

#[test]
fn a_freeze_names_its_reason_and_an_invalid_value_is_one() {
    for (name, annotations, expected) in [
        (
            "default",
            json!({"tagboat.dev/freeze": "incident 4711"}),
            "freeze of namespace default (tagboat.dev/freeze): incident 4711; no end is known",
        ),
        (
            "anywhere",
            json!({"tagboat.dev/freeze-all": ""}),
            "freeze of all namespaces by tagboat.dev/freeze-all of namespace anywhere; no end is known",
        ),
        (
            "default",
            json!({"tagboat.dev/windows": "[{name: x, kind: deny, cron: '0 0 30 2 *', window: 1h}]"}),
            "invalid setting of namespace default (tagboat.dev/windows): ",
        ),
        (
            "default",
            json!({"tagboat.dev/freeze": "{reson: typo}"}),
            "invalid setting of namespace default (tagboat.dev/freeze): ",
        ),
    ] {
        let scene = Scene::new().local();
        namespace(&scene, name, &annotations);
        let report = report(&scene.run_with_state(["--output", "json"]).with_status(0));
        let waiting = &report["waiting"][0];
        assert_eq!(waiting["reason"], "Frozen", "{report:#}");
        let message = waiting["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("1 value of podinfo waits: {expected}")), "{message}");
        assert_eq!(scene.tag("main"), "4.0.6");
    }
    // Without a value, misspelt, or almost YAML.
    for annotations in [
        json!({"tagboat.dev/freeze": null}),
        json!({"tagboat.dev/freez": "x"}),
        json!({"tagboat.dev/freeze": "incident: db is down"}),
    ] {
        let scene = Scene::new().local();
        namespace(&scene, "default", &annotations);
        let report = report(&scene.run_with_state(["--output", "json"]).with_status(0));
        assert_eq!(report["waiting"][0]["reason"], "Frozen", "{report:#}");
    }
    let scene = Scene::new().local();
    namespace(&scene, "default", &json!({"tagboat.dev/freeze": "x"}));
    let again = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "default", "annotations": {"tagboat.dev/freeze": "false"}},
    });
    scene.write("again.yaml", &again.to_string());
    let run = scene.run(NONE).with_status(1);
    assert!(
        run.only_error().contains("is defined twice, with different values of tagboat.dev/freeze"),
        "{run:?}"
    );
    // A freeze of another namespace is none of this one.
    let scene = Scene::new().local();
    namespace(&scene, "other", &json!({"tagboat.dev/freeze": ""}));
    scene.run(NONE).with_status(0);
    assert_eq!(scene.tag("main"), "5.0.3");
}

/// A refspec whose push failed before is a push as well.
#[test]
fn a_pending_refspec_waits_as_well() {
    let scene = Scene::new().local();
    let host = scene.serve(Settings::default());
    scene.source(json!({"url": host.url("fleet.git")}));
    let with = |windows: &str| {
        scene.automation_with(json!({
            "metadata": {"annotations": {"tagboat.dev/windows": windows}},
            "spec": {"git": {"push": {"branch": "main", "refspec": "refs/heads/main:refs/heads/copy"}}},
        }));
    };
    with("[]");
    scene.repository.hook("update", "#!/bin/sh\n[ \"$1\" != refs/heads/copy ]\n");
    scene.run_with_state(NONE).with_status(1);
    scene.repository.hook("update", "#!/bin/sh\nexit 0\n");
    let pushes = host.requests_for(Operation::Push).len();
    // A dry run said that nothing would be done.
    let message = "would push refspecs 'refs/heads/main:refs/heads/copy'";
    let would = report(&scene.run_with_state(["--output", "json", "--dry-run"]).with_status(0));
    assert_eq!((&would["outcome"], &would["message"]), (&json!("dry-run"), &json!(message)), "{would:#}");
    let text = scene.run_with_state(["--dry-run"]).with_status(0).output;
    assert!(text.lines().any(|line| line == message), "{text}");
    with(CLOSED);
    for arguments in [&["--output", "json"][..], &["--output", "json", "--dry-run"]] {
        let report_closed = report(&scene.run_with_state(arguments).with_status(0));
        assert_eq!(report_closed["outcome"], "waiting");
        assert_eq!(report_closed["waiting"][0]["policies"], json!([]), "{report_closed:#}");
    }
    assert_eq!((host.requests_for(Operation::Push).len(), scene.repository.id("copy")), (pushes, None));
    with("[]");
    scene.run_with_state(NONE).with_status(0);
    assert_eq!(scene.repository.id("copy"), scene.repository.id("main"));
}

/// A typing mistake in a manifest dropped the freeze.
#[test]
fn a_namespace_that_cannot_be_parsed_stops_the_run() {
    for value in ["incident: 4711", "{reason: audit"] {
        let scene = Scene::new().local();
        let manifest = format!(
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: default\n  annotations:\n    tagboat.dev/freeze: {value}\n"
        );
        scene.write("namespace.yaml", &manifest);
        let run = scene.run_with_state(NONE).with_status(1);
        assert!(run.errors.contains("namespace.yaml:6:"), "{run:?}");
        assert!(run.errors.contains("the manifest is not YAML"), "{run:?}");
        assert_eq!(scene.tag("main"), "4.0.6");
    }
}

/// Its freeze was dropped, and the image was pushed.
#[test]
fn a_malformed_namespace_stops_the_run() {
    let freeze = json!({"tagboat.dev/freeze": "x"});
    let metadata = |metadata: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    let named = |name: Value| metadata(json!({"name": name, "annotations": freeze}));
    let list = "is not valid at metadata.annotations: it must be a mapping, but is a list";
    let no_name = "Namespace without a metadata.name that is a string";
    for (object, words) in [
        (metadata(json!({"name": "default", "annotations": ["tagboat.dev/freeze"]})), list),
        (metadata(json!({"name": "default", "annotations": [freeze]})), list),
        (
            metadata(json!({"name": "default", "annotations": "tagboat.dev/freeze"})),
            "Namespace default is not valid at metadata.annotations: it must be a mapping, but is a string",
        ),
        (
            metadata(json!({"name": "default", "annotations": {"tagboat.dev/freeze": 4711}})),
            "is not valid at metadata.annotations.tagboat.dev/freeze: it must be a string, but is `4711`; put it in quotes",
        ),
        (
            metadata(json!({"name": "default", "annotation": freeze})),
            "Namespace default has an unknown field metadata.annotation; did you mean annotations?",
        ),
        (
            metadata(json!({"name": "default", "Annotations": freeze})),
            "Namespace default has an unknown field metadata.Annotations; did you mean annotations?",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}, "annotations": freeze}),
            "Namespace default has an unknown field annotations",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "annotations": freeze}, "sepc": 1}),
            "Namespace default has an unknown field sepc; did you mean spec?",
        ),
        (
            named(json!("Default")),
            "Namespace Default is not valid at metadata.name: a lowercase RFC 1123 label",
        ),
        (named(json!("default ")), "is not valid at metadata.name: a lowercase RFC 1123 label"),
        (named(json!("a.default")), "is not valid at metadata.name: a lowercase RFC 1123 label"),
        (named(json!(123)), no_name),
        (named(json!(["default"])), no_name),
        (metadata(json!({"annotations": freeze})), no_name),
        (
            json!({"apiVersion": "v1", "kind": "namespace", "metadata": {"name": "default", "annotations": freeze}}),
            "a Namespace has the apiVersion v1 and the kind Namespace",
        ),
        (
            json!({"kind": "Namespace", "metadata": {"name": "default", "annotations": freeze}}),
            "a Namespace has the apiVersion v1 and the kind Namespace",
        ),
    ] {
        let scene = Scene::new().local();
        scene.write("namespace.yaml", &object.to_string());
        let run = scene.run_with_state(NONE).with_status(1);
        assert!(run.only_error().contains(words), "{words}: {run:?}");
        assert_eq!(scene.tag("main"), "4.0.6");
    }
}

/// It was read as if the field was absent.
#[test]
fn a_misspelt_field_of_metadata_stops_the_run() {
    let misspelt = json!({"tagboat.dev/on-revert": "hold"});
    let automation = |scene: &Scene| scene.automation_with(json!({"metadata": {"annotation": misspelt}}));
    let policy = |scene: &Scene| {
        let text = podinfo().replace("labels: {}", &format!("annotation: {misspelt}"));
        scene.write("policy.yaml", &text);
    };
    for (object, misspell) in [
        ("ImageUpdateAutomation default/fleet", &automation as &dyn Fn(&Scene)),
        ("ImagePolicy default/podinfo", &policy as &dyn Fn(&Scene)),
    ] {
        let scene = Scene::new().local();
        misspell(&scene);
        let run = scene.run_with_state(NONE).with_status(1);
        let words = format!("{object} has an unknown field metadata.annotation; did you mean annotations?");
        assert!(run.only_error().ends_with(&words), "{run:?}");
        assert_eq!(scene.tag("main"), "4.0.6");
    }
}

/// Other tools have Namespaces too, and templates of them.
#[test]
fn namespaces_without_our_annotations_stop_no_run() {
    let scene = Scene::new().local();
    let live = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": "other", "uid": "1", "resourceVersion": "7", "creationTimestamp": null, "labels": {"a": "b"},
            "managedFields": [{"manager": "x", "fieldsV1": {"f:metadata": {}}, "other": 1}],
        },
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active", "more": [1]},
    });
    scene.write("live.yaml", &live.to_string());
    scene.write(
        "rendered.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: 'Name of {{ .Release }}/x'\n",
    );
    let run = scene.run_with_state(NONE).with_status(0);
    let words = "rendered.yaml: Namespace Name of {{ .Release }}/x is not valid at metadata.name: a lowercase RFC 1123 label";
    assert!(run.errors.contains(words) && run.errors.contains("; the object is skipped"), "{run:?}");
    assert_eq!(scene.tag("main"), "5.0.3");
}

/// The member that waits was not counted.
#[test]
fn the_summary_counts_the_values_that_wait_for_a_release_group() {
    let scene = Scene::new().local();
    let member = |name: &str, tag: &str| release_group_member(&scene, name, tag);
    member("podinfo", "5.0.3");
    member("other", "5.0.3");
    scene.run_with_state(NONE).with_status(0);
    member("podinfo", "6.0.0");
    let text = scene.run_with_state(NONE).with_status(0).output;
    let summary =
        "Still to change: 1 value; 1 file read, 1 marker found, 0 already current, 1 waiting, 0 unresolved";
    assert!(text.contains(summary), "{text}");
    // The same with a window.
    let scene = Scene::new().local();
    annotated(&scene, &json!({"tagboat.dev/windows": CLOSED}));
    let text = scene.run_with_state(NONE).with_status(0).output;
    let summary = "Still to change: 1 value in 1 file; 1 file read, 1 marker found, 0 already current, 1 waiting, 0 unresolved";
    assert!(text.contains(summary), "{text}");
}

#[test]
fn own_branches_wait_and_stay_as_they_are() {
    let scene = Scene::new().local();
    let with = |windows: &str| {
        annotated(&scene, &json!({"tagboat.dev/windows": windows, "tagboat.dev/delivery": "branch"}));
    };
    with(CLOSED);
    let run = scene.run_with_state(["--output", "json"]).with_status(0);
    let first = report(&run);
    assert_eq!(
        (first["outcome"].as_str(), first["branches"][0]["reason"].as_str()),
        (Some("waiting"), Some("waiting"))
    );
    assert_eq!(first["waiting"][0]["policies"], json!(["default/podinfo"]));
    assert_eq!(first["markers"][0]["outcome"], "waiting");
    let branch = "tagboat/default-fleet";
    assert_eq!(scene.repository.id(branch), None);
    with("[]");
    scene.run_with_state(NONE).with_status(0);
    let tip = scene.repository.id(branch);
    assert!(tip.is_some());
    // A branch that is as wanted does not wait, and the next image does.
    with(CLOSED);
    assert_eq!(report(&scene.run_with_state(["--output", "json"]).with_status(0))["waiting"], Value::Null);
    scene.latest("6.0.0");
    assert_eq!(report(&scene.run_with_state(["--output", "json"]).with_status(0))["outcome"], "waiting");
    assert_eq!(scene.repository.id(branch), tip);
}

#[test]
fn an_update_of_a_directory_warns_of_a_closed_window_and_writes() {
    let closed = json!({"tagboat.dev/windows": CLOSED});
    let frozen = json!({"tagboat.dev/freeze": "incident 4711"});
    for (own, of_namespace, words) in [
        (&closed, json!({}), Some("deny window `long` of automation default/fleet")),
        (&json!({}), frozen, Some("freeze of namespace default (tagboat.dev/freeze): incident 4711")),
        (&json!({"tagboat.dev/windows": "[]x"}), json!({}), Some("annotation tagboat.dev/windows: ")),
        (&json!({"tagboat.dev/windows": "[]"}), json!({}), None),
    ] {
        let scene = Scene::new();
        annotated(&scene, own);
        namespace(&scene, "default", &of_namespace);
        let directory = scene.root().join("files");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("app.yaml"), tag_line("4.0.6")).unwrap();
        let manifests = scene.root().join("manifests");
        let warning = "warning: default/fleet: windows and freezes do not count here: ";
        let ended = update(&directory, &manifests, NONE).with_status(0);
        match words {
            Some(words) => assert!(ended.only_error().starts_with(&format!("{warning}{words}")), "{ended:?}"),
            None => assert_eq!(ended.errors, ""),
        }
        assert_eq!(std::fs::read_to_string(directory.join("app.yaml")).unwrap(), tag_line("5.0.3"));
        // There is nothing to write any more.
        assert_eq!(update(&directory, &manifests, NONE).with_status(0).errors, "");
    }
}

#[test]
fn an_update_of_a_directory_warns_of_a_quiet_period_and_an_incomplete_group() {
    let scene = Scene::new();
    annotated(&scene, &json!({"tagboat.dev/quiet-period": "5m"}));
    let policy = |name: &str, tag: &str| {
        let object = json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1", "kind": "ImagePolicy",
            "metadata": {"name": name, "namespace": "default", "annotations": {"tagboat.dev/release-group": "shop"}},
            "spec": {"imageRepositoryRef": {"name": name}, "policy": {"semver": {"range": "*"}}},
            "status": {"latestRef": {"name": "ghcr.io/org/app", "tag": tag}},
        });
        scene.write(&format!("policy-{name}.yaml"), &object.to_string());
    };
    policy("api", "2.0.0");
    policy("web", "1.0.0");
    let directory = scene.root().join("files");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("app.yaml"), tag_line("4.0.6")).unwrap();
    let ended = update(&directory, &scene.root().join("manifests"), NONE).with_status(0);
    let expected = "warning: default/fleet: tagboat.dev/quiet-period does not count here\n\
                    warning: default/fleet: release groups do not count here: release group shop: api has \"2.0.0\" and web has \
                    \"1.0.0\"\n";
    assert_eq!(ended.errors, expected);
    assert_eq!(std::fs::read_to_string(directory.join("app.yaml")).unwrap(), tag_line("5.0.3"));
}

/// The base has none of the images that were written last.
#[test]
fn a_release_group_waits_on_own_branches_too() {
    let scene = Scene::new().local();
    annotated(&scene, &json!({"tagboat.dev/delivery": "branch"}));
    let policy = |name: &str, tag: &str| release_group_member(&scene, name, tag);
    policy("podinfo", "5.0.3");
    policy("other", "5.0.3");
    scene.run_with_state(NONE).with_status(0);
    let tip = scene.repository.id("tagboat/default-fleet");
    policy("podinfo", "6.0.0");
    let report = report(&scene.run_with_state(["--output", "json"]).with_status(0));
    assert_eq!(report["outcome"], "waiting", "{report:#}");
    assert_eq!(report["waiting"][0]["policies"], json!(["default/podinfo"]));
    assert_eq!(report["waiting"][0]["reason"], "ReleaseGroupIncomplete");
    assert_eq!(scene.repository.id("tagboat/default-fleet"), tip);
}

#[test]
fn a_quiet_period_counts_from_run_to_run() {
    let scene = Scene::new().local();
    let quiet = |period: &str| annotated(&scene, &json!({"tagboat.dev/quiet-period": period}));
    let run = |more: &[&str]| {
        let arguments = [&["--output", "json"], more].concat();
        report(&scene.run_with_state(arguments).with_status(0))
    };
    quiet("1h");
    // Nothing was written before, so nothing waits.
    assert_eq!(run(&[])["outcome"], "pushed");
    assert_eq!(condition(&scene, "UpdatesWaiting").unwrap(), "False NothingWaiting no image waits");
    scene.latest("6.0.0");
    let first = run(&[]);
    assert_eq!(first["outcome"], "waiting");
    let waiting = &first["waiting"][0];
    assert_eq!(waiting["reason"], "QuietPeriod");
    assert_eq!(waiting["by"], "quiet period of 1h of automation default/fleet (tagboat.dev/quiet-period)");
    assert_eq!(first["markers"][0]["outcome"], "waiting");
    let end: jiff::Timestamp = waiting["until"].as_str().unwrap().parse().unwrap();
    assert!(end > jiff::Timestamp::now() + jiff::SignedDuration::from_mins(58), "{end}");
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    assert_eq!(run(&[])["waiting"], first["waiting"]);
    // A dry run shows the change and the wait, and counts as none.
    let dry = scene.run_with_state(["--dry-run"]).with_status(0);
    assert!(dry.output.contains("+tag: 6.0.0") && dry.output.contains("quiet period of 1h"), "{dry:?}");
    scene.latest("7.0.0");
    let second = run(&[]);
    assert!(second["waiting"][0]["until"].as_str() > waiting["until"].as_str(), "{second:#}");
    assert_eq!(run(&["--now"])["outcome"], "pushed");
    assert_eq!(scene.tag("main"), "7.0.0");
    // The period ends between two runs.
    quiet("1s");
    scene.latest("8.0.0");
    assert_eq!(run(&[])["outcome"], "waiting");
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    assert_eq!(run(&[])["outcome"], "pushed");
}

#[test]
fn without_a_state_a_quiet_period_delays_nothing_and_a_warning_says_so() {
    let scene = Scene::new().local();
    annotated(&scene, &json!({"tagboat.dev/quiet-period": "1h"}));
    let run = scene.run(["--output", "json"]).with_status(0);
    assert_eq!(report(&run)["outcome"], "pushed");
    let warning = "without --state no earlier run is known, so tagboat.dev/quiet-period delays nothing";
    assert!(run.errors.contains(warning), "{}", run.errors);
    annotated(&scene, &json!({"tagboat.dev/quiet-period": "soon"}));
    let refused = scene.run_with_state(["--output", "json"]);
    let sentence = "annotation tagboat.dev/quiet-period has the value `soon`: allowed is a duration in w, d, h, m, s and \
                    ms, such as 90s or 5m";
    assert!(refused.output.contains(sentence), "{refused:?}");
}
