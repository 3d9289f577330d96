//! `tagboat completions`: completions for shells.

use clap::Args;
use clap_complete::Shell;

use super::Failure;
use super::terminal::print;

/// Print completions for a shell
///
/// For example: `tagboat completions bash > /etc/bash_completion.d/tagboat`
#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

pub(super) fn run(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::command(), "tagboat", &mut text);
    Ok(print(&String::from_utf8_lossy(&text))?)
}
