//! Memory limits of git processes.
//!
//! Git holds every commit, tag and tree as a whole, and two blobs if one is a delta of the other; their sizes are under
//! the control of a server. `GIT_ALLOC_LIMIT` bounds one allocation, and so one object. The resource limit
//! `RLIMIT_DATA` bounds the private memory of one process. Files that are mapped for reading, such as packs, count for
//! neither. Child processes inherit both.

use std::path::Path;
use std::process::Command;

/// The maximum size in MiB of one allocation of git.
/// A pack of 1,000,000 objects takes 60 MiB.
pub(super) const OBJECT_MIB: u64 = 96;

/// The private memory that one process may have, in MiB.
pub(super) const PROCESS_MIB: u64 = 144;

/// The environment variable of git for [`OBJECT_MIB`].
pub(super) const VARIABLE: &str = "GIT_ALLOC_LIMIT";

/// The value of [`VARIABLE`].
pub(super) fn largest_allocation() -> String {
    format!("{OBJECT_MIB}m")
}

/// Settings that keep git's own caches below the limits.
///
/// Blobs above `core.bigFileThreshold` are not held at all, and the work on deltas is not multiplied by the
/// number of CPUs.
pub(super) const SETTINGS: [(&str, &str); 5] = [
    ("core.bigFileThreshold", "16m"),
    ("core.deltaBaseCacheLimit", "32m"),
    ("pack.deltaCacheSize", "16m"),
    ("pack.threads", "2"),
    ("pack.windowMemory", "16m"),
];

/// The shell that git itself starts, which need not be in `PATH`.
const SHELL: &str = "/bin/sh";

/// The shell script that sets the limit, in KiB, and becomes the program.
/// A lower limit that holds already stays, which is no failure.
const SCRIPT: &str = r#"ulimit -d "$0" 2>/dev/null; exec "$@""#;

/// Returns a command of a program that may have that many MiB of memory.
///
/// A shell sets the limit, because safe Rust has no other way to set it before the process starts.
pub(super) fn limited(program: &Path, mib: u64) -> Command {
    let mut command = Command::new(SHELL);
    command.args(["-c", SCRIPT]).arg((mib * 1024).to_string()).arg(program);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_limit_applies_to_children_and_does_not_raise_a_lower_one() {
        let data_limit = |mut command: Command| {
            let output = command.args(["-c", "sh -c 'ulimit -d'"]).output().unwrap();
            assert!(output.stderr.is_empty(), "{output:?}");
            String::from_utf8(output.stdout).unwrap().trim().parse::<u64>().unwrap()
        };
        assert_eq!(data_limit(limited(Path::new("sh"), 40)), 40 * 1024);
        let mut lower = Command::new("sh");
        let within = limited(Path::new("sh"), 100);
        lower
            .args(["-c", r#"ulimit -d 50000; exec "$0" "$@""#])
            .arg(within.get_program())
            .args(within.get_args());
        assert_eq!(data_limit(lower), 50_000);
    }
}
