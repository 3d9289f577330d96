//! `tagboat explain automation` on manifests, with and without a state directory.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::program;
use crate::run::scene::Scene;
use crate::support::content::file;
use crate::support::fleet::tag_line;
use crate::support::manifests::policy;
use crate::support::program::{Run, run};

const CLOSED: &str = "[{name: long, kind: deny, from: 2020-01-01T00:00, until: 2200-01-01T00:00}]";

/// An automation `shop/app` that last wanted `web:1.0.0`.
fn app(annotations: &Value, spec: &Value) -> String {
    let mut object = json!({
        "apiVersion": "image.toolkit.fluxcd.io/v1",
        "kind": "ImageUpdateAutomation",
        "metadata": {"namespace": "shop", "name": "app", "annotations": annotations},
        "spec": {"interval": "10m", "sourceRef": {"kind": "GitRepository", "name": "fleet"}},
        "status": {
            "observedPolicies": {"web": {"name": "ghcr.io/org/web", "tag": "1.0.0"}},
            "lastAutomationRunTime": "2026-01-01T00:00:00Z",
        },
    });
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object.to_string()
}

fn web(tag: &str) -> String {
    policy("shop", "web", "ghcr.io/org/web", tag)
}

fn namespace(annotations: &Value) -> String {
    let metadata = json!({"name": "shop", "annotations": annotations});
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}).to_string()
}

/// Explains `app` of these manifests.
fn explain(manifests: &[String], arguments: &[&str]) -> Run {
    let directory = TempDir::new().unwrap();
    for (number, text) in manifests.iter().enumerate() {
        fs::write(directory.path().join(format!("{number}.yaml")), text).unwrap();
    }
    let mut command = program();
    command.current_dir(directory.path()).args(["explain", "automation"]).args(arguments);
    run(command.args(["--policies", "."]))
}

const JSON: [&str; 3] = ["app", "--output", "json"];

#[test]
fn an_automation_that_has_written_everything_exits_with_0() {
    let ended = explain(&[app(&json!({}), &json!({})), web("1.0.0")], &JSON).with_status(0);
    let mut document = ended.json();
    assert!(document["at"].take().as_str().unwrap().ends_with('Z'));
    let expected = json!({
        "automation": {"namespace": "shop", "name": "app"},
        "at": null, "open": true, "next": [], "waiting": [], "held": [],
        "policies": [{
            "policy": "shop/web", "image": "ghcr.io/org/web:1.0.0", "state": "written",
            "reason": "the last run that read the files wrote it, or found it there",
        }],
        "error": null,
    });
    assert_eq!((document, ended.errors.as_str()), (expected, ""));
}

