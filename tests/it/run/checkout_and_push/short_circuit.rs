//! Tests of the short circuit for runs without changes.
//! Such a run costs one listing, and each kind of change is noticed.

use serde_json::{Value, json};

use crate::run::scene::Scene;
use crate::support::content::file;
use crate::support::fleet::IMAGE;
use crate::support::git_host::{Fault, GitHost, Operation, Settings};
use crate::support::program::Run;

const NONE: [&str; 0] = [];

/// Returns the only result of a run.
#[track_caller]
fn result(run: &Run) -> Value {
    let mut results = run.json();
    assert_eq!(results["automations"].as_array().map(Vec::len), Some(1), "{run:?}");
    results["automations"][0].take()
}

#[track_caller]
fn outcome(scene: &Scene, more: &[&str]) -> String {
    let run = scene.run_with_state(["--output", "json"].iter().chain(more)).with_status(0);
    result(&run)["outcome"].as_str().unwrap().to_owned()
}

/// The requests that a run sends, a word each.
fn requests(host: &GitHost, work: impl FnOnce()) -> Vec<String> {
    let before = host.requests().len();
    work();
    let records = host.requests().split_off(before);
    let short = |record: &crate::support::git_host::Record| {
        let command = record.request.command.clone().unwrap_or_default();
        format!("{:?} {command}", record.operation.unwrap()).trim_end().to_owned()
    };
    records.iter().map(short).collect()
}

/// The requests of `git ls-remote`.
const LISTING: [&str; 2] = ["ListForFetch", "Fetch ls-refs"];

