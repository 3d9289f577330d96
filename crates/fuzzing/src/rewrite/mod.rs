//! Rewrites files: only marked values may change, to the intended value.
//!
//! [`setup`] chooses policies and limits, [`generate`] makes files, and [`check`] verifies the outcome of an update
//! with independent readers ([`parsed`], [`block`], [`scalars`], [`mask`]).

mod block;
mod check;
mod generate;
mod mask;
mod parsed;
mod scalars;
mod setup;

use check::check_update;
use setup::Setup;

/// Updates any bytes as a file.
/// Three bytes choose the policies, the rest is the file.
pub fn rewrite(input: &[u8]) {
    if let Some((setup, content)) = Setup::split(input) {
        check_update(content, &setup);
    }
}

/// Updates a generated file: three bytes choose the policies, the rest drives the grammar.
pub fn rewrite_generated(input: &[u8]) {
    if let Some((setup, content)) = generated(input) {
        check_update(content.as_bytes(), &setup);
    }
}

/// Returns the setup and the file that an input of [`rewrite_generated`] encodes, as text.
pub fn show_generated(input: &[u8]) -> String {
    generated(input).map_or_else(String::new, |(setup, content)| format!("{setup:?}\n{content:?}\n{content}"))
}

fn generated(input: &[u8]) -> Option<(Setup, String)> {
    let (setup, choices) = Setup::split(input)?;
    let content = generate::file(choices, &setup);
    Some((setup, content))
}
