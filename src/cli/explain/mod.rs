//! `tagboat explain`: explains the choice of a policy.
//!
//! [`policy`] has the arguments. A policy and its repository ([`subject`]) come from a cluster ([`cluster`]) or from
//! [`manifests`], its tags from a registry ([`live`]) or from a file ([`tags`]). [`explanation`] judges the tags, and
//! [`report`] prints the result.

mod cluster;
mod explanation;
mod live;
mod manifests;
mod policy;
mod report;
mod subject;
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
