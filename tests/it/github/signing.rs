//! Commits that GitHub signs and git pushes.

use serde_json::json;

use super::scene::{GithubScene, line};
use crate::signing::GpgHome;
use crate::support::content::{Content, change, file};
use crate::support::git_host::{Fault, Operation};
use crate::support::http_front::{Front, Reply};

/// The private key of a GitHub App.
const APP_KEY: &str = include_str!("../../../testdata/clouds/google-key.pem");

/// A file above the size that is sent within a tree.
fn large(name: &str) -> String {
    let padding = format!("  {}\n", "x".repeat(1021)).repeat(2048);
    format!("{}\npadding: |\n{padding}", line(name))
}

#[test]
fn commits_of_several_automations_are_signed_and_pushed_once() {
    for description in ["github.json", "github-enterprise-3.19.json"] {
        let files = [
            change("run.yaml", Content::Executable(format!("#!/bin/app\n{}\n", line("exec")).into_bytes())),
            file("dos.yaml", format!("first: 1\r\n{}\r\n", line("dos"))),
            file("deep/er/large.yaml", large("large")),
            file("other.yaml", "untouched\n"),
        ];
        let automations = [("exec", "forge"), ("dos", "forge"), ("large", "forge-or-key")];
        let fleet = GithubScene::at(&files, &automations, description);
        let run = fleet.run(0);
        assert_eq!(run.errors, "");
        fleet.assert_signed(3);
        let log = fleet.scene.repository.log("main");
        assert_eq!(log.len(), 4);
        assert!(log[..3].iter().all(|commit| commit.message.ends_with("\n\nWith a body.\n")), "{log:?}");
        assert_eq!(fleet.host.requests_for(Operation::Push).len(), 1);
        assert_eq!(fleet.calls(), (3, 1, 3));
        let tree = fleet.scene.repository.tree("main");
        assert!(
            matches!(&tree[&b"run.yaml"[..]], Content::Executable(text) if text.starts_with(b"#!/bin/app\nexec: 2.0.0 "))
        );
        assert!(
            matches!(&tree[&b"dos.yaml"[..]], Content::File(text) if text.starts_with(b"first: 1\r\ndos: 2.0.0 "))
        );
        assert!(
            matches!(&tree[&b"deep/er/large.yaml"[..]], Content::File(text) if text.len() == large("large").len())
        );
        let signed = fleet.condition("exec", "CommitsSigned").unwrap();
        assert_eq!((signed.0.as_str(), signed.1.as_str()), ("True", "SignedByForge"));
        // Nothing is left to sign.
        fleet.run(0);
        assert_eq!(fleet.calls(), (3, 1, 3));
    }
}

/// GitHub signs for Apps only.
#[test]
fn without_a_signature_nothing_is_pushed_or_our_own_commit_is() {
    let files = [file("app.yaml", format!("{}\n{}\n", line("must"), line("may")))];
    let fleet = GithubScene::new(&files, &[("must", "forge"), ("may", "forge-or-key")]);
    let home = GpgHome::new();
    let key = home.key("ed25519", "sign", "");
    fleet.scene.secret("key", json!({"stringData": {"git.asc": home.secret_key(&key, "")}}));
    fleet.automation("may", "forge-or-key", json!({"secretRef": {"name": "key"}}));
    fleet.github.demote();
    let run = fleet.run(1);
    let reason = format!(
        "the forge did not sign the commit: {} did not sign the commit (unsigned): it signs for the token of a GitHub App or of \
         GitHub Actions only; the credentials are those of GitRepository default/fleet",
        fleet.github.address()
    );
    assert!(run.errors.contains(&format!("default/must: failed to update source: {reason}")), "{run:?}");
    let warning =
        format!("warning: default/may: our own commits are pushed instead of commits of the forge: {reason}");
    assert!(run.errors.contains(&warning), "{run:?}");
    let log = fleet.scene.repository.log("main");
    assert_eq!(log.len(), 2);
    assert_eq!(log[0].author, "may <bot@example.com>");
    home.assert_signed(&fleet.scene, "main", &key);
    let unsigned = fleet.condition("may", "CommitsSigned").unwrap();
    let message = format!("our own commits are pushed instead of commits of the forge: {reason}");
    assert_eq!(unsigned, ("False".to_owned(), "NotSignedByForge".to_owned(), message));
    // One failed call for the whole transaction.
    assert_eq!(fleet.calls(), (1, 0, 1));
}

