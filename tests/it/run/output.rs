//! Output of a run: text and JSON, standard output and standard error.

use std::ffi::OsStr;
use std::fs;

use serde_json::{Value, json};

use super::scene::Scene;
use crate::support::content::{Content, change, file};
use crate::support::fleet::{IMAGE, tag_line};
use crate::support::git_host::{Operation, Settings};
use crate::support::patches;
use crate::support::program::run_with_input;
use crate::support::trees;

const NONE: [&str; 0] = [];

/// Writes a further automation of the scene as one manifest.
fn further(scene: &Scene, name: &str, spec: &Value) {
    let mut whole = json!({
        "interval": "10m",
        "sourceRef": {"kind": "GitRepository", "name": "fleet"},
        "git": {"commit": {"author": {"email": "a@example.com"}}},
    });
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let object = json!({
        "apiVersion": "image.toolkit.fluxcd.io/v1",
        "kind": "ImageUpdateAutomation",
        "metadata": {"namespace": "default", "name": name},
        "spec": whole,
    });
    scene.write(&format!("further-{name}.yaml"), &object.to_string());
}

/// Four automations: one pushes, one fails, one is suspended, one has nothing to do.
fn several() -> Scene {
    let scene =
        Scene::with_files(&[file("app.yaml", tag_line("4.0.6")), file("empty/a.yaml", "a: 1\n")]).local();
    further(&scene, "idle", &json!({"update": {"path": "empty"}}));
    further(&scene, "lost", &json!({"sourceRef": {"kind": "GitRepository", "name": "nowhere"}}));
    further(&scene, "paused", &json!({"suspend": true}));
    scene
}

#[test]
fn the_json_has_a_result_for_each_automation_also_when_some_failed() {
    let scene = several();
    let run = scene.run(["--output", "json"]).with_status(1);
    let json = run.json();
    assert_eq!(json.as_object().unwrap().keys().collect::<Vec<_>>(), ["automations"]);
    let results = json["automations"].as_array().unwrap();
    let short: Vec<(&str, &str, bool)> = results
        .iter()
        .map(|result| {
            assert_eq!(result["schema"], "tagboat.dev/outcome/v1");
            assert_eq!(result["automation"]["namespace"], "default");
            let name = result["automation"]["name"].as_str().unwrap();
            (name, result["outcome"].as_str().unwrap(), result.get("commit").is_some())
        })
        .collect();
    assert_eq!(
        short,
        [
            ("fleet", "pushed", true),
            ("idle", "unchanged", false),
            ("lost", "failed", false),
            ("paused", "skipped", false)
        ]
    );
    let pushed = &results[0];
    let tip = &scene.repository.log("main")[0];
    assert_eq!(
        pushed["commit"],
        json!({"id": tip.id, "branch": "main", "message": "Update from image update automation"})
    );
    assert_eq!(pushed["message"], format!("pushed commit '{}' to branch 'main'", &tip.id[..7]));
    assert_eq!(pushed["policies"], json!({"podinfo": {"name": IMAGE, "tag": "5.0.3", "digest": ""}}));
    assert_eq!(pushed["changes"]["app.yaml"]["objects"][0]["changes"][0]["newValue"], "5.0.3");
    let words = "default/lost: failed configuring source manager: referenced git repository does not exist: \
                 GitRepository.source.toolkit.fluxcd.io \"nowhere\" not found";
    assert_eq!(results[2]["errors"], json!([words]));
    assert_eq!(run.only_error(), words);
    assert_eq!(results[3]["message"], "the automation is suspended");
    for result in results.iter().filter(|result| result["automation"]["name"] != "lost") {
        assert_eq!(result["errors"], json!([]));
    }
    scene.repository.assert_sound();
}

