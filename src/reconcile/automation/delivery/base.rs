//! The base of an automation's branches.

use tagboat_api::Reason;

use crate::error::ReconcileError;
use crate::git::BranchName;
use crate::git::outcome::Target;

/// The error of an automation without a base for branches.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BaseError {
    /// A tag or a commit is checked out, to which nothing can be merged.
    #[error(
        "{checkout} is checked out, and with the annotation tagboat.dev/delivery it must be a branch: pull requests \
         are merged into it"
    )]
    NoBranch {
        /// The reference that is checked out.
        checkout: String,
    },
}

impl ReconcileError for BaseError {
    fn reason(&self) -> Reason {
        Reason::InvalidSourceConfiguration
    }

    fn is_retryable(&self) -> bool {
        false
    }
}

/// Returns the base of an automation's branches: the branch that is checked out.
///
/// # Errors
///
/// If a tag or a commit is checked out.
pub fn base_of(target: &Target) -> Result<BranchName, BaseError> {
    let none = || BaseError::NoBranch { checkout: target.checkout.to_string() };
    target.checkout.branch().ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::checkout::{CheckoutReference, ReferenceFields};

    #[test]
    fn only_a_branch_is_a_base() {
        let none = ReferenceFields::default();
        for (fields, expected) in [
            (none, Some("master")),
            (ReferenceFields { branch: "main", ..none }, Some("main")),
            (ReferenceFields { name: "refs/heads/main", ..none }, Some("main")),
            (ReferenceFields { name: "refs/tags/v1", ..none }, None),
            (ReferenceFields { tag: "v1", ..none }, None),
            (ReferenceFields { semver: ">=1", ..none }, None),
            (
                ReferenceFields {
                    commit: "00112233445566778899aabbccddeeff00112233",
                    branch: "main",
                    ..none
                },
                None,
            ),
        ] {
            let checkout = CheckoutReference::from_fields(fields).unwrap();
            let push = "main".parse().unwrap();
            let target = Target { checkout, push, refspec: None, own_branches: None, options: Vec::new() };
            match (base_of(&target), expected) {
                (Ok(base), Some(expected)) => assert_eq!(base.as_str(), expected),
                (Err(error), None) => assert!(!error.is_retryable(), "{error}"),
                (found, _) => panic!("{fields:?}: {found:?}"),
            }
        }
    }
}
