//! Tests of `tagboat explain policy` on a list of tags.
//! They cover the document, the table and the exit status.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::program::{Run, run, run_with_input, tagboat};

/// A policy with these annotations and the rest of its spec, as flow mappings.
fn policy(namespace: &str, name: &str, annotations: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: image.toolkit.fluxcd.io/v1\nkind: ImagePolicy\n\
         metadata: {{name: {name}, namespace: {namespace}, annotations: {{{annotations}}}}}\n\
         spec: {{imageRepositoryRef: {{name: app}}, {spec}}}\n"
    )
}

const RANGE: &str = "policy: {semver: {range: 1.x}}";

/// Explains the policy `apps/web` with this spec on these tags, as JSON.
fn explained(annotations: &str, spec: &str, tags: &str, status: i32) -> Value {
    let (document, errors) = explained_with_errors(annotations, spec, tags, status);
    match &document["error"] {
        Value::Null => assert_eq!(errors, ""),
        error => assert!(errors.contains(error.as_str().unwrap()), "{errors}"),
    }
    document
}

fn explained_with_errors(annotations: &str, spec: &str, tags: &str, status: i32) -> (Value, String) {
    let directory = TempDir::new().unwrap();
    let manifests = directory.path().join("policies.yaml");
    fs::write(&manifests, policy("apps", "web", annotations, spec)).unwrap();
    let mut command = tagboat();
    command
        .args(["explain", "policy", "web", "--tags", "-", "--output", "json", "--policies"])
        .arg(manifests);
    let ended = run_with_input(&mut command, tags).with_status(status);
    (ended.json(), ended.errors)
}

fn outcomes(document: &Value) -> Vec<(&str, Option<&str>, &str)> {
    let tags = document["tags"].as_array().unwrap().iter();
    tags.map(|tag| (tag["tag"].as_str().unwrap(), tag["value"].as_str(), tag["outcome"].as_str().unwrap()))
        .collect()
}

#[test]
fn the_document_has_the_members_that_are_promised() {
    let document = explained("", RANGE, "1.3.0\n1.4.2\n2.0.0\n1.4.2\r\n\n1.0.0\n", 0);
    assert_eq!(
        document,
        json!({
            "policy": {"namespace": "apps", "name": "web"},
            "latest": "1.4.2",
            "error": null,
            "tags": [
                {"tag": "1.4.2", "value": "1.4.2", "outcome": "latest", "reason": "the greatest of 3 candidates"},
                {"tag": "1.3.0", "value": "1.3.0", "outcome": "candidate", "reason": "1.4.2 is greater"},
                {"tag": "1.0.0", "value": "1.0.0", "outcome": "candidate", "reason": "1.4.2 is greater"},
                {
                    "tag": "2.0.0",
                    "value": "2.0.0",
                    "outcome": "out-of-range",
                    "reason": "\"1.x\" does not include it: it does not satisfy 1.x",
                },
            ],
        })
    );
    let members: Vec<&String> = document.as_object().unwrap().keys().collect();
    assert_eq!(members, ["policy", "latest", "error", "tags"]);
}

#[test]
fn every_tag_appears_with_its_outcome() {
    let spec = "filterTags: {pattern: '^main-(?P<ts>.*)', extract: $ts}, policy: {numerical: {order: asc}}";
    let annotations = "tagboat.dev/exclude: '[main-99]'";
    let document = explained(annotations, spec, "main-7\nmain-07\nmain-99\nmain-8\ndev-1\nmain-8\n", 0);
    assert_eq!(
        outcomes(&document),
        [
            ("main-8", Some("8"), "latest"),
            ("main-07", Some("07"), "candidate"),
            ("main-7", Some("7"), "candidate"),
            ("main-99", Some("99"), "excluded"),
            ("dev-1", None, "filtered"),
        ]
    );
    let spec = "filterTags: {pattern: '^(.*)-[a-z]+$', extract: $1}, policy: {semver: {range: '*'}}";
    let document = explained("", spec, "1.0.0-b\n1.0.0-a\n1.0-a\n0.9.0-c", 0);
    assert_eq!(
        outcomes(&document),
        [
            ("1.0.0-a", Some("1.0.0"), "latest"),
            ("0.9.0-c", Some("0.9.0"), "candidate"),
            ("1.0.0-b", Some("1.0.0"), "shadowed"),
            ("1.0-a", Some("1.0"), "not-a-version"),
        ]
    );
    let document = explained("tagboat.dev/minimum-age: 3d", RANGE, "1.0.0\nx\n", 1);
    assert_eq!(outcomes(&document), [("x", Some("x"), "not-a-version"), ("1.0.0", Some("1.0.0"), "too-new")]);
    let document = explained("tagboat.dev/order: natural", "policy: {alphabetical: {}}", "rc9\nrc10\n", 0);
    assert_eq!(document["latest"], "rc10");
}

