//! Delivery by branch: the automation's own branches on a real git server.

mod kills;
mod many;
mod ownership;
mod refresh;
mod shared;
mod shared_images;
mod shared_waits;
mod stale;

use serde_json::{Value, json};

use crate::support::bare_repository::LoggedCommit;
use crate::support::content::{Change, file};
use crate::support::fleet::{IMAGE, tag_line};
use crate::support::git_host::{Operation, Settings};
use crate::support::manifests::policy;
use crate::support::program::Run;
use crate::support::remote_fleet::{RemoteFleet, git_repository};

/// The branch of the automation `default/fleet` without a path.
const BRANCH: &str = "tagboat/default-fleet";

/// An automation with delivery by branch, and its manifests.
struct Automation {
    name: &'static str,
    author: &'static str,
    path: &'static str,
    annotations: Value,
}

impl Automation {
    fn new(annotations: Value) -> Self {
        Self { name: "fleet", author: "Tagboat", path: "./", annotations }
    }

    /// The manifest; `annotations` are added to the delivery.
    fn manifest(&self) -> String {
        let mut annotations = json!({"tagboat.dev/delivery": "branch"});
        for (name, value) in self.annotations.as_object().unwrap() {
            annotations[format!("tagboat.dev/{name}")] = value.clone();
        }
        let object = json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1",
            "kind": "ImageUpdateAutomation",
            "metadata": {"namespace": "default", "name": self.name, "annotations": annotations},
            "spec": {
                "interval": "10m",
                "sourceRef": {"kind": "GitRepository", "name": "fleet"},
                "git": {"commit": {"author": {"name": self.author, "email": "bot@example.com"}}},
                "update": {"strategy": "Setters", "path": self.path},
            },
        });
        format!("---\n{object}\n")
    }
}

/// Writes the manifests of automations, and of the policy `podinfo` with this tag.
fn write(fleet: &RemoteFleet, automations: &[Automation], tag: &str) {
    let mut text =
        policy("default", "podinfo", IMAGE, tag) + &git_repository(&fleet.host.url("fleet.git"), "");
    text.extend(automations.iter().map(Automation::manifest));
    fleet.write_manifests(&text);
}

/// A fleet with one marked file, and an automation with delivery by branch.
fn fleet(annotations: Value) -> RemoteFleet {
    let fleet = RemoteFleet::of_files(&[file("app.yaml", tag_line("4.0.6"))], Settings::default());
    write(&fleet, &[Automation::new(annotations)], "5.0.3");
    fleet
}

/// Runs, and returns the branches of the first automation in the report.
#[track_caller]
fn run(fleet: &RemoteFleet) -> Value {
    report(&fleet.run())["branches"].clone()
}

#[track_caller]
fn report(run: &Run) -> Value {
    assert_eq!((run.status, run.errors.as_str()), (Some(0), ""), "{run:?}");
    let all: Value = serde_json::from_str(&run.output).unwrap();
    all["automations"][0].clone()
}

/// The actions of a report, as `branch: action`.
fn actions(branches: &Value) -> Vec<String> {
    let text = |branch: &Value, member: &str| branch[member].as_str().unwrap().to_owned();
    let branches = branches.as_array().map(Vec::as_slice).unwrap_or_default();
    branches.iter().map(|one| format!("{}: {}", text(one, "branch"), text(one, "action"))).collect()
}

/// The commits of a branch that `main` does not have, the newest first.
fn beyond(fleet: &RemoteFleet, branch: &str) -> Vec<LoggedCommit> {
    let main: Vec<String> = fleet.repository.log("main").into_iter().map(|commit| commit.id).collect();
    let mut commits = fleet.repository.log(&format!("refs/heads/{branch}"));
    commits.retain(|commit| !main.contains(&commit.id));
    commits
}

#[track_caller]
fn content(fleet: &RemoteFleet, revision: &str, path: &str) -> String {
    String::from_utf8(fleet.repository.file(revision, path)).unwrap()
}

fn tip(fleet: &RemoteFleet, branch: &str) -> Option<String> {
    fleet.repository.id(&format!("refs/heads/{branch}"))
}

