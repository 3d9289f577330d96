//! YAML as bytes: where each value stands, which comment belongs to it, and how to replace it.
//!
//! The usual way to edit YAML is to load it, change it and print it, which re-indents, re-quotes and drops
//! whatever the printer does not know about. This room never prints YAML. It walks a file ([`walk`]), hands
//! out every scalar value with its byte span and its comment ([`attachment`]), turns a wanted value into
//! splices of a few bytes ([`splice`], [`plain`]), and afterwards proves on the new bytes that nothing but
//! the wanted values changed ([`fingerprint`]).
//!
//! Those who only look get a file as trees of nodes with their places ([`mod@tree`]).
//!
//! The parser underneath (`granit-parser`) is named in [`reader`], [`walk`], [`mod@tree`], [`scalar`],
//! [`fingerprint`] and [`error`] only.

pub mod attachment;
pub mod comment;
pub mod error;
pub mod fingerprint;
pub mod limits;
pub mod lines;
pub mod path;
mod place;
pub mod plain;
pub mod reader;
pub mod scalar;
pub mod splice;
pub mod tree;
pub mod walk;

pub use comment::Comment;
pub use error::{Cause, SyntaxError, YamlError};
pub use fingerprint::Fingerprint;
pub use limits::Limits;
pub use path::Step;
pub use scalar::{Scalar, Style};
pub use splice::{Splice, apply};
pub use tree::{Node, trees};
pub use walk::{Visit, Walk, fingerprint_of};
