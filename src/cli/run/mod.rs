//! `tagboat run`: reconcile automations on their git repositories, once.
//!
//! | file | contents |
//! |---|---|
//! | `arguments`, `inputs` | the arguments; the objects that they select |
//! | `state_lock`, `signals` | the lock of the state directory; cancellation by a signal |
//! | `images` | scans, and the images that policies choose |
//! | `work` | the reconcile of one automation, and its report |
//! | `warnings` | log lines printed as warnings, each once |

pub(super) mod arguments;
mod images;
mod inputs;
mod signals;
mod state_lock;
mod warnings;
mod work;

use std::collections::BTreeSet;

use tokio::sync::oneshot;
use tracing::dispatcher;

use super::Failure;
use super::outcome::Outcomes;
use super::output::{OutputFormat, to_json};
use super::runtime;
use super::terminal::{Palette, print};
use super::warnings::warn_of_idle_images;
use crate::cancel::StopToken;
use crate::git::{MirrorStore, PrivateDirectory, TransactionSlots, Writer, WriterContext, WriterOptions};
use crate::metrics::Metrics;
use crate::objects::manifests::StateAccess;
use crate::reconcile::automation::batch;
use arguments::RunArguments;
use images::Images;
use inputs::Inputs;
use work::Work;

/// The maximum number of concurrent transactions; each takes a few threads and processes.
const TRANSACTIONS: usize = 16;

pub(super) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let RunOutput { text, done } = reconcile(arguments);
    Failure::after(print(&text), done)
}

/// The output of a run, and its failure.
pub(super) struct RunOutput {
    /// The output.
    pub(super) text: String,
    /// The failure, if there is one.
    pub(super) done: Result<(), Failure>,
}

/// Reconciles the automations that the arguments select.
pub(super) fn reconcile(arguments: &RunArguments) -> RunOutput {
    match scan_and_commit(arguments) {
        Ok(output) => output,
        Err(failure) => {
            let is_document =
                arguments.reconcile.output == OutputFormat::Json && matches!(failure, Failure::Failed(_));
            let text =
                if is_document { to_json(&Outcomes { automations: Vec::new() }) } else { String::new() };
            RunOutput { text, done: Err(failure) }
        }
    }
}

fn scan_and_commit(arguments: &RunArguments) -> Result<RunOutput, Failure> {
    let _guard = warnings::print_logged();
    let runtime = runtime::single_threaded()?;
    let stop = StopToken::default();
    // The lock comes first: a run that waited for it must not decide by older inputs.
    let _lock = match &arguments.state {
        Some(root) => {
            let access =
                if arguments.reconcile.dry_run { StateAccess::ReadOnly } else { StateAccess::ReadWrite };
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
        images::choose(&inputs.store, &inputs.selection, logins, &inputs.choice, &stop).await
    })?;
    let is_cancelled = chosen.is_none();
    let images = chosen.unwrap_or_default();
    inputs.options.given.extend(images.overrides());
    let works = if is_cancelled {
        works(&inputs, &images).map(Work::cancelled).collect()
    } else {
        runtime.block_on(commit(&inputs, &images, &stop))
    };
    // Does not wait for DNS lookups in flight.
    runtime.shutdown_background();
    warn_of_idle_images(&given, works.len(), |policy| works.iter().any(|work| work.may_select(policy)));
    let palette = Palette::for_output();
    let text = match arguments.reconcile.output {
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
    Ok(RunOutput { text, done })
}

/// Reads the inputs on a separate thread.
///
/// So a signal ends the run while it waits for standard input. A run that waited for the state has replaced the default actions of signals.
async fn read_inputs(arguments: &RunArguments, stop: &StopToken) -> Result<Inputs, Failure> {
    let (sender, inputs) = oneshot::channel();
    let (arguments, log) = (arguments.clone(), dispatcher::get_default(Clone::clone));
    std::thread::spawn(move || {
        // There is no receiver after a stop signal.
        let _ = sender.send(dispatcher::with_default(&log, || Inputs::read(&arguments)));
    });
    tokio::select! {
        inputs = inputs => inputs.expect("the thread sends what it has read"),
        () = stop.cancelled() => Err(Failure::new("tagboat was stopped while it read the manifests")),
    }
}

/// Reconciles all automations; those that share a repository and a branch share a transaction.
async fn commit<'i>(inputs: &'i Inputs, images: &'i Images, stop: &StopToken) -> Vec<Work<'i>> {
    PrivateDirectory::sweep();
    let is_dry_run = inputs.choice.is_dry_run;
    let mirrors = MirrorStore::new(inputs.mirrors.path().to_owned(), inputs.mirrors_size);
    let writer = Writer::new(WriterOptions {
        mirrors,
        is_dry_run,
        context: WriterContext {
            stop: stop.clone(),
            capacity: inputs.choice.capacity.clone(),
            ..WriterContext::default()
        },
        slots: TransactionSlots::limited(TRANSACTIONS, &Metrics::default()),
    });
    let mut works: Vec<Work<'_>> = works(inputs, images).collect();
    batch::reconcile(works.iter_mut().filter(|work| !work.is_done).collect(), &writer, stop).await;
    let queue = &inputs.options.pull_requests;
    tokio::select! {
        () = stop.cancelled() => {}
        () = queue.run_once() => {}
    }
    works.iter_mut().for_each(|work| work.report_pull_requests(queue));
    // Branches whose pull requests have ended, and that no policy renders or people handed back: no later run knows of them.
    if !is_dry_run && !stop.is_cancelled() {
        tokio::select! {
            () = stop.cancelled() => {}
            () = queue.list_for_ends() => {}
        }
        let ends = |work: &&mut Work<'_>| work.asked_forge() && queue.ends_branches(&work.name());
        let groups: BTreeSet<_> = works.iter_mut().filter(ends).map(|work| work.group()).collect();
        let again = works.iter_mut().filter(|work| work.asked_forge() && groups.contains(&work.group()));
        batch::reconcile(again.map(Work::ending_branches).collect(), &writer, stop).await;
    }
    writer.finish().await;
    works
}

fn works<'i>(inputs: &'i Inputs, images: &'i Images) -> impl Iterator<Item = Work<'i>> {
    inputs.automations.iter().map(|automation| Work::new(automation, inputs, images))
}
