//! Automations that share a branch.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::{Automation, actions, beyond, content, lose_state, pushes, report, tip};
use crate::support::clock::until_next_second;
use crate::support::content::file;
use crate::support::git_host::Settings;
use crate::support::manifests::{marker, policy_with_status};
use crate::support::program::{Run, run as run_program, tagboat};
use crate::support::remote_fleet::{RemoteFleet, git_repository};
use crate::support::shifted_clock::ShiftedClock;

pub(super) fn line(name: &str, version: &str) -> String {
    format!("{name}: {version} {}\n", marker(&format!("default:{name}:tag")))
}

/// Writes automations `one` and `two` that share the branch `images`.
/// Each has the policy of its name.
pub(super) fn write(fleet: &RemoteFleet, tag_of_one: &str, tag_of_two: &str) {
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
pub(super) fn run(fleet: &RemoteFleet) -> [Vec<String>; 2] {
    let run = fleet.run();
    assert_eq!((run.status, run.errors.as_str()), (Some(0), ""), "{run:?}");
    let all: Value = serde_json::from_str(&run.output).unwrap();
    [0, 1].map(|index| actions(&all["automations"][index]["branches"]))
}

/// A fleet with a marked file for each of them.
pub(super) fn of_two_files() -> RemoteFleet {
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
    // The end was not said.
    let until = one["waiting"][0]["until"].as_str().unwrap();
    assert_eq!(two["waiting"][0]["until"], until);
    assert_eq!(one["waiting"][0]["message"], format!("1 value of one waits: {by}; until {until}"));
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
        "policies": ["default/one"], "reason": "WindowClosed", "by": by, "until": "2200-01-01T00:00:00Z",
        "message": format!("1 value of one waits: {by}; until 2200-01-01T00:00:00Z"),
    }]);
    assert_eq!((&one["outcome"], &one["waiting"]), (&json!("waiting"), &expected));
    assert_eq!(two["waiting"][0]["by"], "deny window `long` of automation default/two");
    let explained = explain_one(&fleet).with_status(1).json();
    assert_eq!(explained["waiting"][0]["by"], by, "{explained:#}");
    assert_eq!(explained["waiting"][0]["until"], "2200-01-01T00:00:00Z", "{explained:#}");
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

/// A fleet whose automations share a branch, and each change one file.
pub(super) fn shared() -> RemoteFleet {
    let files = [file("one.yaml", line("one", "1.0.0")), file("two.yaml", line("two", "1.0.0"))];
    let fleet = RemoteFleet::of_files(&files, Settings::default());
    write(&fleet, "2.0.0", "2.0.0");
    assert_eq!(run(&fleet), both_are("created"));
    fleet
}

pub(super) fn both_are(action: &str) -> [Vec<String>; 2] {
    [vec![format!("images: {action}")], vec![format!("images: {action}")]]
}

/// Changes the last manifest, which is that of `two`.
pub(super) fn change_two(fleet: &RemoteFleet, change: impl Fn(&mut Value)) {
    let text = std::fs::read_to_string(fleet.root().join("manifests/manifests.yaml")).unwrap();
    let (before, last) = text.rsplit_once("---\n").unwrap();
    let mut object: Value = serde_json::from_str(last).unwrap();
    change(&mut object);
    fleet.write_manifests(&format!("{before}---\n{object}\n"));
}

/// Runs one of the automations, and returns its branch in the report.
#[track_caller]
pub(super) fn run_one(fleet: &RemoteFleet, name: &str) -> Value {
    let run = run_program(fleet.command().args(["--automation", name])).with_status(0);
    let all: Value = serde_json::from_str(&run.output).unwrap();
    all["automations"][0]["branches"][0].clone()
}

/// The versions and authors of `one` and `two` on the shared branch.
#[track_caller]
pub(super) fn check(fleet: &RemoteFleet, one: &str, two: &str, authors: &[&str]) {
    assert_eq!(content(fleet, "images", "one.yaml"), line("one", one));
    assert_eq!(content(fleet, "images", "two.yaml"), line("two", two));
    let found: Vec<String> = beyond(fleet, "images").into_iter().map(|commit| commit.author).collect();
    assert_eq!(found, authors);
}

pub(super) const BOTH: [&str; 2] = ["Second <bot@example.com>", "First <bot@example.com>"];
pub(super) const AWAITS_TWO: &str = "is left alone, because it has a commit of automation default/two, which took no part in this run or failed";

