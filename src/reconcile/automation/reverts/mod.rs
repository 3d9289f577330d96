//! Keeps what others took back: the setting `tagboat.dev/on-revert`.
//!
//! | file | contents |
//! |---|---|
//! | `record` | the held policies, as the message of the condition `RevertHeld` has them |
//! | `baseline` | the images of the last run, from the status or from the note of an unreported push |
//! | `decision` | the values that a run holds or overwrites |
//! | `condition` | the condition `RevertHeld` and its event |

mod baseline;
mod condition;
mod decision;
mod record;
#[cfg(test)]
mod tests;

pub use baseline::StatusBaseline;
pub use condition::{HeldMarker, Holds, RevertOutcome};
pub use decision::{Overwritten, Reverts};
pub use record::{Between, HeldPolicy, HeldRecord};
