//! The one builder for git processes.
//!
//! Neither user configuration nor hooks, prompts or a locale may change what a process does, so it gets an environment
//! that is built here. It is the head of a process group that ends with it, it has a deadline and a memory limit, and
//! its output is kept only up to the limits of this file.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::access::{Access, LoginOwner};
use super::context::WriterContext;
use super::git_output::GitOutput;
use super::process::{self, ProcessOutcome, Running};
use super::process_memory;
use super::server_deadline::{NotGranted, ServerDeadline, wait_for};
use super::slots::{ServerWait, Slot};
use super::url::RemoteUrl;
use crate::cancel::Cancellation;

/// Variables that every git process inherits; the [`Access`] adds those for a remote.
const INHERITED: [&str; 2] = ["PATH", "TMPDIR"];

/// Settings for every process, which override those of a repository and of a user.
const SETTINGS: [(&str, &str); 14] = [
    ("core.hooksPath", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    ("core.autocrlf", "false"),
    ("core.safecrlf", "false"),
    ("core.fsmonitor", "false"),
    ("commit.gpgSign", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("gc.auto", "0"),
    ("http.followRedirects", "false"),
    ("maintenance.auto", "false"),
    ("protocol.allow", "never"),
    ("push.recurseSubmodules", "no"),
    ("submodule.recurse", "false"),
];

/// The oldest supported git: `GIT_CONFIG_GLOBAL` and `push.negotiate` came with it.
const MIN_VERSION: (u32, u32) = (2, 32);

/// The timeout of git commands without network access.
const LOCAL_TIMEOUT: Duration = Duration::from_secs(600);

/// Runs git in one directory.
#[derive(Debug, Clone)]
pub struct Git {
    directory: PathBuf,
    is_repository: bool,
    lock: Option<Arc<File>>,
    context: WriterContext,
}

/// The error of a git process that did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The program is not there.
    #[error("git is not installed, or not in PATH; tagboat needs git {}.{} or newer", MIN_VERSION.0, MIN_VERSION.1)]
    Missing,
    /// The program is too old.
    #[error("git {found} is too old; tagboat needs git {}.{} or newer", MIN_VERSION.0, MIN_VERSION.1)]
    TooOld {
        /// Its version.
        found: String,
    },
    /// The program could not be started or waited for.
    #[error("cannot run git {verb}")]
    NotStarted {
        /// The subcommand.
        verb: &'static str,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// The program refused, or was killed.
    #[error("git {verb} {}", ending(*status, stderr))]
    Refused {
        /// The subcommand.
        verb: &'static str,
        /// Its exit status, or the signal that killed it.
        status: ExitStatus,
        /// The output of git.
        stderr: GitOutput,
    },
    /// The deadline has passed.
    #[error("git {verb} timed out after {} s", after.as_secs().max(1))]
    TimedOut {
        /// The subcommand.
        verb: &'static str,
        /// The timeout, which calls before it may have used up in part.
        after: Duration,
    },
    /// The process is being stopped.
    #[error("git {verb} was ended because tagboat was stopped")]
    Interrupted {
        /// The subcommand.
        verb: &'static str,
    },
    /// The check of [`Call::may_begin`] kept it from starting.
    #[error("git {verb} was withheld")]
    Withheld {
        /// The subcommand.
        verb: &'static str,
    },
    /// The check of [`Call::watch`] ended it.
    #[error("git {verb} was cancelled")]
    Stopped {
        /// The subcommand.
        verb: &'static str,
    },
    /// No memory was free for it.
    #[error("no memory was free for git {verb}, because other runs hold it; the next run tries again")]
    NoMemory {
        /// The subcommand.
        verb: &'static str,
    },
    /// It printed more than any call should.
    #[error("git {verb} printed more than {} MiB, the limit, and was ended", process::MAX_OUTPUT >> 20)]
    TooMuchOutput {
        /// The subcommand.
        verb: &'static str,
    },
}

/// Returns the failure of a process, as the rest of a sentence about it.
///
/// A process that is killed, or that fails without a message, still has a reason.
fn ending(status: ExitStatus, stderr: &GitOutput) -> String {
    let message = stderr.to_string();
    match (status.signal(), message.is_empty()) {
        (Some(signal), true) => format!("was killed by signal {signal}"),
        (Some(signal), false) => format!("was killed by signal {signal}: {message}"),
        (None, true) => {
            format!("ended with status {} and printed nothing", status.code().unwrap_or_default())
        }
        (None, false) => format!("failed: {message}"),
    }
}

impl Git {
    /// Creates a git that runs in `directory`.
    pub fn in_directory(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            is_repository: false,
            lock: None,
            context: WriterContext::default(),
        }
    }

    /// Creates a git that runs on the bare repository at `directory`, whose lock is `lock`.
    ///
    /// Every process has the lock as its standard input, from which it reads nothing: if we are killed while it works,
    /// the repository stays locked until the process ends.
    pub fn on_repository(directory: &Path, lock: Arc<File>, context: WriterContext) -> Self {
        Self { directory: directory.to_owned(), is_repository: true, lock: Some(lock), context }
    }

    /// Creates a call of `git VERB`.
    pub fn call<'a>(&self, verb: &'static str) -> Call<'a> {
        Call {
            git: self.clone(),
            verb,
            settings: Vec::new(),
            url_settings: Vec::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
            access: None,
            deadline: None,
            watch: None,
            may_begin: None,
            memory: None,
            limit: process_memory::PROCESS_MIB,
            slot: None,
            cancellations: &[],
        }
    }
}

