//! The errors of compiling and rendering a template.

use tagboat_go_template::without_middle;

use crate::error::chain;

/// The error of a template.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The text is not a template.
    #[error("unable to create commit message template from spec")]
    Invalid(#[source] TemplateErrorKind),
    /// The template cannot be rendered.
    #[error("failed to run template from spec")]
    Render(#[source] TemplateErrorKind),
}

/// The cause of an error, in the words of the template language.
#[derive(Debug, thiserror::Error)]
pub enum TemplateErrorKind {
    /// The error of Go's template language.
    #[error(transparent)]
    Go(tagboat_go_template::TemplateError),
    /// The error of handlebars.
    #[error("template: commit message:{}{cause}", .location.map(|(line, column)| format!("{line}:{column}: ")).unwrap_or_default())]
    Handlebars {
        /// The line and column, if known.
        location: Option<(usize, usize)>,
        /// The cause.
        cause: String,
    },
    /// It names a preset that does not exist.
    #[error("there is no preset {}; there are {known}", without_middle(format!("{name:?}")))]
    UnknownPreset {
        /// The name.
        name: String,
        /// The existing presets.
        known: String,
    },
    /// The template is too long.
    #[error("the template has {size} bytes, and at most {most} are allowed")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
        /// The maximum size in bytes.
        most: usize,
    },
    /// There are too many changes.
    #[error(
        "{changes} changes take {bytes} bytes of memory in a template, and at most {most} are allowed: remove the \
         template, or let several automations update fewer files each"
    )]
    TooMuchData {
        /// The number of changes.
        changes: usize,
        /// Their estimated size in bytes.
        bytes: usize,
        /// The maximum size in bytes.
        most: usize,
    },
    /// The rendering was interrupted by its deadline or cancelled.
    #[error("the rendering of the template was interrupted")]
    Interrupted,
}

/// A field that Flux removed, and that Tagboat still renders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovedField {
    /// `.Updated`.
    Updated,
    /// `.Changed.ImageResult`.
    ImageResult,
}

impl RemovedField {
    /// The field as written in templates.
    pub fn name(self) -> &'static str {
        match self {
            Self::Updated => ".Updated",
            Self::ImageResult => ".Changed.ImageResult",
        }
    }

    /// The field to use instead.
    pub fn replacement(self) -> &'static str {
        match self {
            Self::Updated => ".Changed",
            Self::ImageResult => ".Changed.FileChanges or .Changed.Objects",
        }
    }
}

impl TemplateError {
    /// Returns the cause without the prefix, in the words of the template language.
    pub fn detail(&self) -> String {
        let (Self::Invalid(cause) | Self::Render(cause)) = self;
        chain(cause)
    }

    /// Returns the cause.
    pub fn kind(&self) -> &TemplateErrorKind {
        let (Self::Invalid(cause) | Self::Render(cause)) = self;
        cause
    }

    /// Returns the cause of the error of an annotation's template.
    pub fn detail_of_annotation(&self) -> String {
        let detail = self.detail().replacen("template: commit message:", "template:", 1);
        detail.replacen("executing \"commit message\" at ", "", 1)
    }
}
