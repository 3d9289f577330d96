//! How many transactions may be under way at once.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// A number of places, of which each transaction takes one. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Places(Option<Arc<Limited>>);

#[derive(Debug)]
struct Limited {
    free: Mutex<usize>,
    is_left: Condvar,
}

/// A place that is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place(Option<Arc<Limited>>);

impl Places {
    /// As many as are asked for.
    pub fn without_limit() -> Self {
        Self(None)
    }

    /// This many, and at least one.
    pub fn limited(count: usize) -> Self {
        Self(Some(Arc::new(Limited { free: Mutex::new(count.max(1)), is_left: Condvar::new() })))
    }

    /// Waits for a place and takes it.
    pub(super) fn take(&self) -> Place {
        if let Some(limited) = &self.0 {
            let free = limited.free.lock().unwrap_or_else(PoisonError::into_inner);
            let wait = limited.is_left.wait_while(free, |free| *free == 0);
            *wait.unwrap_or_else(PoisonError::into_inner) -= 1;
        }
        Place(self.0.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(limited) = &self.0 {
            *limited.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            limited.is_left.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_more_are_under_way_than_there_are_places() {
        for (places, most) in [(Places::limited(2), 2), (Places::limited(0), 1), (Places::without_limit(), 8)]
        {
            let (now, highest) = (AtomicUsize::new(0), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        let _place = places.take();
                        highest.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(20));
                        now.fetch_sub(1, Ordering::SeqCst);
                    });
                }
            });
            assert!(highest.load(Ordering::SeqCst) <= most);
        }
    }
}
