//! Go's `text/template` with the functions of sprig: templates and values in, text out.
//!
//! Users bring templates that were written for a Go program, and these must render to the same bytes. So this crate
//! follows the Go release and the version of sprig that `testdata/template/table.json` names: the language, the
//! formatting of values, and the error messages. The table holds the results of the originals.
//!
//! - [`Template`] is parsed from text and rendered with a [`Value`].
//! - A [`Value`] has the [`Type`] that it would have in Go. Struct types are constants ([`StructType`]): name,
//!   fields, methods.
//! - A template is user input: [`Limits`] bound depth, steps, output and the size of every value.
//!
//! Intended differences: `keys` and `values` follow the order of keys, while Go's order is random; functions with
//! random or secret results fail with an error; addresses are not printed; local time is UTC; regular expressions do
//! not match bytes that are not UTF-8, and the names of Unicode classes are those of the `regex` crate; of the
//! methods of `time.Time`, only those are implemented that texts with dates need.

mod budget;
mod error;
mod execute;
mod field_usage;
mod format;
mod functions;
mod heap;
mod regexp;
mod sprig;
mod strconv;
mod syntax;
mod template;
mod text;
mod time;
mod unicode;
mod value;

pub use budget::Limits;
pub use error::TemplateError;
pub use field_usage::FieldUsage;
pub use functions::names as function_names;
pub use template::Template;
pub use text::{Text, without_middle};
pub use value::{
    ANY, Callable, DICT, DICT_MAP, Field, INT, IntKind, Json, LIST, Map, MapType, Method, NamedInt, Pointer,
    Run, Slice, Struct, StructType, TEXT_MAP, Type, UintKind, Value,
};
