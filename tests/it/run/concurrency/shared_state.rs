//! Concurrent runs on one state directory.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::support::git_host::{Fault, Operation};
use crate::support::program::run;
use crate::support::remote_fleet::{RemoteFleet, only_outcome};

/// The beginning of the only line that a run prints because of other runs.
const WAITING: &str = "waiting for another run that uses the state in ";

/// Starts three runs at once, and returns the outcomes of their one automation, sorted.
fn three_at_once(fleet: &RemoteFleet) -> Vec<String> {
    let runs = std::thread::scope(|scope| {
        let runs = [(); 3].map(|()| scope.spawn(|| run(&mut fleet.command()).with_status(0)));
        runs.map(|run| run.join().unwrap())
    });
    let mut words = Vec::new();
    for run in runs {
        assert!(run.errors.lines().all(|line| line.starts_with(WAITING)), "{run:?}");
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
fn of_concurrent_runs_only_the_one_that_pushed_reports_it() {
    let fleet = RemoteFleet::small();
    for operation in [Operation::ListForFetch, Operation::Push] {
        fleet.host.always(operation, Fault::Delay(Duration::from_millis(300)));
    }
    assert_one_pushed(&three_at_once(&fleet));
    fleet.assert_pushed_once();
    assert_eq!(three_at_once(&fleet), ["skipped"; 3]);
}

#[test]
fn the_push_of_a_killed_run_is_reported_by_one_of_the_next() {
    let fleet = RemoteFleet::small();
    // The children of the killed run hold the mirror for this time.
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

/// Locks the state as a run does.
fn hold(fleet: &RemoteFleet) -> File {
    fs::create_dir_all(fleet.state()).unwrap();
    let file = File::create(fleet.state().join("lock")).unwrap();
    file.try_lock().unwrap();
    file
}

/// Waits until `child` has locked the state.
///
/// Reads the owners in the kernel's list of locks. Trying the lock is not enough: a process that a concurrent test has
/// just forked still holds the lock that this test has dropped.
fn until_it_holds_the_state(child: &Child) {
    let owner = child.id().to_string();
    let begin = Instant::now();
    loop {
        let locks = fs::read_to_string("/proc/locks").unwrap();
        let mut locks = locks.lines().map(|lock| lock.split_whitespace().collect::<Vec<_>>());
        if locks.any(|lock| lock[1] == "FLOCK" && lock[4] == owner) {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "the run does not lock the state");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Starts a run with its errors in a file.
/// They can be read there while the run goes on.
fn start(fleet: &RemoteFleet, command: &mut Command) -> Child {
    let errors = File::create(fleet.root().join("errors")).unwrap();
    command.stdout(Stdio::piped()).stderr(errors).spawn().unwrap()
}

fn errors(fleet: &RemoteFleet) -> String {
    fs::read_to_string(fleet.root().join("errors")).unwrap()
}

/// Waits until a run has printed something on standard error.
fn until_it_prints(fleet: &RemoteFleet) {
    let begin = Instant::now();
    while !errors(fleet).ends_with('\n') {
        assert!(begin.elapsed() < Duration::from_secs(60), "the run says nothing");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_run_that_may_not_wait_names_the_state_that_another_one_uses() {
    let fleet = RemoteFleet::small();
    let held = hold(&fleet);
    let place = fleet.state().display().to_string();
    for more in [&[][..], &["--dry-run"], &["--no-scan"]] {
        let run = run(fleet.command().args(more).args(["--wait-for-state", "0s"])).with_status(1);
        let sentence = format!(
            "error: another run uses the state in {place}; run again when it is done, or wait for it with --wait-for-state"
        );
        assert_eq!(run.only_error(), sentence);
        assert_eq!(run.json()["automations"], serde_json::json!([]));
    }
    let run = run(fleet.command().args(["--wait-for-state", "300ms"])).with_status(1);
    let lines: Vec<&str> = run.errors.lines().collect();
    let expected = [
        format!("{WAITING}{place}, up to 300ms"),
        format!(
            "error: another run still uses the state in {place} after 300ms; run again when it is done, or wait longer with \
             --wait-for-state"
        ),
    ];
    assert_eq!(lines, expected);
    assert!(fleet.host.requests().is_empty(), "nothing is asked before the state is held");
    drop(held);
    fleet.run().with_status(0);
}

#[test]
fn a_run_that_waits_reads_the_manifests_after_the_wait() {
    let fleet = RemoteFleet::small();
    let held = hold(&fleet);
    let child = start(&fleet, &mut fleet.command());
    until_it_prints(&fleet);
    // The manifests are read after the wait.
    fleet.write_small_manifests("branch: other", "");
    drop(held);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0), "{}", errors(&fleet));
    assert!(fleet.repository.id("refs/heads/other").is_some());
    assert!(fleet.own_commits().is_empty());
    assert!(errors(&fleet).starts_with(&format!("{WAITING}{}, up to 1m0s", fleet.state().display())));
}

#[test]
fn a_signal_ends_a_run_that_waits_for_the_state() {
    let fleet = RemoteFleet::small();
    let _held = hold(&fleet);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut child = start(&fleet, &mut fleet.command());
        until_it_prints(&fleet);
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{signal:?}");
        let text = errors(&fleet);
        let last = text.lines().last().unwrap();
        assert_eq!(
            last,
            format!(
                "error: tagboat was stopped while it waited for another run that uses the state in {}",
                fleet.state().display()
            )
        );
    }
}

/// A signal ends a run that has waited and reads a silent standard input.
///
/// The wait installs signal handlers, and reading from a standard input that stays open must end upon a
/// signal all the same.
#[test]
fn a_signal_ends_a_run_that_has_waited_and_reads_manifests_from_a_silent_standard_input() {
    let fleet = RemoteFleet::small();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let held = hold(&fleet);
        let mut child = start(&fleet, fleet.command().arg("-").stdin(Stdio::piped()));
        let silent = child.stdin.take();
        until_it_prints(&fleet);
        drop(held);
        until_it_holds_the_state(&child);
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{signal:?}");
        let text = errors(&fleet);
        let last = text.lines().last().unwrap();
        assert_eq!(last, "error: tagboat was stopped while it read the manifests", "{signal:?}");
        drop(silent);
    }
}

#[test]
fn a_dry_run_works_on_a_state_that_it_cannot_write() {
    let fleet = RemoteFleet::small();
    fleet.run().with_status(0);
    let folder = fleet.state();
    fs::remove_file(folder.join("lock")).unwrap();
    let set = |mode| fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
    set(0o500);
    // Root may write anywhere, so for root the directory is locked as usual.
    let dry = run(fleet.command().arg("--dry-run"));
    set(0o700);
    assert_eq!(folder.join("lock").exists(), geteuid().is_root());
    assert_eq!(only_outcome(&dry.with_status(0))["outcome"], "skipped");
}