#[test]
fn the_text_has_the_outcome_of_each_automation() {
    let scene = several();
    let run = scene.run(NONE).with_status(1);
    let tip = &scene.repository.log("main")[0].id[..7];
    for words in [
        format!("pushed commit '{tip}' to branch 'main'"),
        "Automation: default/idle".to_owned(),
        "repository up-to-date".to_owned(),
        "Automation: default/paused".to_owned(),
        "the automation is suspended".to_owned(),
    ] {
        assert!(run.output.contains(&words), "{words}: {}", run.output);
    }
    assert!(run.only_error().starts_with("default/lost: "), "{run:?}");
}

#[test]
fn one_automation_of_several_can_be_chosen() {
    for name in ["idle", "default/idle"] {
        let scene = several();
        let run = scene.run(["--output", "json", "--automation", name]).with_status(0);
        let names: Vec<Value> = run.json()["automations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["automation"]["name"].clone())
            .collect();
        assert_eq!(names, ["idle"]);
        assert_eq!(scene.tag("main"), "4.0.6");
    }
    let run = several().run(["--automation", "nobody"]).with_status(2);
    assert_eq!(
        run.only_error(),
        "error: --automation nobody: no ImageUpdateAutomation of that name is among the manifests; there are default/fleet, \
         default/idle, default/lost, default/paused"
    );
}

#[test]
fn errors_of_a_transaction_begin_with_the_name_of_each_automation() {
    let scene = Scene::new().local();
    further(&scene, "other", &json!({}));
    scene.source(json!({"url": "/nowhere"}));
    let run = scene.run(NONE).with_status(1);
    let mut lines: Vec<&str> = run.errors.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 2, "{run:?}");
    for (line, name) in lines.iter().zip(["fleet", "other"]) {
        assert!(
            line.starts_with(&format!("default/{name}: failed to checkout source: unable to ")),
            "{line}"
        );
    }
}

#[test]
fn a_suspended_automation_touches_nothing() {
    let scene = Scene::new();
    let host = scene.serve(Settings::default());
    scene.automation(json!({"suspend": true}));
    let run = scene.run_with_state(NONE).with_status(0);
    assert!(run.output.contains("the automation is suspended"), "{run:?}");
    assert!(host.requests().is_empty());
    assert!(!scene.state().join("objects").exists(), "no status is written");
    assert_eq!(scene.tag("main"), "4.0.6");
}

#[test]
fn a_dry_run_prints_a_patch_and_leaves_remote_and_state_alone() {
    let odd = b"caf\xe9.yaml".to_vec();
    let crlf = |tag: &str| tag_line(tag).replace('\n', "\r\n");
    let scene = Scene::with_files(&[
        file("app.yaml", tag_line("4.0.6")),
        change("bin/run.yaml", Content::Executable(tag_line("4.0.6").into())),
        file("crlf.yaml", crlf("4.0.6")),
        file("no end.yaml", tag_line("4.0.6").trim_end()),
        file(odd.clone(), tag_line("4.0.6")),
    ]);
    let host = scene.serve(Settings::default());
    let before = scene.repository.git(["for-each-ref"]);
    let run = scene.run_with_state(["--dry-run", "--output", "json"]).with_status(0);
    let result = &run.json()["automations"][0];
    assert_eq!(result["outcome"], "dry-run");
    assert_eq!(result.get("commit"), None);
    let diff = result["diff"].as_str().unwrap();
    assert_eq!(scene.repository.git(["for-each-ref"]), before);
    assert!(host.requests_for(Operation::ListForPush).is_empty());
    assert!(!scene.state().join("objects").exists(), "no status is written");

    let clone = scene.root().join("clone");
    fs::create_dir(&clone).unwrap();
    let archive = scene.root().join("files.tar");
    scene.repository.git(["archive", "--format=tar", "-o", archive.to_str().unwrap(), "main"]);
    let mut tar = std::process::Command::new("tar");
    crate::support::program::run(tar.arg("-xf").arg(&archive).arg("-C").arg(&clone)).with_status(0);
    patches::apply(&clone, diff).with_status(0);

    let text = scene.run_with_state(["--dry-run"]).with_status(0);
    assert!(text.output.starts_with(diff), "{text:?}");

    scene.run_with_state(NONE).with_status(0);
    let pushed = scene.repository.tree("main");
    for (path, node) in trees::read(&clone) {
        let trees::Node::File(content) = node else { panic!("{}", path.display()) };
        let key = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).to_vec();
        let expected = match &pushed[&key] {
            Content::File(content) | Content::Executable(content) => content.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(content, expected, "{}", path.display());
    }
    assert!(pushed.contains_key(&odd));
    assert_eq!(pushed[b"crlf.yaml".as_slice()], Content::File(crlf("5.0.3").into()));
}

