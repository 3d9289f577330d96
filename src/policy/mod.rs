//! Policies: which of the tags on offer is wanted, and why each of the others is not.
//!
//! A [`Policy`] is an ImagePolicy's spec and annotations, understood once (`rule`, `filter`, `definition`). It makes a
//! [`Selection`] of a list of tags: every tag is judged, those in the contest are ordered (`contest`, `natural`), and
//! the rest keep the reason why they are not in it (`selection`); `winner` finds the winner alone, and sooner.
//! [`regression`] says whether a winner that is lower than the one before it counts already. Versions and ranges of them
//! stand in a crate of their own, because templates compare versions as well.

pub mod age;
mod contest;
pub mod definition;
mod filter;
mod natural;
pub mod regression;
mod rule;
pub mod selection;
mod winner;
mod wishes;

pub use age::{Ages, Birth, Maturity};
pub use definition::{Check, Policy, PolicyError};
pub use filter::FilterError;
pub use natural::compare as natural_order;
pub use regression::{Pending, Regression};
pub use rule::RuleError;
pub use selection::{Outcome, Selection, SelectionError, Verdict};
pub use tagboat_versions::{
    Constraint, ConstraintError, Mismatch, Version, VersionError, constraint, version,
};
pub use wishes::{PolicyWishes, RepositoryWishes};