#[test]
fn a_key_or_another_forge_stalls_an_automation_that_must_be_signed() {
    let files = [file("app.yaml", format!("{}\n", line("app")))];
    let fleet = GithubScene::new(&files, &[("app", "forge")]);
    let before = fleet.scene.repository.id("main");
    fleet.automation("app", "forge", json!({"secretRef": {"name": "key"}}));
    let key = "annotation tagboat.dev/signed-by is `forge`, and spec.git.commit.signingKey names a key: remove one of them, \
               or write `forge-or-key`";
    assert_eq!(fleet.run(1).only_error(), format!("default/app: {key}"));
    let stalled = fleet.condition("app", "Stalled").unwrap();
    assert_eq!(stalled, ("True".to_owned(), "InvalidSourceConfiguration".to_owned(), key.to_owned()));
    fleet.automation("app", "forge", json!({}));
    for (annotations, sentence) in [
        (
            json!({"tagboat.dev/forge": "gitlab"}),
            "annotation tagboat.dev/signed-by is `forge`, and gitlab does not sign commits",
        ),
        (json!({}), "the forge of GitRepository default/fleet cannot be used: the host 127.0.0.1:"),
    ] {
        fleet.source(&annotations);
        let run = fleet.run(1);
        assert!(run.only_error().starts_with(&format!("default/app: {sentence}")), "{run:?}");
        assert_eq!(fleet.condition("app", "Stalled").unwrap().0, "True");
    }
    assert_eq!(fleet.scene.repository.id("main"), before);
    // The annotation has the value that it was written with.
    fleet.source(&json!({"tagboat.dev/forge": "gitlab"}));
    fleet.automation("app", "forge-or-key", json!({}));
    let told = "commits of the forge: annotation tagboat.dev/signed-by is `forge-or-key`, and gitlab does not sign commits";
    let run = fleet.scene.run_with_state(["--dry-run"]).with_status(0);
    assert!(run.errors.contains(told), "{run:?}");
    // A key works at any forge.
    fleet.source(&json!({}));
    let run = fleet.run(0);
    assert!(run.errors.contains("warning: default/app: our own commits are pushed"), "{run:?}");
    assert_eq!(fleet.scene.repository.log("main")[0].author, "app <bot@example.com>");
    assert_eq!(fleet.calls(), (0, 0, 0));
}

#[test]
fn the_secret_of_the_annotation_comes_before_the_login_of_git() {
    let files = [file("app.yaml", format!("{}\n", line("app")))];
    let fleet = GithubScene::new(&files, &[("app", "forge")]);
    let annotations = json!({"tagboat.dev/forge": "github", "tagboat.dev/forge-secret": "api"});
    fleet.source(&annotations);
    fleet.scene.secret("api", json!({"stringData": {"token": "ghs_planted_of_another"}}));
    let run = fleet.run(1);
    let refused =
        format!("{} refuses the credentials of Secret default/api: Bad credentials", fleet.github.address());
    assert!(run.only_error().ends_with(&refused), "{run:?}");
    fleet.scene.secret("api", json!({"stringData": {"username": "x"}}));
    let nothing = "has no login: give a `token`, or `username` and `password`, or the keys of a GitHub App";
    assert!(fleet.run(1).only_error().ends_with(nothing));
    fleet.scene.secret("api", json!({"stringData": {"token": super::scene::TOKEN}}));
    fleet.run(0);
    fleet.assert_signed(1);
}

#[test]
fn a_github_app_in_the_secret_of_the_annotation_signs_with_a_token_for_the_repository() {
    let tokens = Front::alone(|request| {
        let is_token = (request.method.as_str(), request.path.as_str())
            == ("POST", "/app/installations/8/access_tokens");
        let expires_at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3600);
        let body = json!({"token": super::scene::TOKEN, "expires_at": expires_at.to_string()});
        Reply::body(if is_token { 201 } else { 404 }, body.to_string())
    });
    let files = [file("app.yaml", format!("{}\n", line("app")))];
    let fleet = GithubScene::new(&files, &[("app", "forge")]);
    fleet.source(&json!({"tagboat.dev/forge": "github", "tagboat.dev/forge-secret": "app"}));
    let mut app = json!({
        "githubAppID": "7", "githubAppInstallationID": "8", "githubAppPrivateKey": APP_KEY,
        "githubAppBaseURL": tokens.url("/"),
    });
    fleet.scene.secret("app", json!({"stringData": app}));
    fleet.run(0);
    fleet.assert_signed(1);
    let requests = tokens.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].body, br#"{"repositories":["fleet"]}"#);
    app["githubAppPrivateKey"] = "-----".into();
    fleet.scene.secret("app", json!({"stringData": app}));
    let flaw = "secret 'default/app': key 'githubAppPrivateKey' holds no RSA private key in PEM";
    assert!(fleet.run(1).only_error().contains(flaw));
}

