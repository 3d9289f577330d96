//! Queues of waiters, one per namespace, served round robin.

use std::collections::{HashMap, VecDeque};

/// FIFO queues by namespace, which take turns (fair queueing).
#[derive(Debug)]
pub(super) struct Waiters<T> {
    queues: HashMap<String, VecDeque<T>>,
    /// Namespaces with waiters; the one with the next turn is first.
    round_robin: VecDeque<String>,
}

impl<T> Default for Waiters<T> {
    fn default() -> Self {
        Self { queues: HashMap::new(), round_robin: VecDeque::new() }
    }
}

impl<T> Waiters<T> {
    /// Appends a waiter to the queue of its namespace.
    pub(super) fn push(&mut self, namespace: &str, waiter: T) {
        if let Some(queue) = self.queues.get_mut(namespace) {
            queue.push_back(waiter);
        } else {
            self.queues.insert(namespace.to_owned(), VecDeque::from([waiter]));
            self.round_robin.push_back(namespace.to_owned());
        }
    }

    /// The first waiter of each namespace, starting with the next turn.
    pub(super) fn heads(&self) -> impl Iterator<Item = (&str, &T)> {
        self.round_robin
            .iter()
            .filter_map(|namespace| Some((namespace.as_str(), self.queues.get(namespace)?.front()?)))
    }

    /// Removes the first waiter of a namespace, and moves the namespace behind all others.
    pub(super) fn pop(&mut self, namespace: &str) -> Option<T> {
        let waiter = self.queues.get_mut(namespace)?.pop_front();
        self.round_robin.retain(|other| other != namespace);
        if self.queues.get(namespace).is_some_and(VecDeque::is_empty) {
            self.queues.remove(namespace);
        } else {
            self.round_robin.push_back(namespace.to_owned());
        }
        waiter
    }

    /// Removes the waiters of a namespace that match, without changing the turns of others.
    pub(super) fn remove(&mut self, namespace: &str, is_removed: impl Fn(&T) -> bool) {
        let Some(queue) = self.queues.get_mut(namespace) else { return };
        queue.retain(|waiter| !is_removed(waiter));
        if queue.is_empty() {
            self.queues.remove(namespace);
            self.round_robin.retain(|other| other != namespace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves the waiter with the next turn until none waits.
    fn serve(mut waiters: Waiters<u32>) -> Vec<u32> {
        let mut served = Vec::new();
        loop {
            let next = waiters.heads().next().map(|(namespace, _)| namespace.to_owned());
            match next {
                Some(namespace) => served.extend(waiters.pop(&namespace)),
                None => return served,
            }
        }
    }

    #[test]
    fn namespaces_take_turns() {
        let mut waiters = Waiters::default();
        for (namespace, waiter) in [("a", 1), ("a", 2), ("a", 3), ("b", 10), ("c", 20), ("b", 11)] {
            waiters.push(namespace, waiter);
        }
        assert_eq!(serve(waiters), [1, 10, 20, 2, 11, 3]);
    }

    #[test]
    fn a_waiter_that_leaves_keeps_the_turn_of_the_others() {
        let mut waiters = Waiters::default();
        for (namespace, waiter) in [("a", 1), ("a", 2), ("b", 10), ("c", 20)] {
            waiters.push(namespace, waiter);
        }
        waiters.remove("a", |waiter| *waiter == 1);
        waiters.remove("b", |waiter| *waiter == 10);
        waiters.remove("d", |_| true);
        assert_eq!(serve(waiters), [2, 20]);
    }
}
