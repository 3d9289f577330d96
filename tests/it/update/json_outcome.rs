//! The members of the JSON outcome that other programs rely on.

use serde_json::{Value, json};

use crate::support::fleet::{Fleet, podinfo};
use crate::support::manifests::{automation, marker};

/// Returns the file of the example.
/// The changed value is on line 17, the unresolved marker on line 21.
fn foo_deployment() -> String {
    let (tag, nope) = (marker("default:podinfo:tag"), marker("default:nope"));
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: foo\n  namespace: default\nspec:\n  selector:\n    \
         matchLabels:\n      app: foo\n  template:\n    metadata:\n      labels:\n        app: foo\n    spec:\n      \
         containers:\n      - name: foo\n        tag: 2.2.2 {tag}\n        args:\n        - one\n        - two\n        \
         image: nope:1 {nope}\n"
    )
}

fn example(automation: &str) -> Fleet {
    let broken = format!("a: 1\nb:\n    [ {}\n", marker("default:podinfo"));
    let manifests = format!("{}{automation}", podinfo());
    Fleet::new([("foo-deployment.yaml", &foo_deployment()), ("broken.yaml", &broken)], &manifests)
}

fn example_automation() -> String {
    let git = "  git:\n    commit:\n      author: {email: a@example.com}\n      \
               messageTemplateValues: {cluster: prod-eu}\n";
    automation("default", "test-update-auto", git)
}

/// Removes the members that are no part of the contract.
fn keep(value: &mut Value, names: &[&str]) {
    let object = value.as_object_mut().unwrap();
    object.retain(|name, _| names.contains(&name.as_str()));
}

fn fixed_members(mut outcome: Value) -> Value {
    let names = [
        "automation",
        "outcome",
        "message",
        "policies",
        "values",
        "changes",
        "markers",
        "unparsable",
        "commit",
    ];
    keep(&mut outcome, &names);
    for marker in outcome["markers"].as_array_mut().unwrap() {
        keep(marker, &["file", "line", "setter", "outcome"]);
    }
    outcome
}

fn wanted(outcome: &str, message: Option<&str>) -> Value {
    let mut wanted = json!({
        "outcome": outcome,
        "policies": {"podinfo": {"name": "ghcr.io/stefanprodan/podinfo", "tag": "5.0.3", "digest": ""}},
        "changes": {"foo-deployment.yaml": {"objects": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "foo",
             "changes": [{"oldValue": "2.2.2", "newValue": "5.0.3", "setter": "default:podinfo:tag", "line": 17}]}]}},
        "markers": [
            {"file": "foo-deployment.yaml", "line": 17, "setter": "default:podinfo:tag", "outcome": "changed"},
            {"file": "foo-deployment.yaml", "line": 21, "setter": "default:nope", "outcome": "unknown-policy"}],
    });
    if let Some(message) = message {
        wanted["automation"] = json!({"namespace": "default", "name": "test-update-auto"});
        wanted["message"] = json!(message);
        wanted["values"] = json!({"cluster": "prod-eu"});
    }
    wanted
}

/// Removes the entry of the unreadable file, and checks it.
/// The text of its message is the parser's; the rest of the entry is part of the contract.
fn take_unparsable(outcome: &mut Value) {
    let unparsable = outcome.as_object_mut().unwrap().remove("unparsable").unwrap();
    assert_eq!(unparsable[0]["file"], "broken.yaml");
    assert!(unparsable[0]["line"].as_u64().unwrap() >= 3, "{unparsable}");
    assert!(unparsable[0]["column"].as_u64().unwrap() >= 1, "{unparsable}");
    assert!(!unparsable[0]["cause"].as_str().unwrap().is_empty(), "{unparsable}");
    assert_eq!(unparsable[0].as_object().unwrap().len(), 4);
    assert_eq!(unparsable.as_array().unwrap().len(), 1);
}