/// The branch lost the commit of the other until its next run.
#[test]
fn a_run_of_one_automation_leaves_a_branch_with_a_commit_of_another_alone() {
    let fleet = shared();
    let before = (tip(&fleet, "images"), pushes(&fleet));
    // Its own change is there, so nothing is pushed.
    super::commit(&fleet, "main", &[file("other.yaml", "a: b\n")]);
    assert_eq!(run_one(&fleet, "one")["action"], "kept");
    write(&fleet, "3.0.0", "3.0.0");
    for arguments in
        [&["--automation", "one", "--dry-run"][..], &["--automation", "one"], &["--automation", "one"]]
    {
        let run = run_program(fleet.command().args(arguments)).with_status(0);
        let all: Value = serde_json::from_str(&run.output).unwrap();
        let left = &all["automations"][0]["branches"][0];
        assert_eq!(
            (&left["action"], &left["reason"]),
            (&json!("left"), &json!("edited-by-others")),
            "{all:#}"
        );
        assert!(left["message"].as_str().unwrap().contains(AWAITS_TWO), "{left:#}");
        assert_eq!((tip(&fleet, "images"), pushes(&fleet)), before);
    }
    let conditions = fleet.status("one")["conditions"].clone();
    let mut conditions = conditions.as_array().unwrap().iter();
    let delivery = conditions.find(|condition| condition["type"] == "Delivery").unwrap();
    assert_eq!((&delivery["status"], &delivery["reason"]), (&json!("False"), &json!("EditedByOthers")));
    check(&fleet, "2.0.0", "2.0.0", &BOTH);
    assert_eq!(run(&fleet), both_are("rebuilt"));
    check(&fleet, "3.0.0", "3.0.0", &BOTH);
    fleet.assert_sound();
}

#[test]
fn a_shared_branch_is_deleted_once_no_automation_changes_it() {
    let fleet = shared();
    let before = tip(&fleet, "images");
    // The commit of the other is wanted.
    write(&fleet, "1.0.0", "2.0.0");
    assert_eq!(run_one(&fleet, "one")["reason"], "edited-by-others");
    assert_eq!(tip(&fleet, "images"), before);
    assert_eq!(run(&fleet), both_are("rebuilt"));
    check(&fleet, "1.0.0", "2.0.0", &BOTH[..1]);
    write(&fleet, "1.0.0", "1.0.0");
    assert_eq!(run(&fleet), both_are("deleted"));
    assert_eq!(tip(&fleet, "images"), None);
}

/// The commit that was on the branch already was reported once more.
#[test]
fn a_commit_that_is_made_anew_in_the_same_second_is_reported_once() {
    let fleet = of_two_files();
    let clock = ShiftedClock::new(fleet.root());
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let begin = now();
    // Each run begins with the same second.
    let run_then = |tag_of_two: &str| {
        write(&fleet, "2.0.0", tag_of_two);
        std::thread::sleep(until_next_second());
        clock.set(i64::try_from(begin).unwrap() - i64::try_from(now()).unwrap());
        let run = run_program(fleet.command().envs(clock.environment())).with_status(0);
        [0, 1].map(|index| run.json()["automations"][index]["branches"][0].clone())
    };
    let of_one = || beyond(&fleet, "images")[1].clone();
    let [one, two] = run_then("2.0.0");
    assert!(one["commit"].is_string() && two["commit"].is_string(), "{one:#} {two:#}");
    assert_eq!((of_one().author.as_str(), &json!(of_one().id)), ("First <bot@example.com>", &one["commit"]));
    // On a busy machine, a run may begin later.
    let is_same = |tag: u32| {
        let before = of_one().id;
        let [one, two] = run_then(&format!("{tag}.0.0"));
        assert_eq!((&one["action"], &two["commit"]), (&json!("rebuilt"), &json!(tip(&fleet, "images"))));
        let is_same = of_one().id == before;
        let message = one["message"].as_str().unwrap();
        assert_eq!(one["commit"].is_null(), is_same, "{one:#}");
        assert_eq!(message == "pushed branch 'images' without a new commit of this automation", is_same);
        is_same
    };
    assert!((3..30).any(is_same));
    assert_eq!(fleet.status("one")["lastPushCommit"], of_one().id);
    let kept = report(&fleet.run());
    assert_eq!((&kept["outcome"], &kept["branches"]), (&json!("skipped"), &Value::Null));
}

