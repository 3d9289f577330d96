//! Automations that share a branch.

use serde_json::{Value, json};

use super::{Automation, actions, beyond, content, lose_state, pushes, tip};
use crate::support::content::file;
use crate::support::git_host::Settings;
use crate::support::manifests::{marker, policy_with_status};
use crate::support::program;
use crate::support::remote_fleet::{RemoteFleet, git_repository};

fn line(name: &str, version: &str) -> String {
    format!("{name}: {version} {}\n", marker(&format!("default:{name}:tag")))
}

/// Writes automations `one` and `two` that share the branch `images`.
/// Each has the policy of its name.
fn write(fleet: &RemoteFleet, tag_of_one: &str, tag_of_two: &str) {
    let mut text = git_repository(&fleet.host.url("fleet.git"), "");
    for (name, author, tag) in [("one", "First", tag_of_one), ("two", "Second", tag_of_two)] {
        let status = format!("latestRef: {{name: reg.io/{name}, tag: {tag:?}}}");
        text += &policy_with_status("default", name, &format!("app: {name}"), &status);
        let annotations = json!({"push-branch": "images"});
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

/// A fleet with a shared branch, where each automation changes one file.
///
/// If `is_adjacent`, they have values in adjacent lines of one file as well.
fn shared(is_adjacent: bool) -> RemoteFleet {
    let mut files = vec![file("one.yaml", line("one", "1.0.0")), file("two.yaml", line("two", "1.0.0"))];
    if is_adjacent {
        files.push(file("both.yaml", line("one", "1.0.0") + &line("two", "1.0.0")));
    }
    let fleet = RemoteFleet::of_files(&files, Settings::default());
    write(&fleet, "2.0.0", "2.0.0");
    let created = || vec!["images: created".to_owned()];
    assert_eq!(run(&fleet), [created(), created()]);
    fleet
}

/// Runs one of the automations, and returns its branch in the report.
#[track_caller]
fn run_one(fleet: &RemoteFleet, name: &str) -> Value {
    let run = program::run(fleet.command().args(["--automation", name]));
    let all: Value = serde_json::from_str(&run.output).unwrap();
    all["automations"][0]["branches"][0].clone()
}

fn authors(fleet: &RemoteFleet) -> Vec<String> {
    let mut authors: Vec<String> = beyond(fleet, "images").into_iter().map(|commit| commit.author).collect();
    authors.sort();
    authors
}

const BOTH: [&str; 2] = ["First <bot@example.com>", "Second <bot@example.com>"];

/// The commit of the other automation was dropped from the branch.
#[test]
fn a_run_of_one_automation_keeps_the_commit_of_the_other() {
    let fleet = shared(false);
    write(&fleet, "3.0.0", "3.0.0");
    assert_eq!(run_one(&fleet, "one")["action"], "rebuilt");
    assert_eq!(content(&fleet, "images", "one.yaml"), line("one", "3.0.0"));
    // The other one takes no part, so its value stays.
    assert_eq!(content(&fleet, "images", "two.yaml"), line("two", "2.0.0"));
    assert_eq!(authors(&fleet), BOTH);
    assert_eq!(beyond(&fleet, "images")[1].parents, [fleet.tip()]);
    // Nothing is pushed again for the same images, by one or the other.
    let before = (tip(&fleet, "images"), pushes(&fleet));
    super::commit(&fleet, "main", &[file("other.yaml", "a: b\n")]);
    assert_eq!(run_one(&fleet, "one")["action"], "kept");
    assert_eq!((tip(&fleet, "images"), pushes(&fleet)), before);
    let both_are = |action: &str| [vec![format!("images: {action}")], vec![format!("images: {action}")]];
    assert_eq!(run(&fleet), both_are("rebuilt"));
    assert_eq!(content(&fleet, "images", "two.yaml"), line("two", "3.0.0"));
    fleet.assert_sound();
}

#[test]
fn a_suspended_automation_keeps_its_commit_on_a_shared_branch() {
    let fleet = shared(false);
    let suspend = |tag_of_one: &str, is_suspended: bool| {
        write(&fleet, tag_of_one, "2.0.0");
        if is_suspended {
            let place = fleet.root().join("manifests/manifests.yaml");
            let text = std::fs::read_to_string(&place).unwrap();
            let (before, last) = text.rsplit_once("---\n").unwrap();
            let mut object: Value = serde_json::from_str(last).unwrap();
            object["spec"]["suspend"] = json!(true);
            fleet.write_manifests(&format!("{before}---\n{object}\n"));
        }
    };
    suspend("3.0.0", true);
    assert_eq!(run(&fleet), [vec!["images: rebuilt".to_owned()], vec![]]);
    assert_eq!(content(&fleet, "images", "one.yaml"), line("one", "3.0.0"));
    assert_eq!(content(&fleet, "images", "two.yaml"), line("two", "2.0.0"));
    assert_eq!(authors(&fleet), BOTH);
    // With the same image it finds its commit as it was.
    let before = tip(&fleet, "images");
    suspend("3.0.0", false);
    let kept = || vec!["images: kept".to_owned()];
    assert_eq!((run(&fleet), tip(&fleet, "images")), ([kept(), kept()], before));
    fleet.assert_sound();
}

#[test]
fn a_commit_that_cannot_be_kept_leaves_the_branch_alone() {
    let fleet = shared(true);
    write(&fleet, "3.0.0", "3.0.0");
    let before = tip(&fleet, "images");
    let left = run_one(&fleet, "one");
    assert_eq!((left["action"].as_str(), left["reason"].as_str()), (Some("left"), Some("shared")));
    assert!(left["message"].as_str().unwrap().contains("has a commit of default/two"), "{left}");
    assert_eq!(tip(&fleet, "images"), before);
    let rebuilt = || vec!["images: rebuilt".to_owned()];
    assert_eq!(run(&fleet), [rebuilt(), rebuilt()]);
    fleet.assert_sound();
}

#[test]
fn the_commit_of_a_deleted_automation_is_dropped() {
    let fleet = shared(false);
    write(&fleet, "3.0.0", "2.0.0");
    let place = fleet.root().join("manifests/manifests.yaml");
    let text = std::fs::read_to_string(&place).unwrap();
    fleet.write_manifests(text.rsplit_once("---\n").unwrap().0);
    assert_eq!(actions(&super::run(&fleet)), ["images: rebuilt"]);
    assert_eq!(authors(&fleet), BOTH[..1]);
    assert_eq!(content(&fleet, "images", "two.yaml"), line("two", "1.0.0"));
}

/// Each of them made the branch anew on its base, again and again.
#[test]
fn a_branch_of_two_bases_is_refused_with_a_sentence() {
    let files = [file("one.yaml", line("one", "1.0.0")), file("two.yaml", line("two", "1.0.0"))];
    let fleet = RemoteFleet::of_files(&files, Settings::default());
    fleet.repository.git(["branch", "release", "main"]);
    write(&fleet, "2.0.0", "2.0.0");
    let place = fleet.root().join("manifests/manifests.yaml");
    let text = std::fs::read_to_string(&place).unwrap();
    let (before, last) = text.rsplit_once("---\n").unwrap();
    let mut object: Value = serde_json::from_str(last).unwrap();
    object["spec"]["git"]["checkout"] = json!({"ref": {"branch": "release"}});
    fleet.write_manifests(&format!("{before}---\n{object}\n"));
    for arguments in [&["--dry-run"][..], &[], &["--automation", "two"]] {
        let run = program::run(fleet.command().args(arguments));
        assert_eq!((run.status, pushes(&fleet)), (Some(1), 0), "{run:?}");
        let expected = "branch 'images' is left alone, because default/one makes a branch of this name for the base 'main', and \
            a branch has one base";
        assert!(run.errors.contains(expected), "{run:?}");
    }
    let conditions = fleet.status("two")["conditions"].clone();
    let mut conditions = conditions.as_array().unwrap().iter();
    let delivery = conditions.find(|condition| condition["type"] == "Delivery").unwrap();
    assert_eq!((&delivery["status"], &delivery["reason"]), (&json!("False"), &json!("InvalidBranch")));
    // Another name repairs both.
    let text = std::fs::read_to_string(&place).unwrap();
    let (before, last) = text.rsplit_once("---\n").unwrap();
    fleet.write_manifests(&format!("{before}---\n{}", last.replace("\"images\"", "\"release-images\"")));
    let created = |branch: &str| vec![format!("{branch}: created")];
    assert_eq!(run(&fleet), [created("images"), created("release-images")]);
    fleet.assert_sound();
}
