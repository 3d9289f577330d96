//! The baseline of a proposal: the commit that its last run left.

use super::attempt::context::AttemptContext;
use super::branches::with_people;
use super::commit::stated_parents;
use super::error::SyncError;
use super::failure_kind::FailureKind;
use super::name::{CommitId, RefName};
use super::object;
use super::outcome::Target;
use super::proposal::Known;
use super::push_journal::{LastSeen, PendingPush};
use super::tree::GitTree;
use crate::error::chain;
use crate::update::FileTree;

/// The reason for which an unrecorded commit has no tree.
const UNRECORDED: &str = "neither the push journal nor the status names it";

/// The trees that a proposal is made from.
pub struct ProposalTrees<'t> {
    /// The tree to change.
    pub tree: &'t dyn FileTree,
    /// The baseline, if there was an earlier run.
    pub baseline: Option<Baseline<'t>>,
}

/// The commit that the last run of a proposer left, and what came after it.
pub struct Baseline<'t> {
    /// The commit; none if no record names it.
    pub commit: Option<CommitId>,
    /// The tip of the branch that it is compared with.
    pub tip: CommitId,
    /// Reads the author of the tip, if it is the only commit after the baseline.
    pub author: &'t dyn Fn() -> Option<String>,
    /// The proposer's note of an unreported push that made the commit.
    pub note: Option<&'t str>,
    /// The tree of the commit.
    pub tree: BaselineTree<'t>,
}

/// The tree of a baseline.
#[derive(Clone, Copy)]
pub enum BaselineTree<'t> {
    /// It is here.
    Here(&'t dyn FileTree),
    /// It is fetched if the proposer needs it.
    Missing,
    /// It cannot be fetched, for this reason.
    Unavailable(&'t str),
}

/// The commit of a baseline, before the mirror is searched for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BaselineCommit {
    /// The commit; none if there was a run, and no record names what it left.
    pub(super) commit: Option<CommitId>,
    /// The note of the push that made it, if that push was not reported.
    pub(super) note: Option<String>,
}

impl BaselineCommit {
    /// Returns the commit that an unreported push left, if it has a note.
    pub(super) fn of_push(push: &PendingPush) -> Option<Self> {
        push.note.clone().map(|note| Self { commit: Some(push.new), note: Some(note) })
    }

    /// Returns the commit that the last run left on the push branch.
    ///
    /// If that is the branch that is checked out, the status names the commit. Otherwise the journal does, if it is of the same
    /// run as the status, or else the status names the last push. There is none on another branch or a new one, and none before
    /// the first run.
    pub(super) fn on_push_branch(
        (target, known): (&Target, &Known),
        seen: Option<&LastSeen>,
        tip: Option<CommitId>,
    ) -> Option<Self> {
        tip?;
        if target.checkout.branch().as_ref() == Some(&target.push) {
            return Self::on_checkout(known, seen, &target.push.reference());
        }
        let pushed: Option<CommitId> = known.pushed.as_ref().and_then(|pushed| pushed.parse().ok());
        let own = seen.and_then(|seen| Some((seen, seen.own.as_ref()?)));
        let commit = match own {
            Some((_, (reference, _))) if *reference != target.push.reference() => return None,
            Some((seen, (_, own))) if *own == pushed => Some(seen.push?),
            _ => pushed,
        };
        let has_run = commit.is_some() || known.observed.is_some();
        has_run.then_some(Self { commit, note: None })
    }

    /// Returns the commit of this branch that the last run checked out.
    ///
    /// There is none if that run compared the values of another branch.
    pub(super) fn on_checkout(known: &Known, seen: Option<&LastSeen>, branch: &RefName) -> Option<Self> {
        let is_other = |(reference, _): &(RefName, _)| reference != branch;
        if seen.and_then(|seen| seen.own.as_ref()).is_some_and(is_other) {
            return None;
        }
        let (name, commit) = known.observed.as_ref()?.rsplit_once("@sha1:")?;
        let commit = commit.parse().ok().filter(|_| name == branch.short())?;
        Some(Self { commit: Some(commit), note: None })
    }
}

/// The state of the baseline's tree in a transaction.
#[derive(Debug, Default)]
pub(super) struct BaselineFetch {
    error: Option<String>,
}

impl BaselineFetch {
    /// Fetches the commit.
    ///
    /// If the server does not have it, the reason is kept for the proposer.
    ///
    /// # Errors
    ///
    /// If the server does not say whether it has it.
    pub(super) fn fetch(&mut self, commit: CommitId, context: &AttemptContext<'_>) -> Result<(), SyncError> {
        self.error = match context.fetch_commit(commit) {
            Ok(_) if context.mirror.has(commit) => None,
            Ok(_) | Err(SyncError::NoCommit { .. }) => Some("the server does not have it".to_owned()),
            Err(error) if error.is_too_large() || error.failure_kind() == Some(FailureKind::Gone) => {
                Some(chain(&error))
            }
            Err(error) => return Err(error),
        };
        Ok(())
    }

