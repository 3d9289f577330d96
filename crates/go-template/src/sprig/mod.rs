//! The functions of Masterminds' sprig v3.3.0 that Flux admits: those for text.

mod aes;
mod cast;
mod coding;
mod dates;
mod decimal;
mod defaults;
mod dicts;
mod digest;
mod json;
mod kinds;
mod letters;
mod lists;
mod math;
mod merge;
mod paths;
mod refused;
mod regexes;
mod semver;
mod strings;
mod urls;
mod words;
mod wrap;

use crate::functions::Function;

/// All function tables of sprig.
pub(crate) const TABLES: &[&[Function]] = &[
    aes::FUNCTIONS,
    coding::FUNCTIONS,
    dates::FUNCTIONS,
    defaults::FUNCTIONS,
    dicts::FUNCTIONS,
    digest::FUNCTIONS,
    json::FUNCTIONS,
    kinds::FUNCTIONS,
    letters::FUNCTIONS,
    lists::FUNCTIONS,
    math::FUNCTIONS,
    merge::FUNCTIONS,
    paths::FUNCTIONS,
    refused::FUNCTIONS,
    regexes::FUNCTIONS,
    semver::FUNCTIONS,
    strings::FUNCTIONS,
    urls::FUNCTIONS,
    words::FUNCTIONS,
    wrap::FUNCTIONS,
];
