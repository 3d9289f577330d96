//! Tests of a branch that is deleted or replaced.
//! It happens while a run works on the branch, or between two runs.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::bare_repository::BareRepository;
use crate::support::content::file;
use crate::support::fleet::tag_line;
use crate::support::git_host::Operation;
use crate::support::remote_fleet::{RemoteFleet, outcome_and_commit};

/// Changes the repository just before a request of an operation, counted from 0.
fn expect(fleet: &RemoteFleet, moment: (Operation, usize), event: fn(&BareRepository)) {
    let (repository, count) = (fleet.repository.clone(), AtomicUsize::new(0));
    let (operation, place) = moment;
    fleet.host.meanwhile(operation, move || {
        if count.fetch_add(1, Ordering::SeqCst) == place {
            event(&repository);
        }
    });
}

/// Replaces `main` by a branch without common history.
fn replace(repository: &BareRepository) {
    repository.delete_branch("main");
    let files = [file("app.yaml", tag_line("4.0.6")), file("new.yaml", "1\n")];
    repository.commit("main", "Another beginning", &files);
    repository.git(["reflog", "expire", "--expire=now", "--all"]);
    repository.git(["prune", "--expire=now"]);
}

fn delete(repository: &BareRepository) {
    repository.commit("other", "Unrelated", &[file("x", "x")]);
    repository.delete_branch("main");
    repository.git(["prune", "--expire=now"]);
}

/// Every request that a run sends to the server.
fn moments() -> Vec<(Operation, usize)> {
    let fleet = RemoteFleet::small();
    fleet.run().with_status(0);
    let mut moments = Vec::new();
    for operation in [Operation::ListForFetch, Operation::Fetch, Operation::ListForPush, Operation::Push] {
        moments.extend((0..fleet.host.requests_for(operation).len()).map(|place| (operation, place)));
    }
    assert!(moments.len() >= 6, "{moments:?}");
    moments
}

#[test]
fn a_branch_that_is_replaced_at_any_moment_gets_the_commit_all_the_same() {
    for moment in moments() {
        let fleet = RemoteFleet::small();
        expect(&fleet, moment, replace);
        let run = fleet.run();
        assert_eq!((run.status, run.errors.as_str()), (Some(0), ""), "{moment:?}: {run:?}");
        assert_eq!(outcome_and_commit(&run), ("pushed".to_owned(), Some(fleet.tip())), "{moment:?}");
        let log = fleet.repository.log("main");
        assert_eq!(log.last().unwrap().message, "Another beginning\n", "{moment:?}");
        fleet.assert_pushed_once();
    }
}

#[test]
fn a_branch_deleted_at_any_moment_is_one_error() {
    for moment in moments() {
        let fleet = RemoteFleet::small();
        expect(&fleet, moment, delete);
        let run = fleet.run().with_status(1);
        let sentence = run.only_error();
        let words = "couldn't find remote ref \"refs/heads/main\"; its branches are other";
        assert!(sentence.contains(words), "{moment:?}: {sentence}");
        assert_eq!(fleet.repository.id("refs/heads/main"), None, "nothing is brought back");
        fleet.assert_sound();
    }
}

#[test]
fn a_force_pushed_branch_is_the_base_of_the_next_run() {
    let backwards = |repository: &BareRepository| {
        let beginning = repository.log("main").last().unwrap().id.clone();
        repository.move_branch("main", &beginning);
    };
    for (event, beginning) in [(backwards as fn(&BareRepository), "Begin"), (replace, "Another beginning")] {
        let fleet = RemoteFleet::small();
        fleet.run().with_status(0);
        event(&fleet.repository);
        let run = fleet.run().with_status(0);
        assert_eq!(outcome_and_commit(&run), ("pushed".to_owned(), Some(fleet.tip())));
        assert_eq!(fleet.repository.log("main").last().unwrap().message.trim(), beginning);
        fleet.assert_pushed_once();
        assert_eq!(outcome_and_commit(&fleet.run()).0, "skipped");
    }
}
