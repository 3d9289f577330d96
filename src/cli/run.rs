//! `tagboat run`: carry out automations on their git repositories, once.

mod inputs;
mod work;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

use super::Failure;
use super::outcome::Outcomes;
use super::size::ByteSize;
use super::terminal::{Palette, print};
use super::update::{OutputFormat, to_json};
use super::warnings::warn_of_idle_images;
use crate::git::{Oversight, Places, PrivateDirectory, StopSignal, Writer, WriterOptions};
use crate::metrics::Metrics;
use crate::reconcile::automation::batch;
use inputs::Inputs;
use work::Work;

/// Carry out automations on their git repositories, once
///
/// Reads ImageUpdateAutomations, GitRepositories, ImagePolicies and Secrets from manifest files, updates the marked
/// values in each repository without checking it out, and pushes one commit for each automation that has something to
/// change.
///
/// Exit status: 0 done (markers that could not be resolved and files that could not be read are reported), 1 an
/// automation failed or a manifest could not be read, 2 wrong usage.
#[derive(Debug, Args)]
#[command(override_usage = "tagboat run <PATH>... [OPTIONS]")]
pub(super) struct RunArguments {
    /// Manifests: files, directories, or - for standard input
    #[arg(value_name = "PATH", required = true)]
    pub(super) manifests: Vec<PathBuf>,

    /// Carry out this automation only
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub(super) automation: Option<String>,

    /// A policy's latest image, such as web=ghcr.io/org/web:1.2; counts more than its status
    #[arg(long, value_name = "[NAMESPACE/]NAME=IMAGE")]
    pub(super) latest: Vec<String>,

    /// Commit nothing and print a unified diff
    #[arg(long)]
    pub(super) dry_run: bool,

    /// How to print the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    pub(super) output: OutputFormat,

    /// Where to keep mirrors and the status of each object, so that the next run costs only what is new
    #[arg(long, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,

    /// A secret as a directory with one file a key; counts more than one among the manifests
    #[arg(long, value_name = "[NAMESPACE/]NAME=DIR")]
    pub(super) secret: Vec<String>,

    /// Who logs in to git servers: the secrets, or your own set-up of git (credential helpers, SSH agent)
    #[arg(long, value_name = "WHO", value_enum, default_value_t = GitLogin::Secrets)]
    pub(super) git_login: GitLogin,

    /// The size that the mirror of one repository may have
    #[arg(long, value_name = "SIZE", default_value = "2GiB")]
    pub(super) mirror_max_size: ByteSize,
}

/// Who logs in to git servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum GitLogin {
    /// The secrets that the GitRepositories name.
    Secrets,
    /// The caller's own set-up of git.
    User,
}

pub(super) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let inputs = match Inputs::read(arguments) {
        Err(failure @ Failure::Failed(_)) if arguments.output == OutputFormat::Json => {
            let nothing = to_json(&Outcomes { automations: Vec::new() });
            return Failure::after(print(&nothing), Err(failure));
        }
        inputs => inputs?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("cannot begin: {error}")))?;
    let works = runtime.block_on(async {
        let stop = StopSignal::default();
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            let (stop, signal) = (stop.clone(), signal(kind));
            let mut signal = signal.map_err(|error| Failure::new(format!("cannot hear signals: {error}")))?;
            tokio::spawn(async move {
                signal.recv().await;
                stop.give();
            });
        }
        Ok::<_, Failure>(carry_out(&inputs, arguments.dry_run, &stop).await)
    })?;
    warn_of_idle_images(&inputs.options.given, works.len(), |policy| {
        works.iter().any(|work| work.may_select(policy))
    });
    let palette = Palette::for_output();
    let text = match arguments.output {
        OutputFormat::Text => {
            let several = works.len() > 1;
            let texts: Vec<String> = works.iter().filter_map(|work| work.to_text(palette, several)).collect();
            texts.join("\n")
        }
        OutputFormat::Json => {
            to_json(&Outcomes { automations: works.iter().map(|work| &work.outcome).collect() })
        }
    };
    let errors = work::errors(works);
    let done = if errors.is_empty() { Ok(()) } else { Err(Failure::FailedFor(errors)) };
    Failure::after(print(&text), done)
}

/// Runs all automations; those that share a repository and a branch share a transaction.
async fn carry_out<'i>(inputs: &'i Inputs, is_rehearsal: bool, stop: &StopSignal) -> Vec<Work<'i>> {
    PrivateDirectory::sweep();
    let mirrors = inputs.mirrors.path().to_owned();
    let writer = Writer::new(WriterOptions {
        mirrors,
        is_rehearsal,
        oversight: Oversight { stop: stop.clone(), metrics: Metrics::default() },
        places: Places::without_limit(),
    });
    let mut works: Vec<Work<'_>> =
        inputs.automations.iter().map(|automation| Work::new(automation, inputs, is_rehearsal)).collect();
    batch::carry_out(works.iter_mut().filter(|work| !work.is_done).collect(), &writer, stop).await;
    writer.finish();
    works
}