/// A call of git that is being prepared.
pub struct Call<'a> {
    git: Git,
    verb: &'static str,
    settings: Vec<String>,
    url_settings: Vec<(String, String)>,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, &'static str)>,
    /// The access to a remote.
    pub(super) access: Option<&'a Access>,
    /// The deadline of the call and of all processes that it started.
    ///
    /// A wait for memory postpones it.
    pub(super) deadline: Option<&'a ServerDeadline>,
    /// Called several times a second; if it returns false, the call is ended.
    pub(super) watch: Option<&'a mut dyn FnMut() -> bool>,
    /// Called right before the process starts; if it returns false, it does not.
    pub(super) may_begin: Option<&'a dyn Fn() -> bool>,
    /// The memory in bytes to reserve before the process starts.
    ///
    /// It is charged to the namespace that holds the slot.
    pub(super) memory: Option<u64>,
    /// The maximum memory of the process, and of each that it starts, in MiB.
    pub(super) limit: u64,
    /// The slot to release while the call waits long for the server.
    pub(super) slot: Option<&'a Slot>,
    /// End the call as soon as one of its proposals is cancelled.
    pub(super) cancellations: &'a [Cancellation],
}

/// The output and the exit status of a process.
#[derive(Debug)]
pub struct Output {
    /// Its exit status, or the signal that killed it.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// The text on standard error.
    pub stderr: GitOutput,
}

