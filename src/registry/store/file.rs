//! The file format of a tag list.
//! The first line has a checksum, the second line JSON.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use jiff::Timestamp;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer};
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::{KnownImage, StoredHead, StoredTags};
use crate::reference::{SortedTags, Tag, TagList};
use crate::registry::json::EachText;

/// The name of the format, at the begin of the first line.
const FORMAT: &str = "tagboat tags 1";

/// A file as it is written, without a copy of the tags.
#[derive(Serialize)]
struct DocumentRef<'a> {
    canonical: &'a str,
    scanned: Timestamp,
    etag: Option<&'a str>,
    /// In the order of the list.
    tags: Tags<'a>,
    /// In the same order; see [`StoredTags::first_seen`].
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
struct Document {
    canonical: String,
    scanned: Timestamp,
    etag: Option<String>,
    tags: ReadTags,
    first_seen: Vec<u32>,
    /// The time of the first scan.
    /// For files that do not have it, the time of the last scan is used.
    begun: Option<Timestamp>,
    #[serde(default)]
    images: BTreeMap<String, KnownImage>,
}

/// The identity of the list in a file.
#[derive(Deserialize)]
struct Head {
    canonical: String,
    etag: Option<String>,
}

/// The tags of a file, without a second copy.
struct ReadTags {
    tags: SortedTags,
    /// The number of entries, including those that are no tags.
    entries: u32,
    /// The positions of entries that are no tags.
    /// Versions that did not check names stored some.
    left_out: Vec<u32>,
}

impl<'de> Deserialize<'de> for ReadTags {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut read = Self { tags: SortedTags::with_capacity(0), entries: 0, left_out: Vec::new() };
        let add = |tag: &str| {
            if Tag::is_well_formed(tag) {
                read.tags.push(tag);
            } else {
                read.left_out.push(read.entries);
            }
            read.entries += 1;
        };
        EachText(add).deserialize(deserializer)?;
        Ok(read)
    }
}

/// The prefix of temporary files.
const TEMPORARY_PREFIX: &str = ".new-";

/// Returns `true` for the temporary file of a process that was killed.
///
/// Only the process that writes the store may ask.
pub(super) fn is_leftover(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()))
}

/// Writes a file atomically: either the old or the new content is there.
///
/// Returns the size in bytes.
pub(super) fn write(path: &Path, tags: &StoredTags) -> io::Result<u64> {
    let directory = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut file = tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempfile_in(directory)?;
    let stored = DocumentRef {
        canonical: &tags.canonical,
        scanned: tags.scanned,
        etag: tags.etag.as_deref(),
        tags: Tags(&tags.tags),
        first_seen: &tags.first_seen,
        begun: tags.first_scan,
        images: &tags.images,
    };
    // Serialized twice: the checksum comes first, and the document may be too large for one more copy.
    let mut checksum = ChecksumWriter(Sha256::new());
    serde_json::to_writer(&mut checksum, &stored)?;
    let mut output = BufWriter::with_capacity(64 * 1024, &mut file);
    writeln!(output, "{FORMAT} {:x}", checksum.0.finalize())?;
    serde_json::to_writer(&mut output, &stored)?;
    output.write_all(b"\n")?;
    output.flush()?;
    drop(output);
    let bytes = file.as_file().metadata()?.len();
    file.persist(path)?;
    Ok(bytes)
}

/// A writer that only computes the checksum.
struct ChecksumWriter(Sha256);

impl Write for ChecksumWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a file; `None` if it is damaged.
///
/// # Errors
///
/// If it cannot be read.
pub(super) fn read(file: impl Read) -> io::Result<Option<StoredTags>> {
    let Some(document) = read_document::<Document>(file)? else { return Ok(None) };
    let Document { canonical, scanned, etag, tags, mut first_seen, begun, images } = document;
    if !tags.tags.is_in_order() || first_seen.len() != tags.entries as usize {
        return Ok(None);
    }
    if !tags.left_out.is_empty() {
        let mut index = 0;
        first_seen.retain(|_| {
            index += 1;
            tags.left_out.binary_search(&(index - 1)).is_err()
        });
    }
    let (tags, begun) = (tags.tags.finish(), begun.unwrap_or(scanned));
    Ok(Some(StoredTags {
        canonical,
        scanned,
        etag,
        tags,
        first_seen: first_seen.into(),
        first_scan: begun,
        images,
    }))
}

/// Reads the identity of the list in a file, without keeping its tags.
/// Returns `None` if the file is damaged.
///
/// # Errors
///
/// If it cannot be read.
pub(super) fn read_head(file: impl Read) -> io::Result<Option<StoredHead>> {
    let head = read_document::<Head>(file)?;
    Ok(head.map(|Head { canonical, etag }| StoredHead { canonical, etag }))
}

/// Parses the document of a file while reading it; `None` if the checksum differs.
fn read_document<T: DeserializeOwned>(file: impl Read) -> io::Result<Option<T>> {
    let mut input = BufReader::with_capacity(64 * 1024, file);
    let mut first = Vec::new();
    input.by_ref().take(FORMAT.len() as u64 + 66).read_until(b'\n', &mut first)?;
    let mut checksum_reader = ChecksumReader { input, checksum: Sha256::new(), last: None };
    let document = {
        let mut reader = serde_json::Deserializer::from_reader(BufReader::new(&mut checksum_reader));
        let document = T::deserialize(&mut reader);
        document.and_then(|document| reader.end().map(|()| document))
    };
    let document = match document {
        Ok(document) => document,
        Err(error) if error.is_io() => return Err(error.into()),
        Err(_) => return Ok(None),
    };
    let expected = format!("{FORMAT} {:x}\n", checksum_reader.checksum.finalize());
    Ok((first == expected.as_bytes() && checksum_reader.last == Some(b'\n')).then_some(document))
}

/// A reader that computes the checksum of all bytes but the last newline.
struct ChecksumReader<R> {
    input: R,
    checksum: Sha256,
    last: Option<u8>,
}

impl<R: Read> Read for ChecksumReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        if let Some((last, others)) = buffer[..length].split_last() {
            self.checksum.update(self.last.as_slice());
            self.checksum.update(others);
            self.last = Some(*last);
        }
        Ok(length)
    }
}
