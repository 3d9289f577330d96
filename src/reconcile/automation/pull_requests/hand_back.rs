//! Branches that people hand back to Tagboat by a label.

use std::collections::BTreeSet;
use std::time::Instant;

use super::super::delivery::{OwnerHash, REBUILD_LABEL};
use super::records::{is_open, key};
use super::snapshot::Snapshot;
use crate::forge::{Forge, ForgeError, PullRequest, PullRequestEdit};
use crate::git::BranchName;

impl Snapshot {
    /// Returns the open pull request whose label hands a branch back.
    ///
    /// It is one of some automations, or of people.
    pub(super) fn handed_back(
        &self,
        (base, head): (&BranchName, &BranchName),
        owners: &BTreeSet<OwnerHash>,
    ) -> Option<PullRequest> {
        let open = self.open.get(&(base.clone(), head.clone()))?;
        let is_own = open.memory().is_none_or(|memory| !memory.is_of_others(owners));
        let is_labelled = open.labels.iter().any(|label| label == REBUILD_LABEL);
        (is_own && is_labelled && !open.is_in_merge_queue).then(|| PullRequest::clone(open))
    }

    /// Takes the branch of a pull request back that people have handed back.
    ///
    /// The label is removed first, and only then the head counts that the branch had with it. So a commit that comes after the
    /// label was removed is never lost. A dry run leaves the label.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    pub(super) async fn take_back(
        &mut self,
        forge: &impl Forge,
        labelled: &PullRequest,
        is_dry_run: bool,
    ) -> Result<(), ForgeError> {
        if !is_dry_run {
            let removed_labels = vec![REBUILD_LABEL.to_owned()];
            let edit = PullRequestEdit { removed_labels, ..PullRequestEdit::default() };
            let after = forge.edit(labelled, &edit).await?.pull_request;
            // The next listing tells of one that was closed meanwhile.
            if is_open(&after) {
                self.put(after, Instant::now());
            }
        }
        if let Some(head) = labelled.head_commit {
            self.records.hand_back(key(labelled), head);
        }
        Ok(())
    }

    /// Takes the branches of several pull requests back.
    ///
    /// An error of one of them does not stop it, and the first one is returned. An error of the whole forge does.
    ///
    /// # Errors
    ///
    /// If the forge does not answer, or refuses.
    pub(super) async fn take_back_all(
        &mut self,
        forge: &impl Forge,
        labelled: &[PullRequest],
        is_dry_run: bool,
    ) -> Result<(), ForgeError> {
        let mut failure = None;
        for one in labelled {
            let Err(error) = self.take_back(forge, one, is_dry_run).await else { continue };
            if error.is_of_every_request() || matches!(error, ForgeError::RateLimited { .. }) {
                return Err(error);
            }
            failure.get_or_insert(error);
        }
        failure.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::super::test_forge::{TestForge, open};
    use super::*;
    use crate::git::CommitId;

    /// A forge with an open pull request, whose label it does not remove.
    fn labelled() -> TestForge {
        let labels = vec![REBUILD_LABEL.to_owned()];
        let forge = TestForge::with([PullRequest { head_commit: commit("1"), labels, ..open(1, "a") }]);
        forge.labels_kept.lock().push(1);
        forge
    }

    fn commit(digit: &str) -> Option<CommitId> {
        Some(digit.repeat(40).parse().unwrap())
    }

    #[test]
    fn a_branch_is_handed_back_with_its_head_of_that_time_and_only_without_the_label() {
        let (base, head): (BranchName, BranchName) = ("main".parse().unwrap(), "a".parse().unwrap());
        let heads = BTreeSet::from([head.clone()]);
        let owner = OwnerHash::of(
            &tagboat_api::ObjectName { namespace: "apps".to_owned(), name: "fleet".to_owned() },
            None,
        );
        let owners = BTreeSet::from([owner.clone()]);
        let (forge, mut snapshot) = (labelled(), Snapshot::default());
        let list = |snapshot: &mut Snapshot| {
            snapshot.list(&forge, &heads, false).now_or_never().unwrap().unwrap();
            snapshot.handed_back((&base, &head), &owners)
        };
        let take_back = |snapshot: &mut Snapshot, labelled: &PullRequest| {
            snapshot.take_back(&forge, labelled, false).now_or_never().unwrap()
        };
        let known =
            |snapshot: &Snapshot| snapshot.facts(&base, &head, Some(&BTreeSet::new()), &owner).handed_back;
        // While the label stays, nothing is handed back.
        let labelled = list(&mut snapshot).unwrap();
        assert!(take_back(&mut snapshot, &labelled).is_err());
        assert_eq!(known(&snapshot), None);
        forge.labels_kept.lock().clear();
        // A person commits between the listing and the removal.
        forge.listed.lock()[0].head_commit = commit("2");
        take_back(&mut snapshot, &labelled).unwrap();
        assert!(forge.listed.lock()[0].labels.is_empty());
        assert_eq!(known(&snapshot), labelled.head_commit);
        // The next listing shows another head than the one that was handed back.
        assert_eq!(list(&mut snapshot), None);
        assert_eq!(known(&snapshot), None);
    }

    /// The second was not taken back, although its label was gone.
    #[test]
    fn a_label_that_stays_keeps_no_other_branch_from_being_taken_back() {
        let (forge, mut snapshot) = (labelled(), Snapshot::default());
        let first = forge.listed.lock()[0].clone();
        let labelled = [first.clone(), PullRequest { number: 2, head: "b".parse().unwrap(), ..first }];
        let done = snapshot.take_back_all(&forge, &labelled, false).now_or_never().unwrap();
        assert!(done.is_err());
        let handed_back = |head: &str| snapshot.records.handed_back(&key(&open(0, head)));
        assert_eq!((handed_back("a"), handed_back("b")), (None, labelled[1].head_commit));
    }
}
