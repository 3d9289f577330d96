//! The marker index: caches the markers of file contents by content id.
//!
//! A content never changes under its id, and the desired value of a marker depends on the policies alone. So the index
//! holds, for each content, its markers with their current values, its near misses, or the error of reading it. A file
//! that already has the desired values is not read again, and most files have no marker at all.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use super::file::{FileMarker, MarkedNode};
use super::marker::{Marker, MarkerError};
use super::report::{MarkerOutcome, ReadError};
use super::result::ObjectIdentifier;
use super::setter::Setters;
use super::tree::ContentId;

/// The header of a stored index, with the version of its format.
///
/// The version must change with the format and with the rules of markers: an index of another version is discarded.
const HEADER: &[u8] = b"tagboat marker index 6\n";

/// The maximum number of ids of contents and directories in the index.
///
/// A single tree of realistic size has fewer. The index is emptied at this number.
const MAX_IDS: usize = 1_000_000;

/// The maximum size of all records in bytes; a larger index is emptied.
const MAX_RECORD_BYTES: usize = 32 * 1024 * 1024;

/// The maximum size of one record in bytes.
///
/// A content with a longer record is read each time.
const MAX_RECORD_LENGTH: usize = 1024 * 1024;

/// The length of an id in bytes.
const ID_LENGTH: usize = 20;

/// The maximum length of a stored value in bytes.
///
/// Contents with longer values are read each time.
pub(super) const MAX_VALUE_LENGTH: usize = 1024;

/// Marker index: caches the markers, near misses and errors of contents by their ids.
///
/// Directories that have none of these are cached as well.
#[derive(Debug, Default)]
pub struct MarkerIndex {
    without_markers: HashSet<ContentId>,
    /// The records of contents, each a [`Record`] as JSON.
    ///
    /// JSON takes a third of a record's size in memory, and few records are read in one run.
    records: HashMap<ContentId, Box<[u8]>>,
    /// The size of all records in bytes.
    record_bytes: usize,
    /// Directories without anything to report, with the number of files in scope in each.
    markerless: HashMap<ContentId, u32>,
    is_modified: bool,
}

/// The parts of a content's outcome that do not depend on policies.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    markers: Vec<IndexedMarker>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    near_misses: Vec<(usize, MarkerError)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ReadError>,
}

/// A marker in the form of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct IndexedMarker {
    line: usize,
    setter: String,
    /// apiVersion, kind, name and namespace of its object.
    object: [String; 4],
    /// A scalar whose value is too long counts as absent.
    node: MarkedNode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
}

/// The findings in a content in which no value changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct IndexedOutcome {
    /// The markers, in the order of lines.
    pub(super) markers: Vec<FileMarker>,
    /// Comments that mention the token but are no markers, by line.
    pub(super) near_misses: Vec<(usize, MarkerError)>,
    /// The error of reading the content; the other fields are empty then.
    pub(super) error: Option<ReadError>,
}

impl IndexedOutcome {
    /// Returns true if there is nothing to report.
    pub(super) fn is_empty(&self) -> bool {
        self.markers.is_empty() && self.near_misses.is_empty() && self.error.is_none()
    }
}

impl MarkerIndex {
    /// Returns the findings in a content if they are known and no value changes.
    pub(super) fn get(&self, content: &ContentId, setters: &Setters) -> Option<IndexedOutcome> {
        if self.without_markers.contains(content) {
            return Some(IndexedOutcome::default());
        }
        let Record { markers, near_misses, error } =
            serde_json::from_slice(self.records.get(content)?).ok()?;
        let markers = markers.iter().map(|marker| marker.resolve(setters)).collect::<Option<_>>()?;
        Some(IndexedOutcome { markers, near_misses, error })
    }

    /// Stores the markers and near misses of a content; they must be complete.
    pub(super) fn insert(
        &mut self,
        content: ContentId,
        markers: &[FileMarker],
        near_misses: &[(usize, MarkerError)],
    ) {
        if markers.is_empty() && near_misses.is_empty() {
            self.clear_if_full(0);
            self.is_modified |= self.without_markers.insert(content);
            return;
        }
        let markers = markers.iter().map(IndexedMarker::of).collect();
        self.put(content, &Record { markers, near_misses: near_misses.to_vec(), error: None });
    }

    /// Stores the error of a content that cannot be read with any policies.
    pub(super) fn insert_error(&mut self, content: ContentId, error: &ReadError) {
        self.put(content, &Record { error: Some(error.clone()), ..Record::default() });
    }

