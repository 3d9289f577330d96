//! Commits of automations' own branches that GitHub signs.

use serde_json::json;

use super::scene::{GithubScene, line};
use crate::github::server::answer;
use crate::support::content::file;
use crate::support::git_host::{Fault, Operation};
use crate::support::git_program::{git, output};

/// The policies `p0`, `p1`, … of one automation.
fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("p{number}")).collect()
}

fn branch(name: &str) -> String {
    format!("images/{name}")
}

/// A fleet whose automation `app` has a branch for each of its policies.
fn fleet(count: usize, signed_by: &str) -> GithubScene {
    let files: Vec<_> =
        names(count).iter().map(|name| file(format!("{name}.yaml"), format!("{}\n", line(name)))).collect();
    let fleet = GithubScene::new(&files, &[]);
    let annotations = json!({
        "tagboat.dev/delivery": "branch", "tagboat.dev/push-branch": "images/{{ .Policy.Name }}",
        "tagboat.dev/signed-by": signed_by,
    });
    fleet.write_automation("app", &annotations, json!({}));
    select(&fleet, count, "2.0.0");
    fleet
}

/// Gives all policies a new tag.
fn select(fleet: &GithubScene, count: usize, tag: &str) {
    names(count).iter().for_each(|name| fleet.policy_of("app", name, tag));
}

fn tips(fleet: &GithubScene, count: usize) -> Vec<String> {
    names(count).iter().filter_map(|name| fleet.scene.repository.id(&branch(name))).collect()
}

#[test]
fn each_branch_has_a_signed_commit_and_is_kept_after_the_state_is_lost() {
    let fleet = fleet(3, "forge");
    fleet.run(0);
    let before = tips(&fleet, 3);
    for name in names(3) {
        fleet.assert_signed_on(&branch(&name), 1);
        assert_eq!(fleet.scene.repository.log(&branch(&name)).len(), 2);
    }
    assert_eq!(fleet.calls(), (3, 0, 3));
    assert_eq!(fleet.condition("app", "CommitsSigned").unwrap().0, "True");
    std::fs::remove_dir_all(fleet.scene.state()).unwrap();
    fleet.run(0);
    assert_eq!((tips(&fleet, 3), fleet.calls()), (before, (3, 0, 3)));
    // Once for all branches, GitHub tells for which App it signed.
    assert_eq!(fleet.github.queries(), 1);
    // They are still ours, so that a new image rebuilds them.
    std::fs::remove_dir_all(fleet.scene.state()).unwrap();
    select(&fleet, 3, "3.0.0");
    fleet.run(0);
    assert_eq!(fleet.calls(), (6, 0, 6));
    for name in names(3) {
        fleet.assert_signed_on(&branch(&name), 1);
        assert_eq!(fleet.scene.repository.log(&branch(&name)).len(), 2);
    }
}

/// Makes a commit on the branch of `p0` that GitHub signed for another App.
fn commit_of_renovate(fleet: &GithubScene) -> String {
    let repository = &fleet.scene.repository;
    let changed = file("p0.yaml", format!("{}\n", line("p0").replace("1.0.0", "2.5.0")));
    let commit = repository.commit(&branch("p0"), "Update p0", &[changed]);
    let text = String::from_utf8(repository.git(["cat-file", "commit", &commit])).unwrap();
    let person = "Tester <tester@example.com>";
    let renovate = "renovate[bot] <29139614+renovate[bot]@users.noreply.github.com>";
    let text = text.replacen(person, renovate, 1).replacen(person, "GitHub <noreply@github.com>", 1);
    assert!(text.contains(renovate), "{text}");
    let write = ["hash-object", "-t", "commit", "-w", "--stdin"];
    let made = output(git(repository.path()).args(write), text.as_bytes());
    let made = String::from_utf8(made).unwrap().trim().to_owned();
    repository.move_branch(&branch("p0"), &made);
    made
}

/// A commit of each App counted as ours; without the push journal, it still did.
#[test]
fn a_commit_of_another_app_is_not_overwritten() {
    for has_state in [true, false] {
        let fleet = fleet(2, "forge");
        fleet.run(0);
        let commit = commit_of_renovate(&fleet);
        if !has_state {
            std::fs::remove_dir_all(fleet.scene.state()).unwrap();
        }
        select(&fleet, 2, "3.0.0");
        fleet.run(0);
        let repository = &fleet.scene.repository;
        assert_eq!(repository.id(&branch("p0")), Some(commit));
        assert_eq!(repository.log(&branch("p1")).len(), 2);
        fleet.assert_signed_on(&branch("p1"), 1);
        assert_eq!(fleet.github.queries(), usize::from(!has_state));
    }
}

