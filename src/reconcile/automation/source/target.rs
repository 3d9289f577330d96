//! The reference that an automation checks out, and its push branch and refspec (`docs/flux-behaviour.md`, Checkout
//! and push).

use tagboat_api::automation::{GitSpec, PushSpec};
use tagboat_api::git_repository::{GitRepositoryRef, GitRepositorySpec};

use super::{ObjectName, SourceError};
use crate::git::BranchName;
use crate::git::checkout::{CheckoutReference, ReferenceFields};
use crate::git::outcome::Target;
use crate::git::refspec::{Refspec, RefspecBranches};

/// The branch that is checked out if none is named.
const DEFAULT_BRANCH: &str = "master";

/// The relation of the push branch to the checkout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branches {
    /// The commit goes to the `branch` that the checkout names.
    Same,
    /// The commit goes to another branch: Flux's switch mode.
    ///
    /// A push to a branch that is checked out by its full name is one as well.
    Switched,
}

/// Makes the target from an automation's spec and the spec of its repository.
///
/// An automation with branches of its own needs no push branch.
pub(super) fn target(
    (git, has_own_branches): (&GitSpec, bool),
    spec: &GitRepositorySpec,
    repository: &ObjectName,
) -> Result<(Target, Branches), SourceError> {
    let (reference, place) = match (&git.checkout, &spec.reference) {
        (Some(checkout), _) => (Some(&checkout.reference), "spec.git.checkout.ref".to_owned()),
        (None, reference) => (reference.as_ref(), format!("spec.ref of GitRepository {repository}")),
    };
    let fields = reference.map(fields).unwrap_or_default();
    let named_branch = if reference.is_some() { fields.branch } else { DEFAULT_BRANCH };
    let (push, push_place) = match given(git.push.as_ref().and_then(|push| push.branch.as_ref())) {
        Some(branch) => (Some(branch), "spec.git.push.branch"),
        None if !fields.branch.is_empty() => (Some(fields.branch), place.as_str()),
        None if has_own_branches => (None, place.as_str()),
        // A branch that is checked out by default is pushed to only on request.
        None => return Err(SourceError::NoPushBranch),
    };
    let branches = if push == Some(named_branch) { Branches::Same } else { Branches::Switched };
    let named = |field: &str, cause| SourceError::Name { field: field.to_owned(), cause };
    let checkout = CheckoutReference::from_fields(fields).map_err(|cause| named(&place, cause))?;
    let push: BranchName = match (push, checkout.branch()) {
        (Some(push), _) => push.parse().map_err(|cause| named(push_place, cause))?,
        (None, Some(branch)) => branch,
        // Without a branch that is checked out, nothing is pushed.
        (None, None) => DEFAULT_BRANCH.parse().expect("the name is valid"),
    };
    let refspec = match given(git.push.as_ref().and_then(|push| push.refspec.as_ref())) {
        Some(text) => {
            let checked_out = checkout.branch();
            let known = RefspecBranches { push: &push, checkout: checked_out.as_ref() };
            Some(Refspec::parse(text, known)?)
        }
        None => None,
    };
    let options = git.push.as_ref().map(options).transpose()?.unwrap_or_default();
    Ok((Target { checkout, push, refspec, own_branches: None, options }, branches))
}

/// Returns a text unless it is empty.
///
/// Go does not distinguish an empty text from an absent one.
fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

fn fields(reference: &GitRepositoryRef) -> ReferenceFields<'_> {
    let GitRepositoryRef { branch, tag, semver, name, commit } = reference;
    ReferenceFields {
        branch: given(branch.as_ref()).unwrap_or_default(),
        tag: given(tag.as_ref()).unwrap_or_default(),
        semver: given(semver.as_ref()).unwrap_or_default(),
        name: given(name.as_ref()).unwrap_or_default(),
        commit: given(commit.as_ref()).unwrap_or_default(),
    }
}

