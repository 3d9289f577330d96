//! Image policies: selects the winner among tags, and states why each other tag lost.
//!
//! A [`Policy`] is the parsed spec and annotations of an ImagePolicy (`rule`, `filter`, `definition`). It makes a
//! [`Selection`] of a list of tags: `selection` gives a verdict on every tag, `contest` ranks the candidates, `natural`
//! is natural order, and `winner` is a fast path that finds the winner alone. `age` compares the ages of tags with a
//! minimum age. [`regression`] is the downgrade protection: it decides whether a lower winner is accepted already; a
//! change of the user's intent (`wishes`) overrides it. The time and all facts about tags are arguments. Versions and
//! their ranges are a crate of their own, because templates compare versions as well.

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
