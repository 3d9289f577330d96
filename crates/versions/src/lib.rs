//! Versions and constraints on them, in the language of Go's `Masterminds/semver` v3.5.0.
//!
//! That is what Flux 1.2 uses for `ImagePolicy.spec.policy.semver.range` and for `GitRepository.spec.ref.semver`, and
//! what templates call by `semver` and `semverCompare`; it is neither Cargo's language nor npm's. `testdata/semver`
//! holds what the library itself answers.

pub mod constraint;
mod shape;
pub mod version;

pub use constraint::{Constraint, ConstraintError, Mismatch};
pub use version::{Version, VersionError};