#[test]
fn a_closed_window_and_a_freeze_delay_an_image() {
    let windows = "[{name: night, kind: deny, cron: '0 18 * * *', window: 12h}]";
    let manifests = [
        app(&json!({"tagboat.dev/windows": windows}), &json!({})),
        web("2.0.0"),
        namespace(&json!({"tagboat.dev/freeze": "{reason: audit, until: 2026-12-01T12:00}"})),
    ];
    for (at, open, by, until) in [
        (
            "2026-12-01T11:00",
            false,
            "freeze of namespace shop (tagboat.dev/freeze): audit",
            json!("2026-12-01T12:00:00Z"),
        ),
        (
            "2026-12-01T20:00+01:00",
            false,
            "deny window `night` of automation shop/app",
            json!("2026-12-02T06:00:00Z"),
        ),
        ("2026-12-01T12:00:00Z", true, "", json!(null)),
    ] {
        let ended = explain(&manifests, &[&JSON[..], &["--at", at]].concat());
        let document = ended.with_status(i32::from(!open)).json();
        assert_eq!(document["open"], open);
        assert_eq!(document["next"].as_array().unwrap().len(), 5);
        let policy = &document["policies"][0];
        if open {
            assert_eq!((&document["waiting"], &policy["state"]), (&json!([]), &json!("written")));
            assert_eq!(policy["reason"], "not written yet: a run at that time may write it");
            continue;
        }
        let waiting = &document["waiting"][0];
        assert_eq!(waiting["policies"], json!(["shop/web"]));
        assert_eq!((&waiting["by"], &waiting["until"]), (&json!(by), &until));
        assert_eq!(
            (&policy["state"], &policy["image"]),
            (&json!("waiting"), &json!("ghcr.io/org/web:2.0.0"))
        );
    }
    let text = explain(&manifests, &["app", "--at", "2026-12-01T11:00"]).with_status(1);
    let expected = "\
Automation: shop/app
Time:       2026-12-01T11:00:00Z
Writes:     closed: freeze of namespace shop (tagboat.dev/freeze): audit; until 2026-12-01T12:00:00Z
Waiting:    shop/web waits: freeze of namespace shop (tagboat.dev/freeze): audit; until 2026-12-01T12:00:00Z

POLICY    IMAGE                  STATE    REASON
shop/web  ghcr.io/org/web:2.0.0  waiting  freeze of namespace shop (tagboat.dev/freeze): audit; until 2026-12-01T12:00:00Z

RULE                                           STATE   CLOSED BY
freeze of namespace shop (tagboat.dev/freeze)  closed  freeze of namespace shop (tagboat.dev/freeze): audit
windows of automation shop/app                 open

NEXT CHANGE           STATE   BY
2026-12-01T12:00:00Z  open    freeze of namespace shop (tagboat.dev/freeze): audit
2026-12-01T18:00:00Z  closed  deny window `night` of automation shop/app
2026-12-02T06:00:00Z  open    deny window `night` of automation shop/app
2026-12-02T18:00:00Z  closed  deny window `night` of automation shop/app
2026-12-03T06:00:00Z  open    deny window `night` of automation shop/app
";
    assert_eq!((text.output.as_str(), text.errors.as_str()), (expected, ""));
}

#[test]
fn what_is_wrong_exits_with_1() {
    let good = || app(&json!({}), &json!({}));
    let twice = |value: &str| namespace(&json!({"tagboat.dev/freeze": value}));
    for (manifests, error) in [
        (
            vec![app(&json!({"tagboat.dev/windows": "[]x"}), &json!({})), web("2.0.0")],
            "annotation tagboat.dev/windows: it is not a list of windows: ",
        ),
        (vec![app(&json!({}), &json!({"suspend": true})), web("2.0.0")], "the automation is suspended"),
        (
            vec![app(&json!({}), &json!({"policySelector": {"matchLabels": {"a b": "c"}}})), web("2.0.0")],
            "failed to parse policy selector: ",
        ),
        (
            vec![good(), web("1.0.0"), twice("x"), twice("y")],
            "Namespace shop is defined twice, with different values of tagboat.dev/freeze: keep one",
        ),
        (
            vec![good(), web("1.0.0"), namespace(&json!({"tagboat.dev/freez": "x"}))],
            "namespace shop has the unknown annotation tagboat.dev/freez: ",
        ),
        (
            vec![app(&json!({}), &json!({"interval": 7})), web("1.0.0")],
            "0.yaml: ImageUpdateAutomation shop/app is not valid at spec.interval",
        ),
        (
            vec![good(), web("1.0.0").replace("semver", "semver1")],
            "1.yaml: ImagePolicy shop/web has an unknown field spec.policy.semver1",
        ),
    ] {
        let ended = explain(&manifests, &JSON).with_status(1);
        let found = ended.json()["error"].as_str().unwrap().to_owned();
        assert!(found.contains(error), "{found}");
        assert_eq!(ended.only_error(), format!("shop/app: {found}"));
    }
}

