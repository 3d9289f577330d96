//! `tagboat explain`: why things are as they are.

mod policy;
mod report;
mod tags;

use clap::{Args, Subcommand};

use super::Failure;

/// Explain a choice
#[derive(Debug, Args)]
pub(super) struct ExplainArguments {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    Policy(policy::PolicyArguments),
}

pub(super) fn run(arguments: &ExplainArguments) -> Result<(), Failure> {
    match &arguments.subject {
        Subject::Policy(arguments) => policy::run(arguments),
    }
}
