//! Go's regular expressions (`regexp`) and floating-point numbers (`strconv`).
//!
//! Tag filters and functions of templates are written for Go's standard library, and must have the same meaning here.
//! `testdata/filter` and `testdata/number` hold the results of the library.

pub mod number;
pub mod regexp;

pub use number::{NumberError, parse_float};
pub use regexp::{Captures, Expression, Regexp, RegexpError, RegexpSet, SetTooLarge, quote_meta};
