//! `tagboat status`: shows the deployments of a cluster, or waits until they are installed.
//!
//! | module | contents |
//! |---|---|
//! | `selection`, `image` | the selected deployments; the image of `--image` and its order |
//! | `blocker` | the cause for which a deployment is not installed, as a sentence |
//! | `table`, `printer` | the table; output of all deployments and of their changes, in each format |

mod blocker;
#[cfg(test)]
mod examples;
mod image;
mod printer;
mod selection;
mod table;

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use kube::ResourceExt;
use tagboat_api::DeploymentStatus;

use super::Failure;
use super::cluster::ClusterArguments;
use super::feed::{self, Feed};
use super::runtime;
use super::terminal::say;
use super::values::duration;
use super::wait::{DEFAULT_WAIT, Wait, done_unless, wait_time};
use crate::error::chain;
use crate::objects::ObjectName;
use crate::objects::cluster::{ClusterError, Scope, is_object_name};
use blocker::blocker;
use image::AwaitedImage;
use printer::Printer;
use selection::Selection;

/// The objects, in messages.
pub(super) const OBJECTS: &str = "DeploymentStatuses";

/// Show whether the images of policies are running
///
/// Shows the DeploymentStatus objects of a cluster: the state of each deployment, its progress, and what blocks it. No
/// other objects are read.
///
/// Exit status: 0 done, or everything is installed (--wait); 1 a name does not exist, something could not be read, or
/// not everything was installed in time (--wait); 2 wrong usage.
#[derive(Debug, Args)]
pub(super) struct StatusArguments {
    /// The names of deployments, which are those of their ImagePolicies; all if none is given
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// The namespace; otherwise that of the kubeconfig's context
    #[arg(long, short, value_name = "NAMESPACE", conflicts_with = "all_namespaces")]
    namespace: Option<String>,

    /// All namespaces
    #[arg(long, short = 'A')]
    all_namespaces: bool,

    /// Only deployments whose labels, which are those of their ImagePolicies, match this selector
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,

    /// Only deployments of which this ImageUpdateAutomation updates a marker
    #[arg(long, value_name = "NAME")]
    automation: Option<String>,

    /// Print changes as they come, until interrupted or until --wait ends
    #[arg(long, short)]
    watch: bool,

    /// Wait until everything selected is installed, for at most this time [default: 5m]
    ///
    /// 0s decides at once; the first list may take 5s in any case. A deployment that does not exist yet is awaited, too, and a failed one may recover. At the end of the time, the
    /// blocking component of each deployment is printed.
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = DEFAULT_WAIT, value_parser = wait_time)]
    wait: Option<Duration>,

    /// Wait until this image or a later one is installed
    ///
    /// It is name:tag, name:tag@digest, name@digest or a digest. A later one has a higher version as its tag, or was selected after the image was deployed. Without NAME, only
    /// deployments of the image's repository are selected. Implies --wait.
    #[arg(long, value_name = "REF", value_parser = AwaitedImage::parse)]
    image: Option<AwaitedImage>,

    /// The format of the result
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = StatusFormat::Text)]
    output: StatusFormat,

    #[command(flatten)]
    cluster: ClusterArguments,
}

/// The format of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StatusFormat {
    /// A table of deployments.
    Text,
    /// A table of deployments and their components.
    Wide,
    /// JSON, as in the REST API; with --watch one line after each change.
    Json,
}

pub(super) fn run(arguments: &StatusArguments) -> Result<(), Failure> {
    let runtime = runtime::single_threaded()?;
    runtime.block_on(show(arguments))
}

