//! The JSON document of a history.
//!
//! Other programs rely on it: names are fixed, and members may be added. `docs/history.schema.json` is generated from
//! these types.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::live::LiveComponent;
use crate::git::CommitTime;
use crate::git::history::{CommitSummary, UnreadableVersion};
use crate::update::ReadError;
use crate::update::history::{ChangeKind, Returning};

/// The value of `schema`.
pub(super) const SCHEMA: &str = "tagboat.dev/history/v1";

/// The changes of marked values in a clone.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HistoryDocument {
    /// The schema of this document: `tagboat.dev/history/v1`.
    schema: String,
    /// The commit of HEAD; null before the first commit.
    head: Option<String>,
    /// The changes, the newest first.
    changes: Vec<ListedChange>,
    /// Versions of files that cannot be read, at most 1,000.
    unreadable: Vec<Unreadable>,
    /// The end of the list; null after an error or without a commit.
    end: Option<End>,
}

/// A change of a marked value.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedChange {
    /// The time of the commit, in UTC.
    pub(super) time: String,
    /// The id of the commit.
    pub(super) commit: String,
    /// The name of the commit's author.
    pub(super) author: String,
    /// The kind of change.
    pub(super) kind: ListedKind,
    /// The object that contains the marker.
    pub(super) object: ListedObject,
    /// The marker's setter, such as `default:podinfo:tag`.
    pub(super) setter: String,
    /// The file, relative to the root of the repository.
    ///
    /// It is the last file of a removed marker.
    pub(super) file: String,
    /// The line of the value in the file, counted from 1.
    pub(super) line: usize,
    /// The file before the commit, if it had another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) previous_file: Option<String>,
    /// The value before; absent for an added marker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) old: Option<String>,
    /// The value after; absent for a removed marker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) new: Option<String>,
    /// True if the marker had the new value before.
    pub(super) back: bool,
    /// The components that have the new value now.
    ///
    /// A component that has it by a newer change of the marker is not listed. Absent without `--live`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) live: Option<Vec<LiveComponent>>,
}

/// The kind of a listed change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ListedKind {
    /// The value changed.
    Changed,
    /// The marker is new.
    Added,
    /// The marker is gone.
    Removed,
}

/// An object; members that its document does not state are empty.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedObject {
    /// The API version.
    api_version: String,
    /// The kind.
    kind: String,
    /// The namespace.
    namespace: String,
    /// The name.
    name: String,
}

/// A version of a file that cannot be read.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Unreadable {
    /// The commit that introduced it.
    commit: String,
    /// The file.
    file: String,
    /// The error of reading it.
    #[serde(flatten)]
    error: ReadError,
}

/// The end of a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct End {
    /// The reason for which the list ends.
    pub(super) reason: EndReason,
    /// The id of the oldest commit; absent if an option ended the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commit: Option<String>,
    /// The time of the oldest commit, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time: Option<String>,
}

/// The reason for which a list ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum EndReason {
    /// The first commit of the repository was reached.
    Root,
    /// The clone is shallow; the changes of its oldest commit are unknown.
    Shallow,
    /// `--limit` was reached.
    Limit,
    /// All further commits are older than `--since`.
    Since,
}

impl ListedChange {
    pub(super) fn of(returning: &Returning<CommitSummary>) -> Self {
        let Returning { commit, change, is_back } = returning;
        let place = change.place();
        let object = &place.key.object;
        let previous = change.old.as_ref().filter(|old| old.file != place.file);
        Self {
            time: time(commit.time),
            commit: commit.id.to_string(),
            author: commit.author.clone(),
            kind: match change.kind() {
                ChangeKind::Added => ListedKind::Added,
                ChangeKind::Removed => ListedKind::Removed,
                ChangeKind::Changed | ChangeKind::Moved => ListedKind::Changed,
            },
            object: ListedObject {
                api_version: object.api_version.clone(),
                kind: object.kind.clone(),
                namespace: object.namespace.clone(),
                name: object.name.clone(),
            },
            setter: place.key.setter.clone(),
            file: place.file.to_string(),
            line: place.line,
            previous_file: previous.map(|old| old.file.to_string()),
            old: change.old.as_ref().map(|old| old.value.to_string()),
            new: change.new.as_ref().map(|new| new.value.to_string()),
            back: *is_back,
            live: None,
        }
    }
}

impl ListedObject {
    /// Returns `Kind/namespace/name` without the parts that are missing; `-` if all are.
    pub(super) fn title(&self) -> String {
        let title = joined([&self.kind, &self.namespace, &self.name]);
        if title.is_empty() { "-".to_owned() } else { title }
    }
}

/// Joins kind, namespace and name by slashes, without the parts that are missing.
pub(super) fn joined(parts: [&String; 3]) -> String {
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.map(String::as_str).collect::<Vec<_>>().join("/")
}

impl Unreadable {
    pub(super) fn of(commit: &CommitSummary, version: &UnreadableVersion) -> Self {
        Self { commit: commit.id.to_string(), file: version.path.clone(), error: version.error.clone() }
    }
}

impl End {
    pub(super) fn root(commit: &CommitSummary) -> Self {
        Self::at(EndReason::Root, commit)
    }

    pub(super) fn shallow(commit: &CommitSummary) -> Self {
        Self::at(EndReason::Shallow, commit)
    }

    pub(super) fn limit() -> Self {
        Self { reason: EndReason::Limit, commit: None, time: None }
    }

    pub(super) fn since() -> Self {
        Self { reason: EndReason::Since, commit: None, time: None }
    }

    fn at(reason: EndReason, commit: &CommitSummary) -> Self {
        Self { reason, commit: Some(commit.id.to_string()), time: Some(time(commit.time)) }
    }
}

/// Returns the time of a commit in UTC.
///
/// A time outside of the years that can be written is that of 1970.
fn time(time: CommitTime) -> String {
    Timestamp::from_second(time.seconds).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}
