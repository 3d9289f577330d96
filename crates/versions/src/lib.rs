//! Versions and version constraints, in the language of Go's `Masterminds/semver` v3.5.0.
//!
//! Flux 1.2 uses it for `ImagePolicy.spec.policy.semver.range` and for `GitRepository.spec.ref.semver`, and templates
//! for `semver` and `semverCompare`; it differs from the languages of Cargo and npm. `testdata/semver` holds the
//! results of the library.

pub mod constraint;
mod shape;
pub mod version;

pub use constraint::{Constraint, ConstraintError, Mismatch};
pub use version::{Version, VersionError};
