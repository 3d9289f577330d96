//! Memory in which a namespace keeps what servers have listed.

use std::sync::Arc;

use parking_lot::Mutex;

/// The memory in which one namespace keeps what servers have listed.
///
/// Its parts share it, so many small ones and a large one have room.
#[derive(Debug, Default)]
pub struct KeptMemory {
    /// The bytes that the shares hold.
    held: Mutex<usize>,
}

impl KeptMemory {
    /// The maximum of all shares of a namespace, in bytes.
    pub const LIMIT: usize = 64 * 1024 * 1024;
}

/// The part of one repository in the memory of its namespace.
///
/// It is given back when dropped. The default one belongs to no namespace and has the whole limit.
#[derive(Debug, Default)]
pub struct KeptShare {
    of: Arc<KeptMemory>,
    /// Changes only while the sum of the namespace is locked.
    own: Mutex<usize>,
}

impl KeptShare {
    /// Makes an empty share of the memory of a namespace.
    pub fn new(of: Arc<KeptMemory>) -> Self {
        Self { of, own: Mutex::default() }
    }

    /// Returns true if the share has some bytes, or there is room for them.
    ///
    /// It never becomes smaller by this.
    pub fn grow(&self, bytes: usize) -> bool {
        let (mut held, mut own) = (self.of.held.lock(), self.own.lock());
        let missing = bytes.saturating_sub(*own);
        let has_room = missing <= KeptMemory::LIMIT.saturating_sub(*held);
        if has_room {
            *held += missing;
            *own += missing;
        }
        has_room
    }

    /// Gives back what is more than some bytes.
    pub fn shrink(&self, bytes: usize) {
        let (mut held, mut own) = (self.of.held.lock(), self.own.lock());
        let more = own.saturating_sub(bytes);
        *held -= more;
        *own -= more;
    }
}

impl Drop for KeptShare {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_a_namespace_have_one_limit() {
        let namespace = Arc::new(KeptMemory::default());
        let share = || KeptShare::new(Arc::clone(&namespace));
        let [one, two] = [share(), share()];
        let half = KeptMemory::LIMIT / 2;
        assert!(one.grow(half) && two.grow(half - 1));
        // What it has already counts once.
        assert!(one.grow(half + 1) && one.grow(half + 1) && one.grow(3));
        assert!(!two.grow(half) && !one.grow(half + 2));
        one.shrink(half);
        assert!(two.grow(half));
        one.shrink(half + 7);
        assert!(!two.grow(half + 1) && !share().grow(1));
        drop(one);
        assert!(two.grow(KeptMemory::LIMIT) && !two.grow(KeptMemory::LIMIT + 1));
        // Another namespace.
        assert!(KeptShare::default().grow(KeptMemory::LIMIT));
    }
}
