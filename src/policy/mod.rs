//! Policies: which version of those on offer is wanted.
//!
//! So far versions and ranges of them, which stand in a crate of their own because templates compare versions as well.

pub use tagboat_versions::{
    Constraint, ConstraintError, Mismatch, Version, VersionError, constraint, version,
};
