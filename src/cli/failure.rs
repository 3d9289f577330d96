//! How a command ends when it does not succeed.

use std::io;
use std::process::ExitCode;

use super::terminal;

/// Why a command did not succeed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The arguments make no sense together: exit status 2.
    Usage(String),
    /// Something failed, one sentence each: exit status 1.
    Failed(Vec<String>),
    /// Something failed for an automation, whose name begins each sentence: exit status 1.
    FailedFor(Vec<String>),
    /// Something failed, and the log says what: exit status 1.
    Logged,
    /// Nobody reads the output any more.
    OutputClosed,
}

impl Failure {
    /// A failure with one sentence.
    pub(super) fn new(sentence: impl Into<String>) -> Self {
        Self::Failed(vec![sentence.into()])
    }

    /// What went wrong, a sentence each.
    pub(super) fn sentences(&self) -> &[String] {
        match self {
            Self::Usage(sentence) => std::slice::from_ref(sentence),
            Self::Failed(sentences) | Self::FailedFor(sentences) => sentences,
            Self::Logged | Self::OutputClosed => &[],
        }
    }

    /// Says what went wrong on standard error and gives the exit status.
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
            Self::Logged => ExitCode::FAILURE,
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }

    /// This failure, or that of printing the result, whichever is worse.
    ///
    /// A closed output is no failure of its own, but must not hide one.
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
