//! A lock that computations on blocking threads hold for long.

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// A lock that async tasks may take, too.
///
/// A wait for it leaves the async workers.
#[derive(Debug, Default)]
pub(super) struct LongLock<T>(RwLock<T>);

impl<T> LongLock<T> {
    /// Waits until no thread writes.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.try_read().unwrap_or_else(|| off_the_workers(|| self.0.read()))
    }

    /// Waits until no thread reads or writes.
    pub(super) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.try_write().unwrap_or_else(|| off_the_workers(|| self.0.write()))
    }
}

/// Runs work that blocks; another thread becomes the async worker meanwhile.
pub(super) fn off_the_workers<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        // A test, or no task at all.
        _ => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc;

    use super::*;

    /// One worker: a task that blocked it would keep the others from running.
    #[test]
    fn a_task_that_waits_for_the_lock_does_not_block_the_worker() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let lock = Arc::new(LongLock::<u8>::default());
        let (held, is_held) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let computation = {
            let lock = lock.clone();
            std::thread::spawn(move || {
                let guard = lock.read();
                held.send(()).unwrap();
                released.recv().unwrap();
                drop(guard);
            })
        };
        is_held.recv().unwrap();
        let (waits, is_waiting) = mpsc::channel();
        let waiting = runtime.spawn(async move {
            waits.send(()).unwrap();
            *lock.write() = 1;
        });
        is_waiting.recv().unwrap();
        assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
        assert!(!waiting.is_finished());
        release.send(()).unwrap();
        runtime.block_on(waiting).unwrap();
        computation.join().unwrap();
    }
}