impl Call<'_> {
    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Sets a setting of git for this call.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push(format!("{name}={value}"));
        self
    }

    /// Sets a setting of git for this call and a URL.
    /// It overrides settings for a shorter prefix of the URL.
    #[must_use]
    pub fn setting_for(mut self, url: &RemoteUrl, section: &str, name: &str, value: &str) -> Self {
        self.url_settings.push((format!("{section}.{url}.{name}"), value.to_owned()));
        self
    }

    /// Sets a variable of git's environment for this call.
    #[must_use]
    pub fn environment(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, value));
        self
    }

    /// Runs the call and returns its output.
    ///
    /// # Errors
    ///
    /// If git is missing, too old or too slow, or ends with another status than 0.
    pub fn run(self) -> Result<Vec<u8>, GitError> {
        let (git, verb) = (self.git.clone(), self.verb);
        let output = self.run_unchecked()?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        git.check_age()?;
        Err(GitError::Refused { verb, status: output.status, stderr: output.stderr })
    }

    /// Runs the call and returns its output, even if git fails.
    ///
    /// # Errors
    ///
    /// If git is missing or too slow.
    pub fn run_unchecked(mut self) -> Result<Output, GitError> {
        let verb = self.verb;
        let not_started = |cause| GitError::NotStarted { verb, cause };
        let program = find_in_path("git").ok_or(GitError::Missing)?;
        let command = self.command(&program).map_err(not_started)?;
        let (WriterContext { stop, metrics, capacity }, mut watch) = (&self.git.context, self.watch.take());
        let cancellations = self.cancellations;
        let is_to_end = || stop.is_cancelled() || cancellations.iter().any(Cancellation::is_cancelled);
        let local = ServerDeadline::after(LOCAL_TIMEOUT);
        let deadline = self.deadline.unwrap_or(&local);
        let reserved = deadline.pause(|| {
            let (bytes, slot) = self.memory.zip(self.slot)?;
            let memory = capacity.memory.reserve_for_server(slot.namespace(), bytes);
            Some(wait_for(&self.git.context, cancellations, memory))
        });
        let _memory = reserved.transpose().map_err(|reason| match reason {
            NotGranted::Cancelled => GitError::Interrupted { verb },
            NotGranted::TooLong => GitError::NoMemory { verb },
        })?;
        if self.may_begin.is_some_and(|may_begin| !may_begin()) {
            return Err(GitError::Withheld { verb });
        }
        let (begin, timeout) = (Instant::now(), deadline.timeout());
        let deadline = stop.deadline(deadline.get());
        // Held until the process has ended, because a cancelled proposal is not finished while it may still push.
        let guards: Option<Vec<_>> = cancellations.iter().map(Cancellation::start_process).collect();
        let Some(_guards) = guards.filter(|_| !stop.is_cancelled()) else {
            return Err(GitError::Interrupted { verb });
        };
        let running = Running::start(command).map_err(not_started)?;
        let mut wait = self.slot.map(Slot::wait);
        let mut may_go_on = || {
            wait.iter_mut().for_each(ServerWait::go_on);
            !is_to_end() && watch.as_mut().is_none_or(|watch| watch())
        };
        let outcome = running.wait(deadline, Some(&mut may_go_on));
        drop(wait);
        metrics.git_called(verb, begin.elapsed());
        match outcome {
            Ok(ProcessOutcome::Stopped) if is_to_end() => Err(GitError::Interrupted { verb }),
            Err(cause) => Err(GitError::NotStarted { verb, cause }),
            Ok(ProcessOutcome::TimedOut) if stop.is_cancelled() => Err(GitError::Interrupted { verb }),
            Ok(ProcessOutcome::TimedOut) => Err(GitError::TimedOut { verb, after: timeout }),
            Ok(ProcessOutcome::Stopped) => Err(GitError::Stopped { verb }),
            Ok(ProcessOutcome::TooMuchOutput) => Err(GitError::TooMuchOutput { verb }),
            // A stop may reach all processes of a pod or a service at the same time.
            Ok(ProcessOutcome::Exited { status, .. }) if status.signal().is_some() && is_to_end() => {
                Err(GitError::Interrupted { verb })
            }
            Ok(ProcessOutcome::Exited { status, stdout, stderr }) => {
                let stderr = GitOutput::new(String::from_utf8_lossy(&stderr), |line| {
                    self.access.map_or_else(|| line.to_owned(), |access| access.redact(line))
                });
                Ok(Output { status, stdout, stderr })
            }
        }
    }

    fn command(&self, program: &Path) -> io::Result<Command> {
        // Programs of a user's own set-up, such as a credential helper, may need more memory, and are trusted.
        let mut command = match self.access.map(Access::owner) {
            Some(LoginOwner::User) => Command::new(program),
            Some(LoginOwner::Objects) | None => process_memory::limited(program, self.limit),
        };
        let input = match &self.git.lock {
            Some(lock) => lock.try_clone()?.into(),
            None => Stdio::null(),
        };
        command.current_dir(&self.git.directory).stdin(input).env_clear();
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
            .env("LC_ALL", "C")
            .env("HOME", "/nonexistent")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env(process_memory::VARIABLE, process_memory::largest_allocation());
        if let Some(access) = self.access {
            command.envs(access.environment().iter().map(|(name, value)| (name, value)));
        }
        if self.git.is_repository {
            // The working directory is the repository, so the path does not matter.
            command.env("GIT_DIR", ".");
        }
        for (name, value) in SETTINGS.into_iter().chain(process_memory::SETTINGS) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command.envs(self.environment.iter().copied());
        for setting in &self.settings {
            command.arg("-c").arg(setting);
        }
        // A URL may contain an equals sign, which would end the name in an argument.
        for (count, (name, value)) in self.url_settings.iter().enumerate() {
            command
                .env(format!("GIT_CONFIG_KEY_{count}"), name)
                .env(format!("GIT_CONFIG_VALUE_{count}"), value);
            command.env("GIT_CONFIG_COUNT", (count + 1).to_string());
        }
        command.arg(self.verb).args(&self.arguments);
        process::set_process_group(&mut command);
        Ok(command)
    }
}

