//! Pushes whose result no run learned, and values that others took back.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::reverts::{pushed, run};
use super::scene::Scene;
use super::waiting::annotated;
use crate::support::content::file;
use crate::support::git_host::{Fault, Operation, Settings};

/// Such a push counted as lost, and its images were written over the revert.
#[test]
fn a_push_whose_status_was_lost_is_the_baseline_after_a_force_push_removed_it() {
    // The revert is the tip before the push, or another commit on it.
    for is_other in [false, true] {
        let scene = Scene::new();
        let _host = scene.serve(Settings::default());
        annotated(&scene, &json!({"tagboat.dev/on-revert": "hold"}));
        assert_eq!(run(&scene)["outcome"], "pushed");
        let place = scene.state().join("objects/ImageUpdateAutomation/default/fleet.json");
        let (before, tip) = (fs::read(&place).unwrap(), scene.repository.id("main").unwrap());
        scene.latest("6.0.0");
        assert_eq!(run(&scene)["outcome"], "pushed");
        fs::write(&place, before).unwrap();
        // The process was killed before it learned that the push arrived.
        undecided(&scene);
        scene.repository.move_branch("main", &tip);
        if is_other {
            scene.repository.commit("main", "Other", &[file("note.txt", "x")]);
        }
        let report = run(&scene);
        assert_eq!(report["held"][0]["image"], "ghcr.io/stefanprodan/podinfo:6.0.0", "{report:#}");
        assert_eq!(run(&scene)["held"][0]["value"], "5.0.3");
        assert_eq!(scene.tag("main"), "5.0.3");
        scene.latest("7.0.0");
        assert_eq!(run(&scene)["outcome"], "pushed");
        assert_eq!(scene.tag("main"), "7.0.0");
    }
}

/// Makes the push journal as it was before the answer to the last push.
fn undecided(scene: &Scene) {
    let mirrors = fs::read_dir(scene.state().join("mirrors")).unwrap();
    let mut journals = mirrors.map(|mirror| mirror.unwrap().path().join("push-journal.json"));
    let path = journals.find(|path| path.is_file()).unwrap();
    let mut journal: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let pending = journal["pending"].as_object_mut().unwrap();
    assert_eq!(pending.len(), 1, "{pending:?}");
    for push in pending.values_mut() {
        push["isBranchDone"] = json!(false);
    }
    fs::write(&path, journal.to_string()).unwrap();
}

/// The server keeps the commit of such a push, which counted as taken back.
#[test]
fn a_push_that_lost_a_race_at_the_lock_is_not_taken_back() {
    let scene = pushed("hold");
    let before = scene.repository.id("main").unwrap();
    let other = scene.repository.commit("main", "Other", &[file("note.txt", "x")]);
    scene.repository.move_branch("main", &before);
    // Another push arrives while the server works on ours.
    let first = scene.root().join("first");
    fs::write(&first, "").unwrap();
    let first = first.display();
    let race = format!("[ ! -e '{first}' ] || {{ rm '{first}'; git update-ref refs/heads/main {other}; }}");
    scene.repository.hook("update", &race);
    scene.latest("6.0.0");
    let report = run(&scene);
    assert_eq!((&report["outcome"], report.get("held")), (&json!("pushed"), None), "{report:#}");
    assert_eq!(scene.tag("main"), "6.0.0");
    assert_eq!(scene.repository.id("main~1").unwrap(), other);
}

/// Its answer was lost, and the branch was listed without it.
#[test]
fn a_push_that_a_hook_refused_without_an_answer_is_not_taken_back() {
    for mode in ["hold", "pause"] {
        let scene = Scene::new();
        let host = scene.serve(Settings::default());
        annotated(&scene, &json!({"tagboat.dev/on-revert": mode}));
        assert_eq!(run(&scene)["outcome"], "pushed");
        scene.repository.hook("update", "exit 1");
        host.always(Operation::Push, Fault::ResetAfterwards);
        scene.latest("6.0.0");
        scene.run_with_state(["--output", "json"]).with_status(1);
        host.heal();
        scene.repository.hook("update", "exit 0");
        let report = run(&scene);
        assert_eq!((&report["outcome"], report.get("held")), (&json!("pushed"), None), "{report:#}");
        assert_eq!(scene.tag("main"), "6.0.0");
    }
}

/// Such a push cannot be told from one that a force push removed.
#[test]
fn a_push_that_a_hook_refused_after_a_kill_counts_as_taken_back_until_the_next_image() {
    let scene = pushed("hold");
    let [begun, go] = ["begun", "go"].map(|name| scene.root().join(name));
    let script = format!(
        "touch '{}'; while [ ! -e '{}' ]; do sleep 0.02; done; exit 1",
        begun.display(),
        go.display()
    );
    scene.repository.hook("update", &script);
    scene.latest("6.0.0");
    let mut command = scene.command();
    command.arg("--state").arg(scene.state());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !begun.exists() {
        assert!(child.try_wait().unwrap().is_none(), "the run ended before its push");
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(&go, "").unwrap();
    // The next run waits for the mirror, which git has until its push ends.
    let report = run(&scene);
    assert_eq!(report["held"][0]["image"], "ghcr.io/stefanprodan/podinfo:6.0.0", "{report:#}");
    assert_eq!(scene.tag("main"), "5.0.3");
    scene.repository.hook("update", "exit 0");
    scene.latest("7.0.0");
    assert_eq!(run(&scene)["outcome"], "pushed");
    assert_eq!(scene.tag("main"), "7.0.0");
}
