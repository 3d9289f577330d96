//! Formatting as Go's `fmt` does it.

mod escape;
mod flags;
mod float;
mod integer;
mod print;
mod printf;
mod quote;
mod text;
mod value;

pub(crate) use print::{print, print_line, print_value};
pub(crate) use printf::printf;
pub(crate) use quote::{can_backquote, quote, quote_bytes, unicode_point};

pub(crate) use escape::{html_escape, js_escape, query_escape};
