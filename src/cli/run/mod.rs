//! `tagboat run`: carry out automations on their git repositories, once.

mod images;
mod inputs;
mod signals;
mod state_lock;
mod warnings;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::sync::oneshot;
use tracing::dispatcher;

use super::Failure;
use super::outcome::Outcomes;
use super::registry_login::RegistryLogin;
use super::size::ByteSize;
use super::terminal::{Palette, print};
use super::update::{OutputFormat, to_json};
use super::values::{duration, whole_number};
use super::warnings::warn_of_idle_images;
use crate::git::{
    MirrorStore, PrivateDirectory, StopSignal, TransactionSlots, Writer, WriterContext, WriterOptions,
};
use crate::metrics::Metrics;
use crate::objects::manifests::StateAccess;
use crate::reconcile::automation::batch;
use images::Images;
use inputs::Inputs;
use work::Work;

/// Scan registries and carry out automations on their git repositories, once
///
/// Reads ImageUpdateAutomations, GitRepositories, ImagePolicies, ImageRepositories and Secrets from manifest files. The
/// ImageRepositories that the automations' policies name are scanned, and the policies choose; where a policy's
/// ImageRepository is not among the manifests, the image of its status counts. Then the marked values in each git
/// repository are updated without checking it out, and one commit is pushed for each automation that has something to
/// change.
///
/// Exit status: 0 done (markers that could not be resolved and files that could not be read are reported), 1 an
/// automation, a scan, a choice or the look-up of a digest failed or a manifest could not be read, 2 wrong usage.
#[derive(Clone, Debug, Args)]
#[command(override_usage = "tagboat run <PATH>... [OPTIONS]")]
pub(super) struct RunArguments {
    /// Manifests: files, directories, or - for standard input
    #[arg(value_name = "PATH", required = true)]
    pub(super) manifests: Vec<PathBuf>,

    /// Carry out this automation only
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub(super) automation: Option<String>,

    /// A policy's latest image, such as web=ghcr.io/org/web:1.2; counts more than what it would choose, and than its status
    #[arg(long, value_name = "[NAMESPACE/]NAME=IMAGE")]
    pub(super) latest: Vec<String>,

    /// Commit nothing and print a unified diff
    #[arg(long)]
    pub(super) dry_run: bool,

    /// How to print the result
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    pub(super) output: OutputFormat,

    /// Scan no registry; the images are those that the state has, or else those of the policies' status
    #[arg(long)]
    pub(super) no_scan: bool,

    /// Where to keep mirrors, tags and the status of each object, so that the next run costs only what is new
    #[arg(long, value_name = "DIR")]
    pub(super) state: Option<PathBuf>,

    /// How long to wait for another run that uses the same state; 0s does not wait
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration,
        default_value = "1m",
        requires = "state",
        allow_hyphen_values = true
    )]
    pub(super) wait_for_state: Duration,

    /// A secret as a directory with one file a key; counts more than one among the manifests
    #[arg(long, value_name = "[NAMESPACE/]NAME=DIR")]
    pub(super) secret: Vec<String>,

    /// Who logs in to git servers: the secrets, or your own set-up of git (credential helpers, SSH agent)
    #[arg(long, value_name = "WHO", value_enum, default_value_t = GitLogin::Secrets)]
    pub(super) git_login: GitLogin,

    /// Who logs in to registries: the secrets, or you, with the logins of docker's config.json
    #[arg(long, value_name = "WHO", value_enum, default_value_t = RegistryLogin::Secrets)]
    pub(super) registry_login: RegistryLogin,

    /// In how many scans in a row a lower image must be a policy's latest before it counts; takes --state [default: 3]
    #[arg(long, value_name = "NUMBER", value_parser = whole_number::<u32>, allow_hyphen_values = true)]
    pub(super) regression_scans: Option<u32>,

    /// For how long that must be so since the first of them; takes --state [default: 15m]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub(super) regression_time: Option<Duration>,

    /// The size that the mirror of one repository may have
    #[arg(long, value_name = "SIZE", default_value = "2GiB", allow_hyphen_values = true)]
    pub(super) mirror_max_size: ByteSize,

    /// The size that all mirrors may have together; the least recently used ones are removed first
    #[arg(long, value_name = "SIZE", default_value = "10GiB", allow_hyphen_values = true)]
    pub(super) mirrors_max_size: ByteSize,
}

/// Who logs in to git servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum GitLogin {
    /// The secrets that the GitRepositories name.
    Secrets,
    /// The caller's own set-up of git.
    User,
}

