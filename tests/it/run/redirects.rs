//! Servers that send us elsewhere.

use crate::support::bare_repository::BareRepository;
use crate::support::content::file;
use crate::support::fleet::{podinfo, tag_line};
use crate::support::git_host::{Access, Fault, GitHost, Operation, Settings};
use crate::support::manifests::automation;
use crate::support::remote_fleet::{RemoteFleet, git_fields, git_repository, outcome_and_commit, secret};

/// A fleet behind a log-in; `path` is that of the repository in the manifest.
fn fleet(access: Access, members: &str, path: &str) -> RemoteFleet {
    let fleet = RemoteFleet::of_files(&[file("app.yaml", tag_line("4.0.6"))], Settings { access, tls: None });
    let parts = [
        podinfo(),
        git_repository(&fleet.host.url(path), "secretRef: {name: login}"),
        secret("login", members),
        automation("default", "fleet", &git_fields("Tagboat", "branch: main")),
    ];
    fleet.write_manifests(&parts.concat());
    fleet
}

#[test]
fn no_credential_ever_reaches_another_server() {
    for (access, members) in [
        (Access::basic("bot", "pass-word"), "username: bot, password: pass-word"),
        (Access::bearer("to-ken"), "bearerToken: to-ken"),
    ] {
        for operation in [Operation::ListForFetch, Operation::Fetch, Operation::ListForPush, Operation::Push]
        {
            for status in [302, 307] {
                let fleet = fleet(access.clone(), members, "fleet.git");
                let before = fleet.tip();
                let other = GitHost::start(&fleet.root().join("served"), Settings::default());
                fleet.host.always(operation, Fault::Redirect { status, to: other.url("fleet.git") });
                let run = fleet.run().with_status(1);
                let sentence = run.only_error();
                assert_eq!(other.requests().len(), 0, "{operation:?} {status}");
                assert!(sentence.contains("redirects to"), "{operation:?} {status}: {sentence}");
                // Where only the push itself is redirected, git has no way to say where to.
                if operation != Operation::Push {
                    assert!(sentence.contains(&other.url("fleet.git")), "{operation:?} {status}: {sentence}");
                }
                assert!(!sentence.contains("pass-word") && !sentence.contains("to-ken"), "{sentence}");
                assert_eq!(fleet.tip(), before);
            }
        }
    }
}

#[test]
fn a_redirect_within_a_server_is_followed_and_remembered() {
    let fleet = fleet(Access::bearer("to-ken"), "bearerToken: to-ken", "fleet");
    // Once for git, and once for the question where to.
    for _ in 0..2 {
        let to = fleet.host.url("fleet.git");
        fleet.host.once(Operation::ListForFetch, Fault::Redirect { status: 301, to });
    }
    let run = fleet.run().with_status(0);
    assert_eq!(outcome_and_commit(&run), ("pushed".to_owned(), Some(fleet.tip())));
    fleet.assert_pushed_once();
    let seen = fleet.host.requests().len();
    assert_eq!(fleet.host.requests().iter().filter(|record| record.answer == Some(301)).count(), 2);
    fleet.repository.commit("main", "Another", &[file("other.yaml", "1\n")]);
    assert_eq!(outcome_and_commit(&fleet.run_with_tag("5.0.4").with_status(0)).0, "pushed");
    for record in &fleet.host.requests()[seen..] {
        assert!(record.request.path.starts_with("/fleet.git/"), "{}", record.request.path);
    }
    fleet.assert_sound();
}

#[test]
fn a_remembered_redirect_that_no_longer_leads_anywhere_is_forgotten() {
    let fleet = fleet(Access::bearer("to-ken"), "bearerToken: to-ken", "fleet");
    for _ in 0..2 {
        let to = fleet.host.url("fleet.git");
        fleet.host.once(Operation::ListForFetch, Fault::Redirect { status: 301, to });
    }
    fleet.run().with_status(0);
    let place = fleet.root().join("served/fleet");
    std::fs::rename(fleet.repository.path(), &place).unwrap();
    assert_eq!(outcome_and_commit(&fleet.run_with_tag("5.0.4").with_status(0)).0, "pushed");
    assert_eq!(BareRepository::existing(&place).log("main").len(), 3);
    let seen = fleet.host.requests().len();
    fleet.run_with_tag("5.0.5").with_status(0);
    for record in &fleet.host.requests()[seen..] {
        assert!(record.request.path.starts_with("/fleet/"), "{}", record.request.path);
    }
}

#[test]
fn a_redirect_of_pushes_alone_is_followed_within_a_server() {
    let fleet = fleet(Access::bearer("to-ken"), "bearerToken: to-ken", "fleet.git");
    std::os::unix::fs::symlink("fleet.git", fleet.root().join("served/moved.git")).unwrap();
    for _ in 0..2 {
        let to = fleet.host.url("moved.git");
        fleet.host.once(Operation::ListForPush, Fault::Redirect { status: 308, to });
    }
    let run = fleet.run().with_status(0);
    assert_eq!(outcome_and_commit(&run), ("pushed".to_owned(), Some(fleet.tip())));
    fleet.assert_pushed_once();
}

#[test]
fn a_redirect_that_never_ends_is_an_error() {
    let fleet = fleet(Access::bearer("to-ken"), "bearerToken: to-ken", "fleet");
    let to = fleet.host.url("fleet");
    fleet.host.always(Operation::ListForFetch, Fault::Redirect { status: 302, to });
    let run = fleet.run().with_status(1);
    assert!(run.only_error().contains("redirects to"), "{run:?}");
    assert!(fleet.host.requests().len() < 8, "{}", fleet.host.requests().len());
}