#[test]
fn an_error_is_the_message_of_the_condition() {
    let nothing = json!([]);
    for (annotations, spec, tags, error, judged) in [
        ("", "policy: {semver: {range: '*-*'}}", "1.0.0", "invalid policy: improper constraint: \"*-*\"", 0),
        ("", "policy: {}", "1.0.0", "invalid policy: given ImagePolicyChoice object is invalid", 0),
        (
            "",
            "policy: {alphabetical: {order: up}}",
            "1.0.0",
            "invalid policy: invalid order argument provided: 'UP', must be one of: ASC, DESC",
            0,
        ),
        (
            "",
            "policy: {alphabetical: {}}, filterTags: {pattern: '^test-(.*'}",
            "1.0.0",
            "failed to filter tags: invalid regular expression pattern '^test-(.*': error parsing regexp: missing closing ): `^test-(.*`",
            0,
        ),
        ("", RANGE, "", "there is no tag in standard input", 0),
        ("", RANGE, "\n \n", "there is no tag in standard input", 0),
        ("", RANGE, "2.0.0\nx", "unable to determine latest version from provided list", 2),
        (
            "",
            "policy: {alphabetical: {}}, filterTags: {pattern: ^v}",
            "1\n2",
            "version list argument cannot be empty",
            2,
        ),
        ("", "policy: {numerical: {}}", "1\nx\n2", "failed to parse invalid numeric value 'x'", 3),
        (
            "",
            "policy: {numerical: {}}, digestReflectionPolicy: Always",
            "1",
            "spec.interval must be set when spec.digestReflectionPolicy is set to 'Always'",
            0,
        ),
    ] {
        let document = explained(annotations, spec, tags, 1);
        assert_eq!((&document["latest"], &document["error"]), (&Value::Null, &json!(error)), "{spec}");
        assert_eq!(document["tags"].as_array().unwrap().len(), judged, "{spec}");
    }
    let (document, errors) = explained_with_errors("tagboat.dev/exlude: x", RANGE, "1.0.0", 1);
    let error = "annotation tagboat.dev/exlude (value `x`) is not a setting of ImagePolicy: did you mean tagboat.dev/exclude?";
    assert_eq!((&document["error"], &document["tags"]), (&json!(error), &nothing));
    assert!(errors.ends_with(&format!("apps/web: {error}\n")), "{errors}");
}

/// Runs in a directory with two policies of one name, and a file of tags.
fn among_two(arguments: &[&str]) -> Run {
    let directory = TempDir::new().unwrap();
    fs::create_dir(directory.path().join("more")).unwrap();
    fs::write(directory.path().join("a.yaml"), policy("apps", "web", "", RANGE)).unwrap();
    let other = format!(
        "{}{}",
        policy("other", "web", "", RANGE),
        policy("other", "idle", "", &format!("{RANGE}, suspend: true"))
    );
    fs::write(directory.path().join("more/b.yaml"), other).unwrap();
    fs::write(directory.path().join("tags"), "1.0.0\n").unwrap();
    fs::write(directory.path().join("bytes"), b"1.0.0\n\xff\n").unwrap();
    run(tagboat().current_dir(directory.path()).args(["explain", "policy"]).args(arguments))
}

#[test]
fn usage_errors_name_the_missing_argument() {
    for (arguments, status, words) in [
        (
            &["web", "--policies", "a.yaml", "more", "--tags", "tags"][..],
            2,
            "apps/web and other/web have that name",
        ),
        (&["nope", "--policies", "a.yaml", "--tags", "tags"], 2, "there is apps/web"),
        (
            &["web", "--namespace", "nope", "--policies", "a.yaml", "--tags", "tags"],
            2,
            "in the namespace nope",
        ),
        (
            &["apps/web", "--namespace", "other", "--policies", "a.yaml", "--tags", "tags"],
            2,
            "not in the namespace other",
        ),
        (&["web", "--policies", "a.yaml"], 2, "--tags FILE"),
        (&["web", "--policies", "-", "--tags", "-"], 2, "standard input cannot hold both"),
        (&["web", "--policies", "a.yaml", "--tags", "nowhere"], 1, "cannot read the tags from nowhere"),
        (&["web", "--policies", "a.yaml", "--tags", "bytes"], 1, "bytes:2: the tag there is not UTF-8"),
        (&["web", "--policies", "nowhere", "--tags", "tags"], 1, "nowhere"),
    ] {
        let ended = among_two(arguments).with_status(status);
        assert!(ended.only_error().contains(words), "{ended:?}");
        assert_eq!(ended.output, "");
    }
    assert_eq!(among_two(&["--policies", "a.yaml"]).status, Some(2));
}

