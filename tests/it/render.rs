//! `tagboat render`: sources of templates and results, and usage errors.

use std::fs;
use std::time::Instant;

use serde_json::json;
use tempfile::TempDir;

use crate::support::program::{Run, run, run_with_input, tagboat};

const SEVERAL: &str = r#"{"more": 1, "automations": [
    {"automation": {"namespace": "a", "name": "one"}, "changes": {"x.yaml": {"objects": [{"changes": [{"newValue": "1"}]}]}}},
    {"automation": {"namespace": "a", "name": "two"}, "changes": {}, "outcome": "unchanged"},
    {"automation": {"namespace": "b", "name": "two"}, "changes": {}, "values": {"k": "v"}, "new": []}
]}"#;

const TEMPLATE: &str =
    "{{ .AutomationObject }}{{ .Values }}{{ range .Changed.Changes }}{{ .NewValue }}{{ end }}\n";

fn place() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    for (name, content) in [
        ("t.tmpl", TEMPLATE.as_bytes()),
        ("several.json", SEVERAL.as_bytes()),
        ("empty.json", br#"{"automations": []}"#),
        ("broken.json", b"{\"changes\": "),
        ("other.json", br#"{"some": "thing"}"#),
        (
            "newer.json",
            br#"{"schema": "tagboat.dev/outcome/v2", "automation": {"name": "a"}, "changes": {}}"#,
        ),
        (
            "image.json",
            br#"{"automation": {"name": "a"}, "policies": {"p": {"name": "UPPER", "tag": "1"}},
            "changes": {"f": {"objects": [{"changes": [{"setter": "n:p"}]}]}}}"#,
        ),
        ("latin1.tmpl", b"caf\xe9"),
        ("bytes.tmpl", b"{{ trunc 1 \"\xc3\xa9\" }}{{ \"\\x01\" }}"),
        ("nul.tmpl", b"{{ \"\\x00\" }}"),
        ("preset.tmpl", b"\npreset:summary\n"),
    ] {
        fs::write(place.path().join(name), content).unwrap();
    }
    place
}

fn render(place: &TempDir, arguments: &[&str]) -> Run {
    run(tagboat().current_dir(place.path()).arg("render").args(arguments))
}

#[test]
fn only_the_message_goes_to_standard_output() {
    let place = place();
    for (arguments, expected) in [
        (&["--template", "t.tmpl"][..], "default/test-update-automap[cluster:staging ticket:OPS-7]"),
        (&["--template", "t.tmpl", "--name", "x"], "default/xmap[cluster:staging ticket:OPS-7]"),
        (&["--template", "t.tmpl", "--name", "y/x"], "y/xmap[cluster:staging ticket:OPS-7]"),
        (&["--template", "t.tmpl", "--from", "several.json", "--name", "one"], "a/onemap[]1\n"),
        (&["--template", "t.tmpl", "--from", "several.json", "--name", "a/two"], "a/twomap[]\n"),
        (&["--template", "t.tmpl", "--from", "several.json", "--name", "b/two"], "b/twomap[k:v]\n"),
        (
            &["--template", "preset.tmpl"],
            "Update 5 values in 2 files\n\nAutomation: default/test-update-auto\nImage: ",
        ),
        (&["--template", "preset:summary", "--language", "handlebars"], "Update 5 values in 2 files\n"),
    ] {
        let run = render(&place, arguments).with_status(0);
        assert!(run.output.starts_with(expected), "{arguments:?}: {run:?}");
        let note = "note: the result has no changes, so there would be no commit\n";
        let has_changes = !expected.contains("/twomap");
        assert_eq!(run.errors, if has_changes { "" } else { note }, "{arguments:?}");
    }
    let template = run_with_input(tagboat().args(["render", "--template", "-"]), "no line break");
    assert_eq!(template.with_status(0).output, "no line break");
    let mut command = tagboat();
    command.current_dir(place.path()).args([
        "render",
        "--template",
        "t.tmpl",
        "--name",
        "a/one",
        "--from",
        "-",
    ]);
    assert_eq!(run_with_input(&mut command, SEVERAL).with_status(0).output, "a/onemap[]1\n");
    let bytes =
        tagboat().current_dir(place.path()).args(["render", "--template", "bytes.tmpl"]).output().unwrap();
    assert_eq!(bytes.stdout, b"\xc3\x01", "bytes are as Go gives them");
}

