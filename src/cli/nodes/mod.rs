//! `tagboat nodes`: shows node pools, or waits until their nodes are up to date.
//!
//! | module | contents |
//! |---|---|
//! | `fleet` | the pools of the cluster with their nodes, kept up to date by watches |
//! | `blocker` | the reason for which a pool is not up to date, as a sentence |
//! | `rows` | pools and nodes as rows of tables |
//! | `printer` | output of all pools and of their changes, in each format |

mod blocker;
mod fleet;
mod printer;
mod rows;

use std::time::Duration;

use clap::Args;

use super::Failure;
use super::cluster::ClusterArguments;
use super::output::OutputFormat;
use super::runtime;
use super::terminal::say;
use super::wait::{DEFAULT_WAIT, Wait, done_unless, wait_time};
use crate::nodes::PoolDocument;
use crate::objects::cluster::is_object_name;
use blocker::blocker;
use fleet::Fleet;
use printer::Printer;

/// Show the rollout of OS images on the nodes of pools
///
/// Shows the NodePool objects of a cluster; with POOL, its nodes as well: the stage of each, its agent and its booted
/// image. Only NodePools and Nodes are read.
///
/// Exit status: 0 done, or everything is up to date (--wait); 1 POOL does not exist, something could not be read, or
/// not everything was up to date in time (--wait); 2 wrong usage.
#[derive(Debug, Args)]
pub(super) struct NodesArguments {
    /// The name of a pool; all if none is given
    #[arg(value_name = "POOL")]
    pool: Option<String>,

    /// Print changes as they come, until interrupted or until --wait ends
    #[arg(long, short)]
    watch: bool,

    /// Wait until all selected nodes are up to date, at most TIME [default: 5m]
    ///
    /// 0s decides at once; the first list may take 5s in any case. A pool that does not exist yet is awaited, too, and
    /// a halted rollout may go on. At the end of the time, the reason of each pool is printed.
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = DEFAULT_WAIT, value_parser = wait_time)]
    wait: Option<Duration>,

    /// The format of the result: JSON as in the REST API, with --watch in lines
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,

    #[command(flatten)]
    cluster: ClusterArguments,
}

pub(super) fn run(arguments: &NodesArguments) -> Result<(), Failure> {
    let runtime = runtime::single_threaded()?;
    runtime.block_on(show(arguments))
}

async fn show(arguments: &NodesArguments) -> Result<(), Failure> {
    let pool = arguments.pool.as_deref();
    if let Some(name) = pool.filter(|name| !is_object_name(name)) {
        return Err(Failure::Usage(format!("{name:?} cannot be the name of an object")));
    }
    let wait = arguments.wait.map(Wait::new);
    let connection = arguments.cluster.connect("").await?;
    let mut fleet = Fleet::start(&connection, wait.as_ref().map(|wait| wait.limit)).await?;
    let mut printer = Printer::new(arguments.output, pool.is_some(), arguments.watch);
    let mut printed = Ok(());
    if arguments.watch {
        printed = printer.show(fleet.documents(pool));
    }
    let Some(wait) = wait else {
        printed?;
        let documents = fleet.documents(pool);
        let sentences = incomplete(&fleet, &documents, pool);
        if sentences.is_empty() && documents.is_empty() {
            say(&format!("note: {}", nothing(pool)));
        }
        if !arguments.watch {
            return Failure::after(printer.show(documents), done_unless(sentences));
        }
        sentences.iter().for_each(|sentence| say(&format!("warning: {sentence}")));
        loop {
            fleet.changed().await;
            printer.show(fleet.documents(pool))?;
        }
    };
    let blockers = loop {
        let blockers = blockers(&fleet, &fleet.documents(pool), pool);
        if blockers.is_empty() || wait.is_over() {
            break blockers;
        }
        // At the end of the time, the last state decides.
        let _ = wait.until_end(fleet.changed()).await;
        // The wait goes on though the output was closed: its result is the exit status.
        if arguments.watch && printed.is_ok() {
            printed = printer.show(fleet.documents(pool));
        }
    };
    if !arguments.watch {
        printed = printer.show(fleet.documents(pool));
    }
    let sentences = blockers.into_iter().map(|blocker| format!("not up to date {wait}: {blocker}"));
    Failure::after(printed, done_unless(sentences.collect()))
}

/// Returns a sentence for each object that cannot be read or does not exist.
fn incomplete(fleet: &Fleet, documents: &[PoolDocument], pool: Option<&str>) -> Vec<String> {
    let mut sentences = fleet.unreadable(pool);
    if pool.is_some() && documents.is_empty() && sentences.is_empty() {
        sentences.push(nothing(pool));
    }
    sentences
}

/// Returns a sentence for each cause for which not everything selected is up to date.
fn blockers(fleet: &Fleet, documents: &[PoolDocument], pool: Option<&str>) -> Vec<String> {
    let mut sentences = incomplete(fleet, documents, pool);
    if documents.is_empty() && sentences.is_empty() {
        sentences.push(nothing(pool));
    }
    let is_named = pool.is_some();
    let causes =
        documents.iter().filter_map(|pool| Some(format!("{}: {}", pool.name, blocker(pool, is_named)?)));
    sentences.extend(causes);
    sentences
}

/// Returns the sentence for an empty selection.
fn nothing(pool: Option<&str>) -> String {
    match pool {
        Some(name) => format!("there is no NodePool {name}"),
        None => "there is no NodePool".to_owned(),
    }
}