/// They were called open, and their images written on the next run, which stalls.
#[test]
fn settings_and_sources_with_which_a_run_stalls_are_not_open() {
    let git = json!({"commit": {"author": {"email": "bot@example.com"}}});
    let pull_requests = json!({"tagboat.dev/delivery": "pull-request"});
    let web = web("2.0.0");
    let https = "https://git.example.com/acme/fleet.git";
    let gitea = json!({"tagboat.dev/forge": "gitea"});
    let with = |annotations: &Value, name: &str, value: &str| {
        let mut all = annotations.clone();
        all[format!("tagboat.dev/{name}")] = json!(value);
        all
    };
    for (annotations, source, url, words) in [
        (
            &pull_requests,
            &json!({}),
            https,
            Some("the host git.example.com of the git URL is no known forge: "),
        ),
        (
            &pull_requests,
            &gitea,
            "ssh://git@git.example.com/acme/fleet",
            Some("the git URL uses ssh, whose key is no login "),
        ),
        (&pull_requests, &gitea, https, None),
        (
            &with(&pull_requests, "pull-request-labels", "[images]"),
            &json!({"tagboat.dev/forge": "bitbucket-data-center"}),
            "https://git.example.com/scm/acme/fleet.git",
            Some("tagboat.dev/pull-request-labels"),
        ),
        (
            &with(&pull_requests, "push-branch", "main"),
            &gitea,
            https,
            Some("renders to main for ImagePolicy shop/web, which is "),
        ),
        (
            &pull_requests,
            &json!({"tagboat.dev/forge": "git"}),
            https,
            Some("annotation tagboat.dev/forge has the value `git`: "),
        ),
        (
            &json!({"tagboat.dev/signed-by": "forge"}),
            &gitea,
            https,
            Some("annotation tagboat.dev/signed-by is `forge`, and gitea does not sign commits"),
        ),
        // Our own commits are pushed instead.
        (&json!({"tagboat.dev/signed-by": "forge-or-key"}), &gitea, https, None),
    ] {
        let source = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"namespace": "shop", "name": "fleet", "annotations": source},
            "spec": {"interval": "1m", "url": url, "ref": {"branch": "main"}},
        });
        for is_suspended in [false, true] {
            let spec = json!({"git": git, "suspend": is_suspended});
            let ended = explain(&[app(annotations, &spec), web.clone(), source.to_string()], &JSON);
            let document = ended.json();
            let words = words.filter(|_| !is_suspended);
            assert_eq!(document["open"], words.is_none(), "{document:#}");
            let Some(words) = words else { continue };
            assert!(document["error"].as_str().unwrap().contains(words), "{document:#}");
            let reason = document["policies"][0]["reason"].as_str().unwrap();
            assert!(reason.starts_with("not written yet: ") && reason.contains(words), "{reason}");
        }
    }
}

/// The base was taken for `main`, on which the template gives another number of branches.
#[test]
fn the_branch_of_the_git_repository_is_the_base_of_refused_branches() {
    let template = r#"{{ if eq .Base "release" }}images{{ else }}{{ .Policy.Name }}{{ end }}"#;
    let annotations = json!({"tagboat.dev/delivery": "pull-request", "tagboat.dev/push-branch": template});
    let git = json!({"commit": {"author": {"email": "bot@example.com"}}});
    let mut app: Value = serde_json::from_str(&app(&annotations, &json!({"git": git}))).unwrap();
    app["status"]["observedPolicies"]["api"] = json!({"name": "ghcr.io/org/api", "tag": "1.0.0"});
    app["status"]["conditions"] = json!([{
        "type": "Delivery", "status": "True", "reason": "Current",
        "message": "1 open: #12; refused by a person: #9", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    let api = policy("shop", "api", "ghcr.io/org/api", "1.0.0");
    for (base, expected) in [("release", "held"), ("main", "written")] {
        let source = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"namespace": "shop", "name": "fleet"},
            "spec": {"interval": "1m", "url": "https://github.com/acme/fleet.git", "ref": {"branch": base}},
        });
        let ended = explain(&[app.to_string(), web("1.0.0"), api.clone(), source.to_string()], &JSON);
        let document = ended.json();
        let states = [0, 1].map(|at| document["policies"][at]["state"].clone());
        assert_eq!(states, [expected, expected], "{base} {document:#}");
    }
}