#[test]
fn the_commit_of_a_suspended_or_deleted_automation_is_dropped_and_delays_no_other() {
    for is_deleted in [false, true] {
        let fleet = shared();
        write(&fleet, "3.0.0", "2.0.0");
        if is_deleted {
            let text = std::fs::read_to_string(fleet.root().join("manifests/manifests.yaml")).unwrap();
            fleet.write_manifests(text.rsplit_once("---\n").unwrap().0);
        } else {
            change_two(&fleet, |object| object["spec"]["suspend"] = json!(true));
        }
        let (reason, words) = match is_deleted {
            false => ("suspended", "it is suspended"),
            true => ("deleted", "it was deleted or has another GitRepository"),
        };
        let dry =
            run_program(fleet.command().args(["--automation", "one", "--dry-run"])).with_status(0).json();
        let message =
            format!("would drop the commit of automation default/two from branch 'images', because {words}");
        let dropped = json!([{"automation": "default/two", "reason": reason, "message": message}]);
        assert_eq!(dry["automations"][0]["branches"][0]["dropped"], dropped);
        let branch = run_one(&fleet, "one");
        assert_eq!(branch["action"], "rebuilt", "{is_deleted}");
        let message = message.replace("would drop", "dropped");
        let dropped = json!([{"automation": "default/two", "reason": reason, "message": message}]);
        assert_eq!(branch["dropped"], dropped);
        assert_eq!(run_one(&fleet, "one")["dropped"], Value::Null);
        check(&fleet, "3.0.0", "1.0.0", &BOTH[1..]);
        // It comes back with its next run.
        write(&fleet, "3.0.0", "2.0.0");
        assert_eq!(run(&fleet), both_are("rebuilt"));
        check(&fleet, "3.0.0", "2.0.0", &BOTH);
        fleet.assert_sound();
    }
}

#[test]
fn a_failing_automation_delays_a_shared_branch_until_its_failure_is_reported() {
    let fleet = shared();
    write(&fleet, "3.0.0", "2.0.0");
    change_two(&fleet, |object| object["spec"]["update"]["path"] = json!("./missing"));
    let runs = |expected: &str, reason: Value| {
        let run = fleet.run().with_status(1);
        let all: Value = serde_json::from_str(&run.output).unwrap();
        let (one, two) = (&all["automations"][0]["branches"][0], &all["automations"][1]);
        assert_eq!((&one["action"], &one["reason"]), (&json!(expected), &reason), "{all:#}");
        let dropped = (expected == "rebuilt").then_some("failed");
        assert_eq!(one["dropped"][0]["reason"].as_str(), dropped, "{all:#}");
        assert_eq!(two["outcome"], "failed", "{all:#}");
        one["message"].as_str().unwrap_or_default().to_owned()
    };
    let message = runs("left", json!("edited-by-others"));
    assert!(message.contains(AWAITS_TWO), "{message}");
    check(&fleet, "2.0.0", "2.0.0", &BOTH);
    runs("rebuilt", Value::Null);
    check(&fleet, "3.0.0", "1.0.0", &BOTH[1..]);
    write(&fleet, "3.0.0", "2.0.0");
    assert_eq!(run(&fleet), both_are("rebuilt"));
    check(&fleet, "3.0.0", "2.0.0", &BOTH);
    fleet.assert_sound();
}

/// The commit was gone, and no line said so.
#[test]
fn the_text_has_a_line_for_a_commit_that_a_branch_has_lost() {
    let fleet = shared();
    write(&fleet, "3.0.0", "2.0.0");
    change_two(&fleet, |object| object["spec"]["suspend"] = json!(true));
    let mut command = tagboat();
    command.env("TMPDIR", fleet.root().join("temporary"));
    command.arg("run").arg(fleet.root().join("manifests")).arg("--state").arg(fleet.state());
    let text = run_program(&mut command).with_status(0).output;
    let line = "dropped the commit of automation default/two from branch 'images', because it is suspended\n";
    assert!(text.contains(line), "{text}");
    let text = run_program(&mut command).with_status(0).output;
    assert!(!text.contains("dropped"), "{text}");
}

/// Its commit was dropped by a run of the other that did not try it.
#[test]
fn an_automation_that_failed_and_is_repaired_since_is_awaited_by_a_run_without_it() {
    let fleet = shared();
    write(&fleet, "3.0.0", "2.0.0");
    change_two(&fleet, |object| object["spec"]["update"]["path"] = json!("./missing"));
    let failed = fleet.run().with_status(1).json();
    assert_eq!(failed["automations"][1]["outcome"], "failed");
    write(&fleet, "3.0.0", "2.0.0");
    let left = run_one(&fleet, "one");
    assert_eq!(left["action"], "left", "{left:#}");
    assert!(left["message"].as_str().unwrap().contains(AWAITS_TWO), "{left:#}");
    check(&fleet, "2.0.0", "2.0.0", &BOTH);
    assert_eq!(run(&fleet), both_are("rebuilt"));
    check(&fleet, "3.0.0", "2.0.0", &BOTH);
    fleet.assert_sound();
}