/// The transactions that run at once; each takes a few threads and processes.
const TRANSACTIONS: usize = 16;

pub(super) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let Ended { text, done } = carry_out(arguments);
    Failure::after(print(&text), done)
}

/// How a run ended.
pub(super) struct Ended {
    /// What is to be printed.
    pub(super) text: String,
    /// Whether all went well.
    pub(super) done: Result<(), Failure>,
}

/// Carries out what the arguments ask for.
pub(super) fn carry_out(arguments: &RunArguments) -> Ended {
    match scan_and_commit(arguments) {
        Ok(ended) => ended,
        Err(failure) => {
            let is_document = arguments.output == OutputFormat::Json && matches!(failure, Failure::Failed(_));
            let text =
                if is_document { to_json(&Outcomes { automations: Vec::new() }) } else { String::new() };
            Ended { text, done: Err(failure) }
        }
    }
}

fn scan_and_commit(arguments: &RunArguments) -> Result<Ended, Failure> {
    let _guard = warnings::heard();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("cannot begin: {error}")))?;
    let stop = StopSignal::default();
    // Before anything is read, so that a run that waited decides by what holds then.
    let _lock = match &arguments.state {
        Some(root) => {
            let access = if arguments.dry_run { StateAccess::ReadOnly } else { StateAccess::ReadWrite };
            let lock = state_lock::lock(root, access, arguments.wait_for_state, &stop);
            Some(runtime.block_on(lock)?)
        }
        None => None,
    };
    let mut inputs = runtime.block_on(read_inputs(arguments, &stop))?;
    let given = inputs.options.given.clone();
    let chosen = runtime.block_on(async {
        signals::forward_to(&stop)?;
        let logins = std::mem::take(&mut inputs.registry_logins);
        images::choose(&inputs.store, &inputs.wanted, logins, &inputs.choice, &stop).await
    })?;
    let is_broken_off = chosen.is_none();
    let images = chosen.unwrap_or_default();
    inputs.options.given.extend(images.given());
    let works = if is_broken_off {
        works(&inputs, &images).map(Work::broken_off).collect()
    } else {
        runtime.block_on(commit(&inputs, &images, &stop))
    };
    // A server's name that is still being looked up keeps nobody waiting.
    runtime.shutdown_background();
    warn_of_idle_images(&given, works.len(), |policy| works.iter().any(|work| work.may_select(policy)));
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
    let is_stale = works.iter().any(|work| work.is_stale);
    let errors = work::errors(works);
    let done = if errors.is_empty() && !is_stale { Ok(()) } else { Err(Failure::FailedFor(errors)) };
    Ok(Ended { text, done })
}

/// Reads the inputs on a thread of their own: standard input may be silent for ever, and a run that waited for the state
/// has replaced what signals do by default.
async fn read_inputs(arguments: &RunArguments, stop: &StopSignal) -> Result<Inputs, Failure> {
    let (sender, inputs) = oneshot::channel();
    let (arguments, log) = (arguments.clone(), dispatcher::get_default(Clone::clone));
    std::thread::spawn(move || {
        // Without a receiver the run was told to stop.
        let _ = sender.send(dispatcher::with_default(&log, || Inputs::read(&arguments)));
    });
    tokio::select! {
        inputs = inputs => inputs.expect("the thread sends what it has read"),
        () = signals::stopped(stop) => Err(Failure::new("tagboat was told to stop while it read the manifests")),
    }
}

/// Runs all automations; those that share a repository and a branch share a transaction.
async fn commit<'i>(inputs: &'i Inputs, images: &'i Images, stop: &StopSignal) -> Vec<Work<'i>> {
    PrivateDirectory::sweep();
    let is_rehearsal = inputs.choice.is_rehearsal;
    let mirrors = MirrorStore::new(inputs.mirrors.path().to_owned(), inputs.mirrors_size);
    let writer = Writer::new(WriterOptions {
        mirrors,
        is_rehearsal,
        context: WriterContext {
            stop: stop.clone(),
            capacity: inputs.choice.capacity.clone(),
            ..WriterContext::default()
        },
        slots: TransactionSlots::limited(TRANSACTIONS, &Metrics::default()),
    });
    let mut works: Vec<Work<'_>> = works(inputs, images).collect();
    batch::carry_out(works.iter_mut().filter(|work| !work.is_done).collect(), &writer, stop).await;
    writer.finish().await;
    works
}

fn works<'i>(inputs: &'i Inputs, images: &'i Images) -> impl Iterator<Item = Work<'i>> {
    inputs.automations.iter().map(|automation| Work::new(automation, inputs, images))
}
