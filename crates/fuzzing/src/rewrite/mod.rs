//! The rewriting of files: only marked values change, they read as wanted, and every other byte stays.
//!
//! [`setup`] chooses policies and limits, [`generate`] makes files, and [`check`] looks at what came of an update with
//! readers of its own ([`parsed`], [`block`], [`scalars`], [`mask`]).

mod block;
mod check;
mod generate;
mod mask;
mod parsed;
mod scalars;
mod setup;

use check::check_update;
use setup::Setup;

/// Any bytes as a file: three bytes choose the policies, the rest is the file.
pub fn rewrite(input: &[u8]) {
    if let Some((setup, content)) = Setup::split(input) {
        check_update(content, &setup);
    }
}

/// A file made by a grammar: three bytes choose the policies, the rest steers the grammar.
pub fn rewrite_generated(input: &[u8]) {
    if let Some((setup, content)) = generated(input) {
        check_update(content.as_bytes(), &setup);
    }
}

/// The setup and the file that an input of [`rewrite_generated`] stands for, as text.
pub fn show_generated(input: &[u8]) -> String {
    generated(input).map_or_else(String::new, |(setup, content)| format!("{setup:?}\n{content:?}\n{content}"))
}

fn generated(input: &[u8]) -> Option<(Setup, String)> {
    let (setup, choices) = Setup::split(input)?;
    let content = generate::file(choices, &setup);
    Some((setup, content))
}
