//! Edits YAML as bytes: finds values and their comments, and replaces values in place.
//!
//! The usual way to edit YAML is to load, change and print it, which re-indents, re-quotes and drops everything unknown
//! to the printer. This module never prints YAML. It walks a file ([`walk`]), yields every scalar value with its byte
//! span and its comment ([`attachment`]), turns a desired value into splices of a few bytes ([`splice`], [`plain`]),
//! and then proves on the new bytes that nothing but the desired values changed ([`fingerprint`]).
//!
//! Code that only reads gets a file as trees of nodes with their positions ([`mod@tree`]).
//!
//! `path`, `lines` and `position` locate nodes and comments; `limits` bounds a file; `encoding` searches one in UTF-16 or UTF-32.
//!
//! Only [`reader`], [`walk`], [`mod@tree`], [`scalar`], [`fingerprint`] and [`error`] use the parser (`granit-parser`).

pub mod attachment;
pub mod comment;
pub mod encoding;
pub mod error;
pub mod fingerprint;
pub mod limits;
pub mod lines;
pub mod path;
pub mod plain;
mod position;
pub mod reader;
pub mod scalar;
pub mod splice;
pub mod tree;
pub mod walk;

pub use comment::Comment;
pub use error::{SyntaxError, YamlError, YamlErrorKind};
pub use fingerprint::Fingerprint;
pub use limits::Limits;
pub use path::Step;
pub use scalar::{Scalar, Style};
pub use splice::{Splice, apply};
pub use tree::{Node, trees};
pub use walk::{Visit, Walk, fingerprint_of};
