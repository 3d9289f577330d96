//! Servers that hang, close the connection or fail.

use std::time::{Duration, Instant};

use crate::support::cases::at_once;
use crate::support::git_host::{Fault, Operation};
use crate::support::remote_fleet::{RemoteFleet, outcome_and_commit};

const OPERATIONS: [Operation; 4] =
    [Operation::ListForFetch, Operation::Fetch, Operation::ListForPush, Operation::Push];

/// Runs against a server with a fault.
/// Returns the error message, and the time that the run took.
fn fail_with(fault: &Fault, operation: Operation) -> (String, Duration) {
    let fleet = RemoteFleet::small();
    fleet.write_small_manifests("branch: main", "timeout: 6s");
    let before = fleet.tip();
    fleet.host.always(operation, fault.clone());
    let begin = Instant::now();
    let run = fleet.run().with_status(1);
    let time = begin.elapsed();
    let sentence = run.only_error().to_owned();
    assert!(sentence.contains(&fleet.host.url("fleet.git")), "{operation:?}: {sentence}");
    fleet.assert_no_processes();
    assert_eq!(fleet.tip(), before);
    fleet.host.heal();
    assert_eq!(outcome_and_commit(&fleet.run().with_status(0)).0, "pushed", "{operation:?} {fault:?}");
    fleet.assert_pushed_once();
    (sentence, time)
}

#[test]
fn a_hung_server_costs_its_timeout_and_little_more() {
    at_once(OPERATIONS, |operation| {
        let (sentence, time) = fail_with(&Fault::Hang, operation);
        // What came before has taken a part of the time, on a slow machine most of it.
        let said = (1..=6).any(|seconds| sentence.contains(&format!("timed out after {seconds} s")));
        assert!(said, "{operation:?}: {sentence}");
        assert!(time >= Duration::from_secs(5) && time < Duration::from_secs(30), "{operation:?}: {time:?}");
    });
}

#[test]
fn a_server_that_closes_the_connection_or_fails_is_one_error() {
    for (fault, words) in [(Fault::Reset, "closed the connection or failed"), (Fault::Status(503), "503")] {
        for operation in OPERATIONS {
            let (sentence, time) = fail_with(&fault, operation);
            assert!(sentence.contains(words), "{operation:?}: {sentence}");
            assert!(time < Duration::from_secs(30), "{operation:?}: {time:?}");
        }
    }
}
