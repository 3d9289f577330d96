//! What is known of contents that were read before.
//!
//! A content never changes under its id, and what a marker wants follows from the policies alone. So it is enough to
//! know, of each content, its markers and the values that they stand on: a file that says already what its policies
//! want need not be read again, and most files have no marker at all.

use std::collections::{HashMap, HashSet};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use super::account::MarkerOutcome;
use super::file::{FileMarker, Standing};
use super::marker::Marker;
use super::result::ObjectIdentifier;
use super::setter::Setters;
use super::tree::ContentId;

/// Another form of the index, or other rules for what a marker is, need another number: an index of another number
/// is forgotten.
const VERSION: u32 = 1;

/// More contents than this are more than one tree of any size that is met; the index begins anew then.
const CONTENTS: usize = 1_000_000;

/// Longer values are not kept; what stands on one is read again.
const VALUE_LENGTH: usize = 1024;

/// The markers of contents, by the contents' ids.
#[derive(Debug, Default)]
pub struct MarkerIndex {
    without_markers: HashSet<ContentId>,
    with_markers: HashMap<ContentId, Vec<IndexedMarker>>,
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

/// The form in which the index is kept.
#[derive(Serialize, Deserialize)]
struct Stored {
    version: u32,
    /// The ids one after another, in base64.
    without_markers: String,
    /// The ids in hexadecimal.
    with_markers: HashMap<String, Vec<IndexedMarker>>,
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
        if self.without_markers.len() + self.with_markers.len() >= CONTENTS {
            *self = Self::default();
        }
        self.has_news |= if markers.is_empty() {
            self.without_markers.insert(content)
        } else {
            let markers: Vec<_> = markers.iter().map(IndexedMarker::of).collect();
            let before = self.with_markers.insert(content, markers.clone());
            before != Some(markers)
        };
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
        let stored: Stored =
            serde_json::from_slice(bytes).ok().filter(|stored: &Stored| stored.version == VERSION)?;
        let ids = BASE64_STANDARD.decode(stored.without_markers).ok()?;
        let without_markers =
            ids.chunks(20).map(|id| id.try_into().ok().map(ContentId)).collect::<Option<_>>()?;
        let with_markers = stored.with_markers.into_iter();
        let with_markers = with_markers
            .map(|(id, markers)| Some((from_hexadecimal(&id)?, markers)))
            .collect::<Option<_>>()?;
        Some(Self { without_markers, with_markers, has_news: false })
    }

    /// The index in the form in which it is kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        let ids: Vec<u8> = self.without_markers.iter().flat_map(|content| content.0).collect();
        let with_markers = self.with_markers.iter();
        let stored = Stored {
            version: VERSION,
            without_markers: BASE64_STANDARD.encode(ids),
            with_markers: with_markers.map(|(id, markers)| (to_hexadecimal(*id), markers.clone())).collect(),
        };
        serde_json::to_vec(&stored).expect("the index is plain JSON")
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
    let mut id = [0; 20];
    if text.len() != 2 * id.len() || !text.is_ascii() {
        return None;
    }
    for (index, byte) in id.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(ContentId(id))
}