#[test]
fn a_policy_is_found_in_files_and_directories() {
    for arguments in [
        &["web", "--policies", "a.yaml", "--tags", "tags"][..],
        &["web", "--namespace", "other", "--policies", "a.yaml", "more", "--tags", "tags"],
        &["web", "--namespace", "other", "--policies", "a.yaml", "--policies", "more", "--tags", "tags"],
        &["other/web", "--policies", "a.yaml", "more", "--tags", "tags"],
    ] {
        assert_eq!(among_two(arguments).with_status(0).errors, "");
    }
    let suspended = among_two(&["idle", "--policies", "more", "--tags", "tags"]).with_status(0);
    assert!(suspended.only_error().contains("other/idle is suspended"));
}

#[test]
fn the_table_is_for_people() {
    let ended = among_two(&["web", "--policies", "a.yaml", "--tags", "tags"]).with_status(0);
    assert_eq!(
        ended.output,
        "Policy: apps/web\nLatest: 1.0.0\n\nTAG    OUTCOME  REASON\n1.0.0  latest   the only candidate\n"
    );
    let directory = TempDir::new().unwrap();
    let manifests = directory.path().join("policies.yaml");
    let spec = "filterTags: {pattern: '^v(.*)', extract: $1}, policy: {semver: {range: '*'}}";
    fs::write(&manifests, policy("apps", "web", "", spec)).unwrap();
    let mut command = tagboat();
    command.args(["explain", "policy", "web", "--tags", "-", "--policies"]).arg(manifests);
    let ended = run_with_input(&mut command, "v1\nv\n\u{1b}[1m\n").with_status(1);
    assert_eq!(
        ended.output,
        "Policy: apps/web\n\
         Latest: none: unable to determine latest version from provided list\n\
         Note:   1 line of standard input cannot be a tag, such as \"\\u{1b}[1m\": write only one tag per line\n\n\
         TAG        VALUE  OUTCOME        REASON\n\
         v1         1      not-a-version  \"1\" is not a version: it has fewer than two dots\n\
         v          \"\"     not-a-version  \"\" is not a version: it has fewer than two dots\n\
         \\u{1b}[1m  -      not-a-tag      a tag has at most 128 letters, digits, '_', '.' and '-', and begins with \
         neither '.' nor '-'\n"
    );
    assert_eq!(ended.only_error(), "apps/web: unable to determine latest version from provided list");
}

#[test]
fn a_tag_of_any_length_has_a_line() {
    let long = "9".repeat(100_000);
    let directory = TempDir::new().unwrap();
    let manifests = directory.path().join("policies.yaml");
    let spec = "filterTags: {pattern: '^(.*)$', extract: $1}, policy: {semver: {range: '*'}}";
    fs::write(&manifests, policy("apps", "web", "", spec)).unwrap();
    let mut command = tagboat();
    command.args(["explain", "policy", "web", "--tags", "-", "--policies"]).arg(manifests);
    let ended = run_with_input(&mut command, &format!("1.0.0\n{long}\n")).with_status(0);
    let lines: Vec<&str> = ended.output.lines().collect();
    assert_eq!(lines[5], "1.0.0  1.0.0  latest     the only candidate");
    assert!(lines[6].starts_with(&format!("{long}  -      not-a-tag  ")));
}

/// A tab in the first column moved the others.
#[test]
fn a_tab_is_an_escape_in_the_table() {
    let directory = TempDir::new().unwrap();
    let manifests = directory.path().join("policies.yaml");
    fs::write(&manifests, policy("apps", "web", "", RANGE)).unwrap();
    let mut command = tagboat();
    command.args(["explain", "policy", "web", "--tags", "-", "--policies"]).arg(manifests);
    let ended = run_with_input(&mut command, "1.0.0\n1\tx\n").with_status(0);
    assert!(ended.output.contains("\n1\\tx   not-a-tag  "), "{}", ended.output);
    assert!(!ended.output.contains('\t'), "{}", ended.output);
}

