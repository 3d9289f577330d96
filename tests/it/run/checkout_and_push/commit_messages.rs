//! Commit messages: rendered templates, previews, and templates that fail.

use std::fs;

use serde_json::{Value, json};

use crate::run::scene::Scene;
use crate::support::content::file;
use crate::support::fleet::{IMAGE, tag_line};
use crate::support::manifests::marker;
use crate::support::program::{Run, run, run_with_input, tagboat};

const NONE: [&str; 0] = [];

const TWO_FILES: &str = "Automation: default/fleet

- File: app.yaml
  - Object: (unnamed)
    Changes:
    - 4.0.6 -> 5.0.3

- File: deep/web.yaml
  - Object: Deployment/prod/web
    Changes:
    - old -> ghcr.io/stefanprodan/podinfo:5.0.3
";

/// A repository with two files that are out of date.
fn scene() -> Scene {
    let web = format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: prod}}\nimage: old {}\n",
        marker("default:podinfo")
    );
    Scene::with_files(&[file("app.yaml", tag_line("4.0.6")), file("deep/web.yaml", web)]).local()
}

fn commit(template: &str) -> Value {
    json!({"spec": {"git": {"commit": {
        "messageTemplate": template, "messageTemplateValues": {"cluster": "prod\nEU"},
    }}}})
}

/// The message of the last commit, byte for byte.
fn message(scene: &Scene) -> String {
    let commit = String::from_utf8(scene.repository.git(["cat-file", "commit", "main"])).unwrap();
    commit.split_once("\n\n").unwrap().1.to_owned()
}

fn render(scene: &Scene, recorded: &Run, template: &str, language: &str) -> Run {
    let result = scene.root().join("result.json");
    fs::write(&result, &recorded.output).unwrap();
    let mut command = tagboat();
    command.args(["render", "--template", "-", "--language", language, "--from"]).arg(result);
    run_with_input(&mut command, template)
}

#[test]
fn a_commit_has_the_message_that_the_template_renders_and_the_preview_shows() {
    for (language, template, expected) in [
        ("go", "preset:detailed\n", TWO_FILES),
        (
            "go",
            "{{ range .Changed.Changes }}{{ .OldValue }} -> {{ .NewValue }}\n{{ end }}{{ .Values.cluster }}\n\n",
            "4.0.6 -> 5.0.3\nold -> ghcr.io/stefanprodan/podinfo:5.0.3\nprod\nEU\n\n",
        ),
        (
            "go",
            "{{ range .Updated.Images }}{{ . }} {{ .Policy }} {{ .Registry }}{{ end }}",
            "ghcr.io/stefanprodan/podinfo:5.0.3 default/podinfo ghcr.io",
        ),
        ("go", "  {{/* nothing */}}\n", "Update from image update automation"),
        ("go", "", "Update from image update automation"),
        (
            "handlebars",
            "{{AutomationObject.Name}}:\n{{#each Changed.Objects}}\n{{Kind}} {{Name}}{{#each Changes}} {{NewValue}}{{/each}}\n{{/each}}\n",
            "fleet:\n  5.0.3\nDeployment web ghcr.io/stefanprodan/podinfo:5.0.3\n",
        ),
        (
            "handlebars",
            "preset:summary",
            "Update 2 values in 2 files\n\nAutomation: default/fleet\nImage: ghcr.io/stefanprodan/podinfo:5.0.3\n",
        ),
    ] {
        let scene = scene();
        let mut automation = commit(template);
        automation["metadata"] = json!({"annotations": {"tagboat.dev/template-language": language}});
        scene.automation_with(automation);
        let dry_run = scene.run(["--dry-run", "--output", "json"]).with_status(0);
        let pushed = scene.run(["--output", "json"]).with_status(0);
        assert_eq!(message(&scene), expected, "{template}");
        assert_eq!(pushed.json()["automations"][0]["commit"]["message"], expected);
        for recorded in [dry_run, pushed] {
            let preview = render(&scene, &recorded, template, language).with_status(0);
            assert_eq!((preview.output.as_str(), preview.errors.as_str()), (expected, ""), "{template}");
        }
    }
}

#[test]
fn a_failing_template_has_the_message_of_flux_and_nothing_is_pushed() {
    const PARSE: &str = "failed to update source: unable to create commit message template from spec: ";
    const EXECUTE: &str = "failed to update source: failed to run template from spec: ";
    for (template, language, prefix, fault) in [
        ("{{ .Changed", "go", PARSE, "template: commit message:1: unclosed action"),
        ("{{ nope }}", "go", PARSE, "template: commit message:1: function \"nope\" not defined"),
        (
            "{{ .Foo }}",
            "go",
            EXECUTE,
            "template: commit message:1:3: executing \"commit message\" at <.Foo>: can't evaluate field Foo in type \
             source.TemplateData",
        ),
        ("{{#if}", "handlebars", PARSE, "template: commit message:1:6: invalid syntax: "),
        ("{{Nope}}", "handlebars", EXECUTE, "template: commit message:1:1: there is no \"Nope\" in the data"),
        (
            "preset:nope",
            "go",
            PARSE,
            "there is no preset \"nope\"; there are preset:detailed, preset:conventional, preset:summary",
        ),
    ] {
        let scene = scene();
        let before = scene.repository.id("main");
        let mut automation = commit(template);
        automation["metadata"] = json!({"annotations": {"tagboat.dev/template-language": language}});
        scene.automation_with(automation);
        let run = scene.run_with_state(["--output", "json"]).with_status(1);
        assert_eq!(scene.repository.id("main"), before, "{template}");
        let outcome = run.json()["automations"][0].take();
        let message = outcome["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{prefix}{fault}")), "{message}");
        assert_eq!(outcome["changes"].as_object().unwrap().len(), 2, "what would change is still told");
        let conditions = scene.status()["conditions"].take();
        let ready = conditions.as_array().unwrap().iter().find(|one| one["type"] == "Ready").unwrap();
        assert_eq!((&ready["reason"], &ready["message"]), (&json!("GitOperationFailed"), &json!(message)));
        let reconciling = conditions.as_array().unwrap().iter().find(|one| one["type"] == "Reconciling");
        assert_eq!(reconciling.unwrap()["reason"], "ProgressingWithRetry", "it is tried again");
        // The preview prints the same without a repository.
        let preview = render(&scene, &run, template, language).with_status(1);
        assert_eq!(preview.output, "");
        assert!(preview.only_error().contains(fault), "{preview:?}");
    }
}

