//! The one builder for git processes.
//!
//! Neither the user's configuration nor hooks nor prompts nor a locale may change what a run does, so a process
//! gets an environment of our own making.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Variables that a git process inherits; all others are left out.
const INHERITED: [&str; 2] = ["PATH", "TMPDIR"];

/// Settings that hold for every process, over whatever a repository says.
const SETTINGS: [(&str, &str); 5] = [
    ("core.hooksPath", "/dev/null"),
    ("core.autocrlf", "false"),
    ("core.safecrlf", "false"),
    ("gc.auto", "0"),
    ("commit.gpgSign", "false"),
];

/// Runs git in one directory.
#[derive(Debug, Clone)]
pub struct Git {
    directory: PathBuf,
}

/// Why a git process did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The program is not there.
    #[error("git is not installed, or not in PATH")]
    Missing,
    /// The program could not be started.
    #[error("cannot start git")]
    NotStarted {
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The program refused.
    #[error("git {verb} failed: {words}")]
    Refused {
        /// The subcommand.
        verb: String,
        /// What git said.
        words: String,
    },
}

impl Git {
    /// Git in `directory`.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Runs `git ARGUMENTS…` and gives what it prints.
    ///
    /// # Errors
    ///
    /// When git is missing or ends with another status than 0.
    pub fn run<I, S>(&self, arguments: I) -> Result<Vec<u8>, GitError>
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let arguments: Vec<S> = arguments.into_iter().collect();
        // Settings stand before the verb: `-c name=value commit`.
        let settings = arguments.chunks(2).take_while(|pair| pair[0].as_ref() == "-c").count();
        let verb = arguments.get(2 * settings).map(|verb| verb.as_ref().to_string_lossy().into_owned());
        let verb = verb.unwrap_or_default();
        let output = self.command().args(&arguments).output().map_err(|cause| match cause.kind() {
            io::ErrorKind::NotFound if self.directory.is_dir() => GitError::Missing,
            _ => GitError::NotStarted { cause },
        })?;
        let Output { status, stdout, stderr } = output;
        if status.success() {
            return Ok(stdout);
        }
        let words = String::from_utf8_lossy(&stderr).trim().replace('\n', "; ");
        Err(GitError::Refused { verb, words })
    }

    fn command(&self) -> Command {
        let mut command = Command::new("git");
        command.current_dir(&self.directory).stdin(Stdio::null()).env_clear();
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
            .env("GIT_TERMINAL_PROMPT", "0");
        for (name, value) in SETTINGS {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command
    }
}
