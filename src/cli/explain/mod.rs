//! `tagboat explain`: explains the choice of a policy, or what an automation does not write.
//!
//! [`policy`] has the arguments. A policy and its repository ([`subject`]) come from a cluster ([`cluster`]) or from
//! [`manifests`], its tags from a registry ([`live`]) or from a file ([`tags`]). [`explanation`] judges the tags, [`group`] does
//! it for a release group, and [`report`] prints the result. [`automation`] explains an automation; both find their object by a
//! [`query`].

mod automation;
mod cluster;
mod explanation;
mod group;
mod live;
mod manifests;
mod policy;
mod query;
mod report;
mod subject;
mod tags;

use clap::{Args, Subcommand};

use super::Failure;
pub(super) use automation::Explanation as AutomationExplanation;
pub(super) use report::Explanation as PolicyExplanation;

/// Explain the choice of a policy, or what an automation does not write
#[derive(Debug, Args)]
pub(super) struct ExplainArguments {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    Policy(policy::PolicyArguments),
    Automation(automation::AutomationArguments),
}

pub(super) fn run(arguments: &ExplainArguments) -> Result<(), Failure> {
    match &arguments.subject {
        Subject::Policy(arguments) => policy::run(arguments),
        Subject::Automation(arguments) => automation::run(arguments),
    }
}