/// Returns the first program of a name in the directories of `PATH`.
fn find_in_path(name: &str) -> Option<PathBuf> {
    let directories = std::env::var_os("PATH")?;
    let programs =
        std::env::split_paths(&directories).filter_map(|at| std::path::absolute(at.join(name)).ok());
    let mut programs = programs.filter(|program| program.is_file());
    programs.find(|program| rustix::fs::access(program, rustix::fs::Access::EXEC_OK).is_ok())
}

impl Git {
    /// Attributes a failure of an old git to its age, regardless of its output.
    fn check_age(&self) -> Result<(), GitError> {
        let Ok(output) = self.call("version").run_unchecked() else { return Ok(()) };
        let text = String::from_utf8_lossy(&output.stdout);
        let found = text.split_whitespace().nth(2).unwrap_or("of an unknown version");
        let mut numbers = found.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if version < MIN_VERSION { Err(GitError::TooOld { found: found.to_owned() }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call of an alias, for which git starts a shell.
    fn call<'a>(git: &Git, script: &str) -> Call<'a> {
        git.call("end").setting("alias.end", &format!("!{script}"))
    }

    #[test]
    fn the_error_of_a_process_that_prints_nothing_has_its_signal_or_status() {
        let directory = tempfile::tempdir().unwrap();
        let git = Git::in_directory(directory.path());
        for (script, sentence) in [
            ("kill -KILL $PPID", "git end was killed by signal 9"),
            ("echo words >&2; kill -KILL $PPID", "git end was killed by signal 9: words"),
            ("exit 3", "git end ended with status 3 and printed nothing"),
            ("echo words >&2; exit 3", "git end failed: words"),
        ] {
            assert_eq!(call(&git, script).run().unwrap_err().to_string(), sentence, "{script}");
        }
    }

    /// It named the time that calls before it had left.
    #[test]
    fn the_error_of_a_late_process_names_the_timeout() {
        let directory = tempfile::tempdir().unwrap();
        let git = Git::in_directory(directory.path());
        let deadline = ServerDeadline::after(Duration::from_secs(3));
        std::thread::sleep(Duration::from_millis(2_500));
        let mut call = call(&git, "sleep 60");
        call.deadline = Some(&deadline);
        assert_eq!(call.run().unwrap_err().to_string(), "git end timed out after 3 s");
    }

    #[test]
    fn a_process_that_is_killed_during_the_stop_was_ended_by_it() {
        let directory = tempfile::tempdir().unwrap();
        let git = Git::in_directory(directory.path());
        let go = directory.path().join("go");
        let mut kill = || {
            git.context.stop.cancel();
            std::fs::write(&go, "").unwrap();
            std::thread::sleep(Duration::from_millis(500));
            true
        };
        let mut call = call(&git, "while ! test -e go; do sleep 0.01; done; kill -KILL $PPID");
        call.watch = Some(&mut kill);
        assert_eq!(call.run().unwrap_err().to_string(), "git end was ended because tagboat was stopped");
    }
}
