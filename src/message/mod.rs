//! Commit messages and texts of pull requests, rendered from changes and a template.
//!
//! | file | contents |
//! |---|---|
//! | `data`, `image` | the data of a message: changes, objects and images |
//! | `delivery` | the data of branches and pull requests |
//! | `recorded` | the same data, read from the JSON that `--output json` prints |
//! | `template`, `preset` | a compiled template; the templates included in the program |
//! | `go`, `handlebars` | the two template languages, with Flux's types in Go's |
//! | `limits`, `escape`, `truncate` | limits of templates; foreign text made harmless; the length of a message |
//! | `error` | the errors of compiling and rendering |

mod data;
mod delivery;
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
pub use delivery::{BranchData, PullRequestData};
pub use error::{RemovedField, TemplateError, TemplateErrorKind};
pub use image::PolicyImage;
pub use preset::{Preset, presets};
pub use template::{DEFAULT_MESSAGE, Template, UpdateData};
pub use truncate::truncated;
