//! When the digests of floating tags are looked up, and what is known of them.
//!
//! A [`Schedule`] is a value without a clock and without a registry: subscribers tell it which tag they follow, it says
//! which are due, and takes note of the answers. Who follows the same tag shares one look at it, and groups get their
//! digests together or not at all. A registry in trouble is left alone as a whole. [`interval`] reads
//! `UPDATE_POLLING_INTERVAL`, and has the waits between two looks.

pub mod interval;
mod knowledge;
mod rests;
mod schedule;

pub use interval::PollingInterval;
pub use knowledge::{Concern, Failure, Known, Missing, Trouble};
pub use schedule::{AtRegistry, Group, Schedule, Subscription};
