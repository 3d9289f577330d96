//! The one builder of processes for programs of the host.
//!
//! A program gets no environment but `PATH`. In particular it does not get the variable `container`, which a container
//! runtime sets: with it, bootc takes itself to be inside a container, and refuses to act as on a host. A program has
//! limits of time and output, and leads a process group that is killed when a limit is reached or the caller stops
//! waiting.

use std::env;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::excerpt;

/// The default prefix, which enters the namespaces of the host.
///
/// In a pod with `hostPID`, the process 1 is that of the host.
pub const DEFAULT_PREFIX: &str = "nsenter --target 1 --mount --pid --cgroup --";

/// The time limit of programs that only read, or ask a service.
pub(super) const SHORT: Duration = Duration::from_secs(60);

/// The maximum size of standard output and of standard error each, in bytes.
const MAX_OUTPUT: usize = 1024 * 1024;

/// The exit status by which `nsenter`, `env` and shells report a missing program.
const MISSING: i32 = 127;

/// Runs programs on the host.
#[derive(Clone, Debug)]
pub struct OnHost {
    prefix: Vec<String>,
}

/// The error of a program.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The program, or the first one of the prefix, does not exist.
    #[error("{program} is missing")]
    Missing {
        /// The program.
        program: String,
    },
    /// The program cannot be started or read.
    #[error("`{line}` cannot be run")]
    NotRun {
        /// The command line without its prefix.
        line: String,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// The program was killed at its time limit.
    #[error("`{line}` did not end within {} s{}{output}", limit.as_secs_f64(), separator(output))]
    TimedOut {
        /// The command line without its prefix.
        line: String,
        /// The time limit.
        limit: Duration,
        /// The end of its output, printable.
        output: String,
    },
    /// The program was killed because of its output.
    #[error("`{line}` printed more than {} KiB{}{output}", MAX_OUTPUT / 1024, separator(output))]
    TooMuchOutput {
        /// The command line without its prefix.
        line: String,
        /// The end of its output, printable.
        output: String,
    },
    /// The program failed.
    #[error("`{line}` failed, {status}{}{output}", separator(output))]
    Failed {
        /// The command line without its prefix.
        line: String,
        /// The exit status, or the signal that killed the program.
        status: ExitStatus,
        /// The end of its output, printable.
        output: String,
    },
}

impl CommandError {
    /// Returns the exit status of a program that failed by itself.
    pub(super) fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Failed { status, .. } => status.code(),
            _ => None,
        }
    }
}

impl OnHost {
    /// Creates the builder with a prefix, whose words are separated by spaces.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.split_ascii_whitespace().map(str::to_owned).collect() }
    }

    /// Runs a program to its end, and returns its standard output.
    pub(super) async fn run(
        &self,
        limit: Duration,
        program: &str,
        arguments: &[&str],
    ) -> Result<Vec<u8>, CommandError> {
        let line = [&[program], arguments].concat().join(" ");
        let mut words =
            self.prefix.iter().map(String::as_str).chain([program]).chain(arguments.iter().copied());
        let first = words.next().expect("a command line has a program");
        let mut command = Command::new(first);
        command.args(words).env_clear().envs(env::var_os("PATH").map(|path| ("PATH", path)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let child = command.spawn().map_err(|cause| match cause.kind() {
            io::ErrorKind::NotFound => CommandError::Missing { program: first.to_owned() },
            _ => CommandError::NotRun { line: line.clone(), cause },
        })?;
        let mut group = ProcessGroup(child);
        let mut printed = Printed::default();
        let end = timeout(limit, group.end(&mut printed)).await;
        let status = match end {
            Ok(Ok(status)) => status,
            Ok(Err(EndError::Flooded)) => {
                return Err(CommandError::TooMuchOutput { line, output: printed.end() });
            }
            Ok(Err(EndError::Io(cause))) => return Err(CommandError::NotRun { line, cause }),
            Err(_) => return Err(CommandError::TimedOut { line, limit, output: printed.end() }),
        };
        match status.code() {
            Some(0) => Ok(printed.stdout),
            Some(MISSING) => Err(CommandError::Missing { program: program.to_owned() }),
            _ => Err(CommandError::Failed { line, status, output: printed.end() }),
        }
    }
}

/// Returns the text between an error and the output of its program.
fn separator(output: &str) -> &'static str {
    if output.is_empty() { "" } else { ": " }
}

