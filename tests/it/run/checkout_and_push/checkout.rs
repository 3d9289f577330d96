//! Checkout references and push branches, and the status after the push.

use serde_json::{Value, json};

use crate::run::scene::Scene;
use crate::support::content::{Change, file};
use crate::support::fleet::tag_line;
use crate::support::git_host::Settings;

const NONE: [&str; 0] = [];

/// A repository whose commits differ in the file `at`.
/// The branch `main` is ahead of everything that has another name.
struct History {
    scene: Scene,
    /// The first commit, which is not the tip of a branch.
    first: String,
    /// The second commit, which tags and a pull request point to.
    second: String,
    /// The tip of `main`.
    tip: String,
}

fn at(place: &str) -> [Change; 2] {
    [file("at", place), file("app.yaml", tag_line("4.0.6"))]
}

impl History {
    fn new() -> Self {
        let scene = Scene::empty();
        let first = scene.repository.commit("main", "First", &at("first"));
        let second = scene.repository.commit("main", "Second", &at("second"));
        let tip = scene.repository.commit("main", "Tip", &at("tip"));
        scene.repository.tag("light", &second);
        scene.repository.annotated_tag("annotated", &second);
        scene.repository.tag("v1.0.0", &first);
        scene.repository.annotated_tag("v1.1.0", &second);
        scene.repository.tag("v2.0.0", &tip);
        scene.repository.git(["update-ref", "refs/pull/1/head", &second]);
        Self { scene, first, second, tip }
    }

    /// Runs with a checkout reference and a push branch.
    /// Asserts that the branch is one commit ahead of `base`.
    #[track_caller]
    fn pushes(&self, reference: &Value, push: &str, base: &str) {
        self.scene.automation(json!({"git": {"checkout": {"ref": reference}, "push": {"branch": push}}}));
        let run = self.scene.run_with_state(NONE).with_status(0);
        let log = self.scene.repository.log(push);
        assert_eq!(log[0].parents, [base], "{reference}: {run:?}");
        assert_eq!(self.scene.tag(push), "5.0.3");
        let words = format!("pushed commit '{}' to branch '{push}'", &log[0].id[..7]);
        assert!(run.output.contains(&words), "{words}: {run:?}");
        assert_eq!(self.scene.status()["lastPushCommit"], log[0].id);
    }

    fn observed(&self) -> String {
        self.scene.status()["observedSourceRevision"].as_str().unwrap().to_owned()
    }
}

#[test]
fn each_kind_of_reference_is_checked_out_and_a_push_branch_made_from_it() {
    let history = History::new();
    let _host = history.scene.serve(Settings::default());
    let History { first, second, tip, .. } = &history;
    for (name, reference, base, revision) in [
        ("branch", json!({"branch": "main"}), tip, format!("main@sha1:{tip}")),
        ("light", json!({"tag": "light"}), second, format!("light@sha1:{second}")),
        ("annotated", json!({"tag": "annotated"}), second, format!("annotated@sha1:{second}")),
        ("semver", json!({"semver": "^1"}), second, format!("v1.1.0@sha1:{second}")),
        ("name", json!({"name": "refs/heads/main"}), tip, format!("main@sha1:{tip}")),
        ("pull", json!({"name": "refs/pull/1/head"}), second, format!("1/head@sha1:{second}")),
        ("tag-name", json!({"name": "refs/tags/annotated"}), second, format!("annotated@sha1:{second}")),
        ("commit", json!({"commit": first}), first, format!("sha1:{first}")),
        ("commit-on", json!({"commit": first, "branch": "main"}), first, format!("main@sha1:{first}")),
        // The reference with precedence is the same as in Flux.
        (
            "all",
            json!({"commit": first, "name": "refs/heads/main", "tag": "light", "semver": "*", "branch": "x"}),
            first,
            format!("x@sha1:{first}"),
        ),
        (
            "no-commit",
            json!({"name": "refs/heads/main", "tag": "light", "semver": "*", "branch": "x"}),
            tip,
            format!("main@sha1:{tip}"),
        ),
        (
            "no-name",
            json!({"tag": "light", "semver": "*", "branch": "x"}),
            second,
            format!("light@sha1:{second}"),
        ),
        ("no-tag", json!({"semver": "1.0.0", "branch": "x"}), first, format!("v1.0.0@sha1:{first}")),
    ] {
        let push = format!("update/{name}");
        history.pushes(&reference, &push, base);
        assert_eq!(history.observed(), revision, "{name}");
        let again = history.scene.run_with_state(NONE).with_status(0);
        assert!(again.output.contains("no change since last reconciliation"), "{name}: {again:?}");
    }
    assert_eq!(history.scene.repository.id("main").as_ref(), Some(tip));
    history.scene.repository.assert_sound();
}