#[test]
fn a_failure_prints_one_error_and_no_output() {
    let place = place();
    fs::write(place.path().join("bad.tmpl"), "line\n{{ .Foo }}").unwrap();
    let unreadable = "is not the output of tagboat run or tagboat update with --output json: ";
    for (arguments, status, words) in [
        (
            &["--template", "bad.tmpl"][..],
            1,
            "template: commit message:2:3: executing \"commit message\" at <.Foo>: can't evaluate field Foo in type \
             source.TemplateData",
        ),
        (&["--template", "bad.tmpl", "--language", "handlebars"], 1, "template: commit message:2:"),
        (&["--template", "nul.tmpl"], 1, "the commit message has a NUL character, which git cannot store"),
        (
            &["--template", "t.tmpl", "--name", "a/b/c"],
            2,
            "--name \"a/b/c\" is not of the form [NAMESPACE/]NAME",
        ),
        (&["--template", "nowhere"], 1, "cannot read the template nowhere: No such file"),
        (&["--template", "latin1.tmpl"], 1, "the template latin1.tmpl is not UTF-8"),
        (&["--template", "preset:nope"], 1, "there are preset:detailed, preset:conventional, preset:summary"),
        (&["--template", "t.tmpl", "--from", "nowhere"], 1, "cannot read the result nowhere: No such file"),
        (&["--template", "t.tmpl", "--from", "broken.json"], 1, unreadable),
        (&["--template", "t.tmpl", "--from", "other.json"], 1, "missing field `changes`"),
        (&["--template", "t.tmpl", "--from", "t.tmpl"], 1, unreadable),
        (
            &["--template", "t.tmpl", "--from", "newer.json"],
            1,
            "its schema is \"tagboat.dev/outcome/v2\", and this version of tagboat reads \"tagboat.dev/outcome/v1\"",
        ),
        (&["--template", "t.tmpl", "--from", "empty.json"], 1, "empty.json holds no result of an automation"),
        (
            &["--template", "t.tmpl", "--from", "image.json"],
            1,
            "the image of the policy p under \"policies\"",
        ),
        (
            &["--template", "t.tmpl", "--from", "several.json"],
            2,
            "several automations (a/one, a/two, b/two); choose one",
        ),
        (
            &["--template", "t.tmpl", "--from", "several.json", "--name", "two"],
            2,
            "choose one with --name NAMESPACE/NAME",
        ),
        (
            &["--template", "t.tmpl", "--from", "several.json", "--name", "b/one"],
            2,
            "no automation of that name is in several.json; there are a/one, a/two, b/two",
        ),
        (&["--template", "t.tmpl", "--name", ""], 2, "--name \"\" is not of the form [NAMESPACE/]NAME"),
        (&["--template", "t.tmpl", "--name", "/x"], 2, "is not of the form [NAMESPACE/]NAME"),
        (&["--template", "-", "--from", "-"], 2, "--template and --from cannot both be standard input"),
    ] {
        let run = render(&place, arguments).with_status(status);
        assert_eq!(run.output, "", "{arguments:?}");
        assert!(run.only_error().starts_with("error: "), "{run:?}");
        assert!(run.only_error().contains(words), "{run:?}");
    }
    for arguments in [&[][..], &["--template", "t.tmpl", "--language", "jinja"], &["--template"], &["t.tmpl"]]
    {
        assert_eq!(render(&place, arguments).with_status(2).output, "");
    }
}

/// Templates that look at all data again and again exceed the budget soon.
/// Without a budget, each of them took minutes, and more on larger updates, though within every other limit.
#[test]
fn templates_that_read_all_data_repeatedly_reach_a_limit_soon() {
    let place = tempfile::tempdir().unwrap();
    let change = |of: usize| json!({"newValue": of.to_string(), "setter": "n:p"});
    let object = |number: usize| {
        let changes: Vec<_> = (0..4).map(|of| change(4 * number + of)).collect();
        json!({"kind": "Deployment", "name": format!("app-{number}"), "changes": changes})
    };
    let objects: Vec<_> = (0..500).map(object).collect();
    let result = json!({
        "automation": {"name": "a"}, "policies": {"p": {"name": "app", "tag": "1"}},
        "changes": {"all.yaml": {"objects": objects}},
    });
    fs::write(place.path().join("result.json"), result.to_string()).unwrap();
    let inside = |inner: &str| {
        format!(
            "{{{{#each Changed.Changes}}}}{{{{#each ../Changed.Changes}}}}{inner}{{{{/each}}}}{{{{/each}}}}"
        )
    };
    let each = |inner: &str| format!("{{{{#each Changed.Changes as |c|}}}}{inner}{{{{/each}}}}");
    const TOO_LONG: &str = "the template takes more than the limit of ";
    for (language, template, expected) in [
        (
            "go",
            "{{ range 20000 }}{{ if and $.Changed.Changes $.Changed.Objects $.Updated.Images $.Updated.Objects \
             $.Changed.ImageResult.Images }}x{{ end }}{{ end }}"
                .to_owned(),
            Ok("x".repeat(20_000)),
        ),
        ("handlebars", inside("{{#if (eq ../../Changed ../../Changed)}}{{/if}}"), Err(TOO_LONG)),
        ("handlebars", inside(&"{{#if x}}{{/if}}".repeat(1000)), Err(TOO_LONG)),
        ("handlebars", each("{{#if (lookup ../this \"Changed\")}}x{{/if}}"), Ok("x".repeat(2000))),
        ("handlebars", each("{{#each ../Changed as |all|}}{{/each}}x"), Ok("x".repeat(2000))),
    ] {
        let began = Instant::now();
        let mut command = tagboat();
        command.current_dir(place.path()).args(["render", "--template", "-", "--from", "result.json"]);
        let run = run_with_input(command.args(["--language", language]), &template);
        match expected {
            Ok(message) => assert_eq!(run.with_status(0).output, message, "{template:.100}"),
            Err(words) => assert!(run.with_status(1).only_error().contains(words), "{template:.100}"),
        }
        assert!(began.elapsed().as_secs() < 30, "{:?} {template:.100}", began.elapsed());
    }
}