#[test]
fn a_dry_run_without_changes_prints_no_patch() {
    let scene = Scene::new().local();
    scene.latest("4.0.6");
    let run = scene.run(["--dry-run", "--output", "json"]).with_status(0);
    let result = &run.json()["automations"][0];
    assert_eq!((&result["outcome"], &result["diff"]), (&json!("unchanged"), &json!("")));
}

/// A dry run is not recorded as a run.
#[test]
fn a_dry_run_after_a_run_still_shows_the_changes() {
    let scene = Scene::new();
    let _host = scene.serve(Settings::default());
    scene.run_with_state(NONE).with_status(0);
    let status = scene.status();
    scene.latest("5.0.4");
    for _ in 0..2 {
        let run = scene.run_with_state(["--dry-run", "--output", "json"]).with_status(0);
        assert_eq!(run.json()["automations"][0]["outcome"], "dry-run");
        assert_eq!(scene.status(), status);
    }
    let run = scene.run_with_state(["--output", "json"]).with_status(0);
    assert_eq!(run.json()["automations"][0]["outcome"], "pushed");
}

#[test]
fn an_image_override_has_precedence_over_the_status_of_its_policy() {
    for name in ["podinfo", "default/podinfo"] {
        let scene = Scene::new().local();
        scene.run(["--latest", &format!("{name}={IMAGE}:9.9.9")]).with_status(0);
        assert_eq!(scene.tag("main"), "9.9.9");
    }
    let scene = Scene::new().local();
    let run = scene.run(["--latest", "nobody=a/b:1"]).with_status(2);
    assert!(run.only_error().contains("nobody"), "{run:?}");
    assert_eq!(scene.tag("main"), "4.0.6");
}

#[test]
fn manifests_can_come_from_standard_input() {
    let scene = Scene::new().local();
    let mut text = String::new();
    for item in fs::read_dir(scene.root().join("manifests")).unwrap() {
        text.push_str("---\n");
        text.push_str(&fs::read_to_string(item.unwrap().path()).unwrap());
        text.push('\n');
    }
    let mut command = crate::support::program::tagboat();
    run_with_input(command.args(["run", "-"]), &text).with_status(0);
    assert_eq!(scene.tag("main"), "5.0.3");
}

#[test]
fn warnings_are_printed() {
    let marker = crate::support::manifests::marker("default:nobody:tag");
    let scene = Scene::with_files(&[
        file("app.yaml", tag_line("4.0.6")),
        file("lost.yaml", format!("tag: 1 {marker}\n")),
        file("broken.yaml", format!("a: [ {marker}\n")),
    ])
    .local();
    let run = scene.run(NONE).with_status(0);
    assert!(run.output.contains("lost.yaml:1: "), "{run:?}");
    assert!(run.output.contains("broken.yaml:"), "{run:?}");
    assert_eq!(scene.tag("main"), "5.0.3");
}

