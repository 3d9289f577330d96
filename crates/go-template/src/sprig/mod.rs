//! The functions of Masterminds' sprig v3.3.0 that Flux admits: those for text.

use crate::functions::Function;

/// All tables.
pub(crate) const TABLES: &[&[Function]] = &[];
