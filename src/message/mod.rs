//! Commit messages: what an update changed, and a template, become text.
//!
//! [`MessageData`] holds what a message can speak of, cleaned of what could break out of its place. A [`Template`] is
//! compiled from the text of an automation, which may name one of the [`presets()`], in Go's language ([`go`]) or in
//! handlebars ([`handlebars`]). What `--output json` printed is read as data by [`recorded`].

mod clean;
mod data;
mod error;
mod go;
mod handlebars;
mod image;
mod length;
mod limits;
mod preset;
pub mod recorded;
mod template;
#[cfg(test)]
mod tests;

pub use data::{AutomationName, JoinedUpdate, MessageData, ObjectUpdate, PolicyImages};
pub use error::{MessageError, MessageFault, RemovedField, TemplateError, TemplateFault};
pub use image::PolicyImage;
pub use length::shortened;
pub use preset::{Preset, presets};
pub use template::{DEFAULT_MESSAGE, Template, UpdateData};
