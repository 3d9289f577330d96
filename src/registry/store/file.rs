//! The tags of one repository as a file: a checksum on the first line, JSON on the second.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::{KnownImage, StoredTags};
use crate::reference::{Tag, TagList};

/// How the form is called, so that another one is not taken for it.
const FORM: &str = "tagboat tags 1";

/// A file as it is written, without a copy of the tags.
#[derive(Serialize)]
struct Written<'a> {
    canonical: &'a str,
    scanned: Timestamp,
    etag: Option<&'a str>,
    /// In the order of the list.
    tags: Tags<'a>,
    /// Of each tag, in the same order.
    first_seen: &'a [u32],
    begun: Timestamp,
    images: &'a BTreeMap<String, KnownImage>,
}

struct Tags<'a>(&'a TagList);

impl Serialize for Tags<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter())
    }
}

/// A file as it is read.
#[derive(Deserialize)]
struct Document<'d> {
    canonical: String,
    scanned: Timestamp,
    etag: Option<String>,
    #[serde(borrow)]
    tags: Vec<Text<'d>>,
    first_seen: Vec<u32>,
    /// When the first scan was; a file that does not say is as old as its scan.
    #[serde(default)]
    begun: Option<Timestamp>,
    #[serde(default)]
    images: BTreeMap<String, KnownImage>,
}

/// A string of the document, copied only if it has escapes in it.
#[derive(Deserialize)]
struct Text<'d>(#[serde(borrow)] Cow<'d, str>);

/// How the names of files begin that are yet to be written.
const UNFINISHED: &str = ".new-";

/// Whether a file was left behind by a process that was killed while it wrote. Only the one that writes may ask.
pub(super) fn is_left_over(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes()))
}

/// Writes a file in one step: it is wholly the old or wholly the new one, whatever happens.
///
/// Gives its size in bytes.
pub(super) fn write(path: &Path, tags: &StoredTags) -> io::Result<u64> {
    let directory = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(directory)?;
    let stored = Written {
        canonical: &tags.canonical,
        scanned: tags.scanned,
        etag: tags.etag.as_deref(),
        tags: Tags(&tags.tags),
        first_seen: &tags.first_seen,
        begun: tags.begun,
        images: &tags.images,
    };
    // Written twice, for the checksum stands in front, and the whole may be too large to be held once more.
    let mut sum = Sum(Sha256::new());
    serde_json::to_writer(&mut sum, &stored)?;
    let mut output = BufWriter::with_capacity(64 * 1024, &mut file);
    writeln!(output, "{FORM} {}", hexadecimal(sum.0))?;
    serde_json::to_writer(&mut output, &stored)?;
    output.write_all(b"\n")?;
    output.flush()?;
    drop(output);
    let bytes = file.as_file().metadata()?.len();
    file.persist(path)?;
    Ok(bytes)
}

/// Sums up what is written.
struct Sum(Sha256);

impl Write for Sum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
    let document: Document<'_> = serde_json::from_str(json).ok()?;
    let Document { canonical, scanned, etag, tags, first_seen, begun, images } = document;
    let is_in_order = tags.is_sorted_by(|left, right| left.0 > right.0) && first_seen.len() == tags.len();
    // Before names were looked at, some were kept that are no tags.
    let entries = tags.iter().zip(&first_seen).filter(|(tag, _)| Tag::is_well_formed(&tag.0));
    let (tags, first_seen): (Vec<&str>, Vec<u32>) = entries.map(|(tag, seen)| (&*tag.0, *seen)).unzip();
    let tags: TagList = tags.into_iter().collect();
    let (first_seen, begun) = (first_seen.into(), begun.unwrap_or(scanned));
    is_in_order.then_some(StoredTags { canonical, scanned, etag, tags, first_seen, begun, images })
}

fn checksum(bytes: &[u8]) -> String {
    hexadecimal(Sha256::new_with_prefix(bytes))
}

fn hexadecimal(sum: Sha256) -> String {
    sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