/// Specs with every kind of push target.
fn targets() -> [(&'static str, Value); 7] {
    [
        ("the checked out branch", json!({})),
        ("another branch", json!({"push": {"branch": "update"}})),
        ("a refspec", json!({"push": {"refspec": "refs/heads/main:refs/heads/copy"}})),
        ("both", json!({"push": {"branch": "update", "refspec": "+HEAD:refs/heads/copy"}})),
        ("a tag", json!({"checkout": {"ref": {"tag": "v1.0.0"}}, "push": {"branch": "update"}})),
        ("a range", json!({"checkout": {"ref": {"semver": "1.x"}}, "push": {"branch": "update"}})),
        (
            "a full name",
            json!({"checkout": {"ref": {"name": "refs/heads/main"}}, "push": {"branch": "main"}}),
        ),
    ]
}

fn scene() -> (Scene, GitHost) {
    let scene = Scene::new();
    scene.repository.annotated_tag("v1.0.0", "main");
    let host = scene.serve(Settings::default());
    (scene, host)
}

#[test]
fn an_unchanged_repository_costs_one_listing_for_any_push_target() {
    for (name, git) in targets() {
        let (scene, host) = scene();
        scene.automation(json!({"git": git}));
        assert_eq!(outcome(&scene, &[]), "pushed", "{name}");
        let before = scene.status();
        let sent = requests(&host, || assert_eq!(outcome(&scene, &[]), "skipped", "{name}"));
        assert_eq!(sent, LISTING, "{name}");
        for field in
            ["observedSourceRevision", "observedPolicies", "lastPushCommit", "lastPushTime", "conditions"]
        {
            assert_eq!(scene.status()[field], before[field], "{name}: {field}");
        }
    }
}

#[test]
fn a_run_without_changes_is_followed_by_runs_of_one_listing() {
    for (name, git) in targets() {
        let (scene, host) = scene();
        scene.latest("4.0.6");
        scene.automation(json!({"git": git}));
        assert_eq!(outcome(&scene, &[]), "unchanged", "{name}");
        let sent = requests(&host, || assert_eq!(outcome(&scene, &[]), "skipped", "{name}"));
        assert_eq!(sent, LISTING, "{name}");
    }
}

#[test]
fn a_push_by_another_author_to_any_branch_is_noticed() {
    for (name, git) in targets() {
        let is_tag =
            git["checkout"]["ref"]["tag"].is_string() || git["checkout"]["ref"]["semver"].is_string();
        for branch in ["main", "update", "copy"] {
            let (scene, _host) = scene();
            scene.automation(json!({"git": git}));
            assert_eq!(outcome(&scene, &[]), "pushed", "{name}");
            let is_of_concern = scene.repository.id(branch).is_some() && !(branch == "main" && is_tag);
            scene.repository.commit(branch, "By a person", &[file("other.yaml", "a: 1\n")]);
            let wanted = if is_of_concern { "unchanged" } else { "skipped" };
            assert_eq!(outcome(&scene, &[]), wanted, "{name}: {branch}");
            assert_eq!(outcome(&scene, &[]), "skipped", "{name}: {branch}");
        }
    }
}

#[test]
fn a_moved_tag_is_noticed() {
    let (scene, _host) = scene();
    scene.automation(json!({"git": {"checkout": {"ref": {"tag": "v1.0.0"}}, "push": {"branch": "update"}}}));
    assert_eq!(outcome(&scene, &[]), "pushed");
    scene.repository.commit("main", "Next", &[file("other.yaml", "a: 1\n")]);
    scene.repository.git(["tag", "--force", "v1.0.0", "main"]);
    assert_eq!(outcome(&scene, &[]), "unchanged");
    assert_eq!(outcome(&scene, &[]), "skipped");
}

#[test]
fn a_change_of_any_object_forces_a_run() {
    let (scene, host) = scene();
    let url = host.url("fleet.git");
    let again = |what: &str, wanted: &str, more: &[&str]| {
        assert_eq!(outcome(&scene, more), wanted, "{what}");
        assert_eq!(outcome(&scene, more), "skipped", "{what}, once more");
    };
    again("the first run", "pushed", &[]);
    scene.automation(json!({"update": {"path": "./"}}));
    again("update.path", "unchanged", &[]);
    let annotations = json!({"reconcile.fluxcd.io/requestedAt": "now"});
    scene.automation_with(
        json!({"metadata": {"annotations": annotations}, "spec": {"update": {"path": "./"}}}),
    );
    again("an annotation", "unchanged", &[]);
    scene.source(json!({"url": url, "timeout": "11s"}));
    again("the GitRepository", "unchanged", &[]);
    scene.source(json!({"url": url, "ref": {"name": "refs/heads/main", "branch": "main"}}));
    again("its reference", "unchanged", &[]);
    scene.latest("5.0.4");
    again("a policy", "pushed", &[]);
    again("a given image", "pushed", &["--latest", &format!("podinfo={IMAGE}:5.0.5")]);
    again("no given image any more", "pushed", &[]);
    assert_eq!(scene.tag("main"), "5.0.4");
    scene.repository.assert_sound();
}

/// A run that failed has not processed the new commit.
#[test]
fn a_changed_source_stays_due_after_a_failed_run() {
    let (scene, host) = scene();
    let url = host.url("fleet.git");
    assert_eq!(outcome(&scene, &[]), "pushed");
    scene.source(json!({"url": url, "timeout": "11s"}));
    host.once(Operation::ListForFetch, Fault::Status(500));
    scene.run_with_state(NONE).with_status(1);
    assert_eq!(outcome(&scene, &[]), "unchanged");
    assert_eq!(outcome(&scene, &[]), "skipped");
}

/// A changed source is not forgotten by a run of another automation.
/// Each automation has to process the new commit, whether they are run together or one by one.
#[test]
fn a_changed_source_stays_due_after_a_run_of_another_automation() {
    let (scene, host) = scene();
    let other = crate::support::manifests::automation(
        "default",
        "other",
        "  git: {commit: {author: {email: a@example.com}}}\n",
    );
    scene.write("other.yaml", &other);
    let one = |name: &str| outcome(&scene, &["--automation", name]);
    assert_eq!((one("fleet"), one("other")), ("pushed".to_owned(), "unchanged".to_owned()));
    scene.source(json!({"url": host.url("fleet.git"), "timeout": "11s"}));
    assert_eq!((one("fleet"), one("other")), ("unchanged".to_owned(), "unchanged".to_owned()));
    assert_eq!((one("fleet"), one("other")), ("skipped".to_owned(), "skipped".to_owned()));
}

/// A stalled run has processed nothing, though its status has the new generation.
#[test]
fn a_changed_spec_stays_due_after_a_stalled_run() {
    let (scene, host) = scene();
    assert_eq!(outcome(&scene, &[]), "pushed");
    scene.automation(json!({"update": {"strategy": "Setters", "path": "./elsewhere"}}));
    scene.source(json!({"url": host.url("fleet.git"), "provider": "azure", "serviceAccountName": "s"}));
    assert_eq!(scene.run_with_state(["--output", "json"]).status, Some(1));
    scene.source(json!({"url": host.url("fleet.git")}));
    let run = scene.run_with_state(["--output", "json"]);
    assert_eq!(result(&run)["outcome"], "failed", "{run:?}");
    assert!(run.errors.contains("elsewhere"), "{run:?}");
}

#[test]
fn a_lost_mirror_or_status_costs_a_run() {
    let (scene, host) = scene();
    assert_eq!(outcome(&scene, &[]), "pushed");
    let log = scene.repository.log("main");
    std::fs::remove_dir_all(scene.state().join("objects")).unwrap();
    // As if the push had not been reported.
    assert_eq!(outcome(&scene, &[]), "pushed");
    assert_eq!(scene.repository.log("main").len(), log.len());
    assert_eq!(outcome(&scene, &[]), "skipped");
    // The status alone is enough if the branch of the checkout is also the push branch.
    std::fs::remove_dir_all(scene.state().join("mirrors")).unwrap();
    let sent = requests(&host, || assert_eq!(outcome(&scene, &[]), "skipped"));
    assert_eq!(sent, LISTING);
    scene.latest("5.0.4");
    assert_eq!(outcome(&scene, &[]), "pushed");
}

#[test]
fn without_state_every_run_reads_the_repository() {
    let (scene, _host) = scene();
    for wanted in ["pushed", "unchanged", "unchanged"] {
        let run = scene.run(["--output", "json"]).with_status(0);
        assert_eq!(result(&run)["outcome"], wanted);
    }
    assert!(!scene.state().exists());
    assert_eq!(std::fs::read_dir(scene.temporary()).unwrap().count(), 0, "temporary mirrors are gone");
}

/// The status of an automation in a manifest is ignored.
/// It is that of a cluster.
#[test]
fn a_status_among_the_manifests_is_ignored() {
    let (scene, _host) = scene();
    let tip = scene.repository.id("main").unwrap();
    scene.automation_with(json!({"status": {
        "observedGeneration": 1,
        "observedSourceRevision": format!("main@sha1:{tip}"),
        "observedPolicies": {"podinfo": {"name": IMAGE, "tag": "5.0.3"}},
    }}));
    assert_eq!(outcome(&scene, &[]), "pushed");
    assert_eq!(scene.tag("main"), "5.0.3");
}

/// A failure leaves the observed and pushed revisions of the status as they were.
#[test]
fn a_failure_keeps_the_observed_revision_and_ends_ready() {
    let (scene, host) = scene();
    assert_eq!(outcome(&scene, &[]), "pushed");
    let before = scene.status();
    scene.latest("5.0.4");
    for operation in [Operation::ListForFetch, Operation::Push] {
        host.once(operation, Fault::Status(500));
        let run = scene.run_with_state(["--output", "json"]).with_status(1);
        assert_eq!(result(&run)["outcome"], "failed");
        let after = scene.status();
        for field in [
            "observedSourceRevision",
            "observedPolicies",
            "lastPushCommit",
            "lastPushTime",
            "observedGeneration",
        ] {
            assert_eq!(after[field], before[field], "{operation:?}: {field}");
        }
        let ready = after["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["type"] == "Ready")
            .unwrap()
            .clone();
        assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("GitOperationFailed")));
        let sentence = ready["message"].as_str().unwrap();
        assert_eq!(run.only_error(), format!("default/fleet: {sentence}"));
    }
    assert_eq!(outcome(&scene, &[]), "pushed");
    let tip = scene.repository.id("main").unwrap();
    assert_eq!(scene.status()["observedSourceRevision"], format!("main@sha1:{tip}"));
    assert_eq!(scene.repository.log("main").len(), 3);
}
