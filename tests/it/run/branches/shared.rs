//! Automations that share a branch.

use serde_json::{Value, json};

use super::{Automation, actions, beyond, content, lose_state, pushes, tip};
use crate::support::content::file;
use crate::support::git_host::Settings;
use crate::support::manifests::{marker, policy_with_status};
use crate::support::program::{Run, run as run_program, tagboat};
use crate::support::remote_fleet::{RemoteFleet, git_repository};

fn line(name: &str, version: &str) -> String {
    format!("{name}: {version} {}\n", marker(&format!("default:{name}:tag")))
}

/// Writes automations `one` and `two` that share the branch `images`.
/// Each has the policy of its name.
fn write(fleet: &RemoteFleet, tag_of_one: &str, tag_of_two: &str) {
    write_with(fleet, tag_of_one, tag_of_two, &json!({}));
}

/// Writes them with further annotations of `two`.
fn write_with(fleet: &RemoteFleet, tag_of_one: &str, tag_of_two: &str, of_two: &Value) {
    let mut text = git_repository(&fleet.host.url("fleet.git"), "");
    for (name, author, tag) in [("one", "First", tag_of_one), ("two", "Second", tag_of_two)] {
        let status = format!("latestRef: {{name: reg.io/{name}, tag: {tag:?}}}");
        text += &policy_with_status("default", name, &format!("app: {name}"), &status);
        let mut annotations = json!({"push-branch": "images"});
        if name == "two" {
            annotations.as_object_mut().unwrap().extend(of_two.as_object().unwrap().clone());
        }
        let manifest = Automation { name, author, path: "./", annotations }.manifest();
        let mut object: Value = serde_json::from_str(manifest.trim_start_matches("---\n")).unwrap();
        object["spec"]["policySelector"] = json!({"matchLabels": {"app": name}});
        text += &format!("---\n{object}\n");
    }
    fleet.write_manifests(&text);
}

#[track_caller]
fn run(fleet: &RemoteFleet) -> [Vec<String>; 2] {
    let run = fleet.run();
    assert_eq!((run.status, run.errors.as_str()), (Some(0), ""), "{run:?}");
    let all: Value = serde_json::from_str(&run.output).unwrap();
    [0, 1].map(|index| actions(&all["automations"][index]["branches"]))
}

/// A fleet with a marked file for each of them.
fn of_two_files() -> RemoteFleet {
    let files = [file("one.yaml", line("one", "1.0.0")), file("two.yaml", line("two", "1.0.0"))];
    RemoteFleet::of_files(&files, Settings::default())
}

/// Writes both, and returns the report of each.
#[track_caller]
fn reports(fleet: &RemoteFleet, tag_of_one: &str, tag_of_two: &str, of_two: &Value) -> [Value; 2] {
    write_with(fleet, tag_of_one, tag_of_two, of_two);
    let run = fleet.run();
    assert_eq!((run.status, run.errors.as_str()), (Some(0), ""), "{run:?}");
    let all = run.json();
    [0, 1].map(|index| all["automations"][index].clone())
}

fn explain_one(fleet: &RemoteFleet) -> Run {
    let mut command = tagboat();
    command.args(["explain", "automation", "one", "--output", "json", "--policies"]);
    run_program(command.arg(fleet.root().join("manifests")).arg("--state").arg(fleet.state()))
}

/// The reason was that of a window.
#[test]
fn a_shared_branch_that_waits_has_the_reason_of_the_other_automation() {
    let fleet = of_two_files();
    let [one, _] = reports(&fleet, "2.0.0", "2.0.0", &json!({}));
    assert_eq!(one["outcome"], "pushed");
    let [one, two] = reports(&fleet, "3.0.0", "3.0.0", &json!({"quiet-period": "1h"}));
    let by = "automation default/two, which changes the same branch and waits";
    assert_eq!((&one["waiting"][0]["reason"], &one["waiting"][0]["by"]), (&json!("QuietPeriod"), &json!(by)));
    assert_eq!(two["waiting"][0]["reason"], "QuietPeriod");
    let explained = explain_one(&fleet).with_status(1).json();
    assert_eq!(explained["waiting"][0]["by"], by, "{explained:#}");
}