#[test]
fn an_automation_that_renders_another_branch_now_delays_the_old_one_no_more() {
    let fleet = shared();
    write(&fleet, "3.0.0", "2.0.0");
    change_two(&fleet, |object| {
        object["metadata"]["annotations"]["tagboat.dev/push-branch"] = json!("others");
    });
    assert_eq!(run_one(&fleet, "one")["action"], "rebuilt");
    check(&fleet, "3.0.0", "1.0.0", &BOTH[1..]);
    write(&fleet, "4.0.0", "2.0.0");
    change_two(&fleet, |object| {
        object["metadata"]["annotations"].as_object_mut().unwrap().remove("tagboat.dev/push-branch");
        object["metadata"]["annotations"].as_object_mut().unwrap().remove("tagboat.dev/delivery");
    });
    assert_eq!(run_one(&fleet, "one")["action"], "rebuilt");
    fleet.assert_sound();
}

/// Each of them made the branch anew on its base, again and again.
#[test]
fn a_branch_that_two_automations_make_on_two_bases_is_refused_to_the_second() {
    let files = [file("one.yaml", line("one", "1.0.0")), file("two.yaml", line("two", "1.0.0"))];
    let fleet = RemoteFleet::of_files(&files, Settings::default());
    fleet.repository.git(["branch", "release", "main"]);
    write(&fleet, "2.0.0", "2.0.0");
    let release = |object: &mut Value| {
        object["spec"]["git"]["checkout"] = json!({"ref": {"branch": "release"}});
    };
    change_two(&fleet, release);
    let expected = "the annotation tagboat.dev/push-branch gives ImagePolicy default/two no branch: automation default/one makes the \
        branch images on main, and a branch has one base: set another name here or there";
    let refused = run_program(fleet.command().args(["--automation", "two"])).with_status(1);
    assert!(refused.errors.contains(expected), "{refused:?}");
    assert_eq!(pushes(&fleet), 0);
    // The error stays while nothing changes for the second.
    let again = fleet.run().with_status(1);
    assert!(again.errors.contains(expected), "{again:?}");
    // The base of the second moves.
    super::commit(&fleet, "release", &[file("other.yaml", "a: b\n")]);
    fleet.run().with_status(1);
    assert_eq!(pushes(&fleet), 1);
    check(&fleet, "2.0.0", "1.0.0", &BOTH[1..]);
    let conditions = fleet.status("two")["conditions"].clone();
    let mut conditions = conditions.as_array().unwrap().iter();
    let delivery = conditions.find(|condition| condition["type"] == "Delivery").unwrap();
    assert_eq!((&delivery["status"], &delivery["reason"]), (&json!("False"), &json!("InvalidBranch")));
    assert_eq!(delivery["message"], format!("{expected}; not delivered: two"));
    // Another name repairs it.
    change_two(&fleet, |object| {
        object["metadata"]["annotations"]["tagboat.dev/push-branch"] = json!("releases");
    });
    assert_eq!(run(&fleet)[1], ["releases: created"]);
    // A suspended automation keeps no name.
    write(&fleet, "2.0.0", "2.0.0");
    change_two(&fleet, release);
    let place = fleet.root().join("manifests/manifests.yaml");
    let suspended = "\"interval\":\"10m\",\"suspend\":true";
    let text = std::fs::read_to_string(place).unwrap().replacen("\"interval\":\"10m\"", suspended, 1);
    fleet.write_manifests(&text);
    assert_eq!(run_one(&fleet, "two")["action"], "rebuilt");
    assert_eq!(content(&fleet, "images", "one.yaml"), line("one", "1.0.0"));
    assert_eq!(content(&fleet, "images", "two.yaml"), line("two", "2.0.0"));
    fleet.assert_sound();
}

/// Returns the condition `Delivery` of an automation as `status reason message`.
#[track_caller]
pub(super) fn delivery(fleet: &RemoteFleet, name: &str) -> String {
    let conditions = fleet.status(name)["conditions"].clone();
    let mut conditions = conditions.as_array().unwrap().iter();
    let found = conditions.find(|condition| condition["type"] == "Delivery").unwrap();
    let text = |field: &str| found[field].as_str().unwrap();
    format!("{} {} {}", text("status"), text("reason"), text("message"))
}

