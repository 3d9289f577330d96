//! Commit messages, rendered from the changes of an update and a template.
//!
//! [`MessageData`] holds the data of a message, with foreign text cleaned (`clean`), and can be read from the JSON that
//! `--output json` prints ([`recorded`]). A [`Template`] is compiled from the text of an automation, which may name one
//! of the [`presets()`], in Go's language ([`go`], with Flux's types) or in handlebars ([`handlebars`], with the limits
//! that its crate lacks).

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