/// A file that is no list of tags is reported.
/// If a list contains other things than tags, that is reported beside the message of the condition.
#[test]
fn a_file_that_is_not_a_list_of_tags_is_reported() {
    for (tags, note) in [
        ("\n", "error: there is no tag in standard input"),
        (
            "ghcr.io/acme/web:1.2.0\nghcr.io/acme/web:1.3.0\n",
            "note: 2 lines of standard input cannot be a tag, such as \"ghcr.io/acme/web:1.3.0\": write only one tag per \
             line",
        ),
    ] {
        let (_, errors) = explained_with_errors("", RANGE, tags, 1);
        assert_eq!(errors.lines().next(), Some(note));
    }
    let (document, errors) = explained_with_errors("", "policy: {}", "1.0.0", 1);
    assert_eq!(document["error"], "invalid policy: given ImagePolicyChoice object is invalid");
    assert!(
        errors.starts_with("note: spec.policy has no rule; write semver, alphabetical or numerical\n"),
        "{errors}"
    );
}

#[test]
fn an_unused_option_is_reported() {
    let directory = TempDir::new().unwrap();
    let manifests = directory.path().join("policies.yaml");
    fs::write(&manifests, policy("apps", "web", "", RANGE)).unwrap();
    let secret = format!("apps/login={}", directory.path().display());
    let mut command = tagboat();
    command
        .args(["explain", "policy", "web", "--tags", "-", "--secret", &secret, "--policies"])
        .arg(&manifests);
    let ended = run_with_input(&mut command, "1.0.0").with_status(0);
    assert_eq!(
        ended.only_error(),
        format!("warning: --secret {secret:?} is not used: with --tags no registry is read")
    );
    for (name, namespace) in [("", "apps"), ("apps/", "apps"), ("/web", "apps"), ("web", "")] {
        let mut command = tagboat();
        command.args(["explain", "policy", name, "--namespace", namespace, "--policies"]).arg(&manifests);
        let ended = run(&mut command).with_status(2);
        assert!(ended.only_error().contains("[NAMESPACE/]NAME"), "{ended:?}");
    }
}

/// Explains the policy `web` of these manifests on two tags, as JSON.
fn explained_among(manifests: &[(&str, String)], arguments: &[&str]) -> Run {
    let directory = TempDir::new().unwrap();
    for (file, text) in manifests {
        fs::write(directory.path().join(file), text).unwrap();
    }
    let mut command = tagboat();
    command.current_dir(directory.path());
    command.args(["explain", "policy", "web", "--tags", "-", "--policies", "."]).args(arguments);
    run_with_input(&mut command, "1.0.0\n1.1.0\n")
}

const JSON: [&str; 2] = ["--output", "json"];

/// Once there was a message on standard error and no document.
#[test]
fn a_policy_that_cannot_be_read_has_a_document_too() {
    for (spec, error) in [
        (
            "policy: {semver: {range: 1.0}}",
            "is not valid at spec.policy.semver.range: it must be a string, but is `1.0`; put it in quotes",
        ),
        ("policy: {semver: {}}", "is not valid at spec.policy.semver: missing field `range`"),
        (
            "policy: {semver: {range: 1.x}}, digestReflectionPolicy: always",
            "is not valid at spec.digestReflectionPolicy: `always` is not allowed",
        ),
        (
            "policy: {semver: {range: 1.x}}, filterTag: {}",
            "has an unknown field spec.filterTag; did you mean",
        ),
    ] {
        let manifests = [("web.yaml", policy("apps", "web", "", spec))];
        let ended = explained_among(&manifests, &JSON).with_status(1);
        let document = ended.json();
        let words = document["error"].as_str().unwrap().to_owned();
        assert!(words.contains(&format!("web.yaml: ImagePolicy apps/web {error}")), "{words}");
        assert_eq!(
            document,
            json!({"policy": {"namespace": "apps", "name": "web"}, "latest": null, "error": words, "tags": []})
        );
        assert_eq!(ended.only_error(), format!("error: {words}"));
        let text = explained_among(&manifests, &[]).with_status(1);
        assert_eq!((text.output.as_str(), text.errors), ("", ended.errors));
    }
    // An invalid object has a name all the same, which other objects may have, too.
    let invalid = policy("apps", "web", "", "policy: {semver: {}}");
    let two = [("a.yaml", invalid.clone()), ("b.yaml", policy("other", "web", "", RANGE))];
    let ended = explained_among(&two, &JSON).with_status(2);
    assert!(ended.only_error().contains("other/web and apps/web have that name"), "{ended:?}");
    let ended = explained_among(&two, &["--namespace", "other"]).with_status(0);
    assert!(ended.only_error().starts_with("warning: "), "{ended:?}");
    let old = invalid.replace("/v1", "/v1beta1");
    let ended = explained_among(&[("web.yaml", old)], &JSON).with_status(1);
    assert!(ended.json()["error"].as_str().unwrap().contains("v1beta1 is not supported"), "{ended:?}");
    let twice = [("a.yaml", policy("apps", "web", "", RANGE)), ("b.yaml", policy("apps", "web", "", RANGE))];
    let ended = explained_among(&twice, &JSON).with_status(1);
    assert!(ended.json()["error"].as_str().unwrap().starts_with("ImagePolicy apps/web is defined twice"));
}

