//! The functions of Masterminds' sprig v3.3.0 that Flux admits: those for text.

mod aes;
mod cast;
mod dates;
mod decimal;
mod defaults;
mod dicts;
mod digest;
mod encoding;
mod json;
mod kinds;
mod letter_case;
mod lists;
mod math;
mod merge;
mod paths;
mod regexes;
mod semver;
mod strings;
mod unsupported;
mod urls;
mod words;
mod wrap;

use crate::functions::Function;

/// All function tables of sprig.
pub(crate) const TABLES: &[&[Function]] = &[
    aes::FUNCTIONS,
    encoding::FUNCTIONS,
    dates::FUNCTIONS,
    defaults::FUNCTIONS,
    dicts::FUNCTIONS,
    digest::FUNCTIONS,
    json::FUNCTIONS,
    kinds::FUNCTIONS,
    letter_case::FUNCTIONS,
    lists::FUNCTIONS,
    math::FUNCTIONS,
    merge::FUNCTIONS,
    paths::FUNCTIONS,
    unsupported::FUNCTIONS,
    regexes::FUNCTIONS,
    semver::FUNCTIONS,
    strings::FUNCTIONS,
    urls::FUNCTIONS,
    words::FUNCTIONS,
    wrap::FUNCTIONS,
];
