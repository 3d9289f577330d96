//! Pushes that arrive without an answer to the client.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::run::shared_branch::{self, Member};
use crate::support::cases::at_once;
use crate::support::content::file;
use crate::support::git_host::{Fault, Operation};
use crate::support::remote_fleet::{RemoteFleet, git_repository, outcome_and_commit, ready};

fn impatient_fleet() -> RemoteFleet {
    let fleet = RemoteFleet::small();
    fleet.write_small_manifests("branch: main", "timeout: 2s");
    fleet
}

/// The number of requests of a kind before the push of a run.
fn requests_before_push(operation: Operation) -> usize {
    let fleet = RemoteFleet::small();
    fleet.run().with_status(0);
    let requests = fleet.host.requests();
    let before = requests.iter().take_while(|request| request.operation != Some(Operation::Push));
    before.filter(|request| request.operation == Some(operation)).count()
}

/// Lets the listing after the push and all later requests hang.
fn hang_after_push(fleet: &RemoteFleet) {
    for _ in 0..requests_before_push(Operation::ListForFetch) {
        fleet.host.once(Operation::ListForFetch, Fault::Delay(Duration::ZERO));
    }
    fleet.host.always(Operation::ListForFetch, Fault::Hang);
    fleet.host.once(Operation::Push, Fault::HangAfterwards);
}

#[test]
fn the_next_listing_shows_the_result_of_a_push_without_an_answer() {
    at_once([Fault::HangAfterwards, Fault::ResetAfterwards, Fault::Status(504)], |fault| {
        let fleet = impatient_fleet();
        if let Fault::Status(_) = fault {
            // As with a proxy that timed out while the server went on.
            fleet.repository.hook("post-receive", "sleep 1");
            fleet.host.once(Operation::Push, Fault::ResetAfterwards);
        } else {
            fleet.host.once(Operation::Push, fault.clone());
        }
        let run = fleet.run().with_status(0);
        assert_eq!(run.errors, "");
        assert_eq!(outcome_and_commit(&run), ("pushed".to_owned(), Some(fleet.tip())), "{fault:?}");
        fleet.assert_pushed_once();
        fleet.assert_no_processes();
    });
}

/// A push that git made twice is reported though others pushed on top.
///
/// If the connection breaks off, git retries the push by itself, and the retry is rejected because of the
/// first one.
#[test]
fn a_push_that_git_made_twice_is_reported_though_others_pushed_on_top() {
    for commits_on_top in [1, 3] {
        let fleet = RemoteFleet::small();
        let (repository, before, is_first) = (fleet.repository.clone(), fleet.tip(), AtomicBool::new(true));
        fleet.host.meanwhile(Operation::ListForFetch, move || {
            if repository.id("main").as_ref() != Some(&before) && is_first.swap(false, Ordering::SeqCst) {
                for number in 0..commits_on_top {
                    repository.commit("main", "On top", &[file(format!("{number}.yaml"), "1\n")]);
                }
            }
        });
        fleet.host.once(Operation::Push, Fault::ResetAfterwards);
        let run = fleet.run().with_status(0);
        let [own] = &*fleet.own_commits() else { panic!("{:?}", fleet.own_commits()) };
        assert_eq!(outcome_and_commit(&run), ("pushed".to_owned(), Some(own.id.clone())), "{commits_on_top}");
        assert_eq!(fleet.status("fleet")["lastPushCommit"], *own.id);
        assert_eq!(fleet.repository.log("main").len(), 2 + commits_on_top);
    }
}

#[test]
fn an_unreported_push_is_reported_by_the_next_run() {
    at_once([0, 1, 5], |commits_on_top| {
        let fleet = impatient_fleet();
        hang_after_push(&fleet);
        let run = fleet.run().with_status(1);
        assert_eq!(outcome_and_commit(&run), ("failed".to_owned(), None));
        let _one_sentence = run.only_error();
        assert_eq!(ready(&fleet.status("fleet"))["status"], "False");
        assert_eq!(fleet.own_commits().len(), 1, "it has arrived all the same");
        fleet.assert_no_processes();
        fleet.host.heal();
        for number in 0..commits_on_top {
            fleet.repository.commit("main", "On top", &[file(format!("{number}.yaml"), "1\n")]);
        }
        let commit = fleet.own_commits()[0].id.clone();
        let pushes = fleet.host.requests_for(Operation::Push).len();
        let run = fleet.run().with_status(0);
        assert_eq!(outcome_and_commit(&run), ("pushed".to_owned(), Some(commit)), "{commits_on_top}");
        assert_eq!(fleet.host.requests_for(Operation::Push).len(), pushes);
        fleet.assert_pushed_once();
        assert_eq!(outcome_and_commit(&fleet.run()).0, "skipped");
    });
}