fn pushes(fleet: &RemoteFleet) -> usize {
    fleet.host.requests_for(Operation::Push).len()
}

/// Commits as a person, on top of a branch.
fn commit(fleet: &RemoteFleet, branch: &str, changes: &[Change]) -> String {
    fleet.repository.commit(branch, "By hand", changes)
}

/// Forgets everything that earlier runs knew.
fn lose_state(fleet: &RemoteFleet) {
    std::fs::remove_dir_all(fleet.state()).unwrap();
}

/// The condition `Delivery` of a status, as `Status Reason message`.
fn delivery(fleet: &RemoteFleet) -> Option<String> {
    let status = fleet.status("fleet");
    let mut conditions = status["conditions"].as_array().unwrap().iter();
    let found = conditions.find(|condition| condition["type"] == "Delivery")?;
    let text = |member: &str| found[member].as_str().unwrap();
    Some(format!("{} {} {}", text("status"), text("reason"), text("message")))
}

#[test]
fn a_branch_is_the_tip_of_the_base_and_one_commit() {
    let fleet = fleet(json!({}));
    let base = fleet.tip();
    let branches = run(&fleet);
    assert_eq!(actions(&branches), [format!("{BRANCH}: created")]);
    assert_eq!(fleet.tip(), base);
    let own = beyond(&fleet, BRANCH);
    assert_eq!(own.len(), 1);
    assert_eq!((&own[0].parents, own[0].author.as_str()), (&vec![base.clone()], "Tagboat <bot@example.com>"));
    assert_eq!(content(&fleet, BRANCH, "app.yaml"), tag_line("5.0.3"));
    let (reported, id) = (&branches[0], own[0].id.as_str());
    assert_eq!(
        (&reported["commit"], &reported["tip"], &reported["base"]),
        (&json!(id), &json!(id), &json!("main"))
    );
    let status = fleet.status("fleet");
    assert_eq!(status["lastPushCommit"], id);
    assert_eq!(status["observedSourceRevision"], format!("main@sha1:{base}"));
    assert_eq!(delivery(&fleet).unwrap(), format!("True Current 1 branch: {BRANCH}"));
    // The next run lists the remote and does nothing else.
    let requests = fleet.host.requests().len();
    let report = report(&fleet.run());
    assert_eq!(report["message"], "no change since last reconciliation");
    assert_eq!(fleet.host.requests().len(), requests + 2, "{:?}", fleet.host.requests());
    fleet.assert_sound();
}

/// The report said that nothing was left to change.
#[test]
fn a_branch_stays_while_a_file_of_its_base_cannot_be_parsed() {
    let fleet = fleet(json!({}));
    assert_eq!(actions(&run(&fleet)), [format!("{BRANCH}: created")]);
    let before = tip(&fleet, BRANCH);
    commit(&fleet, "main", &[file("app.yaml", format!("{}a: [\n", tag_line("4.0.6")))]);
    let branch = run(&fleet)[0].clone();
    assert_eq!((&branch["action"], &branch["reason"]), (&json!("left"), &json!("unreadable")));
    let message = format!("branch '{BRANCH}' is left alone while a marked file of its base cannot be parsed");
    assert_eq!(branch["message"], message);
    assert!(delivery(&fleet).unwrap().starts_with("True Current 1 branch: "), "{:?}", delivery(&fleet));
    assert_eq!(tip(&fleet, BRANCH), before);
    commit(&fleet, "main", &[file("app.yaml", tag_line("5.0.3"))]);
    assert_eq!(run(&fleet)[0]["reason"], "nothing-left");
}

#[test]
fn a_dry_run_says_what_it_would_push() {
    let fleet = fleet(json!({}));
    let report = report(&crate::support::program::run(fleet.command().arg("--dry-run")));
    assert_eq!(actions(&report["branches"]), [format!("{BRANCH}: created")]);
    assert_eq!(report["outcome"], "dry-run");
    assert!(report["diff"].as_str().unwrap().contains("+tag: 5.0.3"), "{report:#}");
    assert_eq!((tip(&fleet, BRANCH), pushes(&fleet)), (None, 0));
}

