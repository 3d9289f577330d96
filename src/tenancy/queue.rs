//! A bounded queue that discards first from the namespace with most items.

use std::collections::{HashMap, VecDeque};

/// The limits of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// The maximum number of items.
    pub items: usize,
    /// The maximum total size of the items in bytes.
    pub bytes: usize,
}

/// A bounded queue of items, shared by tenants.
///
/// Beyond a limit, the oldest item of the namespace with the largest share is discarded; among equals, the namespace of
/// the new item comes first.
#[derive(Debug)]
pub struct FairQueue<T> {
    limits: QueueLimits,
    queues: HashMap<String, Share<T>>,
    items: usize,
    bytes: usize,
    next_id: u64,
}

#[derive(Debug)]
struct Share<T> {
    waiting: VecDeque<Waiting<T>>,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting<T> {
    id: u64,
    bytes: usize,
    item: T,
}

impl<T> FairQueue<T> {
    /// Creates an empty queue.
    pub fn new(limits: QueueLimits) -> Self {
        Self { limits, queues: HashMap::new(), items: 0, bytes: 0, next_id: 0 }
    }

    /// Returns a unique identifier for the next item.
    pub fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Appends an item of `bytes` bytes, and returns the items that it displaces.
    ///
    /// An item larger than the limit displaces itself.
    pub fn push(&mut self, namespace: &str, id: u64, bytes: usize, item: T) -> Vec<T> {
        let share = self.queues.entry(namespace.to_owned());
        let share = share.or_insert_with(|| Share { waiting: VecDeque::new(), bytes: 0 });
        share.waiting.push_back(Waiting { id, bytes, item });
        share.bytes += bytes;
        self.items += 1;
        self.bytes += bytes;
        let mut displaced = Vec::new();
        while self.items > self.limits.items || self.bytes > self.limits.bytes {
            let Some(largest) = self.largest(namespace) else { break };
            displaced.extend(self.take(&largest, 0));
        }
        displaced
    }

    /// Removes an item of a namespace.
    pub fn remove(&mut self, namespace: &str, id: u64) -> Option<T> {
        let waiting = &self.queues.get(namespace)?.waiting;
        let index = waiting.iter().position(|waiting| waiting.id == id)?;
        self.take(namespace, index)
    }

    /// Returns true if the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// The namespace with the largest share of the exceeded limit.
    fn largest(&self, newest: &str) -> Option<String> {
        let are_too_many = self.items > self.limits.items;
        let held = |share: &Share<T>| if are_too_many { share.waiting.len() } else { share.bytes };
        let largest =
            self.queues.iter().max_by_key(|(namespace, share)| (held(share), namespace.as_str() == newest));
        largest.map(|(namespace, _)| namespace.clone())
    }

    fn take(&mut self, namespace: &str, index: usize) -> Option<T> {
        let share = self.queues.get_mut(namespace)?;
        let Waiting { bytes, item, .. } = share.waiting.remove(index)?;
        share.bytes -= bytes;
        if share.waiting.is_empty() {
            self.queues.remove(namespace);
        }
        self.items -= 1;
        self.bytes -= bytes;
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes items of a size, and returns the displaced ones.
    fn push(queue: &mut FairQueue<&'static str>, items: &[(&str, usize, &'static str)]) -> Vec<&'static str> {
        let mut displaced = Vec::new();
        for (namespace, bytes, item) in items {
            let id = queue.next_id();
            displaced.extend(queue.push(namespace, id, *bytes, item));
        }
        displaced
    }

    #[test]
    fn a_flood_displaces_the_oldest_of_its_own() {
        let mut queue = FairQueue::new(QueueLimits { items: 4, bytes: 1000 });
        assert!(push(&mut queue, &[("victim", 1, "v"), ("victim", 1, "w"), ("attacker", 1, "a")]).is_empty());
        // With as many items as the victim, the attacker exceeds the limit.
        let flood = [("attacker", 1, "b"), ("attacker", 1, "c"), ("attacker", 1, "d")];
        assert_eq!(push(&mut queue, &flood), ["a", "b"]);
        assert_eq!(push(&mut queue, &[("victim", 1, "x")]), ["v"]);
        // An item of a third namespace displaces one of a namespace with most items.
        assert_eq!(push(&mut queue, &[("other", 1, "o")]).len(), 1);
    }

    #[test]
    fn large_items_displace_their_own_as_well() {
        let mut queue = FairQueue::new(QueueLimits { items: 100, bytes: 100 });
        let items = [("victim", 10, "v"), ("attacker", 60, "a"), ("attacker", 30, "b")];
        assert!(push(&mut queue, &items).is_empty());
        assert_eq!(push(&mut queue, &[("victim", 10, "w")]), ["a"]);
        assert_eq!(push(&mut queue, &[("attacker", 90, "c")]), ["b", "c"]);
        assert_eq!(push(&mut queue, &[("attacker", 101, "d")]), ["d"]);
        assert_eq!((queue.items, queue.bytes, queue.queues.len()), (2, 20, 1));
    }

    #[test]
    fn removed_items_leave_no_entry() {
        let mut queue = FairQueue::new(QueueLimits { items: 2, bytes: 100 });
        let (first, second) = (queue.next_id(), queue.next_id());
        assert!(
            queue.push("a", first, 10, "one").is_empty() && queue.push("a", second, 20, "two").is_empty()
        );
        assert_eq!(queue.remove("a", second), Some("two"));
        assert_eq!((queue.remove("a", second), queue.remove("b", first)), (None, None));
        assert_eq!(queue.remove("a", first), Some("one"));
        assert!(queue.is_empty() && queue.queues.is_empty() && queue.bytes == 0);
    }
}
