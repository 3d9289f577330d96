//! Errors of parsing and rendering templates.

use thiserror::Error;

/// An error of a template, with Go's message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// The text is not a valid template.
    #[error("{message}")]
    Parse {
        /// The message: `template: NAME:LINE: …`.
        message: String,
    },
    /// The rendering failed with the given data, or exceeded a limit.
    #[error("{message}")]
    Execute {
        /// The message: `template: NAME:LINE:COLUMN: executing "NAME" at <PART>: …`.
        message: String,
    },
    /// The rendering was interrupted from outside.
    #[error("the rendering of the template was interrupted")]
    Interrupted,
}
