//! Failures of commands: their messages and exit statuses.

use std::io;
use std::process::ExitCode;

use super::terminal;

/// The failure of a command.
#[derive(Debug)]
pub(super) enum Failure {
    /// Wrong usage, such as arguments that contradict each other: exit status 2.
    Usage(String),
    /// Errors, one sentence each: exit status 1.
    Failed(Vec<String>),
    /// Errors of an automation, whose name begins each sentence: exit status 1.
    FailedFor(Vec<String>),
    /// Errors that are in the log already: exit status 1.
    Logged,
    /// Facts that the output has already: exit status 1.
    Reported,
    /// The reader of standard output has closed it: exit status 0.
    OutputClosed,
}

impl Failure {
    /// Creates a failure with one sentence.
    pub(super) fn new(sentence: impl Into<String>) -> Self {
        Self::Failed(vec![sentence.into()])
    }

    /// Returns the sentences of the failure.
    pub(super) fn sentences(&self) -> &[String] {
        match self {
            Self::Usage(sentence) => std::slice::from_ref(sentence),
            Self::Failed(sentences) | Self::FailedFor(sentences) => sentences,
            Self::Logged | Self::Reported | Self::OutputClosed => &[],
        }
    }

    /// Prints the sentences on standard error and returns the exit status.
    pub(super) fn report(self) -> ExitCode {
        match self {
            Self::Usage(sentence) => {
                terminal::say(&format!("error: {sentence}"));
                ExitCode::from(2)
            }
            Self::Failed(sentences) => {
                for sentence in sentences {
                    terminal::say(&format!("error: {sentence}"));
                }
                ExitCode::FAILURE
            }
            Self::FailedFor(sentences) => {
                for sentence in sentences {
                    terminal::say(&sentence);
                }
                ExitCode::FAILURE
            }
            Self::Logged | Self::Reported => ExitCode::FAILURE,
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }

    /// Returns the worse one of the results of a command and of printing its output.
    ///
    /// A closed output is not a failure by itself, but must not hide one.
    pub(super) fn after(printed: io::Result<()>, done: Result<(), Self>) -> Result<(), Self> {
        match (printed.map_err(Self::from), done) {
            (printed, Ok(())) => printed,
            (Err(Self::Failed(unprinted)), Err(Self::Failed(sentences))) => {
                Err(Self::Failed([unprinted, sentences].concat()))
            }
            (_, Err(failure)) => Err(failure),
        }
    }
}

/// A failure to write to standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::new(format!("cannot write to standard output: {error}")),
        }
    }
}
