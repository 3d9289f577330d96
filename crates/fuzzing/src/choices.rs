//! Decisions taken from an input's bytes.

/// A source of decisions that gives the first alternative for ever once its bytes are used up.
#[derive(Debug)]
pub(crate) struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl<'a> Choices<'a> {
    /// The decisions of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.iter() }
    }

    /// Returns whether there are no bytes left.
    pub(crate) fn is_used_up(&self) -> bool {
        self.bytes.len() == 0
    }

    /// A number below `count`, one for each byte.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.bytes.next().map_or(0, |&byte| usize::from(byte) % count)
    }

    /// As many bytes as the next one says, at most a number.
    pub(crate) fn bytes(&mut self, most: usize) -> Vec<u8> {
        let count = self.below(most + 1);
        self.bytes.by_ref().take(count).copied().collect()
    }

    /// True in one of `count` cases.
    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    /// One of `alternatives`.
    pub(crate) fn one_of<T: Copy>(&mut self, alternatives: &[T]) -> T {
        alternatives[self.below(alternatives.len())]
    }
}
