//! Audit of the command lines and files of a run.
//! The command lines are those that other processes can see, the files those that the run left.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use memchr::memmem;

/// Runs `work` and returns the command lines that all processes had meanwhile.
/// They are those of all processes of this machine, each once.
pub(crate) fn command_lines<T>(work: impl FnOnce() -> T) -> (T, Vec<Vec<u8>>) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut lines = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                look(&mut lines);
                std::thread::sleep(Duration::from_millis(5));
            }
            lines
        });
        let end = EndOnDrop(&is_over);
        let result = work();
        drop(end);
        (result, watch.join().unwrap())
    })
}

/// Ends the audit even if `work` panics.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn look(lines: &mut Vec<Vec<u8>>) {
    for item in fs::read_dir("/proc").unwrap().flatten() {
        // A process may end while it is read.
        let Ok(line) = fs::read(item.path().join("cmdline")) else { continue };
        if !line.is_empty() && !lines.contains(&line) {
            lines.push(line);
        }
    }
}

/// Asserts that no file at or below a path contains the text.
#[track_caller]
pub(crate) fn assert_without(path: &Path, secret: &str) {
    let Ok(found) = fs::symlink_metadata(path) else { return };
    if found.is_dir() {
        for item in fs::read_dir(path).into_iter().flatten().flatten() {
            assert_without(&item.path(), secret);
        }
    } else if found.is_file() {
        // Files of other tests may be gone again.
        let content = fs::read(path).unwrap_or_default();
        let is_there = memmem::find(&content, secret.as_bytes()).is_some();
        assert!(!is_there, "{} has {secret:?} in it", path.display());
    }
}
