//! Runs of the real program, as by its users.

use std::ffi::OsStr;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::schemas;

/// The result of a run of the program.
#[derive(Debug)]
pub(crate) struct Run {
    /// The exit status; `None` when a signal ended it.
    pub(crate) status: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Run {
    /// Standard output as JSON, which must be as its schema says.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let document = serde_json::from_str(&self.output);
        let document = document.unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"));
        schemas::check(&document);
        document
    }

    /// Asserts an exit status.
    #[track_caller]
    pub(crate) fn with_status(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "{self:?}");
        self
    }

    /// The one line on standard error.
    #[track_caller]
    pub(crate) fn only_error(&self) -> &str {
        let line = self.errors.strip_suffix('\n').unwrap_or_else(|| panic!("no line of errors: {self:?}"));
        assert!(!line.contains('\n'), "more than one line: {self:?}");
        line
    }
}

/// The program, without variables of the caller's environment that could change its output.
pub(crate) fn tagboat() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tagboat"));
    command.env_remove("NO_COLOR").env_remove("COLUMNS").env("LC_ALL", "C").stdin(Stdio::null());
    command
}

/// The program, without the caller's proxies and clusters.
pub(crate) fn tagboat_without_cluster() -> Command {
    let mut command = tagboat();
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command.env_remove("KUBECONFIG").env_remove("DOCKER_CONFIG").env_remove("KUBERNETES_SERVICE_HOST");
    command
}

/// Returns the absolute path of an installed program.
///
/// A command with a bare name and its own `PATH` is started by `fork`, which copies the page tables of the whole test
/// process; with a path it is started by `posix_spawn`, which copies nothing.
#[track_caller]
pub(crate) fn installed(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Servers such as sshd are seldom in the `PATH` of ordinary users.
    let mut places = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let found = places.find_map(|place| {
        Some(place.join(name)).filter(|program| program.is_absolute() && program.is_file())
    });
    found.unwrap_or_else(|| panic!("{name} is not installed: run `hack/setup`"))
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Run {
    let begin = Instant::now();
    loop {
        match command.output() {
            Ok(output) => return finished(&output),
            // A process that a concurrent test has just forked still has the program open for writing.
            Err(error)
                if error.kind() == ErrorKind::ExecutableFileBusy
                    && begin.elapsed() < Duration::from_secs(10) =>
            {
                std::thread::yield_now();
            }
            Err(error) => panic!("cannot run {command:?}: {error}"),
        }
    }
}

/// Runs a command with `input` on standard input.
/// A command may end before it has read all of the input, because of an earlier error.
pub(crate) fn run_with_input(command: &mut Command, input: &str) -> Run {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    if let Err(error) = child.stdin.take().expect("a pipe").write_all(input.as_bytes()) {
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "{command:?} cannot be given its input: {error}");
    }
    finished(&child.wait_with_output().expect("the program ends"))
}

fn finished(output: &std::process::Output) -> Run {
    Run {
        status: output.status.code(),
        output: String::from_utf8(output.stdout.clone()).expect("output is UTF-8"),
        errors: String::from_utf8(output.stderr.clone()).expect("errors are UTF-8"),
    }
}

/// Runs `tagboat update DIR --policies MANIFESTS MORE…`.
pub(crate) fn update<I>(directory: &Path, manifests: &Path, more: I) -> Run
where
    I: IntoIterator,
    I::Item: AsRef<OsStr>,
{
    run(tagboat().arg("update").arg(directory).arg("--policies").arg(manifests).args(more))
}