/// It was called open.
#[test]
fn an_invalid_selector_is_not_open() {
    let spec = json!({"policySelector": {"matchLabels": {"a b": "c"}}});
    let document = explain(&[app(&json!({}), &spec), web("2.0.0")], &JSON).with_status(1).json();
    assert_eq!((&document["open"], &document["policies"]), (&json!(false), &json!([])), "{document:#}");
}

/// They were called open, and `tagboat run` refuses to begin.
#[test]
fn what_a_run_refuses_is_not_open() {
    let good = || app(&json!({}), &json!({}));
    let frozen = |value: &str| namespace(&json!({"tagboat.dev/freeze": value}));
    let metadata =
        |metadata: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}).to_string();
    for (manifests, words) in [
        (
            vec![good(), web("2.0.0"), frozen("a"), frozen("b")],
            "Namespace shop is defined twice, with different values of tagboat.dev/freeze: keep one",
        ),
        (
            vec![app(&json!({"tagboat.dev/windows": "foo"}), &json!({})), web("2.0.0")],
            "annotation tagboat.dev/windows: it is not a list of windows: ",
        ),
        (
            vec![
                good(),
                web("2.0.0"),
                metadata(json!({"name": "shop", "annotations": ["tagboat.dev/freeze"]})),
            ],
            "2.yaml: Namespace shop is not valid at metadata.annotations: it must be a mapping, but is a list",
        ),
        // Its freeze of all namespaces would count.
        (
            vec![
                good(),
                web("2.0.0"),
                metadata(json!({"name": "x", "annotation": {"tagboat.dev/freeze-all": ""}})),
            ],
            "2.yaml: Namespace x has an unknown field metadata.annotation; did you mean annotations?",
        ),
        (vec![good(), web("2.0.0"), "tagboat.dev/: [".to_owned()], "2.yaml:1:"),
    ] {
        let ended = explain(&manifests, &JSON).with_status(1);
        let document = ended.json();
        assert!(document["error"].as_str().unwrap().contains(words), "{document:#}");
        assert_eq!((&document["open"], &document["next"]), (&json!(false), &json!([])), "{document:#}");
        let reason = document["policies"][0]["reason"].as_str().unwrap();
        assert!(reason.starts_with("not written yet: ") && reason.contains(words), "{reason}");
        let text = explain(&manifests, &["app"]).with_status(1).output;
        let line = text.lines().find(|line| line.starts_with("Writes:")).unwrap();
        assert!(line.starts_with("Writes:     closed: ") && line.contains(words), "{line}");
    }
}

/// A misspelt path looked like a state without a run.
#[test]
fn a_state_directory_that_does_not_exist_is_named() {
    let manifests = [app(&json!({}), &json!({})), web("2.0.0")];
    let note = "the state directory typo does not exist, so no earlier run is known";
    let arguments = ["app", "--state", "typo"];
    let text = explain(&manifests, &arguments).with_status(0);
    assert!(text.output.contains(&format!("Note:       {note}\n")), "{text:?}");
    let json = explain(&manifests, &[&arguments[..], &["--output", "json"]].concat()).with_status(0);
    assert_eq!(json.errors, format!("note: {note}\n"));
}

#[test]
fn wrong_usage_exits_with_2() {
    let manifests = [app(&json!({}), &json!({})), app(&json!({}), &json!({})).replace("shop", "other")];
    for (arguments, words) in [
        (&["app"][..], "shop/app and other/app have that name; choose one with --namespace"),
        (&["nope"], "no ImageUpdateAutomation nope is among the manifests; there are "),
        (&["shop/app", "--namespace", "other"], "shop/app is not in the namespace other"),
        (&["/app"], "[NAMESPACE/]NAME"),
        (&["shop/app", "--at", "tomorrow"], "write a time such as 2026-12-18T12:00"),
        (
            &["shop/app", "--at", "2026-12-18T12:00[America/New_York]"],
            "write a time such as 2026-12-18T12:00, or with an offset such as 2026-12-18T12:00+01:00",
        ),
        (&["shop/app", "--context", "x"], "cannot be used with"),
        (&["shop/app", "--controller-namespace", "x"], "cannot be used with"),
        (&[], "<NAME>"),
    ] {
        let ended = explain(&manifests, arguments).with_status(2);
        assert!(ended.errors.contains(words), "{ended:?}");
        assert_eq!(ended.output, "");
    }
    let ended = run(program().args(["explain", "automation", "app", "--state", "x"])).with_status(2);
    assert!(ended.errors.contains("--policies"), "{ended:?}");
}

