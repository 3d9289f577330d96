//! Each fault of a host does what it says.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Fleet;
use crate::support::bare_repository::BareRepository;
use crate::support::content::file;
use crate::support::git_host::{Access, Fault, GitHost, Operation, Settings};
use crate::support::git_program::Person;
use crate::support::program::Run;

const OPERATIONS: [Operation; 4] =
    [Operation::ListForFetch, Operation::Fetch, Operation::ListForPush, Operation::Push];

/// A host, and a clone of its repository with a commit that it has not.
struct Scene {
    fleet: Fleet,
    host: GitHost,
    person: Person,
    clone: BareRepository,
    old: String,
    new: String,
}

impl Scene {
    fn new() -> Self {
        let fleet = Fleet::new();
        let settings = Settings { access: Access::bearer("secret"), tls: None };
        let host = GitHost::start(fleet.root.path(), settings);
        let person = Person::bearer("secret").setting("http.followRedirects", "false");
        let clone = person.clone_bare(&host.url("fleet.git"), &fleet.root.path().join("clone.git"));
        let old = fleet.repository.id("main").unwrap();
        let new = clone.commit("main", "Second", &[file("app.yaml", "tag: 2\n")]);
        Self { fleet, host, person, clone, old, new }
    }

    fn push(&self) -> Run {
        self.person.push(&self.clone, "main")
    }

    /// Fetches and pushes; the first thing that fails.
    fn fetch_and_push(&self) -> Run {
        let fetched = self.person.git(self.clone.path(), ["fetch", "--porcelain-is-not-here", "origin"]);
        if fetched.status == Some(0) { self.push() } else { fetched }
    }

    fn tip(&self) -> String {
        self.fleet.repository.id("main").unwrap()
    }
}

/// Git with a deadline: the clients of these tests have none of their own.
fn impatient(person: &Person, directory: &Path, arguments: &[&str]) -> Duration {
    let begin = Instant::now();
    let run = person
        .clone()
        .setting("http.lowSpeedLimit", "1")
        .setting("http.lowSpeedTime", "1")
        .git(directory, arguments);
    assert_ne!(run.status, Some(0), "{run:?}");
    begin.elapsed()
}
