//! `tagboat history`: lists the changes of marked values in a clone.

mod document;
mod filter;
mod listing;
mod live;

use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;
use jiff::Timestamp;

use super::Failure;
use super::cluster::ClusterArguments;
use super::output::OutputFormat;
use super::terminal::{Palette, say};
use super::values::whole_number;
use crate::error::chain;
use crate::git::history::{
    CommitSummary, HistoryEnd, HistoryError, HistoryWalk, LocalClone, disable_object_cache,
};
use crate::update::TreePath;
use crate::update::history::{ChangeKind, Returns};
pub(super) use document::HistoryDocument;
use document::{End, EndReason};
use filter::{FileFilter, ObjectFilter, PolicyFilter, Since};
use listing::Listing;
use live::LiveValues;

/// The number of older commits in a row that end a walk.
///
/// Clocks differ, so a commit may be older than its parent.
const OLDER_COMMITS: u32 = 5;

/// List the changes of marked values in a clone
///
/// Follows the first parents of HEAD from the newest commit to the oldest, and lists each change of a value with a
/// marker, and each marker that was added or removed. A change to a value that the marker had before is marked as
/// back. Without --live, no cluster and no network are needed.
///
/// Exit status: 0 done, 1 the history or the cluster could not be read, 2 wrong usage.
#[derive(Debug, Args)]
pub(super) struct HistoryArguments {
    /// A clone, or a file or directory in it, to which the list is restricted
    #[arg(value_name = "PATH", default_value = ".")]
    path: PathBuf,

    /// Only markers of this ImagePolicy
    #[arg(long, value_name = "NAMESPACE:NAME", value_parser = PolicyFilter::parse)]
    policy: Option<PolicyFilter>,

    /// Only markers of this object, in any namespace if none is given
    #[arg(long, value_name = "KIND/[NAMESPACE/]NAME", value_parser = ObjectFilter::parse)]
    object: Option<ObjectFilter>,

    /// Only this file or directory, relative to the root of the repository
    #[arg(long, value_name = "FILE", value_parser = FileFilter::parser())]
    file: Option<FileFilter>,

    /// Only commits since a time: a duration before now such as 72h, a date, or a time such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = Since::parse, allow_hyphen_values = true)]
    since: Option<Since>,

    /// Show this many of the latest changes; 0 shows all
    #[arg(
        long,
        value_name = "NUMBER",
        value_parser = whole_number::<u64>,
        default_value_t = 0,
        allow_hyphen_values = true
    )]
    limit: u64,

    /// Add which of the values are running, by the DeploymentStatus objects of a cluster
    #[arg(long)]
    live: bool,

    /// The format of the result
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,

    #[command(flatten)]
    cluster: ClusterArguments,
}

pub(super) fn run(arguments: &HistoryArguments) -> Result<(), Failure> {
    disable_object_cache();
    let clone = LocalClone::open(&arguments.path).map_err(|error| failure(&error))?;
    let head = clone.head().map_err(|error| failure(&error))?;
    let namespace = arguments.policy.as_ref().map(PolicyFilter::namespace);
    let mut live = arguments.live.then(|| LiveValues::read(&arguments.cluster, namespace)).transpose()?;
    let mut listing = Listing::start(arguments.output, Palette::for_output(), head)?;
    let Some(head) = head else {
        say("note: HEAD has no commits");
        return Ok(listing.finish(None)?);
    };
    let scope = match &arguments.file {
        Some(file) => file.within(clone.within()).map_err(Failure::Usage)?,
        None => clone.within().clone(),
    };
    let mut walk = clone.walk(head, scope.clone()).map_err(|error| failure(&error))?;
    let done = list(&mut walk, arguments, &mut listing, &mut live);
    let end = match (&done, walk.end()) {
        (Err(_), _) => None,
        (Ok(Some(end)), _) => Some(end.clone()),
        (Ok(None), Some(HistoryEnd::Root(commit))) => Some(End::root(commit)),
        (Ok(None), Some(HistoryEnd::Shallow(commit))) => Some(End::shallow(commit)),
        (Ok(None), None) => None,
    };
    if let Some(live) = &live {
        live.report_unknown();
    }
    if done.is_ok() && listing.count() == 0 {
        let is_complete = matches!(end, Some(End { reason: EndReason::Root, .. }));
        say(&arguments.nothing(is_complete.then_some(&scope)));
    }
    // A closed output ends the walk, and nothing is left to print.
    if matches!(done, Err(Failure::OutputClosed)) {
        return Err(Failure::OutputClosed);
    }
    Failure::after(listing.finish(end.as_ref()), done.map(|_| ()))
}

