//! What is known of contents that were read before.
//!
//! A content never changes under its id, and what a marker wants follows from the policies alone. So it is enough to
//! know, of each content, its markers and the values that they stand on: a file that says already what its policies
//! want need not be read again, and most files have no marker at all.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::account::MarkerOutcome;
use super::file::{FileMarker, Standing};
use super::marker::Marker;
use super::result::ObjectIdentifier;
use super::setter::Setters;
use super::tree::ContentId;

/// What the index begins with where it is kept. Another form of it, or other rules for what a marker is, need another
/// number: an index of another number is forgotten.
const FORM: &[u8] = b"tagboat marker index 3\n";

/// More contents than this are more than one tree of any size that is met; the index begins anew then.
const CONTENTS: usize = 1_000_000;

/// The same of markers: each takes some hundred bytes of memory.
const MARKERS: usize = 250_000;

/// An id's length.
const ID: usize = 20;

/// Longer values are not kept; what stands on one is read again.
pub(super) const VALUE_LENGTH: usize = 1024;

/// The markers of contents, by the contents' ids, and the directories that have none.
#[derive(Debug, Default)]
pub struct MarkerIndex {
    without_markers: HashSet<ContentId>,
    with_markers: HashMap<ContentId, Vec<IndexedMarker>>,
    /// Directories without anything to speak of, and how many files to look into each has.
    barren: HashMap<ContentId, u32>,
    /// How many markers there are in all.
    markers: usize,
    has_news: bool,
}

/// A marker as the index has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct IndexedMarker {
    line: usize,
    setter: String,
    /// apiVersion, kind, name and namespace of its object.
    object: [String; 4],
    standing: IndexedStanding,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum IndexedStanding {
    Value(String),
    Unknown,
    Nowhere,
}

impl MarkerIndex {
    /// The markers of a content and what becomes of them, if that is known without reading it.
    ///
    /// It is not where a value would have to change.
    pub(super) fn recall(&self, content: &ContentId, setters: &Setters) -> Option<Vec<FileMarker>> {
        if self.without_markers.contains(content) {
            return Some(Vec::new());
        }
        self.with_markers.get(content)?.iter().map(|marker| marker.resolve(setters)).collect()
    }

    /// Takes note of the markers of a content; they are all that it has.
    pub(super) fn remember(&mut self, content: ContentId, markers: &[FileMarker]) {
        self.make_room();
        self.has_news |= if markers.is_empty() {
            self.without_markers.insert(content)
        } else {
            let markers: Vec<_> = markers.iter().map(IndexedMarker::of).collect();
            self.markers += markers.len();
            let before = self.with_markers.insert(content, markers.clone());
            self.markers -= before.as_ref().map_or(0, Vec::len);
            before != Some(markers)
        };
    }

    /// Forgets a content that another is about to take the place of.
    ///
    /// Whoever still has it reads it once more. Kept, the versions of a file that changes often would be all there is.
    pub fn forget(&mut self, content: &ContentId) {
        if let Some(markers) = self.with_markers.remove(content) {
            self.markers -= markers.len();
            self.has_news = true;
        }
    }

    /// How many files to look into a directory has, if there is nothing to speak of in them.
    pub(super) fn files_if_barren(&self, directory: &ContentId) -> Option<usize> {
        self.barren.get(directory).and_then(|files| usize::try_from(*files).ok())
    }

    /// Takes note of a directory of so many files without anything to speak of.
    pub(super) fn remember_barren(&mut self, directory: ContentId, files: usize) {
        let Ok(files) = u32::try_from(files) else { return };
        self.make_room();
        self.has_news |= self.barren.insert(directory, files) != Some(files);
    }

    /// Begins anew where there would be too much.
    fn make_room(&mut self) {
        let contents = self.without_markers.len() + self.with_markers.len() + self.barren.len();
        if contents >= CONTENTS || self.markers >= MARKERS {
            *self = Self::default();
        }
    }

    /// Whether something was noted since the index was read.
    pub fn has_news(&self) -> bool {
        self.has_news
    }