    fn put(&mut self, content: ContentId, record: &Record) {
        let record = serde_json::to_vec(record).expect("a record is plain JSON").into_boxed_slice();
        if record.len() > MAX_RECORD_LENGTH {
            return;
        }
        self.clear_if_full(record.len());
        self.record_bytes += record.len();
        let before = self.records.insert(content, record);
        self.record_bytes -= before.as_ref().map_or(0, |before| before.len());
        self.is_modified |= before.as_ref() != self.records.get(&content);
    }

    /// Removes a content that is about to be replaced.
    ///
    /// A file that still has it is read once more. Otherwise the index would fill up with the versions of files that
    /// change often.
    pub fn remove(&mut self, content: &ContentId) {
        if let Some(record) = self.records.remove(content) {
            self.record_bytes -= record.len();
            self.is_modified = true;
        }
    }

    /// Returns the number of files in a directory, if it is known as markerless.
    pub(super) fn markerless_files(&self, directory: &ContentId) -> Option<usize> {
        self.markerless.get(directory).and_then(|files| usize::try_from(*files).ok())
    }

    /// Stores a directory of `files` files in scope without anything to report.
    pub(super) fn insert_markerless(&mut self, directory: ContentId, files: usize) {
        let Ok(files) = u32::try_from(files) else { return };
        self.clear_if_full(0);
        self.is_modified |= self.markerless.insert(directory, files) != Some(files);
    }

    /// Empties the index if `bytes` more would exceed a limit.
    fn clear_if_full(&mut self, bytes: usize) {
        let ids = self.without_markers.len() + self.records.len() + self.markerless.len();
        if ids >= MAX_IDS || self.record_bytes + bytes > MAX_RECORD_BYTES {
            *self = Self::default();
        }
    }

    /// Returns true if the index changed since it was read.
    pub fn is_modified(&self) -> bool {
        self.is_modified
    }

    /// Reads an index from a buffered stream.
    ///
    /// An invalid one counts as empty, since reading the files restores it.
    pub fn read_from(stream: impl Read) -> Self {
        Self::try_read_from(stream).ok().flatten().unwrap_or_default()
    }

    fn try_read_from(mut stream: impl Read) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER.len()];
        stream.read_exact(&mut header)?;
        if header != HEADER {
            return Ok(None);
        }
        let mut index = Self::default();
        for _ in 0..read_count(&mut stream)? {
            index.without_markers.insert(read_id(&mut stream)?);
        }
        for _ in 0..read_count(&mut stream)? {
            let id = read_id(&mut stream)?;
            index.markerless.insert(id, read_number(&mut stream)?);
        }
        for _ in 0..read_count(&mut stream)? {
            let id = read_id(&mut stream)?;
            let length = usize::try_from(read_number(&mut stream)?).unwrap_or(usize::MAX);
            index.record_bytes = index.record_bytes.saturating_add(length);
            if length > MAX_RECORD_LENGTH || index.record_bytes > MAX_RECORD_BYTES {
                return Ok(None);
            }
            let mut record = vec![0; length].into_boxed_slice();
            stream.read_exact(&mut record)?;
            if let Some(before) = index.records.insert(id, record) {
                index.record_bytes -= before.len();
            }
        }
        Ok(Some(index))
    }

    /// Serializes the index into a stream.
    ///
    /// The header is followed by three lists, each with its length in front: the contents without markers, the
    /// markerless directories, and the records.
    ///
    /// # Errors
    ///
    /// Returns the errors of `stream`.
    pub fn write_to(&self, mut stream: impl Write) -> io::Result<()> {
        stream.write_all(HEADER)?;
        stream.write_all(&number(self.without_markers.len()))?;
        for id in &self.without_markers {
            stream.write_all(&id.0)?;
        }
        stream.write_all(&number(self.markerless.len()))?;
        for (id, files) in &self.markerless {
            stream.write_all(&id.0)?;
            stream.write_all(&files.to_le_bytes())?;
        }
        stream.write_all(&number(self.records.len()))?;
        for (id, record) in &self.records {
            stream.write_all(&id.0)?;
            stream.write_all(&number(record.len()))?;
            stream.write_all(record)?;
        }
        Ok(())
    }
}

impl IndexedMarker {
    fn of(found: &FileMarker) -> Self {
        let object = &found.object;
        let object = [&object.api_version, &object.kind, &object.name, &object.namespace];
        let node = match &found.node {
            MarkedNode::Scalar(value) if value.len() > MAX_VALUE_LENGTH => MarkedNode::Absent,
            node => node.clone(),
        };
        let (setter, pointer) = (found.marker.setter.clone(), found.pointer.clone());
        Self { line: found.line, setter, object: object.map(Clone::clone), node, pointer }
    }

