//! Errors as one sentence.

use std::error::Error;
use std::fmt;

/// Writes an error and its causes in one line, parted by colons.
///
/// # Errors
///
/// When the formatter fails.
pub fn write_chain(formatter: &mut impl fmt::Write, error: &(dyn Error + 'static)) -> fmt::Result {
    write!(formatter, "{error}")?;
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(formatter, ": {error}")?;
        cause = error.source();
    }
    Ok(())
}

/// An error and its causes in one line, parted by colons.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    write_chain(&mut text, error).expect("writing to a string cannot fail");
    text
}