async fn show(arguments: &StatusArguments) -> Result<(), Failure> {
    let wait = arguments.wait();
    let connection = arguments.cluster.connect("").await?;
    let selection = arguments.selection(connection.namespace)?;
    let limit = wait.as_ref().map(|wait| wait.limit);
    let feed = Feed::start(OBJECTS, connection.client, selection.scope.clone(), limit).await;
    let mut feed = feed.map_err(|error| arguments.unlisted(&error, &connection.server))?;
    let mut printer = Printer::new(arguments.output, arguments.all_namespaces, arguments.watch);
    let mut printed = Ok(());
    if arguments.watch {
        printed = printer.all(&selected(&feed, &selection));
    }
    let Some(wait) = wait else {
        printed?;
        let sentences = incomplete(&feed, &selection);
        if sentences.is_empty() && selected(&feed, &selection).is_empty() {
            say(&format!("note: {}", selection.nothing()));
        }
        if !arguments.watch {
            return Failure::after(printer.all(&selected(&feed, &selection)), done_unless(sentences));
        }
        sentences.iter().for_each(|sentence| say(&format!("warning: {sentence}")));
        loop {
            let changes = feed.changes().await;
            printer.changes(&changes, &selection, || selected(&feed, &selection))?;
        }
    };
    let blockers = loop {
        let blockers = blockers(&feed, &selection);
        if blockers.is_empty() || wait.is_over() {
            break blockers;
        }
        let changes = wait.until_end(feed.changes()).await.unwrap_or_default();
        // The wait goes on though the output was closed: its result is the exit status.
        if arguments.watch && printed.is_ok() {
            printed = printer.changes(&changes, &selection, || selected(&feed, &selection));
        }
    };
    if !arguments.watch {
        printed = printer.all(&selected(&feed, &selection));
    }
    let sentences = blockers.into_iter().map(|blocker| format!("not installed {wait}: {blocker}"));
    Failure::after(printed, done_unless(sentences.collect()))
}

/// Returns the selected deployments, sorted by namespace and name.
fn selected(feed: &Feed<DeploymentStatus>, selection: &Selection) -> Vec<Arc<DeploymentStatus>> {
    feed.objects().into_iter().filter(|object| selection.selects(object)).collect()
}

/// Returns a sentence for each object that cannot be read or does not exist.
fn incomplete(feed: &Feed<DeploymentStatus>, selection: &Selection) -> Vec<String> {
    let unreadable = || feed.unreadable().filter(|(name, _)| selection.selects_name(&name.name));
    let sentences = unreadable().map(|(name, message)| format!("{name} cannot be read: {message}"));
    let found = selected(feed, selection).into_iter().map(|object| object.name_any());
    let missing = selection.missing(found.chain(unreadable().map(|(name, _)| name.name.clone())));
    sentences.chain(missing).collect()
}

/// Returns a sentence for each cause for which not everything selected is installed.
fn blockers(feed: &Feed<DeploymentStatus>, selection: &Selection) -> Vec<String> {
    let mut sentences = incomplete(feed, selection);
    let selected = selected(feed, selection);
    if selected.is_empty() && sentences.is_empty() {
        sentences.push(selection.nothing());
    }
    let causes = selected.iter().filter_map(|object| {
        let cause = blocker(object, selection.image.as_ref())?;
        Some(format!("{}: {cause}", ObjectName::of(&**object)))
    });
    sentences.extend(causes);
    sentences
}

/// Returns the sentence for a name that no object can have.
fn not_a_name(name: &str) -> String {
    match name.split_once('/') {
        Some((namespace, rest)) if is_object_name(namespace) && is_object_name(rest) => {
            format!("{name:?} has a namespace: write {rest}, and -n {namespace}")
        }
        _ => format!("{name:?} cannot be the name of an object"),
    }
}

impl StatusArguments {
    /// Returns the wait, which begins now.
    fn wait(&self) -> Option<Wait> {
        let default = || duration(DEFAULT_WAIT).expect("the default is a duration");
        let limit = self.wait.or_else(|| self.image.is_some().then(default))?;
        Some(Wait::new(limit))
    }

    /// Returns the selection; `context` is the namespace of the kubeconfig's context.
    fn selection(&self, context: String) -> Result<Selection, Failure> {
        let namespace = self.namespace.clone().unwrap_or(context);
        if !is_object_name(&namespace) {
            return Err(Failure::Usage(format!(
                "--namespace {namespace:?} cannot be the name of a namespace"
            )));
        }
        let scope = Scope {
            namespace: Some(namespace).filter(|_| !self.all_namespaces),
            labels: self.selector.clone().filter(|selector| !selector.is_empty()),
        };
        for name in self.names.iter().chain(&self.automation) {
            if !is_object_name(name) {
                return Err(Failure::Usage(not_a_name(name)));
            }
        }
        let names = self.names.iter().cloned().collect();
        Ok(Selection { scope, names, automation: self.automation.clone(), image: self.image.clone() })
    }

    /// Returns the failure of the first listing.
    fn unlisted(&self, error: &ClusterError, server: &str) -> Failure {
        match &self.selector {
            Some(selector) if error.is_bad_request() => {
                Failure::Usage(format!("--selector {selector:?}: {}", chain(error)))
            }
            _ => feed::failure::<DeploymentStatus>(OBJECTS, error, server),
        }
    }
}