/// Lists the commits of a walk.
///
/// Returns the option that ended it before the end of the history.
fn list(
    walk: &mut HistoryWalk<'_>,
    arguments: &HistoryArguments,
    listing: &mut Listing,
    live: &mut Option<LiveValues>,
) -> Result<Option<End>, Failure> {
    let since = arguments.since.as_ref().map(|since| since.before(Timestamp::now()).as_second());
    let limit = if arguments.limit == 0 { u64::MAX } else { arguments.limit };
    let mut returns: Returns<CommitSummary> = Returns::default();
    let (mut found, mut older) = (0, 0);
    let done = loop {
        let walked = match walk.next_commit() {
            Ok(Some(walked)) => walked,
            // The walk may go on behind the end of the list, to find out which values are back.
            Ok(None) if found >= limit => break Ok(Some(End::limit())),
            Ok(None) if older > 0 => break Ok(Some(End::since())),
            Ok(None) => break Ok(None),
            Err(error) => break Err(failure(&error)),
        };
        let is_older = since.is_some_and(|since| walked.commit.time.seconds < since);
        older = if is_older { older + 1 } else { 0 };
        let is_listed = !is_older && found < limit;
        let mut changes = walked.changes;
        changes.retain(|change| arguments.selects(change));
        if is_listed {
            listing.warn(&walked.commit, &walked.unreadable);
            let listed = changes.iter().filter(|change| change.kind() != ChangeKind::Moved).count();
            found += u64::try_from(listed).unwrap_or(u64::MAX);
        }
        returns.add(&Rc::new(walked.commit), changes, is_listed);
        while let Some(change) = returns.next_ready().filter(|_| listing.count() < limit) {
            listing.add(&change, live.as_mut().map(|live| live.take(&change.change)))?;
        }
        listing.flush_to_terminal()?;
        // Older commits are still compared with the changes that wait.
        if listing.count() >= limit || (found >= limit && returns.is_empty()) {
            return Ok(Some(End::limit()));
        }
        if older >= OLDER_COMMITS && returns.is_empty() {
            return Ok(Some(End::since()));
        }
    };
    while let Some(change) = returns.next_waiting().filter(|_| listing.count() < limit) {
        listing.add(&change, live.as_mut().map(|live| live.take(&change.change)))?;
    }
    done
}

impl HistoryArguments {
    /// Returns the note about an empty list.
    ///
    /// `complete` is the scope of a walk through all commits, which finds each marker.
    fn nothing(&self, complete: Option<&TreePath>) -> String {
        let Some(scope) = complete.filter(|_| self.since.is_none()) else {
            return "note: no change of a marked value was found".to_owned();
        };
        let policy = self.policy.as_ref().map(|policy| format!(" of the policy {policy}"));
        let object = self.object.as_ref().map(|object| format!(" of the object {object}"));
        let scope = (*scope != TreePath::default()).then(|| format!(" in {scope}"));
        let filters: String = [policy, object, scope].into_iter().flatten().collect();
        format!("note: no marker{filters} was found in any commit")
    }

    fn selects(&self, change: &crate::update::history::ValueChange) -> bool {
        let key = &change.place().key;
        self.policy.as_ref().is_none_or(|policy| policy.selects(&key.setter))
            && self.object.as_ref().is_none_or(|object| object.selects(&key.object))
    }
}

fn failure(error: &HistoryError) -> Failure {
    Failure::new(chain(error))
}