    /// Returns the marker with its outcome, or `None` if its value would change.
    fn resolve(&self, setters: &Setters) -> Option<FileMarker> {
        let marker = Marker::of_setter(&self.setter);
        let (outcome, node) = match (&self.node, setters.value(&marker)) {
            (node @ MarkedNode::NotScalar, wanted) => (MarkerOutcome::for_stray(&wanted), node),
            (node @ MarkedNode::Scalar(value), Err(MarkerOutcome::Waiting)) => {
                (setters.outcome_of_kept(&marker, value), node)
            }
            (node, Err(outcome)) => (outcome, node),
            (node @ MarkedNode::Scalar(value), Ok(wanted)) if *value == wanted => {
                (setters.outcome_of_kept(&marker, value), node)
            }
            _ => return None,
        };
        let [api_version, kind, name, namespace] = self.object.clone();
        let object = ObjectIdentifier { api_version, kind, name, namespace };
        let pointer = self.pointer.clone();
        Some(FileMarker { line: self.line, marker, object, outcome, node: node.clone(), pointer })
    }
}

/// A length in its stored form.
fn number(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("an index is bounded").to_le_bytes()
}

fn read_number(stream: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; size_of::<u32>()];
    stream.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

/// Reads the length of a list of ids.
fn read_count(stream: &mut impl Read) -> io::Result<u32> {
    match read_number(stream)? {
        count if usize::try_from(count).is_ok_and(|count| count <= MAX_IDS) => Ok(count),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn read_id(stream: &mut impl Read) -> io::Result<ContentId> {
    let mut id = [0; ID_LENGTH];
    stream.read_exact(&mut id)?;
    Ok(ContentId(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> ContentId {
        let mut id = [0; ID_LENGTH];
        id[..4].copy_from_slice(&number.to_le_bytes());
        ContentId(id)
    }

    fn marker(value: &str) -> FileMarker {
        FileMarker {
            line: 1,
            marker: Marker::of_setter("n:p:tag"),
            object: ObjectIdentifier::default(),
            outcome: MarkerOutcome::UnknownPolicy,
            node: MarkedNode::Scalar(value.to_owned()),
            pointer: Some("/a/0".to_owned()),
        }
    }

    #[test]
    fn near_misses_and_failures_are_recalled_as_they_were() {
        let mut index = MarkerIndex::default();
        let near_misses = [(3, MarkerError::NotJson), (9, MarkerError::NoQuotes)];
        let error = ReadError { line: 2, column: 7, message: "it is not YAML".to_owned() };
        index.insert(id(1), &[marker("1.0")], &near_misses);
        index.insert_error(id(2), &error);
        index.insert(id(3), &[], &[]);
        let setters = Setters::default();
        let mut bytes = Vec::new();
        index.write_to(&mut bytes).unwrap();
        for index in [MarkerIndex::read_from(bytes.as_slice()), index] {
            let outcome = index.get(&id(1), &setters).unwrap();
            assert_eq!((outcome.markers, outcome.near_misses), (vec![marker("1.0")], near_misses.to_vec()));
            let outcome = index.get(&id(2), &setters).unwrap();
            assert_eq!(outcome, IndexedOutcome { error: Some(error.clone()), ..IndexedOutcome::default() });
            assert!(index.get(&id(3), &setters).unwrap().is_empty());
            assert_eq!(index.get(&id(4), &setters), None);
        }
    }

    #[test]
    fn long_names_do_not_make_an_index_larger_than_its_bound() {
        let mut index = MarkerIndex::default();
        let mut many = vec![marker(&"x".repeat(MAX_VALUE_LENGTH)); 500];
        for number in 0..200 {
            many[0].line = number as usize;
            index.insert(id(number), &many, &[]);
            assert!(index.record_bytes <= MAX_RECORD_BYTES);
            assert_eq!(index.record_bytes, index.records.values().map(|record| record.len()).sum::<usize>());
        }
        assert!(!index.records.is_empty() && index.records.len() < 100, "{}", index.records.len());
        // A content whose record exceeds its maximum is read each time.
        index.insert(id(1_000), &[many.clone(), many.clone(), many.clone()].concat(), &[]);
        assert_eq!(index.get(&id(1_000), &Setters::default()), None);
    }
}