/// The message did not say which automation delays the branch.
#[test]
fn a_shared_branch_that_waits_names_the_automation_whose_window_is_closed() {
    let fleet = of_two_files();
    let closed = "[{name: long, kind: deny, from: 2020-01-01T00:00, until: 2200-01-01T00:00}]";
    let closed = json!({"windows": closed});
    let [one, two] = reports(&fleet, "2.0.0", "2.0.0", &closed);
    let by = "automation default/two, which changes the same branch and waits";
    let expected = json!([{
        "policies": ["default/one"], "reason": "WindowClosed", "by": by, "until": null,
        "message": format!("1 value of one waits: {by}; no end is known"),
    }]);
    assert_eq!((&one["outcome"], &one["waiting"]), (&json!("waiting"), &expected));
    assert_eq!(two["waiting"][0]["by"], "deny window `long` of automation default/two");
    let explained = explain_one(&fleet).with_status(1).json();
    assert_eq!(explained["waiting"][0]["by"], by, "{explained:#}");
    // An automation without a change of the branch delays nothing.
    let [one, two] = reports(&fleet, "2.0.0", "1.0.0", &closed);
    assert_eq!((&one["outcome"], &one["waiting"]), (&json!("pushed"), &Value::Null), "{one:#}");
    assert_eq!(two["waiting"], Value::Null);
}

#[test]
fn a_shared_branch_has_one_commit_for_each_automation() {
    // Both edit the same file, and each one of its own.
    let both = line("one", "1.0.0") + &line("two", "1.0.0");
    let files = [
        file("both.yaml", both),
        file("one.yaml", line("one", "1.0.0")),
        file("two.yaml", line("two", "1.0.0")),
    ];
    let fleet = RemoteFleet::of_files(&files, Settings::default());
    write(&fleet, "2.0.0", "2.0.0");
    let both_are = |action: &str| [vec![format!("images: {action}")], vec![format!("images: {action}")]];
    assert_eq!(run(&fleet), both_are("created"));
    let check = |one: &str, two: &str| {
        let own = beyond(&fleet, "images");
        let authors: Vec<&str> = own.iter().map(|commit| commit.author.as_str()).collect();
        assert_eq!(authors, ["Second <bot@example.com>", "First <bot@example.com>"]);
        assert_eq!(own[1].parents, [fleet.tip()]);
        assert_eq!(content(&fleet, "images", "both.yaml"), line("one", one) + &line("two", two));
        assert_eq!(content(&fleet, "images", "one.yaml"), line("one", one));
        assert_eq!(content(&fleet, "images", "two.yaml"), line("two", two));
        assert_eq!(fleet.status("two")["lastPushCommit"], own[0].id.as_str());
        assert_eq!(fleet.status("one")["lastPushCommit"], own[1].id.as_str());
    };
    check("2.0.0", "2.0.0");
    assert_eq!(pushes(&fleet), 1);
    // An image of one: the branch has the commits of both afterwards.
    write(&fleet, "2.0.0", "3.0.0");
    assert_eq!(run(&fleet), both_are("rebuilt"));
    check("2.0.0", "3.0.0");
    let before = tip(&fleet, "images");
    lose_state(&fleet);
    assert_eq!(run(&fleet), both_are("kept"));
    assert_eq!((tip(&fleet, "images"), pushes(&fleet)), (before, 2));
    lose_state(&fleet);
    write(&fleet, "4.0.0", "4.0.0");
    assert_eq!(run(&fleet), both_are("rebuilt"));
    check("4.0.0", "4.0.0");
    fleet.assert_sound();
}
