//! Text blocks between two lines of dashes, as in PEM and OpenPGP.
//!
//! They are read more leniently than either standard asks for: secrets are pasted, indented, and made on Windows.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use memchr::memmem::find;
use zeroize::Zeroizing;

const BEGIN: &[u8] = b"-----BEGIN ";
const DASHES: &[u8] = b"-----";

/// Some programs leave out the padding, others leave bits at the end.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// One block.
#[derive(Debug)]
pub(super) struct Block<'t> {
    /// The label, such as `OPENSSH PRIVATE KEY`.
    pub(super) label: &'t str,
    /// The lines `name: value` at its top.
    headers: Vec<(&'t str, &'t str)>,
    /// The content; `None` if it is not base64, or the block does not end.
    pub(super) data: Option<Zeroizing<Vec<u8>>>,
}

impl Block<'_> {
    /// Returns the value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }
}

/// Returns the blocks of a text, in their order.
pub(super) fn blocks(mut text: &[u8]) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    while let Some(start) = find(text, BEGIN) {
        text = &text[start + BEGIN.len()..];
        let Some(length) = find(text, DASHES) else { break };
        let label = std::str::from_utf8(&text[..length]).unwrap_or_default();
        text = &text[length + DASHES.len()..];
        let end = find(text, b"-----END ");
        let body = &text[..end.unwrap_or(text.len())];
        let mut block = read(label, body);
        block.data = block.data.filter(|_| end.is_some());
        blocks.push(block);
        text = &text[body.len()..];
    }
    blocks
}

/// Reads the text between the two lines of dashes.
fn read<'t>(label: &'t str, body: &'t [u8]) -> Block<'t> {
    let mut headers = Vec::new();
    let mut base64 = Zeroizing::new(Vec::with_capacity(body.len()));
    for line in body.split(|byte| b"\r\n".contains(byte)) {
        let line = line.trim_ascii();
        let header = std::str::from_utf8(line).ok().and_then(|line| line.split_once(':'));
        match header {
            Some((name, value)) if base64.is_empty() => headers.push((name.trim(), value.trim())),
            // The checksum of OpenPGP; the key itself shows whether it is complete.
            _ if line.starts_with(b"=") => break,
            _ => base64.extend(line.iter().copied().filter(|byte| !byte.is_ascii_whitespace())),
        }
    }
    // The error is dropped because it would show a byte of the key.
    let data = BASE64.decode(&*base64).ok().map(Zeroizing::new);
    Block { label, headers, data: data.filter(|data| !data.is_empty()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_in_any_layout() {
        for text in [
            "-----BEGIN A KEY-----\nYWJj\n-----END A KEY-----\n",
            "-----BEGIN A KEY-----\r\nYWJj\r\n-----END A KEY-----",
            "  Here it is:\n  -----BEGIN A KEY-----\n  YW\n  Jj\n  -----END A KEY-----\n",
            "-----BEGIN A KEY-----\nYW Jj\n=abcd\n-----END A KEY-----\n",
            "-----BEGIN A KEY-----YWJj-----END A KEY-----\n",
        ] {
            let found = blocks(text.as_bytes());
            let [block] = found.as_slice() else { panic!("{found:?}") };
            assert_eq!(block.label, "A KEY", "{text}");
            assert_eq!(block.data.as_deref().map(Vec::as_slice), Some(b"abc".as_slice()), "{text}");
        }
    }

    #[test]
    fn armor_headers_precede_the_data() {
        let text = b"-----BEGIN A-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\nYWJj\n-----END A-----\n\
                     -----BEGIN B-----\nZGVm\n-----END B-----\n";
        let found = blocks(text);
        assert_eq!(found[0].header("dek-info"), Some("AES-128-CBC,00FF"));
        assert_eq!(found[0].header("Comment"), None);
        assert_eq!(found[1].label, "B");
        assert_eq!(found[1].data.as_deref().unwrap(), b"def");
    }

    #[test]
    fn incomplete_armor_blocks_have_no_data() {
        for text in [
            "-----BEGIN A-----\nYWJj\n",
            "-----BEGIN A-----\nY%Jj\n-----END A-----",
            "-----BEGIN A-----\n-----END A-----",
        ] {
            assert!(blocks(text.as_bytes())[0].data.is_none(), "{text}");
        }
        for text in ["", "YWJj", "-----BEGIN A", "-----END A-----"] {
            assert!(blocks(text.as_bytes()).is_empty(), "{text}");
        }
    }
}
