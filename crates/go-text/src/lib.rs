//! What Go's standard library makes of text: regular expressions (`regexp`) and numbers with a fraction (`strconv`).
//!
//! Filters of tags and functions of templates are both written for it, and must mean here what they mean there.
//! `testdata/filter` and `testdata/number` hold what the library itself answers.

pub mod number;
pub mod regexp;

pub use number::{NumberError, parse_float};
pub use regexp::{Captures, Expression, Regexp, RegexpError, RegexpSet, SetTooLarge, quote_meta};