#[test]
fn an_image_override_that_no_automation_selects_is_reported_once() {
    let label = |name: &str| json!({"policySelector": {"matchLabels": {"app": name}}});
    let scene =
        Scene::with_files(&[file("app.yaml", tag_line("4.0.6")), file("empty/a.yaml", "a: 1\n")]).local();
    for name in ["one", "two"] {
        further(&scene, name, &label(name));
    }
    let given = format!("podinfo={IMAGE}:9.9.9");
    let about = |run: &crate::support::program::Run| -> Vec<String> {
        let lines = run.errors.lines().filter(|line| line.contains("--latest"));
        lines.map(str::to_owned).collect()
    };
    let run = scene.run(["--latest", &given]).with_status(0);
    assert_eq!(about(&run), Vec::<String>::new(), "fleet selects it");
    assert_eq!(scene.tag("main"), "9.9.9");
    scene.automation(label("three"));
    let run = scene.run(["--latest", &given]).with_status(0);
    let nobody = "warning: --latest for default/podinfo has no effect: no automation selects the policy";
    assert_eq!(about(&run), [nobody]);
    let run = scene.run(["--latest", &given, "--automation", "fleet"]).with_status(0);
    let nobody =
        "warning: --latest for default/podinfo has no effect: the automation does not select the policy";
    assert_eq!(about(&run), [nobody]);
}

#[test]
fn a_dry_run_of_several_names_each_before_its_patch() {
    let scene = Scene::with_files(&[
        file("a/app.yaml", tag_line("4.0.6")),
        file("b/app.yaml", tag_line("4.0.6")),
        file("app.yaml", "a: 1\n"),
    ])
    .local();
    scene.automation(json!({"update": {"path": "a"}}));
    further(&scene, "other", &json!({"update": {"path": "b"}}));
    let run = scene.run(["--dry-run"]).with_status(0);
    let lines: Vec<&str> = run.output.lines().collect();
    let at = |wanted: &str| {
        let found: Vec<usize> = (0..lines.len()).filter(|&index| lines[index] == wanted).collect();
        assert_eq!(found.len(), 1, "{wanted}: {}", run.output);
        found[0]
    };
    let order = [
        at("Automation: default/fleet"),
        at("--- a/a/app.yaml"),
        at("Automation: default/other"),
        at("--- a/b/app.yaml"),
    ];
    assert!(order.is_sorted(), "{}", run.output);
}

#[test]
fn json_is_printed_also_when_the_manifests_cannot_be_read() {
    let scene = Scene::new().local();
    scene.write("policy.yaml", "apiVersion: image.toolkit.fluxcd.io/v1\nkind: Nothing\n");
    let run = scene.run(["--output", "json"]).with_status(1);
    assert_eq!(run.json(), json!({"automations": []}));
    assert!(run.only_error().starts_with("error: "), "{run:?}");
    let run = scene.run(["--output", "json", "--secret", "x"]).with_status(2);
    assert_eq!(run.output, "");
}

#[test]
fn an_author_without_name_and_address_is_taken_with_one_warning() {
    let scene = Scene::new().local();
    scene.automation(json!({"git": {"commit": {"author": {"name": "", "email": ""}}}}));
    let run = scene.run(NONE).with_status(0);
    assert_eq!(
        run.only_error(),
        "warning: default/fleet: spec.git.commit.author has neither a name nor an e-mail address; commits will have neither"
    );
    assert_eq!(scene.tag("main"), "5.0.3");
}

#[test]
fn a_number_in_a_status_is_ignored_with_advice() {
    let scene = Scene::new().local();
    let policy = fs::read_to_string(scene.root().join("manifests/policy.yaml")).unwrap();
    let policy = policy.replace("tag: \"5.0.3\"", "tag: 2");
    scene.write("policy.yaml", &policy);
    let run = scene.run(NONE).with_status(0);
    assert!(
        run.errors.contains("status.latestRef.tag: it must be a string, but is `2`; put it in quotes\n"),
        "{run:?}\n{policy}"
    );
}

/// The second run once found each object twice, among the manifests and the stored ones.
#[test]
fn a_state_directory_among_the_manifests_is_not_read() {
    let scene = Scene::new().local();
    let state = scene.root().join("manifests/state");
    let run = || scene.run([OsStr::new("--state"), state.as_os_str()]).with_status(0);
    run();
    assert!(state.join("objects/ImageUpdateAutomation/default/fleet.json").exists());
    assert_eq!(scene.tag("main"), "5.0.3");
    let again = run();
    assert!(again.output.contains("no change since last reconciliation"), "{again:?}");
}
