//! Finds marked values that others took back since the last run.
//!
//! The commit that the last run left is the *baseline*, and so are the images that it wanted. A value is reverted if the
//! baseline had what its image required, and the present commit has something else.
//!
//! | file | contents |
//! |---|---|
//! | `candidate` | the values that would be overwritten, and are not those of the baseline's images |
//! | `comparison` | which of them are reverted, by the tree of the baseline |

mod candidate;
mod comparison;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use candidate::{Candidate, HeldBefore, RevertQuery, candidates};
pub use comparison::{held_values, reverted};