    /// Calls `with` with the trees of a proposal.
    ///
    /// # Errors
    ///
    /// If the mirror is damaged.
    pub(super) fn with_trees<T>(
        &self,
        tree: &GitTree<'_>,
        (baseline, tip): (Option<&BaselineCommit>, CommitId),
        context: &AttemptContext<'_>,
        with: impl FnOnce(&ProposalTrees<'_>) -> T,
    ) -> Result<T, SyncError> {
        let repository = &context.mirror.repository;
        let commit = baseline.and_then(|baseline| baseline.commit);
        let here = commit.filter(|commit| object::has_commit(repository, *commit));
        let before = here.map(|commit| GitTree::of(repository, commit)).transpose()?;
        let before_tree = match (&before, &self.error) {
            (Some(tree), _) => BaselineTree::Here(tree),
            (None, _) if commit.is_none() => BaselineTree::Unavailable(UNRECORDED),
            (None, Some(error)) => BaselineTree::Unavailable(error),
            (None, None) => BaselineTree::Missing,
        };
        let author = || only_author(context, commit?, tip);
        let baseline = baseline.map(|baseline| Baseline {
            commit: baseline.commit,
            tip,
            author: &author,
            note: baseline.note.as_deref(),
            tree: before_tree,
        });
        let result = with(&ProposalTrees { tree, baseline });
        let is_damaged = tree.is_damaged() || before.is_some_and(|tree| tree.is_damaged());
        if is_damaged { Err(SyncError::Damaged) } else { Ok(result) }
    }
}

/// Returns the author of the tip, if its only parent is the baseline.
fn only_author(context: &AttemptContext<'_>, baseline: CommitId, tip: CommitId) -> Option<String> {
    let repository = &context.mirror.repository;
    let odb = repository.odb().ok()?;
    let parents = stated_parents(object::read_commit(&odb, tip).ok()?.data());
    if parents != [baseline] {
        return None;
    }
    let name = |people: super::CommitPeople<'_>| String::from_utf8_lossy(people.author_name).into_owned();
    with_people(repository, tip, name).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::git::checkout::CheckoutReference;

    fn commit(digit: u8) -> CommitId {
        char::from(digit).to_string().repeat(40).parse().unwrap()
    }

    #[test]
    fn the_commit_is_that_of_the_status_or_of_the_journal_of_the_same_run() {
        let known = Known {
            observed: Some(format!("main@sha1:{}", commit(b'1'))),
            pushed: Some(commit(b'2').to_string()),
            ..Known::default()
        };
        let seen = |reference: &str, own: u8| LastSeen {
            checkout: commit(b'1'),
            push: Some(commit(b'3')),
            destination: None,
            refspec: None,
            branches: BTreeMap::new(),
            own: Some((reference.parse().unwrap(), Some(commit(own)))),
            must_read: false,
        };
        let auto = Some(seen("refs/heads/auto", b'2'));
        for (push, seen, tip, expected) in [
            ("main", None, Some(b'9'), Some(Some(b'1'))),
            // The last run compared the values of another branch.
            ("main", auto.clone(), Some(b'9'), None),
            ("main", None, None, None),
            ("auto", auto.clone(), Some(b'9'), Some(Some(b'3'))),
            ("auto", None, Some(b'9'), Some(Some(b'2'))),
            // The branch was deleted.
            ("auto", auto.clone(), None, None),
            // The journal is of another run.
            ("auto", Some(seen("refs/heads/auto", b'7')), Some(b'9'), Some(Some(b'2'))),
            // The last run was on another branch.
            ("auto", Some(seen("refs/heads/main", b'2')), Some(b'9'), None),
        ] {
            let target = Target {
                checkout: CheckoutReference::Branch("main".parse().unwrap()),
                push: push.parse().unwrap(),
                refspec: None,
                own_branches: None,
                options: Vec::new(),
            };
            let found = BaselineCommit::on_push_branch((&target, &known), seen.as_ref(), tip.map(commit));
            let expected = expected.map(|expected| expected.map(commit));
            assert_eq!(found.map(|found| found.commit), expected, "{push} {seen:?}");
        }
        let other = BaselineCommit::on_checkout(&known, None, &"refs/heads/release".parse().unwrap());
        assert_eq!(other, None);
    }

    /// A lost mirror ended the holds on a branch that others had pushed.
    #[test]
    fn of_a_run_that_has_never_pushed_the_commit_is_known_or_lost() {
        let target = Target {
            checkout: CheckoutReference::Branch("main".parse().unwrap()),
            push: "auto".parse().unwrap(),
            refspec: None,
            own_branches: None,
            options: Vec::new(),
        };
        let observed = Some(format!("main@sha1:{}", commit(b'1')));
        let seen = |reference: &str, push: Option<u8>, own: Option<u8>| LastSeen {
            checkout: commit(b'1'),
            push: push.map(commit),
            destination: None,
            refspec: None,
            branches: BTreeMap::new(),
            own: Some((reference.parse().unwrap(), own.map(commit))),
            must_read: false,
        };
        let auto = "refs/heads/auto";
        for (observed, seen, tip, expected) in [
            (observed.as_ref(), Some(seen(auto, Some(b'3'), None)), Some(b'9'), Some(Some(b'3'))),
            (observed.as_ref(), None, Some(b'9'), Some(None)),
            // The journal is of another run.
            (observed.as_ref(), Some(seen(auto, Some(b'3'), Some(b'2'))), Some(b'9'), Some(None)),
            // There was no branch.
            (observed.as_ref(), Some(seen(auto, None, None)), Some(b'9'), None),
            (observed.as_ref(), None, None, None),
            // The last run was on another branch.
            (observed.as_ref(), Some(seen("refs/heads/main", Some(b'3'), None)), Some(b'9'), None),
            // There was no run.
            (None, None, Some(b'9'), None),
        ] {
            let known = Known { observed: observed.cloned(), ..Known::default() };
            let found = BaselineCommit::on_push_branch((&target, &known), seen.as_ref(), tip.map(commit));
            let expected = expected.map(|expected| expected.map(commit));
            assert_eq!(found.map(|found| found.commit), expected, "{observed:?} {seen:?} {tip:?}");
        }
    }
}