#[test]
fn a_token_that_the_api_refuses_is_requested_anew_once_within_the_run() {
    for (refusals, status, is_of_git) in [(1, 0, true), (2, 1, true), (1, 0, false), (2, 1, false)] {
        let tokens = Front::alone(|_| {
            let expires_at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3600);
            let body = json!({"token": super::scene::TOKEN, "expires_at": expires_at.to_string()});
            Reply::body(201, body.to_string())
        });
        let files = [file("app.yaml", format!("{}\n", line("app")))];
        let fleet = GithubScene::new(&files, &[("app", "forge")]);
        let source = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {
                "namespace": "default", "name": "fleet", "annotations": {"tagboat.dev/forge": "github"},
            },
            "spec": {
                "interval": "1m", "timeout": "20s", "ref": {"branch": "main"}, "provider": "github",
                "url": fleet.github.git_url(), "secretRef": {"name": "app"},
            },
        });
        match is_of_git {
            true => fleet.scene.write("source.yaml", &source.to_string()),
            false => fleet.source(&json!({"tagboat.dev/forge": "github", "tagboat.dev/forge-secret": "app"})),
        }
        let app = json!({
            "githubAppID": "7", "githubAppInstallationID": "8", "githubAppPrivateKey": APP_KEY,
            "githubAppBaseURL": tokens.url("/"),
        });
        fleet.scene.secret("app", json!({"stringData": app}));
        for _ in 0..refusals {
            let refusal = Reply::body(401, r#"{"message": "Bad credentials"}"#);
            fleet.github.once("git/trees", refusal.with("Content-Type", "application/json"));
        }
        let run = fleet.run(status);
        assert_eq!(tokens.requests().len(), 2, "{run:?}");
        if status == 0 {
            fleet.assert_signed(1);
        }
    }
}

/// A commit that is signed anew is another one.
#[test]
fn signed_commits_of_a_push_without_a_reply_are_pushed_again_and_not_signed_anew() {
    let files = [file("app.yaml", format!("{}\n{}\n", line("one"), line("two")))];
    let fleet = GithubScene::new(&files, &[("one", "forge"), ("two", "forge")]);
    fleet.host.always(Operation::Push, Fault::Reset);
    fleet.run(1);
    assert_eq!(fleet.calls(), (2, 0, 2));
    fleet.host.heal();
    fleet.run(0);
    assert_eq!(fleet.calls(), (2, 0, 2));
    fleet.assert_signed(2);
}

#[test]
fn after_a_lost_race_the_commit_is_signed_on_the_new_tip() {
    let files = [file("app.yaml", format!("{}\n", line("app")))];
    let fleet = GithubScene::new(&files, &[("app", "forge")]);
    let repository = fleet.scene.repository.clone();
    let is_done = std::sync::atomic::AtomicBool::new(false);
    fleet.host.meanwhile(Operation::ListForPush, move || {
        if !is_done.swap(true, std::sync::atomic::Ordering::SeqCst) {
            repository.commit("main", "Of a person", &[file("person.yaml", "1\n")]);
        }
    });
    fleet.run(0);
    let log = fleet.scene.repository.log("main");
    assert_eq!(log[1].message, "Of a person\n");
    assert_eq!(fleet.calls(), (2, 0, 2));
    fleet.assert_signed(1);
}

#[test]
fn twenty_five_commits_are_signed_for_a_push() {
    let names: Vec<String> = (0..27).map(|number| format!("app{number}")).collect();
    let lines: Vec<String> = names.iter().map(|name| line(name)).collect();
    let automations: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "forge")).collect();
    let fleet = GithubScene::new(&[file("app.yaml", lines.join("\n"))], &automations);
    fleet.run(0);
    assert_eq!(fleet.calls(), (27, 0, 27));
    assert_eq!(fleet.host.requests_for(Operation::Push).len(), 2);
    fleet.assert_signed(27);
}

#[test]
fn commits_with_a_key_stand_above_those_of_the_forge() {
    let files = [file("app.yaml", format!("{}\n{}\n{}\n", line("a"), line("b"), line("c")))];
    let fleet = GithubScene::new(&files, &[("a", "key"), ("b", "forge"), ("c", "key")]);
    let home = GpgHome::new();
    let key = home.key("ed25519", "sign", "");
    fleet.scene.secret("key", json!({"stringData": {"git.asc": home.secret_key(&key, "")}}));
    fleet.automation("a", "key", json!({"secretRef": {"name": "key"}}));
    fleet.run(0);
    let log = fleet.scene.repository.log("main");
    assert_eq!(fleet.host.requests_for(Operation::Push).len(), 1);
    assert_eq!(log.len(), 4);
    assert_eq!(log[2].committer, "GitHub <noreply@github.com>");
    fleet.github.home.assert_signed(&fleet.scene, &log[2].id, &fleet.github.key);
    let own = log.iter().find(|commit| commit.author.starts_with("a ")).unwrap();
    home.assert_signed(&fleet.scene, &own.id, &key);
    assert!(log.iter().any(|commit| commit.author.starts_with("c ")));
}
