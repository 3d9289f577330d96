//! Conversions between numbers and text, as in Go's `strconv`.

mod float;
mod integer;

pub(crate) use float::{FloatFormat, format_float};
pub(crate) use integer::{parse_int, parse_uint};
pub(crate) use tagboat_go_text::{NumberError, parse_float};
