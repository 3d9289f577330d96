//! The tags of one repository as a file: a checksum on the first line, JSON on the second.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{KnownImage, StoredTags};
use crate::reference::TagList;

/// How the form is called, so that another one is not taken for it.
const FORM: &str = "tagboat tags 1";

#[derive(Serialize, Deserialize)]
struct Document {
    canonical: String,
    scanned: Timestamp,
    etag: Option<String>,
    /// In the order of the list.
    tags: Vec<String>,
    /// Of each tag, in the same order.
    first_seen: Vec<u32>,
    /// When the first scan was; a file that does not say is as old as its scan.
    #[serde(default)]
    begun: Option<Timestamp>,
    #[serde(default)]
    images: BTreeMap<String, KnownImage>,
}

/// How the names of files begin that are yet to be written.
const UNFINISHED: &str = ".new-";

/// Whether a file was left behind by a process that was killed while it wrote. Only the one that writes may ask.
pub(super) fn is_left_over(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes()))
}

/// Writes a file in one step: it is wholly the old or wholly the new one, whatever happens.
pub(super) fn write(path: &Path, tags: &StoredTags) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(directory)?;
    file.write_all(&encode(tags))?;
    file.persist(path)?;
    Ok(())
}

fn encode(stored: &StoredTags) -> Vec<u8> {
    let document = Document {
        canonical: stored.canonical.clone(),
        scanned: stored.scanned,
        etag: stored.etag.clone(),
        tags: stored.tags.iter().map(str::to_owned).collect(),
        first_seen: stored.first_seen.to_vec(),
        begun: Some(stored.begun),
        images: stored.images.clone(),
    };
    let json = serde_json::to_string(&document).expect("texts and numbers can be written");
    format!("{FORM} {}\n{json}\n", checksum(json.as_bytes())).into_bytes()
}

/// Reads a file; nothing of one that is not as it was written.
pub(super) fn decode(bytes: &[u8]) -> Option<StoredTags> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (first, rest) = text.split_once('\n')?;
    let json = rest.strip_suffix('\n')?;
    let sum = first.strip_prefix(FORM)?.strip_prefix(' ')?;
    if sum != checksum(json.as_bytes()) {
        return None;
    }
    let document: Document = serde_json::from_str(json).ok()?;
    let Document { canonical, scanned, etag, tags, first_seen, begun, images } = document;
    let list: TagList = tags.iter().map(String::as_str).collect();
    let is_in_order = list.iter().eq(tags.iter().map(String::as_str)) && first_seen.len() == list.len();
    let (first_seen, begun) = (first_seen.into(), begun.unwrap_or(scanned));
    is_in_order.then_some(StoredTags { canonical, scanned, etag, tags: list, first_seen, begun, images })
}

fn checksum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