/// The output of a program so far.
#[derive(Default)]
struct Printed {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Printed {
    /// Returns its end for an error.
    fn end(&self) -> String {
        excerpt::end(if self.stderr.trim_ascii().is_empty() { &self.stdout } else { &self.stderr })
    }
}

/// The reason why a program has no exit status.
enum EndError {
    /// It printed more than the limit.
    Flooded,
    /// It cannot be read, or waited for.
    Io(io::Error),
}

impl From<io::Error> for EndError {
    fn from(cause: io::Error) -> Self {
        Self::Io(cause)
    }
}

/// A program that leads a process group.
///
/// The group is killed if this is dropped before the program has ended. It gets SIGKILL at once: these programs read, or
/// ask a service, and have nothing to tidy up.
struct ProcessGroup(Child);

impl ProcessGroup {
    /// Waits for the end of the output, then of the program.
    ///
    /// It waits in this order because the ID of the group is that of no other as long as the program is not reaped.
    async fn end(&mut self, printed: &mut Printed) -> Result<ExitStatus, EndError> {
        let (stdout, stderr) = (self.0.stdout.take(), self.0.stderr.take());
        tokio::try_join!(read(stdout, &mut printed.stdout), read(stderr, &mut printed.stderr))?;
        Ok(self.0.wait().await?)
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // There is no ID any more if the program was reaped.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

/// Reads a pipe to its end, or up to the limit.
async fn read(pipe: Option<impl AsyncRead + Unpin>, bytes: &mut Vec<u8>) -> Result<(), EndError> {
    if let Some(pipe) = pipe {
        pipe.take(MAX_OUTPUT as u64 + 1).read_to_end(bytes).await?;
    }
    if bytes.len() > MAX_OUTPUT { Err(EndError::Flooded) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::testing::{Machine, wait_until};
    use super::*;

    /// A limit that no test reaches.
    const LONG: Duration = Duration::from_secs(600);

    async fn shell(limit: Duration, script: &str) -> Result<String, String> {
        let result = OnHost::new("").run(limit, "sh", &["-c", script]).await;
        let text = |bytes| String::from_utf8(bytes).unwrap();
        result.map(text).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_program_gives_its_output_or_its_status_with_the_end_of_its_output() {
        assert_eq!(shell(LONG, "echo out; echo words >&2").await.unwrap(), "out\n");
        for (script, expected) in [
            ("exit 3", "failed, exit status: 3"),
            ("echo out; exit 3", "failed, exit status: 3: out"),
            ("echo out; echo words >&2; exit 3", "failed, exit status: 3: words"),
            (r"printf 'a\033[2J\nb\n' >&2; exit 1", r"failed, exit status: 1: a\u{1b}[2J\nb"),
            ("kill -9 $$", "failed, signal: 9 (SIGKILL)"),
        ] {
            assert_eq!(shell(LONG, script).await.unwrap_err(), format!("`sh -c {script}` {expected}"));
        }
        let error = shell(LONG, "head -c 100000 /dev/zero >&2; printf 'last' >&2; exit 1").await.unwrap_err();
        assert!(error.ends_with(r"\u{0}last") && error.len() < 10_000, "{error}");
    }

    #[tokio::test]
    async fn a_program_is_run_behind_its_prefix() {
        let on_host = OnHost::new(" env  A=1 sh -c ");
        assert_eq!(on_host.run(LONG, "echo $A", &[]).await.unwrap(), b"1\n");
        let words: Vec<&str> = DEFAULT_PREFIX.split(' ').collect();
        assert_eq!(OnHost::new(DEFAULT_PREFIX).prefix, words);
    }

    /// With the variable `container`, bootc takes itself to be in a container.
    #[tokio::test]
    async fn a_program_gets_no_variable_but_the_path() {
        assert!(env::vars_os().count() > 1);
        let variables = String::from_utf8(OnHost::new("").run(LONG, "env", &[]).await.unwrap()).unwrap();
        assert_eq!(variables.trim(), format!("PATH={}", env::var("PATH").unwrap()));
    }

    #[tokio::test]
    async fn a_missing_program_is_named_with_and_without_a_prefix() {
        for (prefix, program, expected) in [
            ("", "tagboat-missing", "tagboat-missing is missing"),
            ("tagboat-no-prefix --", "bootc", "tagboat-no-prefix is missing"),
            ("env A=1", "tagboat-missing", "tagboat-missing is missing"),
        ] {
            let error = OnHost::new(prefix).run(LONG, program, &["status"]).await.unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[tokio::test]
    async fn a_program_that_never_ends_is_killed_at_its_limit() {
        for script in ["sleep 600; exit 0", "exec >&- 2>&-; sleep 600; exit 0", "sleep 600 & exit 0"] {
            let error = shell(Duration::from_millis(100), script).await.unwrap_err();
            assert_eq!(error, format!("`sh -c {script}` did not end within 0.1 s"));
        }
    }

    #[tokio::test]
    async fn a_program_that_never_ends_gives_the_end_of_its_output() {
        let script = "echo 'waiting for a lock' >&2; sleep 600";
        let error = shell(Duration::from_secs(2), script).await.unwrap_err();
        assert_eq!(error, format!("`sh -c {script}` did not end within 2 s: waiting for a lock"));
    }

    #[tokio::test]
    async fn a_program_that_floods_its_output_is_killed() {
        for script in ["yes", "yes >&2"] {
            let error = shell(LONG, script).await.unwrap_err();
            let beginning = format!("`sh -c {script}` printed more than 1024 KiB: y\\ny\\ny");
            assert!(error.starts_with(&beginning) && error.len() < 4096, "{error}");
        }
        let most = shell(LONG, &format!("head -c {MAX_OUTPUT} /dev/zero")).await.unwrap();
        assert_eq!(most.len(), MAX_OUTPUT);
    }

    /// Returns true if a process runs; one that is not reaped does not.
    fn runs(process: &str) -> bool {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    }

    #[tokio::test]
    async fn all_processes_of_a_program_are_killed_when_its_future_is_dropped() {
        let machine = Machine::new();
        let notes = machine.path("processes");
        let script = format!("sleep 600 & echo $$ $! > '{}'; sleep 600; sleep 600", notes.display());
        let (on_host, arguments) = (OnHost::new(""), ["-c", script.as_str()]);
        let processes = || fs::read_to_string(&notes).unwrap_or_default();
        {
            let run = on_host.run(LONG, "sh", &arguments);
            let started = wait_until(|| processes().ends_with('\n'));
            tokio::select! {
                result = run => panic!("{result:?}"),
                () = started => {}
            }
        }
        assert_eq!(processes().split_whitespace().count(), 2);
        wait_until(|| !processes().split_whitespace().any(runs)).await;
    }
}
