//! Several runs at the same time on one state.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::git_host::{Fault, Operation};
use crate::support::program::run;
use crate::support::remote_fleet::{RemoteFleet, only_outcome};

/// Three runs at once; what they say of their one automation, in order.
fn three_at_once(fleet: &RemoteFleet) -> Vec<String> {
    let runs = std::thread::scope(|scope| {
        let runs = [(); 3].map(|()| scope.spawn(|| run(&mut fleet.command()).with_status(0)));
        runs.map(|run| run.join().unwrap())
    });
    let mut words = Vec::new();
    for run in runs {
        assert_eq!(run.errors, "", "{run:?}");
        let outcome = only_outcome(&run);
        let word = outcome["outcome"].as_str().unwrap().to_owned();
        assert_eq!(
            outcome.get("commit").is_some_and(|commit| !commit.is_null()),
            word == "pushed",
            "{outcome:#}"
        );
        if word == "unchanged" {
            assert_eq!(outcome["message"], "repository up-to-date");
        }
        words.push(word);
    }
    words.sort();
    words
}

#[track_caller]
fn assert_one_pushed(words: &[String]) {
    let pushed = words.iter().filter(|word| *word == "pushed").count();
    let idle = words.iter().filter(|word| ["skipped", "unchanged"].contains(&word.as_str())).count();
    assert_eq!((pushed, idle), (1, 2), "{words:?}");
}

#[test]
fn of_runs_at_once_only_the_one_that_pushed_says_so() {
    let fleet = RemoteFleet::small();
    for operation in [Operation::ListForFetch, Operation::Push] {
        fleet.host.always(operation, Fault::Delay(Duration::from_millis(300)));
    }
    assert_one_pushed(&three_at_once(&fleet));
    fleet.assert_pushed_once();
    assert_eq!(three_at_once(&fleet), ["skipped"; 3]);
}

#[test]
fn the_push_of_a_killed_run_is_reported_by_one_of_those_that_come_next() {
    let fleet = RemoteFleet::small();
    // What the killed run has started holds the mirror for as long.
    fleet.write_small_manifests("branch: main", "timeout: 5s");
    fleet.host.once(Operation::Push, Fault::HangAfterwards);
    let tip = fleet.tip();
    let mut command = fleet.command();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while fleet.tip() == tip {
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing arrives");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_one_pushed(&three_at_once(&fleet));
    fleet.assert_pushed_once();
}