#[test]
fn the_checked_out_branch_gets_the_commit_and_is_then_the_revision() {
    for (of_source, of_automation) in [
        (json!({"branch": "main"}), json!(null)),
        (json!({"tag": "v1.0.0"}), json!({"ref": {"branch": "main"}})),
    ] {
        let history = History::new();
        let host = history.scene.serve(Settings::default());
        history.scene.source(json!({"url": host.url("fleet.git"), "ref": of_source}));
        history.scene.automation(json!({"git": {"checkout": of_automation}}));
        history.scene.run_with_state(NONE).with_status(0);
        let pushed = history.scene.repository.id("main").unwrap();
        assert_ne!(pushed, history.tip);
        assert_eq!(history.observed(), format!("main@sha1:{pushed}"));
    }
}

#[test]
fn without_any_reference_it_is_the_branch_master() {
    let scene = Scene::empty();
    let base = scene.repository.commit("master", "Begin", &at("master"));
    let host = scene.serve(Settings::default());
    scene.source(json!({"url": host.url("fleet.git"), "ref": null}));
    for branch in ["master", "other"] {
        scene.repository.move_branch("master", &base);
        scene.automation(json!({"git": {"push": {"branch": branch}}}));
        scene.run(NONE).with_status(0);
        assert_eq!(scene.tag(branch), "5.0.3");
        assert_eq!(scene.repository.log(branch)[0].parents, [base.as_str()]);
    }
}

#[test]
fn of_tags_of_one_version_the_newest_commit_counts() {
    let scene = Scene::empty();
    let mut commits = Vec::new();
    for (number, second) in [(1, 100), (2, 300), (3, 200)] {
        let stream = format!(
            "commit refs/heads/b{number}\ncommitter T <t@example.com> {second} +0000\ndata 1\nx\nM 644 inline app.yaml\ndata {}\n{}\n",
            tag_line("4.0.6").len(),
            tag_line("4.0.6")
        );
        let mut import = crate::support::git_program::git(scene.repository.path());
        crate::support::git_program::output(import.args(["fast-import", "--quiet"]), stream.as_bytes());
        commits.push(scene.repository.id(&format!("b{number}")).unwrap());
    }
    for (tag, commit) in ["v1.0.0", "1.0.0", "v1.0.0+build"].into_iter().zip(&commits) {
        scene.repository.annotated_tag(tag, commit);
    }
    let host = scene.serve(Settings::default());
    scene.source(json!({"url": host.url("fleet.git"), "ref": {"semver": "1.x"}}));
    scene.automation(json!({"git": {"push": {"branch": "update"}}}));
    scene.run_with_state(NONE).with_status(0);
    assert_eq!(scene.repository.log("update")[0].parents, [commits[1].clone()]);
    assert_eq!(scene.status()["observedSourceRevision"], format!("1.0.0@sha1:{}", commits[1]));
    let before = host.requests().len();
    let again = scene.run_with_state(NONE).with_status(0);
    assert!(again.output.contains("no change since last reconciliation"), "{again:?}");
    assert_eq!(host.requests().len() - before, 2, "{:?}", host.requests());
}

#[test]
fn an_existing_push_branch_is_built_upon() {
    let history = History::new();
    let host = history.scene.serve(Settings::default());
    let own = history.scene.repository.commit("update", "By a person", &at("of a person"));
    for reference in [json!({"branch": "main"}), json!({"tag": "light"}), json!({"commit": history.first})] {
        history.scene.repository.move_branch("update", &own);
        history.pushes(&reference, "update", &own);
        assert_eq!(history.scene.repository.file("update", "at"), b"of a person");
        history.scene.repository.assert_sound();
    }
    drop(host);
}

#[test]
fn a_branch_that_another_has_as_a_directory_is_an_error_of_the_server() {
    let history = History::new();
    let _host = history.scene.serve(Settings::default());
    history.scene.automation(json!({"git": {"push": {"branch": "main/update"}}}));
    let run = history.scene.run(NONE).with_status(1);
    assert!(run.only_error().contains("refs/heads/main/update was refused: "), "{run:?}");
}

#[test]
fn a_new_push_branch_after_the_old_one_was_merged_and_deleted() {
    let history = History::new();
    let _host = history.scene.serve(Settings::default());
    history.pushes(&json!({"branch": "main"}), "update", &history.tip);
    let merged = history.scene.repository.id("update").unwrap();
    history.scene.repository.move_branch("main", &merged);
    history.scene.repository.delete_branch("update");
    let run = history.scene.run_with_state(NONE).with_status(0);
    assert!(run.output.contains("repository up-to-date"), "{run:?}");
    assert_eq!(history.scene.repository.id("update"), None);
    history.scene.latest("5.0.4");
    history.scene.run_with_state(NONE).with_status(0);
    assert_eq!(history.scene.repository.log("update")[0].parents, [merged]);
}
