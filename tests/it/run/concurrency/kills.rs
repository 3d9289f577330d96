//! Killed runs, and the recovery by the next run.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::cases::at_once;
use crate::support::content::file;
use crate::support::fleet::{podinfo, tag_line};
use crate::support::git_host::{Access, Fault, Operation, Settings};
use crate::support::manifests::automation;
use crate::support::remote_fleet::{RemoteFleet, git_fields, git_repository, secret};

/// The processes that are killed.
#[derive(Debug, Clone, Copy)]
enum Victims {
    /// The program alone: its children go on without it.
    Program,
    /// The program and its children.
    All,
}

const VICTIMS: [Victims; 2] = [Victims::Program, Victims::All];

/// A fleet with a unique password, so that files can be searched for it.
struct Scene {
    fleet: RemoteFleet,
    password: String,
}

impl Scene {
    fn new() -> Self {
        let files = [file("app.yaml", tag_line("4.0.6"))];
        let place = tempfile::tempdir().unwrap();
        let password = format!("secret-{}", place.path().file_name().unwrap().display());
        let settings = Settings { access: Access::bearer(&password), tls: None };
        let fleet = RemoteFleet::of_files(&files, settings);
        let parts = [
            podinfo(),
            git_repository(&fleet.host.url("fleet.git"), "timeout: 5s, secretRef: {name: login}"),
            secret("login", &format!("bearerToken: {password:?}")),
            automation("default", "fleet", &git_fields("Tagboat", "branch: main")),
        ];
        fleet.write_manifests(&parts.concat());
        Self { fleet, password }
    }

    /// Creates a fleet with a slow host.
    /// The steps of a run then take about the same time in each run.
    fn slow() -> Self {
        let scene = Self::new();
        for operation in [Operation::ListForFetch, Operation::Fetch, Operation::ListForPush, Operation::Push]
        {
            scene.fleet.host.always(operation, Fault::Delay(Duration::from_millis(100)));
        }
        scene
    }

    /// Starts a run and kills it once `is_time` is true.
    /// Returns whether it was still running.
    fn run_until(&self, victims: Victims, mut is_time: impl FnMut() -> bool) -> bool {
        let mut command = self.fleet.command();
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begin = Instant::now();
        while !is_time() && child.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < Duration::from_secs(60), "the moment never came");
            std::thread::sleep(Duration::from_millis(1));
        }
        let was_running = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        if let Victims::All = victims {
            for id in self.fleet.git_processes() {
                let _already_gone = kill_process(Pid::from_raw(id).unwrap(), Signal::KILL);
            }
        }
        was_running
    }

    /// Runs again, and asserts that it recovers from anything that the killed run left.
    #[track_caller]
    fn recover(&self, words: &str) {
        let run = self.fleet.run();
        assert_eq!((run.status, run.errors.as_str()), (Some(0), ""), "{words}: {run:?}");
        self.fleet.assert_pushed_once();
        self.fleet.assert_no_processes();
        for base in [Path::new("/dev/shm"), &self.fleet.root().join("temporary")] {
            assert_eq!(holders(base, self.password.as_bytes()), [""; 0], "{words}");
        }
    }
}

/// The files of the program that hold a secret, in its private directories below `base`.
fn holders(base: &Path, password: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(listing) = std::fs::read_dir(base) else { return found };
    let directories = listing.flatten().map(|item| item.path());
    let is_private =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("tagboat"));
    // Other tests remove their directories meanwhile.
    let listings = directories.filter(is_private).filter_map(|path| std::fs::read_dir(path).ok());
    for item in listings.flat_map(Iterator::flatten) {
        let path = item.path();
        if item.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(content) = std::fs::read(&path)
            && content.windows(password.len()).any(|part| part == password)
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn the_next_run_recovers_from_a_kill_at_a_known_step() {
    let second = Duration::from_secs(1);
    for victims in VICTIMS {
        let cases = [
            (Operation::ListForFetch, Fault::Delay(second), "while it lists"),
            (Operation::Fetch, Fault::Delay(second), "while it fetches"),
            (Operation::ListForPush, Fault::Delay(second), "before it pushes"),
            (Operation::Push, Fault::Hang, "while it pushes, in vain"),
            (Operation::Push, Fault::Delay(second), "while it pushes"),
            (Operation::Push, Fault::HangAfterwards, "after it pushed"),
        ];
        at_once(cases, |(operation, fault, words)| {
            let scene = Scene::new();
            scene.fleet.host.once(operation, fault);
            let tip = scene.fleet.tip();
            let is_time = || {
                let has_come = !scene.fleet.host.requests_for(operation).is_empty();
                has_come && (words != "after it pushed" || scene.fleet.tip() != tip)
            };
            assert!(scene.run_until(victims, is_time), "{words}: it was too late");
            scene.recover(&format!("{victims:?} {words}"));
        });
    }
}

#[test]
fn the_next_run_recovers_from_a_kill_at_any_time() {
    let scene = Scene::slow();
    let begin = Instant::now();
    scene.fleet.run().with_status(0);
    let whole = begin.elapsed();
    let interrupted = AtomicU32::new(0);
    for parts in [1..=4, 5..=8, 9..=12] {
        at_once(parts, |part| {
            let scene = Scene::slow();
            let begin = Instant::now();
            let moment = whole * part / 12;
            let victims = VICTIMS[part as usize % 2];
            let was_running = scene.run_until(victims, || begin.elapsed() >= moment);
            interrupted.fetch_add(u32::from(was_running), Ordering::Relaxed);
            scene.recover(&format!("{victims:?} after {part}/12"));
        });
    }
    assert!(interrupted.into_inner() > 0, "no run was killed in time");
}
