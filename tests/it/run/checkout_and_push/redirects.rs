//! Servers that redirect to another address.

use crate::support::bare_repository::BareRepository;
use crate::support::content::file;
use crate::support::fleet::{podinfo, tag_line};
use crate::support::git_host::{Access, Fault, GitHost, Operation, Record, Settings};
use crate::support::manifests::automation;
use crate::support::remote_fleet::{RemoteFleet, git_fields, git_repository, outcome_and_commit, secret};

/// A fleet behind a login; `path` is the path of the repository in the manifest.
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
                // If only the push itself is redirected, git does not report the target.
                if operation != Operation::Push {
                    assert!(sentence.contains(&other.url("fleet.git")), "{operation:?} {status}: {sentence}");
                }
                assert!(!sentence.contains("pass-word") && !sentence.contains("to-ken"), "{sentence}");
                assert_eq!(fleet.tip(), before);
            }
        }
    }
}

/// Creates a fleet behind a bearer token, which has moved.
/// Its address is `fleet` in the manifest, and it is moved to `fleet.git`.
fn moved_fleet() -> RemoteFleet {
    let fleet = fleet(Access::bearer("to-ken"), "bearerToken: to-ken", "fleet");
    fleet.host.moved("fleet", "fleet.git");
    fleet
}

/// The paths that were requested since `seen` requests, without the suffixes that git appends.
fn asked(fleet: &RemoteFleet, seen: usize) -> Vec<String> {
    let path = |record: &Record| record.request.path.split('/').nth(1).unwrap_or_default().to_owned();
    fleet.host.requests()[seen..].iter().map(path).collect()
}

#[test]
fn a_redirect_within_a_server_is_followed_and_remembered() {
    let fleet = moved_fleet();
    let run = fleet.run().with_status(0);
    assert_eq!(outcome_and_commit(&run), ("pushed".to_owned(), Some(fleet.tip())));
    fleet.assert_pushed_once();
    // Once by git, and once to find the target of the redirect.
    assert_eq!(asked(&fleet, 0).iter().filter(|path| *path == "fleet").count(), 2);
    fleet.repository.commit("main", "Another", &[file("other.yaml", "1\n")]);
    let seen = fleet.host.requests().len();
    assert_eq!(outcome_and_commit(&fleet.run_with_tag("5.0.4").with_status(0)).0, "pushed");
    // Only to find the target before the push.
    assert_eq!(asked(&fleet, seen).iter().filter(|path| *path == "fleet").count(), 1);
    let seen = fleet.host.requests().len();
    fleet.run_with_tag("5.0.4").with_status(0);
    assert!(
        asked(&fleet, seen).iter().all(|path| path == "fleet.git"),
        "where nothing is pushed, nothing is asked"
    );
    fleet.assert_sound();
}

#[test]
fn a_redirect_is_followed_though_the_users_name_is_in_the_path() {
    for (user, from, to) in [
        ("git", "fleet", "fleet.git"),
        ("alice", "alice/fleet", "alice/fleet.git"),
        ("fleet", "fleet", "fleet.git"),
    ] {
        let fleet =
            fleet(Access::basic(user, "pass-word"), &format!("username: {user}, password: pass-word"), from);
        if to != "fleet.git" {
            std::os::unix::fs::symlink(".", fleet.root().join("served").join(user)).unwrap();
        }
        fleet.host.moved(from, to);
        fleet.run().with_status(0);
        fleet.assert_pushed_once();
    }
}

#[test]
fn a_broken_remembered_redirect_is_forgotten() {
    for status in [404, 403, 401] {
        let fleet = moved_fleet();
        fleet.run().with_status(0);
        fleet.host.heal();
        let place = fleet.root().join("served/fleet");
        std::fs::rename(fleet.repository.path(), &place).unwrap();
        if status != 404 {
            fleet.host.once(Operation::ListForFetch, Fault::Status(status));
        }
        assert_eq!(outcome_and_commit(&fleet.run_with_tag("5.0.4").with_status(0)).0, "pushed");
        assert_eq!(BareRepository::existing(&place).log("main").len(), 3);
        let seen = fleet.host.requests().len();
        fleet.run_with_tag("5.0.5").with_status(0);
        assert!(asked(&fleet, seen).iter().all(|path| path == "fleet"), "{status}");
    }
}

#[test]
fn nothing_is_pushed_to_the_old_address_of_a_repository_once_it_has_another_owner() {
    let fleet = moved_fleet();
    fleet.run().with_status(0);
    let before = fleet.tip();
    fleet.host.heal();
    let other = fleet.root().join("served/fleet");
    let other = BareRepository::with_files(&other, &[file("app.yaml", tag_line("1.0.0"))]);
    let run = fleet.run_with_tag("5.0.4").with_status(0);
    assert_eq!(outcome_and_commit(&run), ("pushed".to_owned(), other.id("refs/heads/main")));
    assert_eq!(other.file("main", "app.yaml"), tag_line("5.0.4").as_bytes());
    assert_eq!(fleet.tip(), before, "the renamed repository is left alone");
    other.assert_sound();
    fleet.assert_sound();
}

#[test]
fn a_changed_redirect_is_followed_to_its_new_target() {
    let fleet = moved_fleet();
    fleet.run().with_status(0);
    let before = fleet.tip();
    let other = fleet.root().join("served/other.git");
    let other = BareRepository::with_files(&other, &[file("app.yaml", tag_line("1.0.0"))]);
    fleet.host.moved("fleet", "other.git");
    fleet.run_with_tag("5.0.4").with_status(0);
    assert_eq!(other.file("main", "app.yaml"), tag_line("5.0.4").as_bytes());
    assert_eq!(fleet.tip(), before);
}

#[test]
fn user_info_in_the_target_of_a_redirect_is_not_shown() {
    let fleet = fleet(Access::bearer("to-ken"), "bearerToken: to-ken", "fleet.git");
    let to = "http://someone:hunter2@127.0.0.1:1/fleet.git".to_owned();
    fleet.host.always(Operation::ListForFetch, Fault::Redirect { status: 302, to });
    let run = fleet.run().with_status(1);
    let sentence = run.only_error();
    assert!(sentence.contains("redirects to 'http://••••@127.0.0.1:1/fleet.git"), "{sentence}");
    assert!(!format!("{run:?}").contains("hunter2"), "{run:?}");
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