#[test]
fn each_automation_of_an_unreported_push_finds_its_own_commit() {
    let members = Member::several(3);
    let fleet = shared_branch::fleet(&members);
    let manifests: String = members.iter().map(Member::manifests).collect();
    fleet.write_manifests(&(manifests + &git_repository(&fleet.host.url("fleet.git"), "timeout: 2s")));
    hang_after_push(&fleet);
    fleet.run().with_status(1);
    fleet.host.heal();
    fleet.repository.commit("main", "On top", &[file("other.yaml", "1\n")]);
    let run = fleet.run().with_status(0);
    shared_branch::assert_each_landed_once(&fleet, &members);
    let own = fleet.own_commits();
    for (member, outcome) in members.iter().zip(run.json()["automations"].as_array().unwrap()) {
        let commit = own.iter().find(|commit| commit.author.starts_with(&member.author)).unwrap();
        assert_eq!(
            (&outcome["outcome"], &outcome["commit"]["id"]),
            (&"pushed".into(), &commit.id.as_str().into())
        );
        assert_eq!(fleet.status(&member.name)["lastPushCommit"], commit.id.as_str());
    }
}

/// The listing after the push does not show the commit, which arrives later.
#[test]
fn a_push_that_arrives_after_the_end_of_the_run_is_made_once() {
    at_once([false, true], |has_arrived| {
        let fleet = impatient_fleet();
        fleet.host.once(Operation::Push, Fault::Delay(Duration::from_secs(5)));
        let run = fleet.run().with_status(1);
        assert_eq!(outcome_and_commit(&run), ("failed".to_owned(), None));
        assert_eq!(fleet.own_commits(), []);
        if has_arrived {
            fleet.host.wait_for_answers(Operation::Push);
        }
        assert_eq!(outcome_and_commit(&fleet.run().with_status(0)), ("pushed".to_owned(), Some(fleet.tip())));
        fleet.host.wait_for_answers(Operation::Push);
        fleet.assert_pushed_once();
    });
}

/// A push that never arrived is not reported by runs without changes.
/// The image of the lost push is no longer selected at the time of the next run.
#[test]
fn a_push_that_never_arrived_is_not_reported_by_runs_that_want_nothing() {
    let fleet = impatient_fleet();
    fleet.host.once(Operation::Push, Fault::Hang);
    assert_eq!(outcome_and_commit(&fleet.run().with_status(1)), ("failed".to_owned(), None));
    let tip = fleet.tip();
    for _ in 0..3 {
        let run = fleet.run_with_tag("4.0.6").with_status(0);
        assert_eq!(outcome_and_commit(&run), ("unchanged".to_owned(), None), "{run:?}");
    }
    assert_eq!((fleet.tip(), fleet.own_commits().len()), (tip, 0));
    assert_eq!(fleet.status("fleet")["lastPushCommit"], serde_json::Value::Null);
    fleet.run().with_status(0);
    fleet.assert_pushed_once();
}

/// Another batch makes other commits on the same tip.
///
/// Its own push is rejected because the first one arrives.
#[test]
fn a_push_that_arrives_while_another_batch_pushes_is_reported() {
    let members = Member::several(2);
    let fleet = shared_branch::fleet(&members);
    let manifests = |members: &[Member]| -> String { members.iter().map(Member::manifests).collect() };
    let source = git_repository(&fleet.host.url("fleet.git"), "timeout: 4s");
    // The first run has the second member alone, so that the first member's commit is below it in the other run.
    fleet.write_manifests(&(manifests(&members[1..]) + &source));
    fleet.host.once(Operation::Push, Fault::Delay(Duration::from_secs(7)));
    fleet.run().with_status(1);
    assert_eq!(fleet.own_commits(), []);
    fleet.write_manifests(&(manifests(&members) + &source));
    let (repository, before) = (fleet.repository.clone(), fleet.tip());
    fleet.host.meanwhile(Operation::ListForPush, move || {
        while repository.id("main").as_ref() == Some(&before) {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let run = fleet.run().with_status(0);
    shared_branch::assert_each_landed_once(&fleet, &members);
    for (member, outcome) in members.iter().zip(run.json()["automations"].as_array().unwrap()) {
        let own = fleet.own_commits();
        let commit = own.iter().find(|commit| commit.author.starts_with(&member.author)).unwrap();
        assert_eq!(outcome["commit"]["id"], commit.id.as_str(), "{outcome}");
        assert_eq!(fleet.status(&member.name)["lastPushCommit"], commit.id.as_str());
    }
}

/// The fetch of the history fails, as with a proxy that restarts.
#[test]
fn a_failure_to_search_for_a_push_does_not_lose_its_report() {
    let fleet = impatient_fleet();
    hang_after_push(&fleet);
    fleet.run().with_status(1);
    fleet.host.heal();
    let commit = fleet.own_commits()[0].id.clone();
    for number in 0..5 {
        fleet.repository.commit("main", "On top", &[file(format!("{number}.yaml"), "1\n")]);
    }
    // Fetches: of the tip, and then of the history below it.
    let before = requests_before_push(Operation::Fetch);
    for _ in 0..before {
        fleet.host.once(Operation::Fetch, Fault::Delay(Duration::ZERO));
    }
    fleet.host.always(Operation::Fetch, Fault::Status(503));
    let run = fleet.run().with_status(1);
    assert_eq!(outcome_and_commit(&run), ("failed".to_owned(), None));
    fleet.host.heal();
    assert_eq!(outcome_and_commit(&fleet.run().with_status(0)), ("pushed".to_owned(), Some(commit)));
    fleet.assert_pushed_once();
}
