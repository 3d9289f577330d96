//! Decisions derived from the bytes of an input.

/// A source of decisions.
/// Once its bytes are used up, it always returns the first alternative.
#[derive(Debug)]
pub(crate) struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl<'a> Choices<'a> {
    /// Makes a source of the decisions in `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.iter() }
    }

    /// Returns whether no bytes are left.
    pub(crate) fn is_used_up(&self) -> bool {
        self.bytes.len() == 0
    }

    /// Returns a number below `count`, from one byte.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.bytes.next().map_or(0, |&byte| usize::from(byte) % count)
    }

    /// Returns up to `most` bytes; the next byte decides how many.
    pub(crate) fn bytes(&mut self, most: usize) -> Vec<u8> {
        let count = self.below(most + 1);
        self.bytes.by_ref().take(count).copied().collect()
    }

    /// Returns true in one of `count` cases.
    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    /// Returns one of `alternatives`.
    pub(crate) fn one_of<T: Copy>(&mut self, alternatives: &[T]) -> T {
        alternatives[self.below(alternatives.len())]
    }
}
