//! The additional push of an automation besides its branch.

use std::fmt;

use super::name::{BranchName, NameError, RefName};

/// A push refspec: `[+]SOURCE:DESTINATION`, one commit to one reference.
///
/// It is parsed here and passed to git as a commit id and a full name, so that nothing else of git's refspec language
/// (patterns, deletions, matching branches) can happen by accident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refspec {
    /// True if a destination that is not an ancestor may be overwritten.
    pub is_forced: bool,
    /// The commit to push.
    pub source: RefspecSource,
    /// The reference to push to.
    pub destination: RefName,
    /// The text as given, for messages.
    text: String,
}

/// The commit that a refspec pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefspecSource {
    /// The tip of the push branch after the run; `HEAD` names it too.
    PushBranch,
    /// The commit that was checked out, of a branch other than the push branch.
    Checkout,
}

/// The branches that a refspec's source can name.
#[derive(Clone, Copy, Debug)]
pub struct RefspecBranches<'a> {
    /// The branch that is pushed to.
    pub push: &'a BranchName,
    /// The branch that is checked out, if it is a branch.
    pub checkout: Option<&'a BranchName>,
}

impl Refspec {
    /// Reads a refspec.
    ///
    /// # Errors
    ///
    /// If it is anything else than one commit for one reference, or its source is none of `branches`.
    pub fn parse(text: &str, branches: RefspecBranches<'_>) -> Result<Self, RefspecError> {
        let refused = |cause| RefspecError::Refused { text: text.to_owned(), cause };
        let (is_forced, rest) = text.strip_prefix('+').map_or((false, text), |rest| (true, rest));
        let (source, destination) = rest.split_once(':').ok_or_else(|| refused(RefspecDefect::NoColon))?;
        if text.contains('*') {
            return Err(refused(RefspecDefect::Pattern));
        }
        let named = source.strip_prefix("refs/heads/").unwrap_or(source);
        let source = if source.is_empty() {
            return Err(refused(RefspecDefect::NoSource));
        } else if source == "HEAD" || named == branches.push.as_str() {
            RefspecSource::PushBranch
        } else if branches.checkout.is_some_and(|checkout| named == checkout.as_str()) {
            RefspecSource::Checkout
        } else {
            let known = [Some(branches.push), branches.checkout].into_iter().flatten();
            let known: Vec<&str> = known.map(BranchName::as_str).collect();
            return Err(refused(RefspecDefect::UnknownSource { known: known.join(" or ") }));
        };
        let destination: RefName = destination
            .parse()
            .map_err(|cause| RefspecError::Destination { text: text.to_owned(), cause })?;
        if destination == branches.push.reference() && source != RefspecSource::PushBranch {
            return Err(refused(RefspecDefect::OntoPushBranch));
        }
        Ok(Self { is_forced, source, destination, text: text.to_owned() })
    }
}

/// Prints the text as given.
impl fmt::Display for Refspec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The error of a refspec that is not pushed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefspecError {
    /// It has another form than the supported one.
    #[error(
        "spec.git.push.refspec {text:?} is not [+]SOURCE:DESTINATION with one source and one full destination"
    )]
    Refused {
        /// The refspec.
        text: String,
        /// The defect.
        #[source]
        cause: RefspecDefect,
    },
    /// Its destination is no full name.
    #[error("spec.git.push.refspec {text:?} has a destination that cannot be pushed to")]
    Destination {
        /// The refspec.
        text: String,
        /// The defect.
        #[source]
        cause: NameError,
    },
}

/// The defect of a refspec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefspecDefect {
    /// There is no colon.
    #[error("it has no colon")]
    NoColon,
    /// It has a pattern.
    #[error("patterns with * are not pushed")]
    Pattern,
    /// It would delete a reference.
    #[error("an empty source would delete the destination")]
    NoSource,
    /// It names another source than the push branch or the checkout.
    #[error("its source must be HEAD or {known}")]
    UnknownSource {
        /// The possible sources.
        known: String,
    },
    /// It would push two commits to one branch.
    #[error("its destination is the push branch, which gets the new commit already")]
    OntoPushBranch,
}

impl RefspecDefect {
    /// Returns true if it is a defect only because of the branches of this automation.
    pub fn depends_on_branches(&self) -> bool {
        matches!(self, Self::UnknownSource { .. } | Self::OntoPushBranch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Refspec, String> {
        let (push, checkout) = ("auto".parse().unwrap(), "main".parse().unwrap());
        let branches = RefspecBranches { push: &push, checkout: Some(&checkout) };
        Refspec::parse(text, branches).map_err(|error| crate::error::chain(&error))
    }

    #[test]
    fn a_refspec_maps_one_commit_to_one_reference() {
        use RefspecSource::{Checkout, PushBranch};
        for (text, is_forced, source, destination) in [
            ("HEAD:refs/for/main", false, PushBranch, "refs/for/main"),
            ("+auto:refs/heads/x", true, PushBranch, "refs/heads/x"),
            ("refs/heads/auto:refs/heads/x/y", false, PushBranch, "refs/heads/x/y"),
            ("main:refs/heads/x", false, Checkout, "refs/heads/x"),
            ("refs/heads/main:refs/tags/t", false, Checkout, "refs/tags/t"),
            ("HEAD:refs/heads/auto", false, PushBranch, "refs/heads/auto"),
        ] {
            let refspec = parse(text).unwrap();
            let found = (refspec.is_forced, refspec.source, refspec.destination.as_str());
            assert_eq!(found, (is_forced, source, destination), "{text}");
            assert_eq!(refspec.to_string(), text);
        }
    }

    #[test]
    fn invalid_refspecs_are_refused_with_a_reason() {
        for (text, message) in [
            ("", "it has no colon"),
            ("HEAD", "it has no colon"),
            (":refs/heads/x", "an empty source would delete the destination"),
            ("+:refs/heads/x", "an empty source would delete the destination"),
            ("refs/heads/*:refs/heads/*", "patterns with * are not pushed"),
            ("HEAD:", "\"\" is not a valid reference name"),
            ("HEAD:main", "\"main\" is not a valid reference name"),
            ("HEAD:refs/heads/a:b", "is not a valid reference name"),
            ("other:refs/heads/x", "its source must be HEAD or auto or main"),
            ("HEAD~1:refs/heads/x", "its source must be HEAD or auto or main"),
            ("^HEAD:refs/heads/x", "its source must be HEAD or auto or main"),
            ("main:refs/heads/auto", "its destination is the push branch"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
            assert!(error.starts_with("spec.git.push.refspec "), "{error}");
            assert_eq!(error.matches(message).count(), 1, "said once: {error}");
        }
    }
}
