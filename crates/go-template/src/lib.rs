//! Go's `text/template` with the functions of sprig: templates and values in, text out.
//!
//! Users bring templates that they wrote for a program in Go, and they must render to the same bytes. So this crate
//! follows the Go release and the version of sprig that `testdata/template/table.json` names: the language, what
//! values print as, and the words of errors. The table holds what the real ones answer.
//!
//! - [`Template`] is parsed from text and rendered with a [`Value`].
//! - A [`Value`] has the [`Type`] that it would have in Go. Types of structs are constants ([`StructType`]): name,
//!   fields, methods.
//! - A template is user input: [`Limits`] bound depth, steps, output and the size of every value.
//!
//! What differs on purpose: `keys` and `values` go by the order of keys, where Go takes none; functions whose result is
//! another one each time, or a secret, fail and say so; addresses do not print; local time is UTC; a regular expression
//! takes bytes that are no UTF-8 for no characters, and its names of Unicode's classes are the `regex` crate's; of what a
//! time can do, what dates in text need is there.

mod asked;
mod budget;
mod clock;
mod error;
mod execute;
mod format;
mod functions;
mod heap;
mod regexp;
mod sprig;
mod strconv;
mod syntax;
mod template;
mod text;
mod unicode;
mod value;

pub use asked::AskedField;
pub use budget::Limits;
pub use error::TemplateError;
pub use functions::names as function_names;
pub use template::Template;
pub use text::{Text, without_middle};
pub use value::{
    ANY, Callable, DICT, DICT_MAP, Field, INT, IntKind, Json, LIST, Map, MapType, Method, NamedInt, Pointer,
    Run, Slice, Struct, StructType, TEXT_MAP, Type, UintKind, Value,
};
