//! What can be wrong with a template.

use thiserror::Error;

/// Why a template gives no text, in the words of Go.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// The text is no template.
    #[error("{message}")]
    Parse {
        /// `template: NAME:LINE: …`.
        message: String,
    },
    /// The template failed with the data that it was given, or went beyond a limit.
    #[error("{message}")]
    Execute {
        /// `template: NAME:LINE:COLUMN: executing "NAME" at <PART>: …`.
        message: String,
    },
    /// The rendering was interrupted from outside.
    #[error("the rendering of the template was interrupted")]
    Interrupted,
}