/// As in Flux, the template is used only if there is something to commit.
#[test]
fn a_template_is_not_rendered_without_changes() {
    let scene = Scene::with_files(&[file("app.yaml", tag_line("5.0.3"))]).local();
    scene.automation_with(commit("{{ .Foo"));
    scene.run(NONE).with_status(0);
}

#[test]
fn one_bad_template_does_not_fail_the_others_of_its_batch() {
    let scene = scene();
    scene.automation_with(commit("{{ .Foo }}"));
    let good = json!({
        "apiVersion": "image.toolkit.fluxcd.io/v1", "kind": "ImageUpdateAutomation",
        "metadata": {"namespace": "default", "name": "good"},
        "spec": {
            "interval": "10m", "sourceRef": {"kind": "GitRepository", "name": "fleet"},
            "git": {"commit": {"author": {"email": "a@example.com"}, "messageTemplate": "{{ .AutomationObject }}"}},
        },
    });
    scene.write("good.yaml", &good.to_string());
    let run = scene.run(["--output", "json"]).with_status(1);
    let outcomes = run.json();
    let outcome = |name: &str| {
        let all = outcomes["automations"].as_array().unwrap();
        all.iter().find(|one| one["automation"]["name"] == name).unwrap()["outcome"].clone()
    };
    assert_eq!((outcome("fleet"), outcome("good")), (json!("failed"), json!("pushed")));
    assert_eq!(message(&scene), "default/good");
}

#[test]
fn text_of_the_repository_cannot_begin_a_line_of_the_message() {
    let line = format!("tag: \"old\\nSigned-off-by: mallory\\u2028\" {}\n", marker("default:podinfo:tag"));
    let scene = Scene::with_files(&[file("a\tb.yaml", line)]).local();
    scene.automation_with(commit("preset:detailed"));
    scene.run(NONE).with_status(0);
    let expected = "Automation: default/fleet\n\n- File: a\\tb.yaml\n  - Object: (unnamed)\n    Changes:\n    \
                    - old\\nSigned-off-by: mallory\\u2028 -> 5.0.3\n";
    assert_eq!(message(&scene), expected);
}

#[test]
fn a_preview_of_an_update_is_of_its_automation_or_of_the_one_that_is_named() {
    let scene = scene();
    let directory = scene.root().join("work");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("app.yaml"), tag_line("4.0.6")).unwrap();
    scene.automation_with(commit("{{ .AutomationObject }} {{ .Values.cluster }} {{ .Updated.Images }}"));
    let update = |manifests: &str| {
        let mut command = tagboat();
        command.current_dir(scene.root()).args(["update", "work", "--dry-run", "--output", "json"]);
        run(command.args(["--policies", manifests])).with_status(0)
    };
    let template = "{{ .AutomationObject }} {{ .Updated.Images }}{{ .Values }}";
    let with_automation = render(&scene, &update("manifests"), template, "go").with_status(0);
    assert_eq!(with_automation.output, format!("default/fleet [{IMAGE}:5.0.3]map[cluster:prod\nEU]"));
    let alone = update("manifests/policy.yaml");
    let unnamed = render(&scene, &alone, template, "go").with_status(2);
    assert!(unnamed.only_error().contains("has no automation"), "{unnamed:?}");
    assert!(unnamed.only_error().contains("--name [NAMESPACE/]NAME"), "{unnamed:?}");
    for (name, shown) in [("apps", "default/apps"), ("team/apps", "team/apps")] {
        let mut command = tagboat();
        command.args(["render", "--template", "-", "--name", name, "--from"]);
        let named = run_with_input(command.arg(scene.root().join("result.json")), template).with_status(0);
        assert_eq!(named.output, format!("{shown} [{IMAGE}:5.0.3]map[]"));
    }
}

#[test]
fn a_message_that_is_not_utf_8_is_committed_byte_for_byte_and_one_with_nul_is_not() {
    let scene = scene();
    scene.automation_with(commit("{{ trunc 1 \"\u{e9}\" }}\n"));
    let run = scene.run(["--output", "json"]).with_status(0);
    assert!(scene.repository.git(["cat-file", "commit", "main"]).ends_with(b"\n\n\xc3\n"));
    assert_eq!(run.json()["automations"][0]["commit"]["message"], "\u{fffd}\n");
    let scene = self::scene();
    let before = scene.repository.id("main");
    scene.automation_with(commit("a{{ \"\\x00\" }}b"));
    let run = scene.run(NONE).with_status(1);
    assert!(
        run.only_error().contains("the commit message has a NUL character, which git cannot store"),
        "{run:?}"
    );
    assert_eq!(scene.repository.id("main"), before);
}
