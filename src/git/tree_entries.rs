//! The entries of a git tree object, from its bytes.
//!
//! Each entry is the mode in octal digits, a space, the name, a NUL, and the 20 bytes of the object's id.

/// The length of an id in a SHA-1 repository.
const ID: usize = 20;

/// The type bits of a mode, and their values.
const TYPE: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;
const FILE: u32 = 0o100_000;

/// The kind of object behind a tree entry, by git's reading of its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeEntryKind {
    /// Another tree.
    Directory,
    /// A file.
    File,
    /// A file that its owner may execute.
    Executable,
    /// A symbolic link.
    Link,
    /// A commit of another repository; git reads every other mode as one, too.
    Submodule,
}

/// One entry of a tree object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeEntry<'t> {
    /// The offset of its first byte in the tree.
    pub start: usize,
    /// The offset behind its last byte.
    pub end: usize,
    /// The mode as it is written: octal digits, perhaps with leading zeros.
    pub mode: &'t [u8],
    /// The name; not checked, but never empty.
    pub name: &'t [u8],
    /// The object's id.
    pub id: [u8; ID],
    /// The kind for the mode.
    pub kind: TreeEntryKind,
}

/// The error of bytes that are no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tree object is malformed at byte {offset}")]
pub struct MalformedTree {
    /// The offset of the malformed entry.
    pub offset: usize,
}

/// Iterates over the entries of a tree object; ends after the first error.
#[derive(Clone, Debug)]
pub struct TreeEntries<'t> {
    bytes: &'t [u8],
    offset: usize,
}

impl<'t> TreeEntries<'t> {
    /// Returns the entries of a tree with these bytes.
    pub fn new(bytes: &'t [u8]) -> Self {
        Self::starting_at(bytes, 0)
    }

    /// Returns the entries from an offset on, which is the end of another entry.
    pub fn starting_at(bytes: &'t [u8], offset: usize) -> Self {
        Self { bytes, offset }
    }

    fn parse(&self) -> Option<TreeEntry<'t>> {
        let rest = self.bytes.get(self.offset..)?;
        let space = memchr::memchr(b' ', rest)?;
        let (mode, rest) = (&rest[..space], &rest[space + 1..]);
        let kind = kind_of(mode)?;
        let name = &rest[..memchr::memchr(0, rest).filter(|length| *length > 0)?];
        let id = *rest[name.len() + 1..].first_chunk()?;
        let end = self.offset + mode.len() + 1 + name.len() + 1 + ID;
        Some(TreeEntry { start: self.offset, end, mode, name, id, kind })
    }
}

impl<'t> Iterator for TreeEntries<'t> {
    type Item = Result<TreeEntry<'t>, MalformedTree>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.offset >= self.bytes.len() {
            return None;
        }
        let entry = self.parse().ok_or(MalformedTree { offset: self.offset });
        self.offset = entry.as_ref().map_or(self.bytes.len(), |entry| entry.end);
        Some(entry)
    }
}

fn kind_of(mode: &[u8]) -> Option<TreeEntryKind> {
    // Modes have sixteen bits; old repositories have some with a few leading zeros.
    if mode.is_empty() || mode.len() > 11 {
        return None;
    }
    let value = mode.iter().try_fold(0_u64, |value, digit| match digit {
        b'0'..=b'7' => Some(8 * value + u64::from(digit - b'0')),
        _ => None,
    })?;
    let value = u32::from(u16::try_from(value).ok()?);
    Some(match value & TYPE {
        DIRECTORY => TreeEntryKind::Directory,
        LINK => TreeEntryKind::Link,
        FILE if value & 0o100 == 0 => TreeEntryKind::File,
        FILE => TreeEntryKind::Executable,
        _ => TreeEntryKind::Submodule,
    })
}

/// Appends the bytes of an entry.
pub fn encode_entry(mode: &[u8], name: &[u8], id: &[u8], bytes: &mut Vec<u8>) {
    for part in [mode, b" ", name, b"\0", id] {
        bytes.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn tree(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (mode, name) in entries {
            encode_entry(mode.as_bytes(), name.as_bytes(), &[b' '; ID], &mut bytes);
        }
        bytes
    }

    #[test]
    fn modes_have_the_meaning_of_git() {
        use TreeEntryKind::{Directory, Executable, File, Link, Submodule};
        for (mode, kind) in [
            ("100644", File),
            ("100664", File),
            ("100755", Executable),
            ("0100644", File),
            ("40000", Directory),
            ("040000", Directory),
            ("120000", Link),
            ("120777", Link),
            ("160000", Submodule),
            ("644", Submodule),
            ("0", Submodule),
        ] {
            let bytes = tree(&[(mode, "a"), (mode, "b c")]);
            let entries: Vec<_> = TreeEntries::new(&bytes).map(Result::unwrap).collect();
            let found: Vec<_> = entries.iter().map(|entry| (entry.mode, entry.name, entry.kind)).collect();
            assert_eq!(
                found,
                [(mode.as_bytes(), b"a".as_slice(), kind), (mode.as_bytes(), b"b c", kind)],
                "{mode}"
            );
            assert_eq!((entries[0].end, entries[1].end), (entries[1].start, bytes.len()));
        }
    }

    #[test]
    fn a_malformed_tree_entry_is_an_error_at_its_offset() {
        let good = tree(&[("100644", "a")]);
        let cut = &good[..good.len() - 1];
        for bad in [
            b"x".as_slice(),
            b" a\0",
            b"8 a\0",
            b"+1 a\0",
            b"100644 a",
            b"200000 a\0",
            b"000000000000 a\0",
            cut,
        ] {
            let bytes = [&good[..], bad].concat();
            let all: Vec<_> = TreeEntries::new(&bytes).collect();
            assert_eq!(all.len(), 2, "{bad:?}");
            assert_eq!(all[1], Err(MalformedTree { offset: good.len() }), "{bad:?}");
        }
        assert_eq!(TreeEntries::new(&tree(&[("100644", "")])).next(), Some(Err(MalformedTree { offset: 0 })));
    }

    proptest! {
        #[test]
        fn entries_encode_to_the_bytes_that_they_were_read_from(
            garbage in vec(any::<u8>(), 0..200),
            names in vec("[a-z. ]{1,5}", 0..5),
        ) {
            let entries: Vec<_> = names.iter().map(|name| ("40000", name.as_str())).collect();
            let bytes = [tree(&entries), garbage].concat();
            let mut again = Vec::new();
            for entry in TreeEntries::new(&bytes).map_while(Result::ok) {
                prop_assert_eq!(entry.start, again.len());
                encode_entry(entry.mode, entry.name, &entry.id, &mut again);
                prop_assert_eq!(entry.end, again.len());
            }
            prop_assert!(bytes.starts_with(&again));
        }
    }
}
