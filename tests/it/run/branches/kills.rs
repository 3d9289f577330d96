//! Killed runs, and the recovery by the next one.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{BRANCH, beyond, fleet};
use crate::support::cases::at_once;
use crate::support::fleet::tag_line;
use crate::support::git_host::{Fault, Operation};
use crate::support::remote_fleet::RemoteFleet;

/// Starts a run and kills it once `is_time` is true.
#[track_caller]
fn kill_when(fleet: &RemoteFleet, is_time: impl Fn() -> bool) {
    let mut child = fleet.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while !is_time() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the moment never came");
        assert!(child.try_wait().unwrap().is_none(), "the run ended before");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_next_run_recovers_from_a_kill_at_a_known_step() {
    let second = Duration::from_secs(1);
    let cases = [
        (Operation::ListForFetch, Fault::Delay(second), "while it lists"),
        (Operation::Fetch, Fault::Delay(second), "while it fetches"),
        (Operation::ListForPush, Fault::Delay(second), "before it pushes"),
        (Operation::Push, Fault::Hang, "while it pushes, in vain"),
        (Operation::Push, Fault::Delay(second), "while it pushes"),
        (Operation::Push, Fault::HangAfterwards, "after it pushed"),
    ];
    at_once(cases, |(operation, fault, words)| {
        let fleet = fleet(json!({}));
        fleet.host.once(operation, fault);
        kill_when(&fleet, || {
            let has_come = !fleet.host.requests_for(operation).is_empty();
            has_come && (words != "after it pushed" || super::tip(&fleet, BRANCH).is_some())
        });
        // A push that goes on without the program comes first or second; either is fine.
        fleet.host.heal();
        super::run(&fleet);
        fleet.assert_no_processes();
        let own = beyond(&fleet, BRANCH);
        assert_eq!(own.len(), 1, "{words}");
        assert_eq!(super::content(&fleet, BRANCH, "app.yaml"), tag_line("5.0.3"), "{words}");
        assert_eq!(own[0].parents, [fleet.tip()], "{words}");
        let status = fleet.status("fleet");
        assert_eq!(status["lastPushCommit"], own[0].id.as_str(), "{words}: {status:#}");
        // Nothing is left to report.
        let report = super::report(&fleet.run());
        assert_eq!(report["message"], "no change since last reconciliation", "{words}");
        fleet.assert_sound();
    });
}

#[test]
fn the_next_run_recovers_from_a_kill_at_any_time() {
    let slow = || {
        let fleet = fleet(json!({}));
        for operation in [Operation::ListForFetch, Operation::Fetch, Operation::ListForPush, Operation::Push]
        {
            fleet.host.always(operation, Fault::Delay(Duration::from_millis(60)));
        }
        fleet
    };
    let measured = slow();
    let begin = Instant::now();
    super::run(&measured);
    let whole = begin.elapsed();
    for parts in [1..=4, 5..=8, 9..=12] {
        at_once(parts, |part| {
            let fleet = slow();
            let mut child = fleet.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(whole.mul_f64(f64::from(part) / 12.0));
            child.kill().unwrap();
            child.wait().unwrap();
            super::run(&fleet);
            fleet.assert_no_processes();
            let own = beyond(&fleet, BRANCH);
            assert_eq!(
                (own.len(), fleet.status("fleet")["lastPushCommit"].as_str()),
                (1, Some(own[0].id.as_str()))
            );
            fleet.assert_sound();
        });
    }
}
