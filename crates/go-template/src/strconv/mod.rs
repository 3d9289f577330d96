//! Numbers from text and to text, as Go's `strconv` does it.

mod float;
mod integer;

pub(crate) use float::{FloatFormat, format_float};
pub(crate) use integer::{parse_int, parse_uint};
pub(crate) use tagboat_go_text::{NumberError, parse_float};