#[test]
fn with_an_automation_all_fixed_members_are_there() {
    let fleet = example(&example_automation());
    for (arguments, outcome, message) in [
        (vec!["--output", "json", "--dry-run"], "dry-run", "would change 1 value"),
        (vec!["--output", "json"], "updated", "changed 1 value"),
    ] {
        let mut found = fixed_members(fleet.update(arguments).with_status(0).json());
        take_unparsable(&mut found);
        // The beginning of the message is part of the contract, the rest is not.
        let sentence = found["message"].as_str().unwrap().get(..message.len()).unwrap_or_default().to_owned();
        found["message"] = json!(sentence);
        assert_eq!(found, wanted(outcome, Some(message)));
    }
    let found = fleet.update(["--output", "json"]).with_status(0).json();
    assert_eq!((&found["outcome"], &found["changes"]), (&json!("unchanged"), &json!({})));
    assert_eq!(found["markers"][0]["outcome"], "current");
}

#[test]
fn without_an_automation_its_members_are_absent() {
    let mut found = fixed_members(example("").update(["--output", "json"]).with_status(0).json());
    take_unparsable(&mut found);
    assert_eq!(found, wanted("updated", None));
}

#[test]
fn a_failure_is_an_outcome_too() {
    let fields = "  update: {path: ./nowhere}\n";
    let run = example(&automation("default", "fleet", fields)).update(["--output", "json"]).with_status(1);
    let found = run.json();
    assert_eq!(found["automation"], json!({"namespace": "default", "name": "fleet"}));
    assert_eq!((&found["outcome"], &found["changes"]), (&json!("failed"), &json!({})));
    let sentence = run.only_error();
    assert_eq!(found["errors"], json!([sentence]));
    assert!(sentence.starts_with("default/fleet: failed to apply policies: "), "{sentence}");
    assert_eq!(found["policies"]["podinfo"]["tag"], "5.0.3");

    let fleet = Fleet::new([("app.yaml", "a: 1\n")], "apiVersion: image.toolkit.fluxcd.io/v1\nkind: [");
    let run = fleet.update(["--output", "json"]).with_status(1);
    assert_eq!(run.json()["outcome"], "failed");
    assert_eq!(run.json().get("automation"), None);
}

#[test]
fn objects_and_files_are_sorted_and_repetitions_stay() {
    let line = |key: &str| format!("{key}: 4.0.6 {}\n", marker("default:podinfo:tag"));
    let object = |version: &str, kind: &str, namespace: &str, name: &str| {
        let tags = format!("{}{}", line("b"), line("a"));
        format!(
            "---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}, namespace: {namespace}}}\n{tags}"
        )
    };
    let sorted = [
        ("v1", "A", "z", "a"),
        ("v1", "A", "b", "b"),
        ("v1", "A", "c", "b"),
        ("v1", "B", "a", "a"),
        ("v2", "A", "a", "a"),
    ];
    let text: String = sorted.iter().rev().map(|(v, k, ns, n)| object(v, k, ns, n)).collect();
    let fleet = Fleet::new([("z.yaml", &text), ("a.yaml", &text), ("b/a.yaml", &text)], &podinfo());
    let found = fleet.update(["--output", "json"]).with_status(0).json();
    let files: Vec<_> = found["changes"].as_object().unwrap().keys().collect();
    assert_eq!(files, ["a.yaml", "b/a.yaml", "z.yaml"]);
    let objects = found["changes"]["z.yaml"]["objects"].as_array().unwrap();
    let text = |value: &Value, name: &str| value[name].as_str().unwrap().to_owned();
    let names = ["apiVersion", "kind", "namespace", "name"];
    let found: Vec<_> = objects.iter().map(|object| names.map(|name| text(object, name))).collect();
    assert_eq!(found, sorted.map(|(v, k, ns, n)| [v, k, ns, n].map(str::to_owned)));
    let changes = objects[0]["changes"].as_array().unwrap();
    let lines: Vec<_> = changes.iter().map(|change| change["line"].as_u64().unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0] < lines[1]);
}