/// Once any invalid object among the files was an error of every explanation.
#[test]
fn errors_of_other_objects_are_warnings() {
    let repository = "apiVersion: image.toolkit.fluxcd.io/v1\nkind: ImageRepository\n\
                      metadata: {name: app, namespace: apps}\nspec: {image: r.io/app, interval: 1m, provider: amazon}\n";
    let good = ("a.yaml", policy("apps", "web", "", RANGE));
    for (text, words) in [
        (
            repository.to_owned(),
            "ImageRepository apps/app is not valid at spec.provider: `amazon` is not allowed",
        ),
        (policy("apps", "idle", "", "policy: {semver: {}}"), "ImagePolicy apps/idle is not valid"),
        ("# image.toolkit.fluxcd.io\n}".to_owned(), "the manifest is not YAML"),
    ] {
        let ended = explained_among(&[good.clone(), ("b.yaml", text.clone())], &JSON).with_status(0);
        assert_eq!(ended.json()["latest"], "1.1.0");
        assert!(ended.only_error().starts_with("warning: ") && ended.errors.contains(words), "{ended:?}");
        // A missing policy may be in a file that cannot be read.
        let lost = [("a.yaml", policy("apps", "other", "", RANGE)), ("b.yaml", text)];
        let is_unknown = words.ends_with("YAML");
        let ended = explained_among(&lost, &JSON).with_status(if is_unknown { 1 } else { 2 });
        assert_eq!(ended.errors.contains(words), is_unknown, "{ended:?}");
        // An invalid policy has a name all the same.
        let others = if words.contains("apps/idle") { "are apps/other, apps/idle" } else { "is apps/other" };
        let sentence = format!("no ImagePolicy web is among the manifests; there {others}");
        assert!(ended.errors.contains(&sentence), "{ended:?}");
    }
}

#[test]
fn an_excluded_tag_that_does_not_exist_is_reported() {
    for (names, note) in [
        (
            "v1.2.0",
            "note: tagboat.dev/exclude names v1.2.0, which is not one of the tags; did you mean 1.2.0?\n",
        ),
        ("3.0.0", "note: tagboat.dev/exclude names 3.0.0, which is not one of the tags\n"),
        ("1.2.0", ""),
    ] {
        let annotations = format!("tagboat.dev/exclude: {names}");
        let (document, errors) = explained_with_errors(&annotations, RANGE, "1.2.0\n1.1.0\n", 0);
        assert_eq!(errors, note);
        assert_eq!(document["latest"], if note.is_empty() { "1.1.0" } else { "1.2.0" });
    }
}

#[test]
fn a_line_that_cannot_be_a_tag_is_shown_and_never_wins() {
    let order = "policy: {alphabetical: {order: desc}}";
    let long = "a".repeat(129);
    let tags = format!("web\n-x\n.y\nbad tag\n1.0+b\n{long}\n");
    let (document, errors) = explained_with_errors("", order, &tags, 0);
    assert_eq!(document["latest"], "web");
    let expected = [
        ("web", Some("web"), "latest"),
        ("bad tag", None, "not-a-tag"),
        (&long, None, "not-a-tag"),
        ("1.0+b", None, "not-a-tag"),
        (".y", None, "not-a-tag"),
        ("-x", None, "not-a-tag"),
    ];
    assert_eq!(outcomes(&document), expected);
    assert!(
        errors.starts_with("note: 5 lines of standard input cannot be a tag, such as \"bad tag\""),
        "{errors}"
    );

    let (document, errors) = explained_with_errors("", order, "-x\n", 1);
    assert_eq!(
        (&document["latest"], &document["error"]),
        (&json!(null), &json!("there is no tag in standard input"))
    );
    assert_eq!(outcomes(&document), [("-x", None, "not-a-tag")]);
    assert!(errors.ends_with("error: there is no tag in standard input\n"), "{errors}");
}
