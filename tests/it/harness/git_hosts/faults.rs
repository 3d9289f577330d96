//! Each fault of a git host has its effect on git.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Fleet;
use crate::support::bare_repository::BareRepository;
use crate::support::cases::at_once;
use crate::support::content::file;
use crate::support::git_host::{Access, Fault, GitHost, Operation, Settings};
use crate::support::git_program::Person;
use crate::support::program::Run;

const OPERATIONS: [Operation; 4] =
    [Operation::ListForFetch, Operation::Fetch, Operation::ListForPush, Operation::Push];

/// A git host and a clone of its repository.
/// The clone has a commit that the host does not have.
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

    /// Lists as a fetch does, or pushes, depending on the operation.
    fn run(&self, person: &Person, operation: Operation) -> Run {
        match operation {
            Operation::ListForFetch | Operation::Fetch => person.list(&self.host.url("fleet.git")),
            Operation::ListForPush | Operation::Push => person.push(&self.clone, "main"),
        }
    }

    fn tip(&self) -> String {
        self.fleet.repository.id("main").unwrap()
    }
}

/// A person whose git gives up after a second without data.
fn impatient(person: &Person) -> Person {
    person.clone().setting("http.lowSpeedLimit", "1").setting("http.lowSpeedTime", "1")
}

#[test]
fn a_status_comes_once_or_always_until_healed() {
    for operation in OPERATIONS {
        let scene = Scene::new();
        scene.host.once(operation, Fault::Status(503));
        scene.host.once(operation, Fault::Status(429));
        for words in ["503", "429"] {
            let run = scene.run(&scene.person, operation);
            assert_ne!(run.status, Some(0), "{operation:?}: {run:?}");
            assert!(run.errors.contains(words), "{operation:?}: {run:?}");
        }
        scene.host.always(operation, Fault::Status(500));
        for _ in 0..2 {
            assert!(scene.run(&scene.person, operation).errors.contains("500"), "{operation:?}");
        }
        assert_eq!(scene.tip(), scene.old);
        scene.host.heal();
        scene.run(&scene.person, operation).with_status(0);
        let answers: Vec<_> =
            scene.host.requests_for(operation).iter().filter_map(|record| record.answer).collect();
        assert!(answers.ends_with(&[503, 429, 500, 500, 200]), "{operation:?}: {answers:?}");
    }
}

#[test]
fn a_redirect_leads_to_another_host_which_records_the_requests() {
    for status in [301, 302, 307] {
        // A client that follows no redirect: all operations for one status, and one for each of the others.
        let operations = if status == 302 { &OPERATIONS[..] } else { &OPERATIONS[3..] };
        for &operation in operations {
            let scene = Scene::new();
            let other = GitHost::start(scene.fleet.root.path(), Settings::default());
            scene.host.once(operation, Fault::Redirect { status, to: other.url("fleet.git") });
            assert_ne!(scene.run(&scene.person, operation).status, Some(0), "{status} {operation:?}");
            assert_eq!(other.requests().len(), 0);
            assert_eq!(scene.tip(), scene.old);
        }
        // With redirects followed, git sends a configured header to the target, too.
        let scene = Scene::new();
        let other = GitHost::start(scene.fleet.root.path(), Settings::default());
        scene.host.once(Operation::ListForPush, Fault::Redirect { status, to: other.url("fleet.git") });
        let trusting = Person::bearer("secret").setting("http.followRedirects", "true");
        trusting.push(&scene.clone, "main").with_status(0);
        assert_eq!(scene.tip(), scene.new);
        let pushes = other.requests_for(Operation::Push);
        assert_eq!(pushes.len(), 1);
        assert_eq!(pushes[0].request.authorization(), Some("Bearer secret"));
    }
}

#[test]
fn a_delay_only_delays() {
    at_once(OPERATIONS, |operation| {
        let scene = Scene::new();
        scene.host.once(operation, Fault::Delay(Duration::from_millis(300)));
        let begin = Instant::now();
        scene.run(&scene.person, operation).with_status(0);
        assert!(begin.elapsed() >= Duration::from_millis(300), "{operation:?}");
    });
}

