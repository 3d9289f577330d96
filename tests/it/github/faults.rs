//! Faults of GitHub's API while commits are signed.

use serde_json::json;

use super::scene::{GithubScene, TOKEN, line};
use crate::github::server::answer;
use crate::support::content::file;
use crate::support::http_front::Reply;

fn fleet() -> GithubScene {
    GithubScene::new(&[file("app.yaml", format!("{}\n", line("app")))], &[("app", "forge")])
}

fn message(status: u16, message: &str) -> Reply {
    answer(status, &json!({"message": message, "documentation_url": "https://docs.github.com/rest"}))
}

#[test]
fn each_fault_pushes_nothing_and_says_what_is_wrong() {
    let prefix = "default/app: failed to update source: the forge did not sign the commit: ";
    let cases: Vec<(Reply, &str)> = vec![
        (
            message(401, "Bad credentials"),
            "refuses the credentials of GitRepository default/fleet: Bad credentials",
        ),
        (
            message(403, "Resource not accessible by integration")
                .with("X-Accepted-GitHub-Permissions", "contents=write"),
            "refuses to make the tree of a commit: Resource not accessible by integration: the permission contents=write is \
             missing",
        ),
        (
            message(403, "API rate limit exceeded").with("Retry-After", "77"),
            "limits requests: the next one is sent in 77 s",
        ),
        (
            message(403, "You have exceeded a secondary rate limit"),
            "limits requests: the next one is sent in 60 s",
        ),
        (message(429, ""), "limits requests: the next one is sent in 60 s"),
        (
            message(404, "Not Found"),
            "refuses to make the tree of a commit: Not Found: the repository does not exist, or is not visible to these \
             credentials",
        ),
        (
            message(409, "Git Repository is empty."),
            "refuses to make the tree of a commit: Git Repository is empty.",
        ),
        (
            answer(
                422,
                &json!({"message": "Validation Failed", "errors": [{"message": "tree.path is too long"}]}),
            ),
            "refuses to make the tree of a commit: Validation Failed: tree.path is too long",
        ),
        (message(502, "Server Error"), "answers 502: Server Error"),
        (
            Reply::status(301).with("Location", "http://127.0.0.2:1/elsewhere"),
            "answers to make the tree of a commit with a redirect to another server, 127.0.0.2:1, which does not get the \
             credentials",
        ),
        (
            Reply::body(200, "<html>").with("Content-Type", "text/html"),
            "answers to make the tree of a commit with a page of HTML instead of JSON: check tagboat.dev/forge-url",
        ),
        (
            Reply::body(201, "{\"sha\": \"12"),
            "answers to make the tree of a commit with JSON that ends too early",
        ),
        (
            Reply::body(201, vec![b' '; 9 << 20]),
            "answers to make the tree of a commit with more than 8388608 bytes",
        ),
        (
            Reply::body(201, "{}"),
            "answers to make the tree of a commit with a response without the id of the tree",
        ),
        (
            answer(201, &json!({"sha": "0".repeat(40)})),
            "made the tree 0000000000000000000000000000000000000000 of our files, and not ",
        ),
        (
            message(400, &format!("the token {TOKEN} is bad")),
            "refuses to make the tree of a commit: the token •••• is bad",
        ),
        (
            answer(201, &json!({"sha": "x".repeat(1 << 20)})),
            "answers to make the tree of a commit with a response with a malformed id",
        ),
        (
            Reply::body(401, "<html>").with("Content-Type", "text/html"),
            "refuses the credentials of GitRepository default/fleet: status 401",
        ),
        (
            Reply::body(404, "<html>").with("Content-Type", "text/html"),
            "refuses to make the tree of a commit: 404, with a page of HTML instead of JSON: the repository does not exist, or is not visible to these credentials",
        ),
        (
            message(403, "Repository was archived so is read-only.")
                .with("X-Accepted-GitHub-Permissions", "contents=write"),
            "refuses to make the tree of a commit: Repository was archived so is read-only.: unarchive the repository, or \
             suspend the automation",
        ),
        (Reply::Gone, "cannot be reached: "),
    ];
    let fleet = fleet();
    let before = fleet.scene.repository.id("main");
    for (reply, sentence) in cases {
        fleet.github.once("git/trees", reply);
        let run = fleet.run(1);
        let told = format!("{prefix}{} {sentence}", fleet.github.address());
        assert!(run.only_error().starts_with(&told), "{sentence}: {run:?}");
        assert_eq!(fleet.scene.repository.id("main"), before, "{sentence}");
    }
    fleet.run(0);
    fleet.assert_signed(1);
}

#[test]
fn a_commit_that_is_not_ours_is_not_pushed() {
    let fleet = fleet();
    let before = fleet.scene.repository.id("main").unwrap();
    let host = fleet.github.address();
    let verification = |verified: bool| json!({"verified": verified, "reason": "x", "payload": "tree 1\n\nm", "signature": "s"});
    for (body, sentence) in [
        (
            json!({"sha": before, "verification": verification(true)}),
            format!("the forge signed another commit than ours: {before} has another tree"),
        ),
        (
            json!({"sha": "1".repeat(40), "verification": verification(true)}),
            format!("the forge signed the commit {}, but does not give it to us: ", "1".repeat(40)),
        ),
        (
            json!({"sha": "1".repeat(40), "verification": verification(false)}),
            format!("the forge did not sign the commit: {host} did not sign the commit (x): "),
        ),
        (
            json!({"sha": "1".repeat(40), "verification": {
                "verified": false, "reason": format!("{TOKEN}\n\u{202e}{}", "y".repeat(1 << 20)),
            }}),
            format!(
                "the forge did not sign the commit: {host} did not sign the commit (•••• \\u{{202e}}{}…): ",
                "y".repeat(300 - "•••• ?".chars().count()),
            ),
        ),
        (
            json!({"sha": "xyz", "verification": verification(true)}),
            format!(
                "the forge did not sign the commit: {host} answers to sign a commit with a response with a malformed id"
            ),
        ),
    ] {
        fleet.github.once("git/commits", answer(201, &body));
        let run = fleet.run(1);
        assert!(
            run.only_error().starts_with(&format!("default/app: failed to update source: {sentence}")),
            "{run:?}"
        );
        assert_eq!(fleet.scene.repository.id("main"), Some(before.clone()));
    }
}

#[test]
fn a_redirect_within_the_server_is_followed() {
    let fleet = fleet();
    fleet.github.once("git/trees", Reply::redirect("/api/v3/repos/acme/fleet/git/trees"));
    fleet.run(0);
    fleet.assert_signed(1);
}

/// The commit is fetched if its parts do not make it up.
#[test]
fn a_commit_that_cannot_be_assembled_is_fetched() {
    let fleet = fleet();
    fleet.scene.repository.configure("uploadpack.allowAnySHA1InWant", "true");
    fleet.github.garble_payload();
    fleet.run(0);
    fleet.assert_signed(1);
}
