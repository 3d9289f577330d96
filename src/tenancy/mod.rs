//! Shared resources, bounded and divided fairly between namespaces.
//!
//! A namespace stands for a tenant. Whatever tenants share is taken through one of these: [`semaphore`] counts slots or
//! bytes and grants them round robin, [`pool`] bounds CPU-heavy and blocking work, [`memory`] bounds the memory of large
//! inputs, [`cache`] and [`sized_cache`] bound shared tables and [`queue`] what waits to be sent, and [`token_bucket`] says
//! how often something may happen. [`capacity`] bundles what a whole process has.

mod cache;
mod capacity;
mod checkpoint;
mod memory;
mod pool;
mod queue;
mod semaphore;
mod sized_cache;
mod token_bucket;
mod waiters;

pub use cache::FairCache;
pub use capacity::Capacity;
pub use checkpoint::{Checkpoint, Interrupted};
pub use memory::{MemoryBudget, MemoryReservation};
pub use pool::{BlockingPool, INLINE_BYTES, PoolPermit};
pub use queue::{FairQueue, QueueLimits};
pub use semaphore::{FairSemaphore, Overflow, Permit, SlotLimits};
pub use sized_cache::SizedCache;
pub use token_bucket::{Rate, TokenBucket};
