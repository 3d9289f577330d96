//! Decisions taken from an input's bytes.

/// A source of decisions that gives the first alternative for ever once its bytes are used up.
#[derive(Debug)]
pub struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl<'a> Choices<'a> {
    /// The decisions of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.iter() }
    }

    /// Whether there are no bytes left.
    pub fn is_used_up(&self) -> bool {
        self.bytes.len() == 0
    }

    /// A number below `count`, one for each byte.
    pub fn below(&mut self, count: usize) -> usize {
        self.bytes.next().map_or(0, |&byte| usize::from(byte) % count)
    }

    /// True in one of `count` cases.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    /// One of `alternatives`.
    pub fn one_of<T: Copy>(&mut self, alternatives: &[T]) -> T {
        alternatives[self.below(alternatives.len())]
    }
}
