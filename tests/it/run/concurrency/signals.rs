//! Runs that are interrupted by a signal, and the files that are left then.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::git_host::{Fault, Operation};
use crate::support::remote_fleet::RemoteFleet;

/// Starts a run, and sends it a signal upon the first request of `operation`.
/// Returns its output, and the time until its end.
#[track_caller]
fn end(
    fleet: &RemoteFleet,
    command: &mut Command,
    operation: Operation,
    signal: Signal,
) -> (String, Duration) {
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while fleet.host.requests_for(operation).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the moment never came");
        std::thread::sleep(Duration::from_millis(1));
    }
    let begin = Instant::now();
    kill_process(Pid::from_child(&child), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    (String::from_utf8(output.stderr).unwrap(), begin.elapsed())
}

#[test]
fn a_signal_ends_git_and_leaves_nothing_behind() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        for operation in [Operation::ListForFetch, Operation::Fetch, Operation::Push] {
            let fleet = RemoteFleet::small();
            fleet.host.once(operation, Fault::Hang);
            let (words, time) = end(&fleet, &mut fleet.command(), operation, signal);
            assert!(words.starts_with("default/fleet: "), "{words}");
            assert!(words.contains("was ended because tagboat was stopped"), "{words}");
            assert!(time < Duration::from_secs(20), "{time:?}");
            fleet.assert_no_processes();
            assert_eq!(fs::read_dir(fleet.root().join("temporary")).unwrap().count(), 0);
            fleet.run().with_status(0);
            fleet.assert_pushed_once();
        }
    }
}

#[test]
fn a_temporary_mirror_goes_with_the_run_or_with_the_next() {
    let fleet = RemoteFleet::small();
    let temporary = fleet.root().join("temporary");
    let command = || {
        let mut command = crate::support::program::tagboat();
        command.env("TMPDIR", &temporary).arg("run").arg(fleet.root().join("manifests"));
        command
    };
    fleet.host.once(Operation::Fetch, Fault::Hang);
    end(&fleet, &mut command(), Operation::Fetch, Signal::INT);
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);

    fleet.host.once(Operation::Push, Fault::Hang);
    let mut child = command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while fleet.host.requests_for(Operation::Push).is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(fs::read_dir(&temporary).unwrap().count() > 0);
    crate::support::program::run(&mut command()).with_status(0);
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}