    /// Reads an index; one that cannot be read counts as empty, for it is made again by reading the files.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self::try_from_bytes(bytes).unwrap_or_default()
    }

    fn try_from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut bytes = bytes.strip_prefix(FORM)?;
        let without_markers = take_ids(&mut bytes)?;
        let barren = take_ids(&mut bytes)?;
        let files = take(&mut bytes, barren.len() * size_of::<u32>())?.as_chunks().0;
        let with_markers: HashMap<String, Vec<IndexedMarker>> = serde_json::from_slice(bytes).ok()?;
        let markers = with_markers.values().map(Vec::len).sum();
        let with_markers = with_markers.into_iter();
        Some(Self {
            markers,
            without_markers: without_markers.iter().copied().map(ContentId).collect(),
            barren: barren
                .iter()
                .zip(files)
                .map(|(id, files)| (ContentId(*id), u32::from_le_bytes(*files)))
                .collect(),
            with_markers: with_markers
                .map(|(id, markers)| Some((from_hexadecimal(&id)?, markers)))
                .collect::<Option<_>>()?,
            has_news: false,
        })
    }

    /// The index in the form in which it is kept: the many ids as they are, led by their number, and the few markers as
    /// JSON.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = FORM.to_vec();
        put_ids(&mut bytes, self.without_markers.iter());
        put_ids(&mut bytes, self.barren.keys());
        bytes.extend(self.barren.values().flat_map(|files| files.to_le_bytes()));
        let with_markers = self.with_markers.iter().map(|(id, markers)| (to_hexadecimal(*id), markers));
        let with_markers: HashMap<String, &Vec<IndexedMarker>> = with_markers.collect();
        serde_json::to_writer(&mut bytes, &with_markers).expect("markers are plain JSON");
        bytes
    }
}

impl IndexedMarker {
    fn of(found: &FileMarker) -> Self {
        let object = &found.object;
        let object = [&object.api_version, &object.kind, &object.name, &object.namespace];
        let standing = match &found.standing {
            Standing::Value(value) if value.len() <= VALUE_LENGTH => IndexedStanding::Value(value.clone()),
            Standing::Value(_) | Standing::Absent => IndexedStanding::Unknown,
            Standing::Nowhere => IndexedStanding::Nowhere,
        };
        Self {
            line: found.line,
            setter: found.marker.setter.clone(),
            object: object.map(Clone::clone),
            standing,
        }
    }

    /// What becomes of the marker, or nothing where its value would have to change.
    fn resolve(&self, setters: &Setters) -> Option<FileMarker> {
        let marker = Marker::of_setter(&self.setter);
        let (outcome, standing) = match (&self.standing, setters.value(&marker)) {
            (IndexedStanding::Nowhere, wanted) => (MarkerOutcome::of_stray(&wanted), Standing::Nowhere),
            (IndexedStanding::Value(value), Err(outcome)) => (outcome, Standing::Value(value.clone())),
            (IndexedStanding::Unknown, Err(outcome)) => (outcome, Standing::Absent),
            (IndexedStanding::Value(value), Ok(wanted)) if *value == wanted => {
                (MarkerOutcome::Current, Standing::Value(wanted))
            }
            _ => return None,
        };
        let [api_version, kind, name, namespace] = self.object.clone();
        let object = ObjectIdentifier { api_version, kind, name, namespace };
        Some(FileMarker { line: self.line, marker, object, outcome, standing })
    }
}

fn to_hexadecimal(content: ContentId) -> String {
    content.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hexadecimal(text: &str) -> Option<ContentId> {
    let mut id = [0; ID];
    if text.len() != 2 * id.len() || !text.is_ascii() {
        return None;
    }
    for (index, byte) in id.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(ContentId(id))
}

fn put_ids<'i>(bytes: &mut Vec<u8>, ids: impl ExactSizeIterator<Item = &'i ContentId>) {
    let count = u32::try_from(ids.len()).expect("an index is bounded");
    bytes.extend(count.to_le_bytes());
    bytes.extend(ids.flat_map(|id| id.0));
}

/// Takes a list of ids off the front.
fn take_ids<'b>(bytes: &mut &'b [u8]) -> Option<&'b [[u8; ID]]> {
    let count = take(bytes, size_of::<u32>())?.try_into().ok()?;
    let length = usize::try_from(u32::from_le_bytes(count)).ok()?.checked_mul(ID)?;
    Some(take(bytes, length)?.as_chunks().0)
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}
