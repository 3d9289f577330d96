//! Image policies: selects the winner among tags, and states why each other tag lost.
//!
//! A [`Policy`] is the parsed spec and annotations of an ImagePolicy (`rule`, `filter`, `definition`). It makes a
//! [`Selection`] of a list of tags: `selection` gives a verdict on every tag, `ranking` sorts the candidates, `natural`
//! is natural order, and `fast_path` finds the winner alone. `age` compares the ages of tags with a minimum age.
//! [`downgrade`] is the downgrade protection: it decides whether a lower winner is accepted already; a change of the
//! user's intent (`intent`) overrides it. [`group`] finds the value to which the members of a release group move. The time and all facts about tags are arguments. Versions and their ranges
//! are a crate of their own, because templates compare versions as well.

pub mod age;
pub mod definition;
pub mod downgrade;
mod fast_path;
mod filter;
pub mod group;
mod intent;
mod natural;
mod ranking;
mod rule;
pub mod selection;

pub use age::{Ages, Maturity, TagAge};
pub use definition::{Check, Policy, PolicyError};
pub use downgrade::{DowngradeProtection, HeldDowngrade};
pub use filter::FilterError;
pub use intent::{PolicyIntent, RepositoryIntent};
pub use natural::compare as natural_order;
pub use rule::RuleError;
pub use selection::{Outcome, Selection, SelectionError, Verdict};
pub use tagboat_versions::{
    Constraint, ConstraintError, Mismatch, Version, VersionError, constraint, version,
};
