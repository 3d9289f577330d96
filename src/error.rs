//! Errors that end a reconcile, with reason and retry; error chains as text.
//!
//! The condition that a reconcile ends with is decided beside its error: every error that a reconcile can stop with
//! implements [`ReconcileError`]. The causes of these errors do not.

use std::error::Error;
use std::fmt;

use tagboat_api::Reason;
use tagboat_api::settings::SettingErrors;

/// An error that can end a reconcile.
pub trait ReconcileError: Error {
    /// Returns the reason for the condition Ready.
    ///
    /// An automation shows it for errors that stall only: retryable ones get the reason of their stage.
    fn reason(&self) -> Reason {
        Reason::Failed
    }

    /// Returns true if a retry can help while the objects stay as they are.
    ///
    /// It can if the cause is outside of the objects: a file, a repository, a server. A defect in an object stalls
    /// until the object is changed.
    fn is_retryable(&self) -> bool {
        true
    }
}

/// A malformed annotation stalls until it is changed.
impl ReconcileError for SettingErrors {
    fn reason(&self) -> Reason {
        Reason::InvalidSettings
    }

    fn is_retryable(&self) -> bool {
        false
    }
}

/// Writes an error and its causes on one line, separated by colons.
///
/// # Errors
///
/// If the formatter fails.
pub fn write_chain(formatter: &mut impl fmt::Write, error: &(dyn Error + 'static)) -> fmt::Result {
    write!(formatter, "{error}")?;
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(formatter, ": {error}")?;
        cause = error.source();
    }
    Ok(())
}

/// Returns an error and its causes on one line, separated by colons.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    write_chain(&mut text, error).expect("writing to a string cannot fail");
    text
}
