//! Shared resources, limited and divided fairly between namespaces.
//!
//! A namespace stands for a tenant. All shared resources go through one of these: [`semaphore`] counts slots or bytes
//! and grants them round robin, [`pool`] limits CPU-intensive and blocking work, [`memory`] limits the memory of large
//! inputs, [`kept`] that of lists, [`cache`], [`idle_cache`] and [`in_use`] limit shared tables, [`queue`] limits items to be sent, and
//! [`token_bucket`] limits rates. [`capacity`] combines the resources of a process. `waiters` has the round-robin queues of
//! the semaphore, `checkpoint` the deadline and cancellation of a job on the pool, `blocking` the work of the controller
//! itself that blocks, and `panics` the panics of tasks.

mod blocking;
mod cache;
mod capacity;
mod checkpoint;
mod idle_cache;
mod in_use;
mod kept;
mod memory;
mod panics;
mod pool;
mod queue;
mod semaphore;
mod token_bucket;
mod waiters;

pub use blocking::run_blocking;
pub use cache::FairCache;
pub use capacity::Capacity;
pub use checkpoint::{Checkpoint, Interrupted};
pub use idle_cache::IdleCache;
pub use in_use::InUseMap;
pub use kept::{KeptMemory, KeptShare};
pub use memory::{MemoryBudget, MemoryReservation};
pub use panics::{Panicked, catch_panic};
pub use pool::{BlockingPool, INLINE_BYTES, PoolPermit};
pub use queue::{FairQueue, QueueLimits};
pub use semaphore::{FairSemaphore, Overflow, Permit, SlotLimits};
pub use token_bucket::{Rate, TokenBucket};