/// The status of the state counts, and that of the manifests does not.
#[test]
fn the_state_of_tagboat_run_is_explained() {
    let scene = Scene::new().local();
    let explain = |with_state: bool| {
        let mut command = program();
        command.args(["explain", "automation", "fleet", "--output", "json", "--policies"]);
        command.arg(scene.root().join("manifests"));
        if with_state {
            command.arg("--state").arg(scene.state());
        }
        run(&mut command)
    };
    let state = |ended: &Run| {
        let policy = ended.json()["policies"][0].take();
        (policy["state"].as_str().unwrap().to_owned(), policy["reason"].as_str().unwrap().to_owned())
    };
    let unknown = "not written yet: no state of an earlier run is known";
    for with_state in [false, true] {
        let found = state(&explain(with_state).with_status(0));
        assert_eq!(found, ("written".to_owned(), unknown.to_owned()));
    }
    scene.run_with_state([""; 0]).with_status(0);
    let written = "the last run that read the files wrote it, or found it there";
    assert_eq!(state(&explain(true).with_status(0)).1, written);
    scene.latest("6.0.0");
    scene.automation_with(json!({"metadata": {"annotations": {"tagboat.dev/windows": CLOSED}}}));
    scene.run_with_state([""; 0]).with_status(0);
    let ended = explain(true).with_status(1);
    assert_eq!(state(&ended).0, "waiting");
    let waiting = ended.json()["waiting"].take();
    let message = "1 value of podinfo waits: deny window `long` of automation default/fleet; until 2200-01-01T00:00:00Z";
    let expected = json!([{
        "policies": ["default/podinfo"], "reason": "WindowClosed",
        "by": "deny window `long` of automation default/fleet", "until": "2200-01-01T00:00:00Z",
        "message": message,
    }]);
    assert_eq!(waiting, expected);
}

/// The next run would not write them, although no run has said so yet.
#[test]
fn members_of_an_incomplete_release_group_wait() {
    let member = |name: &str, tag: &str| {
        let text = policy("shop", name, &format!("ghcr.io/org/{name}"), tag);
        text.replace("labels:", "annotations: {tagboat.dev/release-group: shop}, labels:")
    };
    let manifests = [app(&json!({}), &json!({})), member("api", "2.0.0"), member("web", "1.0.0")];
    let document = explain(&manifests, &JSON).with_status(1).json();
    let by = r#"release group shop: api has "2.0.0" and web has "1.0.0""#;
    assert_eq!(
        document["waiting"],
        json!([{
            "policies": ["shop/api"], "reason": "ReleaseGroupIncomplete", "by": by, "until": null,
            "message": format!("shop/api waits: {by}; no end is known"),
        }])
    );
    let states: Vec<&Value> =
        document["policies"].as_array().unwrap().iter().map(|policy| &policy["state"]).collect();
    assert_eq!(states, ["waiting", "written"]);
}

