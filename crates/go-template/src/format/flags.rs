//! Flags, width and precision of a formatting verb, and padding.

use crate::text::rune_count;

/// The part of a format between the percent sign and the verb.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flags {
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// `%+v`.
    pub(super) plus_v: bool,
    /// `%#v`.
    pub(super) sharp_v: bool,
}

impl Flags {
    /// Appends padding.
    pub(super) fn fill(&self, out: &mut Vec<u8>, count: usize) {
        let byte = if self.zero && !self.minus { b'0' } else { b' ' };
        out.extend(std::iter::repeat_n(byte, count));
    }

    /// Appends bytes, padded to the width.
    pub(super) fn pad(&self, out: &mut Vec<u8>, bytes: &[u8]) {
        let missing = self.width.unwrap_or(0).saturating_sub(rune_count(bytes));
        if !self.minus {
            self.fill(out, missing);
        }
        out.extend_from_slice(bytes);
        if self.minus {
            self.fill(out, missing);
        }
    }

    /// Appends bytes, padded with spaces only.
    pub(super) fn pad_with_blanks(&self, out: &mut Vec<u8>, bytes: &[u8]) {
        Self { zero: false, ..*self }.pad(out, bytes);
    }
}