fn options(push: &PushSpec) -> Result<Vec<(String, String)>, SourceError> {
    let mut options = Vec::new();
    for (key, value) in &push.options {
        if [key, value].iter().any(|text| text.contains(['\n', '\0'])) {
            return Err(SourceError::PushOption { key: key.clone() });
        }
        options.push((key.clone(), value.clone()));
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::error::{ReconcileError, chain};

    /// The target of `git.checkout.ref`, `git.push` and the GitRepository's `ref`, each of which may be null.
    fn target_of(
        checkout: &Value,
        push: &Value,
        reference: &Value,
    ) -> Result<(Target, Branches), SourceError> {
        let checkout = if checkout.is_null() { json!(null) } else { json!({"ref": checkout}) };
        let commit = json!({"author": {"email": "a@example.com"}});
        let git = json!({"checkout": checkout, "push": push, "commit": commit});
        let spec = json!({"url": "https://git.example/r", "interval": "1m", "ref": reference});
        let repository = ObjectName { namespace: "n".to_owned(), name: "r".to_owned() };
        let git = serde_json::from_value(git).unwrap();
        target((&git, false), &serde_json::from_value(spec).unwrap(), &repository)
    }

    /// The error asked for a push branch, which such an automation does not have.
    #[test]
    fn an_automation_with_branches_of_its_own_needs_no_push_branch() {
        let repository = ObjectName { namespace: "n".to_owned(), name: "r".to_owned() };
        let git: GitSpec =
            serde_json::from_value(json!({"commit": {"author": {"email": "a@example.com"}}})).unwrap();
        for (reference, checkout, base) in [
            (json!(null), "branch master", Some("master")),
            (json!({"name": "refs/heads/main"}), "reference refs/heads/main", Some("main")),
            (json!({"tag": "v1"}), "tag v1", None),
        ] {
            let spec = json!({"url": "https://example.com/r.git", "interval": "1m", "ref": reference});
            let spec: GitRepositorySpec = serde_json::from_value(spec).unwrap();
            let (found, _) = target((&git, true), &spec, &repository).unwrap();
            assert_eq!(found.checkout.to_string(), checkout);
            assert_eq!(found.checkout.branch(), base.map(|base| base.parse().unwrap()), "{checkout}");
            assert_eq!(found.push.as_str(), base.unwrap_or("master"));
        }
    }

    #[test]
    fn the_push_branch_is_given_or_the_branch_of_the_reference_that_counts() {
        use Branches::{Same, Switched};
        const COMMIT: &str = "00112233445566778899aabbccddeeff00112233";
        let none = json!(null);
        let main = json!({"branch": "main"});
        let auto = json!({"branch": "auto"});
        let inferred = json!({"refspec": "HEAD:refs/heads/x"});
        for (checkout, push, reference, expected) in [
            (&none, &none, &main, Some(("branch main", "main", Same))),
            (&main, &none, &json!({"branch": "other"}), Some(("branch main", "main", Same))),
            (&main, &none, &none, Some(("branch main", "main", Same))),
            (&main, &auto, &none, Some(("branch main", "auto", Switched))),
            (&main, &main, &none, Some(("branch main", "main", Same))),
            (&none, &auto, &main, Some(("branch main", "auto", Switched))),
            (&none, &auto, &none, Some(("branch master", "auto", Switched))),
            (&none, &json!({"branch": "master"}), &none, Some(("branch master", "master", Same))),
            (&json!({}), &json!({"branch": "master"}), &none, Some(("branch master", "master", Switched))),
            (&json!({"tag": "v1"}), &auto, &main, Some(("tag v1", "auto", Switched))),
            (&json!({"tag": "v1", "branch": "main"}), &none, &none, Some(("tag v1", "main", Same))),
            (&json!({"semver": ">=1", "tag": ""}), &auto, &none, Some(("semver >=1", "auto", Switched))),
            (
                &json!({"commit": COMMIT, "branch": "main"}),
                &none,
                &none,
                Some(("commit 00112233445566778899aabbccddeeff00112233", "main", Same)),
            ),
            (
                &json!({"name": "refs/heads/main"}),
                &main,
                &none,
                Some(("reference refs/heads/main", "main", Switched)),
            ),
            // A refspec replaces no push branch.
            (&main, &inferred, &none, Some(("branch main", "main", Same))),
            (&none, &inferred, &none, None),
            // An empty text is an absent one.
            (&main, &json!({"branch": ""}), &none, Some(("branch main", "main", Same))),
            // The GitRepository has a branch, but its reference does not count.
            (&json!({}), &none, &main, None),
            (&json!({"name": "refs/heads/main"}), &none, &main, None),
            (&json!({"tag": "v1"}), &none, &main, None),
            (&none, &none, &none, None),
            (&none, &none, &json!({"tag": "v1"}), None),
            (&none, &none, &json!({"branch": ""}), None),
        ] {
            let row = format!("{checkout} {push} {reference}");
            match (target_of(checkout, push, reference), expected) {
                (Ok((target, branches)), Some((checkout, push, expected))) => {
                    let found = (target.checkout.to_string(), target.push.to_string(), branches);
                    assert_eq!(found, (checkout.to_owned(), push.to_owned(), expected), "{row}");
                }
                (Err(SourceError::NoPushBranch), None) => {}
                (found, _) => panic!("{row}: {found:?}"),
            }
        }
    }

    #[test]
    fn refspec_and_options_are_taken_along() {
        let push = json!({
            "branch": "auto", "refspec": "main:refs/heads/x", "options": {"b": "2", "a": "1 = x"},
        });
        let (target, _) = target_of(&json!({"branch": "main"}), &push, &json!(null)).unwrap();
        assert_eq!(target.refspec.unwrap().to_string(), "main:refs/heads/x");
        let options = [("a", "1 = x"), ("b", "2")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(target.options, options);
        let (target, _) =
            target_of(&json!(null), &json!({"refspec": ""}), &json!({"branch": "main"})).unwrap();
        assert_eq!((target.refspec, target.options), (None, vec![]));
    }

    #[test]
    fn invalid_git_names_stall_with_their_field() {
        let main = json!({"branch": "main"});
        for (checkout, push, reference, message) in [
            (
                json!(null),
                json!({"branch": "a b"}),
                main.clone(),
                "spec.git.push.branch cannot be used: \"a b\" is not a valid branch name: it has a space",
            ),
            (
                json!({"branch": "-f"}),
                json!(null),
                json!(null),
                "spec.git.checkout.ref cannot be used: \"-f\" is not a valid branch name: it begins with a dash",
            ),
            (
                json!(null),
                json!(null),
                json!({"branch": "main", "name": "main"}),
                "spec.ref of GitRepository n/r cannot be used: \"main\" is not a valid reference name",
            ),
            (
                json!(null),
                json!({"refspec": "refs/heads/*:refs/heads/*"}),
                main.clone(),
                "spec.git.push.refspec \"refs/heads/*:refs/heads/*\" is not",
            ),
            (
                json!(null),
                json!({"options": {"a": "x\ny"}}),
                main,
                "spec.git.push.options has the option \"a\", which has a line feed or NUL in it",
            ),
        ] {
            let error = target_of(&checkout, &push, &reference).unwrap_err();
            assert!(chain(&error).starts_with(message), "{}", chain(&error));
            assert_eq!(error.reason(), tagboat_api::Reason::InvalidSourceConfiguration);
            assert!(!error.is_retryable());
        }
    }
}
