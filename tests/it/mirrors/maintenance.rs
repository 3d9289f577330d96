//! Tests of the maintenance of mirrors.
//! After hundreds of commits a mirror is as small and fast as a new one.
//!
//! The remote is a path, because a server would only add its own time to each run. All files are in memory if
//! the machine has such a file system, because a disk would add time, too.

use std::fs;
use std::time::{Duration, Instant};

use tagboat::git::outcome::Outcome;

use super::local_remote::{LocalRemote, size_of};
use crate::support::content::{Change, file};
use crate::support::fleet::tag_line;

/// The extent of a mirror at one time.
#[derive(Debug, Default, Clone, Copy)]
struct Age {
    size: u64,
    files: usize,
    shallow_lines: usize,
}

impl Age {
    fn of(local: &LocalRemote) -> Self {
        let mirror = local.mirror();
        let shallow = fs::read_to_string(mirror.join("shallow")).unwrap_or_default();
        Self {
            size: size_of(&mirror),
            files: super::local_remote::files_below(&mirror).len(),
            shallow_lines: shallow.lines().count(),
        }
    }

    fn or_larger(self, other: Self) -> Self {
        Self {
            size: self.size.max(other.size),
            files: self.files.max(other.files),
            shallow_lines: self.shallow_lines.max(other.shallow_lines),
        }
    }
}

/// Returns a fleet of a hundred files in ten directories.
/// Every tenth file has a marked line.
fn fleet() -> Vec<Change> {
    let app = |number: usize| {
        let marked = if number.is_multiple_of(10) { tag_line("1.0.0") } else { String::new() };
        file(
            format!("apps/team-{:02}/app.yaml", number / 10 + number % 10 * 10),
            format!("name: {number}\n{marked}"),
        )
    };
    (0..100).map(app).collect()
}

fn local() -> LocalRemote {
    LocalRemote::in_memory(&fleet())
}

/// Calls `run` with each number, and measures the mirror and the runs.
///
/// Returns the greatest extent of the mirror and the mean time of a run, for the first and for the last
/// `window` runs.
fn live(local: &LocalRemote, runs: usize, window: usize, mut run: impl FnMut(usize)) -> [(Age, Duration); 2] {
    let mut ends = [(Age::default(), Duration::ZERO); 2];
    for number in 0..runs {
        let begin = Instant::now();
        run(number);
        let took = begin.elapsed();
        let first_and_last = [number < window, number >= runs - window];
        for (end, _) in ends.iter_mut().zip(first_and_last).filter(|(_, is_in)| *is_in) {
            *end = (end.0.or_larger(Age::of(local)), end.1 + took / u32::try_from(window).unwrap());
        }
    }
    for (when, (age, mean)) in ["first", "last"].iter().zip(&ends) {
        println!("the {when} {window} of {runs} runs: at most {age:?}, {mean:?} each");
    }
    ends
}

#[track_caller]
fn assert_flat([(first, _), (last, _)]: [(Age, Duration); 2]) {
    assert!(last.size <= first.size + first.size / 2, "{first:?} {last:?}");
    assert!(last.files <= (first.files + first.files / 2).max(3_000), "{first:?} {last:?}");
    assert!(last.shallow_lines <= first.shallow_lines.max(66), "{first:?} {last:?}");
}

#[test]
fn five_hundred_commits_of_others_do_not_grow_a_mirror() {
    const COMMITS: usize = 500;
    let local = local();
    let changes: Vec<[Change; 1]> = (0..COMMITS)
        .map(|number| {
            let path = format!("apps/team-{:02}/other/values.yaml", number % 10);
            [file(path, format!("number: {number}\n"))]
        })
        .collect();
    local.remote.commits("main", changes.iter().map(|changes| ("Change", changes.as_slice())));
    let commits = local.remote.git(["rev-list", "--reverse", "main"]);
    let commits = String::from_utf8(commits).unwrap();
    let commits: Vec<&str> = commits.lines().skip(1).collect();
    let head = local.remote.path().join("refs/heads/main");
    let ends = live(&local, COMMITS, 100, |number| {
        fs::write(&head, format!("{}\n", commits[number])).unwrap();
        match local.update("1.0.0").unwrap() {
            Outcome::NothingToCommit { source } => {
                assert_eq!(source.commit.to_string(), commits[number]);
            }
            other => panic!("{other:?}"),
        }
    });
    assert_flat(ends);
}

#[test]
fn two_hundred_own_commits_do_not_grow_a_mirror() {
    const COMMITS: usize = 200;
    let local = local();
    let ends = live(&local, COMMITS, 70, |number| {
        let outcome = local.update(&format!("1.0.{}", number + 1)).unwrap();
        assert!(matches!(outcome, Outcome::Pushed(_)), "{outcome:?}");
    });
    assert_flat(ends);
    assert_eq!(local.remote.log("main").len(), COMMITS + 1);
    assert_eq!(
        local.remote.file("main", "apps/team-03/app.yaml"),
        format!("name: 30\n{}", tag_line("1.0.200")).into_bytes()
    );
    local.remote.assert_sound();
}

#[test]
fn runs_without_a_push_do_not_grow_a_mirror() {
    let local = local();
    local.remote.hook("pre-receive", "echo no; exit 1");
    let ends = live(&local, 150, 70, |number| {
        local.remote.commit("main", "Change", &[file("other.yaml", number.to_string())]);
        if number % 2 == 0 {
            local.update("2.0.0").unwrap_err();
        } else {
            local.dry_run("2.0.0").result.unwrap();
        }
    });
    assert_flat(ends);
}