#[test]
fn the_text_has_a_line_for_each_branch() {
    let fleet = fleet(json!({}));
    let printed = |fleet: &RemoteFleet| {
        let mut command = crate::support::program::tagboat();
        command.env("TMPDIR", fleet.root().join("temporary"));
        command.arg("run").arg(fleet.root().join("manifests")).arg("--state").arg(fleet.state());
        crate::support::program::run(&mut command).output
    };
    let text = printed(&fleet);
    let pushed = format!("pushed commit '{}' to branch '{BRANCH}'\n", &tip(&fleet, BRANCH).unwrap()[..7]);
    assert!(text.contains(&pushed), "{text}");
    commit(&fleet, "main", &[file("other.yaml", "a: b\n")]);
    assert!(printed(&fleet).contains(&format!("branch '{BRANCH}' is up-to-date\n")));
}

/// The push was printed twice, and the run without one said `Would change`.
#[test]
fn a_push_of_a_branch_is_printed_once_and_a_kept_branch_is_no_dry_run() {
    let fleet = fleet(json!({}));
    let printed = |fleet: &RemoteFleet| {
        let mut command = crate::support::program::tagboat();
        command.env("TMPDIR", fleet.root().join("temporary"));
        command.arg("run").arg(fleet.root().join("manifests")).arg("--state").arg(fleet.state());
        crate::support::program::run(&mut command).output
    };
    let text = printed(&fleet);
    assert_eq!(text.matches("pushed commit '").count(), 1, "{text}");
    assert!(text.contains("\nChanged 1 value in 1 file;"), "{text}");
    commit(&fleet, "main", &[file("other.yaml", "a: b\n")]);
    let text = printed(&fleet);
    assert!(text.contains("\nStill to change: 1 value in 1 file;"), "{text}");
}

#[test]
fn an_automation_that_cannot_have_branches_stalls() {
    let fleet = fleet(json!({"push-branch": "main"}));
    let run = fleet.run();
    assert_eq!(run.status, Some(1));
    assert!(run.errors.contains("main"), "{run:?}");
    let condition = delivery(&fleet).unwrap();
    assert!(condition.starts_with("False InvalidBranch"), "{condition}");
    assert_eq!(pushes(&fleet), 0);
}

/// Both asked for a push branch.
#[test]
fn a_base_may_have_its_full_name_and_is_no_tag() {
    let fleet = fleet(json!({}));
    let tip = fleet.repository.id("main").unwrap();
    fleet.repository.git(["tag", "v1", &tip]);
    let checking_out = |reference: &str| {
        let source = git_repository(&fleet.host.url("fleet.git"), "").replace("branch: main", reference);
        let automation = Automation::new(json!({})).manifest();
        fleet.write_manifests(&(policy("default", "podinfo", IMAGE, "5.0.3") + &source + &automation));
        fleet.run()
    };
    let refused = checking_out("tag: v1");
    assert_eq!(refused.status, Some(1), "{refused:?}");
    let expected = "branches are made on a branch, and tag v1 is checked out: name a branch in";
    assert!(refused.errors.contains(expected), "{refused:?}");
    let pushed = report(&checking_out("name: refs/heads/main"))["branches"].clone();
    assert_eq!(actions(&pushed), [format!("{BRANCH}: created")]);
}

/// Git would make a branch `refs/heads/refs/heads/x` of the first.
#[test]
fn a_name_that_is_no_branch_is_refused_with_a_sentence() {
    for (name, expected) in [
        (
            "refs/heads/x",
            "the template renders to \"refs/heads/x\", and a branch has a name without refs/heads/",
        ),
        ("HEAD", "the template renders to HEAD, by which git means what is checked out"),
    ] {
        let fleet = fleet(json!({"push-branch": name}));
        let run = fleet.run();
        assert_eq!(run.status, Some(1), "{run:?}");
        assert!(run.errors.contains(expected), "{run:?}");
        let condition = delivery(&fleet).unwrap();
        assert!(condition.starts_with("False InvalidBranch") && condition.contains(expected), "{condition}");
        assert_eq!(pushes(&fleet), 0);
    }
}