/// Each of them replaced the commit of the other in every run.
#[test]
fn a_branch_that_two_automations_push_with_different_options_is_refused_to_the_second() {
    let files = [file("one.yaml", line("one", "1.0.0")), file("two.yaml", line("two", "1.0.0"))];
    let fleet = RemoteFleet::of_files(&files, Settings::default());
    write(&fleet, "2.0.0", "2.0.0");
    let options =
        |object: &mut Value| object["spec"]["git"]["push"] = json!({"options": {"ci.skip": "true"}});
    change_two(&fleet, options);
    let expected = "the annotation tagboat.dev/push-branch gives ImagePolicy default/two no branch: automation default/one makes the \
        branch images with other push options, and a branch is pushed with the options of all of its automations: set the same \
        spec.git.push.options here and there, or another name here or there";
    for _ in 0..2 {
        let refused = fleet.run().with_status(1);
        assert!(refused.errors.contains(expected), "{refused:?}");
        assert_eq!(pushes(&fleet), 1);
        check(&fleet, "2.0.0", "1.0.0", &BOTH[1..]);
    }
    assert_eq!(delivery(&fleet, "two"), format!("False InvalidBranch {expected}; not delivered: two"));
    assert_eq!(delivery(&fleet, "one"), "True Current 1 branch: images");
    // The same options repair it.
    write(&fleet, "2.0.0", "2.0.0");
    assert_eq!(run(&fleet), both_are("rebuilt"));
    check(&fleet, "2.0.0", "2.0.0", &BOTH);
    fleet.assert_sound();
}

/// The branch was left alone for ever, because the commits counted as those of others.
#[test]
fn a_branch_to_which_another_automation_pushes_is_refused() {
    let files = [file("one.yaml", line("one", "1.0.0")), file("two.yaml", line("two", "1.0.0"))];
    let fleet = RemoteFleet::of_files(&files, Settings::default());
    write(&fleet, "2.0.0", "2.0.0");
    change_two(&fleet, |object| {
        object["metadata"].as_object_mut().unwrap().remove("annotations");
        object["spec"]["git"]["push"] = json!({"branch": "images"});
    });
    let refused = fleet.run().with_status(1);
    let expected = "automation default/two has delivery push and pushes its commits to the branch images, which would be made anew \
        without them: set another name here or there";
    assert!(refused.errors.contains(expected), "{refused:?}");
    check(&fleet, "1.0.0", "2.0.0", &BOTH[..1]);
    fleet.assert_sound();
}

/// They dropped the commits of each other, because they were in different transactions.
#[test]
fn automations_that_name_their_base_in_different_ways_share_a_branch() {
    let files = [file("one.yaml", line("one", "1.0.0")), file("two.yaml", line("two", "1.0.0"))];
    let fleet = RemoteFleet::of_files(&files, Settings::default());
    write(&fleet, "2.0.0", "2.0.0");
    change_two(&fleet, |object| {
        let reference = json!({"name": "refs/heads/main", "branch": "main"});
        object["spec"]["git"]["checkout"] = json!({"ref": reference});
    });
    assert_eq!(run(&fleet), both_are("created"));
    check(&fleet, "2.0.0", "2.0.0", &BOTH);
    fleet.assert_sound();
}

/// The commit was dropped, because only a branch without any change was left alone.
#[test]
fn a_file_that_cannot_be_parsed_protects_a_branch_that_automations_share() {
    let fleet = shared();
    let before = (tip(&fleet, "images"), pushes(&fleet));
    super::commit(&fleet, "main", &[file("one.yaml", line("one", "1.0.0") + "a: [\n")]);
    let message = "branch 'images' is left alone, because it has a commit of automation default/one, for which a marked file of the \
        base cannot be parsed";
    for (tag_of_two, is_lost) in [("2.0.0", false), ("3.0.0", false), ("3.0.0", true)] {
        write(&fleet, "2.0.0", tag_of_two);
        if is_lost {
            lose_state(&fleet);
        }
        let all = fleet.run().with_status(0).json();
        for index in [0, 1] {
            let branch = &all["automations"][index]["branches"][0];
            assert_eq!(
                (&branch["action"], &branch["reason"]),
                (&json!("left"), &json!("unreadable")),
                "{all:#}"
            );
            assert_eq!(branch["message"], message);
        }
        assert_eq!((tip(&fleet, "images"), pushes(&fleet)), before, "{tag_of_two} {is_lost}");
    }
    let expected = format!(
        "False EditedByOthers {message}; the next retry is when the branch, the base or an image changes"
    );
    assert_eq!([delivery(&fleet, "one"), delivery(&fleet, "two")], [expected.clone(), expected]);
    check(&fleet, "2.0.0", "2.0.0", &BOTH);
    super::commit(&fleet, "main", &[file("one.yaml", line("one", "1.0.0"))]);
    assert_eq!(run(&fleet), both_are("rebuilt"));
    check(&fleet, "2.0.0", "3.0.0", &BOTH);
    fleet.assert_sound();
}
