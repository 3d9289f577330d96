//! Why there is no message.

use tagboat_api::Reason;
use tagboat_go_template::without_middle;

use crate::failing::Failing;
use crate::sentence::chain;

/// Why a text is no template.
#[derive(Debug, thiserror::Error)]
#[error("unable to create commit message template from spec")]
pub struct TemplateError {
    /// What is wrong, in the words of the language.
    #[source]
    pub cause: TemplateFault,
}

/// What is wrong with the text of a template.
#[derive(Debug, thiserror::Error)]
pub enum TemplateFault {
    /// It is no template of Go, in Go's words.
    #[error(transparent)]
    Go(tagboat_go_template::TemplateError),
    /// It is no template of handlebars.
    #[error("template: commit message:{}{cause}", .place.map(|(line, column)| format!("{line}:{column}: ")).unwrap_or_default())]
    Handlebars {
        /// The line and column, where they are known.
        place: Option<(usize, usize)>,
        /// What is wrong.
        cause: String,
    },
    /// It names a preset that does not exist.
    #[error("there is no preset {}; there are {known}", without_middle(format!("{name:?}")))]
    UnknownPreset {
        /// The name.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// It is too long.
    #[error("the template has {size} bytes, and more than {most} are not allowed")]
    TooLarge {
        /// Its size.
        size: usize,
        /// The limit.
        most: usize,
    },
}

/// Why a template gives no message.
#[derive(Debug, thiserror::Error)]
#[error("failed to run template from spec")]
pub struct MessageError {
    /// What went wrong, in the words of the language.
    #[source]
    pub cause: MessageFault,
}

/// What went wrong when a template was rendered.
#[derive(Debug, thiserror::Error)]
pub enum MessageFault {
    /// In Go's words.
    #[error(transparent)]
    Go(tagboat_go_template::TemplateError),
    /// In the words of handlebars.
    #[error("template: commit message:{}{cause}", .place.map(|(line, column)| format!("{line}:{column}: ")).unwrap_or_default())]
    Handlebars {
        /// The line and column, where they are known.
        place: Option<(usize, usize)>,
        /// What is wrong.
        cause: String,
    },
    /// There are too many changes.
    #[error(
        "{changes} changes take {bytes} bytes of memory in a template, and at most {most} are allowed: remove the \
         template, or let several automations update fewer files each"
    )]
    TooMuchData {
        /// How many changes there are.
        changes: usize,
        /// About how many bytes they take.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// The rendering was interrupted from outside: its time is over, or its result is not wanted any more.
    #[error("the rendering of the template was interrupted")]
    Interrupted,
}

/// A field that Flux has no more, and that still renders here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovedField {
    /// `.Updated`.
    Updated,
    /// `.Changed.ImageResult`.
    ImageResult,
}

impl RemovedField {
    /// The field as templates write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Updated => ".Updated",
            Self::ImageResult => ".Changed.ImageResult",
        }
    }

    /// What to write in its place.
    pub fn replacement(self) -> &'static str {
        match self {
            Self::Updated => ".Changed",
            Self::ImageResult => ".Changed.FileChanges or .Changed.Objects",
        }
    }
}

impl TemplateError {
    /// What is wrong, in the words of the language alone.
    pub fn fault(&self) -> String {
        chain(&self.cause)
    }
}

impl MessageError {
    /// What went wrong, in the words of the language alone.
    pub fn fault(&self) -> String {
        chain(&self.cause)
    }
}

/// Reasons are Flux's (`docs/flux-behaviour.md`, Failures), and so is that both are tried again.
impl Failing for TemplateError {
    fn reason(&self) -> Reason {
        Reason::GitOperationFailed
    }

    fn is_retryable(&self) -> bool {
        true
    }
}

impl Failing for MessageError {
    fn reason(&self) -> Reason {
        Reason::GitOperationFailed
    }

    fn is_retryable(&self) -> bool {
        true
    }
}
