//! Commit messages, rendered from the changes of an update and a template.
//!
//! [`MessageData`] holds the data of a message, with foreign text cleaned (`clean`), and can be read from the JSON that
//! `--output json` prints ([`recorded`]). A [`Template`] is compiled from the text of an automation, which may name one
//! of the [`presets()`], in Go's language ([`go`], with Flux's types) or in handlebars ([`handlebars`], with the limits
//! that its crate lacks).

mod data;
mod error;
mod escape;
mod go;
mod handlebars;
mod image;
mod limits;
mod preset;
pub mod recorded;
mod template;
#[cfg(test)]
mod tests;
mod truncate;

pub use data::{JoinedUpdate, MessageData, ObjectUpdate, PolicyImages};
pub use error::{RemovedField, TemplateError, TemplateErrorKind};
pub use image::PolicyImage;
pub use preset::{Preset, presets};
pub use template::{DEFAULT_MESSAGE, Template, UpdateData};
pub use truncate::truncated;