#[test]
fn without_a_state_no_commit_of_an_app_is_ours_until_github_tells_the_app() {
    let fleet = fleet(2, "forge");
    fleet.run(0);
    std::fs::remove_dir_all(fleet.scene.state()).unwrap();
    select(&fleet, 2, "3.0.0");
    let before = tips(&fleet, 2);
    fleet.github.once("graphql", answer(502, &json!({"message": "Bad Gateway"})));
    let run = fleet.run(0);
    assert!(run.output.contains("it is unknown for which App the forge signs"), "{run:?}");
    assert_eq!((tips(&fleet, 2), fleet.calls(), fleet.github.queries()), (before, (2, 0, 2), 1));
    fleet.run(0);
    names(2).iter().for_each(|name| fleet.assert_signed_on(&branch(name), 1));
    assert_eq!((fleet.calls(), fleet.github.queries()), ((4, 0, 4), 2));
}

/// The token of a person signs nothing, so that no signed commit can be ours.
#[test]
fn commits_of_an_app_are_those_of_others_for_the_token_of_a_person() {
    let fleet = fleet(2, "forge-or-key");
    fleet.run(0);
    std::fs::remove_dir_all(fleet.scene.state()).unwrap();
    select(&fleet, 2, "3.0.0");
    fleet.github.demote();
    let before = tips(&fleet, 2);
    fleet.run(0);
    assert_eq!(tips(&fleet, 2), before);
}

#[test]
fn twenty_five_branches_are_signed_for_a_push() {
    let fleet = fleet(27, "forge");
    let run = fleet.run(0);
    assert_eq!(fleet.calls(), (27, 0, 27));
    assert_eq!(fleet.host.requests_for(Operation::Push).len(), 2);
    for name in names(27) {
        fleet.assert_signed_on(&branch(&name), 1);
        assert!(run.output.contains(&format!("'{}'", branch(&name))), "{run:?}");
    }
}

#[test]
fn the_commits_of_a_shared_branch_are_signed_below_those_with_a_key() {
    let files = [file("app.yaml", format!("{}\n{}\n{}\n", line("a"), line("b"), line("c")))];
    let fleet = GithubScene::new(&files, &[]);
    for (name, signed_by) in [("a", "key"), ("b", "forge"), ("c", "forge-or-key")] {
        let annotations = json!({
            "tagboat.dev/delivery": "branch", "tagboat.dev/push-branch": "images/all",
            "tagboat.dev/signed-by": signed_by,
        });
        fleet.write_automation(name, &annotations, json!({}));
        fleet.policy(name, "2.0.0");
    }
    fleet.run(0);
    let log = fleet.scene.repository.log("images/all");
    assert_eq!(log.len(), 4);
    assert_eq!(log[0].author, "a <bot@example.com>");
    for commit in &log[1..3] {
        fleet.github.home.assert_signed(&fleet.scene, &commit.id, &fleet.github.key);
    }
    assert_eq!(fleet.host.requests_for(Operation::Push).len(), 1);
    let before = fleet.scene.repository.id("images/all");
    fleet.run(0);
    assert_eq!(fleet.scene.repository.id("images/all"), before);
}

/// A commit that is signed anew is another one.
#[test]
fn signed_branches_of_a_push_without_a_reply_are_pushed_again_and_not_signed_anew() {
    let fleet = fleet(2, "forge");
    fleet.host.always(Operation::Push, Fault::Reset);
    fleet.run(1);
    assert_eq!(fleet.calls(), (2, 0, 2));
    fleet.host.heal();
    fleet.run(0);
    assert_eq!(fleet.calls(), (2, 0, 2));
    names(2).iter().for_each(|name| fleet.assert_signed_on(&branch(name), 1));
}

#[test]
fn a_forge_that_does_not_sign_stops_the_branches_that_need_it() {
    for (signed_by, status) in [("forge", 1), ("forge-or-key", 0)] {
        let fleet = fleet(2, signed_by);
        let refusal =
            json!({"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest"});
        fleet.github.once("git/trees", answer(401, &refusal));
        let run = fleet.run(status);
        let pushed = tips(&fleet, 2).len();
        if signed_by == "forge" {
            assert!(run.only_error().contains("the forge did not sign the commit"), "{run:?}");
            assert_eq!(pushed, 0);
            fleet.run(0);
            names(2).iter().for_each(|name| fleet.assert_signed_on(&branch(name), 1));
        } else {
            assert!(run.errors.contains("our own commits are pushed"), "{run:?}");
            assert_eq!(pushed, 2);
            assert_eq!(fleet.scene.repository.log("images/p0")[0].author, "app <bot@example.com>");
        }
    }
}