#[test]
fn a_freeze_that_is_gone_from_the_manifests_is_not_believed() {
    let frozen = |message: &str| {
        let mut object: Value = serde_json::from_str(&app(&json!({}), &json!({}))).unwrap();
        object["status"]["conditions"] = json!([{
            "type": "UpdatesWaiting", "status": "True", "reason": "Frozen", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
        object.to_string()
    };
    let message =
        "1 value of web waits: freeze of namespace shop (tagboat.dev/freeze): incident; no end is known";
    let manifests = |annotations: &Value| [frozen(message), web("2.0.0"), namespace(annotations)];
    let document = explain(&manifests(&json!({})), &JSON).with_status(0).json();
    assert_eq!((&document["open"], &document["waiting"]), (&json!(true), &json!([])));
    let document =
        explain(&manifests(&json!({"tagboat.dev/freeze": "incident"})), &JSON).with_status(1).json();
    assert_eq!((&document["open"], &document["waiting"][0]["message"]), (&json!(false), &json!(message)));
}

/// The image was called written.
#[test]
fn a_hold_whose_annotation_is_gone_is_not_written_yet() {
    let scene = Scene::new().local();
    let hold = |annotations: Value| scene.automation_with(json!({"metadata": {"annotations": annotations}}));
    hold(json!({"tagboat.dev/on-revert": "hold"}));
    scene.run_with_state([""; 0]).with_status(0);
    scene.repository.commit("main", "Take it back", &[file("app.yaml", tag_line("4.0.6"))]);
    scene.run_with_state([""; 0]).with_status(0);
    let policy = |status: i32| {
        let mut command = program();
        command.args(["explain", "automation", "fleet", "--output", "json", "--policies"]);
        command.arg(scene.root().join("manifests")).arg("--state").arg(scene.state());
        run(&mut command).with_status(status).json()["policies"][0].take()
    };
    assert_eq!(policy(1)["state"], "held");
    for annotations in [json!({}), json!({"tagboat.dev/on-revert": "overwrite"})] {
        hold(annotations);
        assert_eq!(policy(0)["reason"], "not written yet: the next run is due");
    }
}

/// The former reason and end were shown.
#[test]
fn a_freeze_that_was_changed_since_the_last_run_is_shown_as_it_is_now() {
    let scene = Scene::new().local();
    let freeze = |value: &str| {
        let metadata = json!({"name": "default", "annotations": {"tagboat.dev/freeze": value}});
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        scene.write("namespace.yaml", &object.to_string());
    };
    freeze("{reason: audit, until: 2199-12-01T00:00}");
    scene.run_with_state([""; 0]).with_status(0);
    let explained = || {
        let mut command = program();
        command.args(["explain", "automation", "fleet", "--output", "json", "--policies"]);
        command.arg(scene.root().join("manifests")).arg("--state").arg(scene.state());
        let document = run(&mut command).with_status(1).json();
        let [by, until] = ["by", "until"].map(|member| document["waiting"][0][member].clone());
        let reason = document["policies"][0]["reason"].as_str().unwrap().to_owned();
        assert!(reason.starts_with(by.as_str().unwrap()), "{document:#}");
        (by, until)
    };
    let by = |reason: &str| json!(format!("freeze of namespace default (tagboat.dev/freeze): {reason}"));
    assert_eq!(explained(), (by("audit"), json!("2199-12-01T00:00:00Z")));
    freeze("{reason: incident, until: 2199-12-24T00:00}");
    assert_eq!(explained(), (by("incident"), json!("2199-12-24T00:00:00Z")));
    freeze("{reason: audit}");
    assert_eq!(explained(), (by("audit"), json!(null)));
}

/// The present time was shown as the end.
#[test]
fn a_quiet_period_of_an_image_that_no_run_has_seen_has_no_end_yet() {
    let scene = Scene::new().local();
    scene.automation_with(json!({"metadata": {"annotations": {"tagboat.dev/quiet-period": "1h"}}}));
    scene.run_with_state([""; 0]).with_status(0);
    let waiting = || {
        let mut command = program();
        command.args(["explain", "automation", "fleet", "--output", "json", "--policies"]);
        command.arg(scene.root().join("manifests")).arg("--state").arg(scene.state());
        run(&mut command).with_status(1).json()["waiting"][0].take()
    };
    let by = "quiet period of 1h of automation default/fleet (tagboat.dev/quiet-period)";
    scene.latest("6.0.0");
    scene.run_with_state([""; 0]).with_status(0);
    let first = waiting();
    assert!(first["by"] == by && first["until"].is_string(), "{first:#}");
    scene.latest("7.0.0");
    let second = waiting();
    assert_eq!(second["by"], format!("{by}, which the next run begins anew"), "{second:#}");
    assert_eq!(second["until"], json!(null));
}
