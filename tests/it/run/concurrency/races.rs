//! Races: another author pushes between our listing of the branch and our push.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::content::{Change, file};
use crate::support::fleet::tag_line;
use crate::support::git_host::Operation;
use crate::support::remote_fleet::{RemoteFleet, outcome_and_commit, ready};

/// The requests before which the other author pushes.
/// The race is lost on the client, or on the server.
const SIDES: [Operation; 2] = [Operation::ListForPush, Operation::Push];

/// Adds commits of another author just before requests of an operation.
/// There is one before each of the first `times` requests.
fn be_overtaken(fleet: &RemoteFleet, side: Operation, times: usize, changes: fn(usize) -> Change) {
    let (repository, count) = (fleet.repository.clone(), AtomicUsize::new(0));
    fleet.host.meanwhile(side, move || {
        let number = count.fetch_add(1, Ordering::SeqCst);
        if number < times {
            repository.commit("main", &format!("Between {number}"), &[changes(number)]);
        }
    });
}

fn elsewhere(number: usize) -> Change {
    file(format!("other-{number}.yaml"), "1\n")
}

#[test]
fn both_changes_land_when_a_race_is_lost() {
    for side in SIDES {
        let fleet = RemoteFleet::small();
        be_overtaken(&fleet, side, 2, elsewhere);
        let run = fleet.run().with_status(0);
        assert_eq!(run.errors, "");
        assert_eq!(outcome_and_commit(&run), ("pushed".to_owned(), Some(fleet.tip())));
        let subjects: Vec<String> =
            fleet.repository.log("main").iter().map(|commit| commit.message.trim().to_owned()).collect();
        assert_eq!(subjects[1..], ["Between 1", "Between 0", "Begin"], "{side:?}");
        fleet.assert_pushed_once();
        fleet.assert_no_processes();
    }
}

#[test]
fn the_same_change_by_another_leaves_nothing_to_commit() {
    for side in SIDES {
        let fleet = RemoteFleet::small();
        be_overtaken(&fleet, side, 1, |_| file("app.yaml", tag_line("5.0.3")));
        let run = fleet.run().with_status(0);
        assert_eq!(outcome_and_commit(&run), ("unchanged".to_owned(), None), "{side:?}");
        assert_eq!(fleet.own_commits(), []);
        let status = fleet.status("fleet");
        assert_eq!((&ready(&status)["status"], status.get("lastPushCommit")), (&"True".into(), None));
        fleet.assert_sound();
        assert_eq!(outcome_and_commit(&fleet.run()).0, "skipped");
    }
}

#[test]
fn a_branch_that_another_makes_meanwhile_is_built_upon() {
    for side in SIDES {
        let fleet = RemoteFleet::pushing("branch: auto");
        let (repository, count) = (fleet.repository.clone(), AtomicUsize::new(0));
        fleet.host.meanwhile(side, move || {
            if count.fetch_add(1, Ordering::SeqCst) == 0 {
                repository.move_branch("auto", &repository.id("main").unwrap());
                repository.commit("auto", "Mine", &[elsewhere(0)]);
            }
        });
        let run = fleet.run().with_status(0);
        assert_eq!(outcome_and_commit(&run), ("pushed".to_owned(), fleet.repository.id("auto")), "{side:?}");
        let subjects: Vec<String> =
            fleet.repository.log("auto").iter().map(|commit| commit.message.trim().to_owned()).collect();
        assert_eq!(subjects[1..], ["Mine", "Begin"], "{side:?}");
        assert_eq!(fleet.repository.log("main").len(), 1);
        fleet.assert_sound();
        assert_eq!(outcome_and_commit(&fleet.run()).0, "skipped");
    }
}

#[test]
fn a_race_that_is_lost_every_time_is_one_error_and_the_next_run_recovers() {
    let fleet = RemoteFleet::small();
    be_overtaken(&fleet, Operation::ListForPush, usize::MAX, elsewhere);
    let run = fleet.run().with_status(1);
    let words = "others pushed to the branch during each of 5 attempts";
    assert!(run.only_error().contains(words), "{run:?}");
    // A transaction has five tries, and the command line starts sixteen transactions.
    assert_eq!(fleet.host.requests_for(Operation::ListForPush).len(), 80);
    assert_eq!(fleet.own_commits(), []);
    assert_eq!(fleet.repository.log("main").len(), 81);
    fleet.host.heal();
    assert_eq!(outcome_and_commit(&fleet.run().with_status(0)).0, "pushed");
    fleet.assert_pushed_once();
    assert_eq!(fleet.repository.log("main").len(), 82);
}
