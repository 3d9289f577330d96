//! Shared resources, bounded and divided fairly between namespaces.
//!
//! A namespace stands for a tenant. Whatever tenants share is taken through one of these: [`semaphore`] counts slots or
//! bytes and grants them round robin, [`pool`] bounds CPU-heavy and blocking work, [`memory`] bounds the memory of large
//! inputs, and [`cache`] bounds shared tables. [`capacity`] bundles what a whole process has.

mod cache;
mod capacity;
mod checkpoint;
mod memory;
mod pool;
mod semaphore;
mod waiters;

pub use cache::FairCache;
pub use capacity::Capacity;
pub use checkpoint::{Checkpoint, Interrupted};
pub use memory::{MEMORY_BUDGET, MemoryBudget, MemoryReservation};
pub use pool::{BlockingPool, INLINE_BYTES, PoolPermit};
pub use semaphore::{FairSemaphore, Permit, SlotLimits};
