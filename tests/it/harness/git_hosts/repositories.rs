//! The repositories that the tests make: each content, each kind of reference, each accessor.

use crate::support::bare_repository::BareRepository;
use crate::support::content::{Content, change, file, removed};
use crate::support::git_host::{GitHost, Settings};
use crate::support::git_program::Person;

const SUBMODULE: &str = "1234567890123456789012345678901234567890";

#[test]
fn every_kind_of_content_under_every_kind_of_name() {
    let root = tempfile::tempdir().unwrap();
    let contents = [
        (b"app.yaml".to_vec(), Content::File(b"a: 1\r\n\0".to_vec())),
        (b"bin/run it".to_vec(), Content::Executable(b"#!/bin/sh\n".to_vec())),
        (b"caf\xe9 \xff.yaml".to_vec(), Content::File(Vec::new())),
        (b"li\"nk\\".to_vec(), Content::Link(b"app.yaml".to_vec())),
        (b"line\nbreak\x01".to_vec(), Content::File(b"\n".to_vec())),
        (b"module".to_vec(), Content::Submodule(SUBMODULE.to_owned())),
    ];
    let changes: Vec<_> =
        contents.iter().map(|(path, content)| change(path.clone(), content.clone())).collect();
    let repository = BareRepository::with_files(&root.path().join("fleet.git"), &changes);
    assert_eq!(repository.tree("main"), contents.clone().into());
    repository.commit("main", "Fewer", &[removed("app.yaml"), removed("line\nbreak\x01")]);
    let left: Vec<_> = repository.tree("main").into_keys().collect();
    assert_eq!(left, [&contents[1].0, &contents[2].0, &contents[3].0, &contents[5].0].map(Clone::clone));
    assert_eq!(repository.file("main~1", "app.yaml"), b"a: 1\r\n\0");
    repository.assert_sound();
}

#[test]
fn branches_and_tags_can_be_moved_at_will() {
    let root = tempfile::tempdir().unwrap();
    let repository = BareRepository::with_files(&root.path().join("fleet.git"), &[file("a", "1")]);
    let first = repository.id("main").unwrap();
    let changes = [file("a", "2"), file("a", "3")];
    let last = repository.commits("main", [("Two", &changes[..1]), ("Three", &changes[1..])]);
    let log = repository.log("main");
    let messages: Vec<_> = log.iter().map(|commit| commit.message.as_str()).collect();
    assert_eq!(messages, ["Three\n", "Two\n", "Begin\n"]);
    assert_eq!(
        (&log[0].id, &log[0].parents, &log[2].parents),
        (&last, &vec![log[1].id.clone()], &Vec::new())
    );
    for who in [&log[0].author, &log[0].committer] {
        assert_eq!(who, "Tester <tester@example.com>");
    }
    repository.tag("v1.0.0", &first);
    repository.annotated_tag("v1.1.0", &last);
    assert_eq!(repository.id("v1.0.0"), Some(first.clone()));
    assert_ne!(repository.id("v1.1.0"), Some(last.clone()));
    assert_eq!(repository.id("v1.1.0^{commit}"), Some(last.clone()));
    repository.move_branch("main", &first);
    repository.move_branch("other", &last);
    assert_eq!((repository.id("main"), repository.id("other")), (Some(first), Some(last)));
    repository.delete_branch("other");
    assert_eq!(repository.id("other"), None);
    repository.assert_sound();
}

#[test]
fn empty_repositories_of_both_formats_take_a_first_push() {
    let root = tempfile::tempdir().unwrap();
    let host = GitHost::start(root.path(), Settings::default());
    let person = Person::anonymous();
    for (name, length) in [("sha1.git", 40), ("sha256.git", 64)] {
        let make = if length == 40 { BareRepository::empty } else { BareRepository::empty_sha256 };
        let repository = make(&root.path().join(name));
        assert_eq!(repository.id("main"), None);
        let clone = make(&root.path().join(format!("clone-{name}")));
        clone.git(["remote", "add", "origin", &host.url(name)]);
        let commit = clone.commit("main", "First", &[file("a", "1")]);
        person.push(&clone, "main").with_status(0);
        assert_eq!((commit.len(), repository.id("main")), (length, Some(commit)));
        repository.assert_sound();
    }
}

#[test]
fn hooks_refuse_with_their_own_message() {
    let root = tempfile::tempdir().unwrap();
    let host = GitHost::start(root.path(), Settings::default());
    let person = Person::anonymous();
    for (number, (hook, words)) in [
        ("pre-receive", "[remote rejected] (pre-receive hook declined)"),
        ("update", "[remote rejected] (hook declined)"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{number}.git");
        let repository = BareRepository::with_files(&root.path().join(&name), &[file("a", "1")]);
        repository.hook(hook, "echo 'not on a Friday' >&2; exit 1");
        let clone = person.clone_bare(&host.url(&name), &root.path().join(format!("clone-{name}")));
        clone.commit("main", "Second", &[file("a", "2")]);
        let run = person.push(&clone, "main").with_status(1);
        assert!(run.output.contains(words) && run.errors.contains("remote: not on a Friday"), "{run:?}");
        assert_eq!(repository.log("main").len(), 1);
        repository.hook(hook, "exit 0");
        person.push(&clone, "main").with_status(0);
    }
}

#[test]
fn a_repository_may_be_configured_to_take_nothing() {
    let root = tempfile::tempdir().unwrap();
    let host = GitHost::start(root.path(), Settings::default());
    let repository = BareRepository::with_files(&root.path().join("fleet.git"), &[file("a", "1")]);
    repository.configure("http.receivepack", "false");
    let clone = Person::anonymous().clone_bare(&host.url("fleet.git"), &root.path().join("clone.git"));
    clone.commit("main", "Second", &[file("a", "2")]);
    let run = Person::anonymous().push(&clone, "main");
    assert!(run.errors.contains("403"), "{run:?}");
}