#[test]
fn a_hung_host_does_nothing_and_never_answers() {
    at_once(OPERATIONS, |operation| {
        let scene = Scene::new();
        scene.host.always(operation, Fault::Hang);
        let run = scene.run(&impatient(&scene.person), operation);
        assert_ne!(run.status, Some(0), "{operation:?}: {run:?}");
        assert_eq!(scene.tip(), scene.old);
        assert_eq!(scene.host.requests_for(operation).last().unwrap().answer, None);
    });
}

#[test]
fn a_push_may_be_executed_and_never_answered() {
    let scene = Scene::new();
    scene.host.once(Operation::Push, Fault::HangAfterwards);
    let run = scene.run(&impatient(&scene.person), Operation::Push);
    assert_ne!(run.status, Some(0), "{run:?}");
    assert_eq!(scene.tip(), scene.new);
    assert_eq!(scene.host.requests_for(Operation::Push).last().unwrap().answer, None);
}

#[test]
fn a_connection_is_reset_before_or_after_the_work() {
    for operation in OPERATIONS {
        let scene = Scene::new();
        scene.host.always(operation, Fault::Reset);
        let run = scene.run(&scene.person, operation);
        assert_ne!(run.status, Some(0), "{operation:?}: {run:?}");
        assert!(run.errors.contains("reset by peer"), "{operation:?}: {run:?}");
        assert_eq!(scene.tip(), scene.old);
        scene.host.heal();
        scene.run(&scene.person, operation).with_status(0);
    }
    let scene = Scene::new();
    scene.host.once(Operation::Push, Fault::ResetAfterwards);
    let run = scene.run(&scene.person, Operation::Push);
    assert_ne!(run.status, Some(0), "{run:?}");
    assert_eq!(scene.tip(), scene.new);
    scene.fleet.repository.assert_sound();
}

/// The timing decides on which side the race is lost.
#[test]
fn another_person_pushes_meanwhile() {
    for (operation, words) in [
        (Operation::ListForPush, "[rejected] (fetch first)"),
        (Operation::Push, "[remote rejected] (failed to update ref)"),
    ] {
        let scene = Scene::new();
        let (repository, is_first) = (scene.fleet.repository.clone(), AtomicBool::new(true));
        scene.host.meanwhile(operation, move || {
            if is_first.swap(false, Ordering::SeqCst) {
                repository.commit("main", "Between", &[file("other.yaml", "1\n")]);
            }
        });
        let run = scene.run(&scene.person, operation);
        assert!(run.output.contains(words), "{operation:?}: {run:?}");
        assert_eq!(scene.fleet.repository.log("main")[0].message, "Between\n");
        scene.fleet.repository.assert_sound();
    }
}

#[test]
fn a_dropped_host_takes_its_programs_with_it() {
    let scene = Scene::new();
    let mark = scene.fleet.root.path().join("mark");
    scene
        .fleet
        .repository
        .hook("pre-receive", &format!("echo $$ >'{0}.new'; mv '{0}.new' '{0}'; sleep 600", mark.display()));
    let (person, clone, host) = (&scene.person, &scene.clone, scene.host);
    let (run, process) = std::thread::scope(|scope| {
        let push = scope.spawn(|| person.push(clone, "main"));
        let begin = Instant::now();
        while !mark.exists() {
            assert!(begin.elapsed() < Duration::from_secs(30), "the hook never ran");
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(host);
        (push.join().unwrap(), std::fs::read_to_string(&mark).unwrap())
    });
    assert_ne!(run.status, Some(0), "{run:?}");
    // It is killed at once, but the kernel removes it a moment later.
    let begin = Instant::now();
    while is_running(process.trim()) {
        assert!(begin.elapsed() < Duration::from_secs(30), "the hook is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(scene.fleet.repository.id("main"), Some(scene.old));
}

fn is_running(process: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|state| !state.contains(") Z "))
}
