//! The push journal and the last known state of a remote, kept beside a mirror.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::commit_time::CommitTime;
use super::name::{BranchName, CommitId, RefName};
use super::unreadable_tips::UnreadableTips;
use crate::directory::open;

/// The push journal of one remote, and its last known state.
///
/// If it is lost, the next run lists the remote once more; no commit is lost. It must survive the end of a process between a
/// push and its report. The tip that a run left on a push branch of its own is the baseline of the next one.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PushJournal {
    /// The address to which the server redirects from the configured one.
    pub(super) redirect: Option<String>,
    /// Pushes whose result has not been reported, by the proposer's name.
    pub(super) pending: BTreeMap<String, PendingPush>,
    /// Pushes of proposers' own branches whose result has not been reported, by the proposer's name.
    pub(super) pending_branches: BTreeMap<String, Vec<PendingBranch>>,
    /// The tips that were pushed to branches of proposers' own, the newest last.
    pub(super) own_tips: BTreeMap<RefName, Vec<OwnTip>>,
    /// The remote after each proposer's last run.
    pub(super) seen: BTreeMap<String, LastSeen>,
    /// The remote in which each proposer read the files that it may not push yet.
    pub(super) waiting: BTreeMap<String, LastSeen>,
    /// The tips of which it is unknown whether they have commits of others.
    pub(super) unreadable: UnreadableTips,
}

/// A push that was about to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PendingPush {
    /// The push branch.
    pub(super) reference: RefName,
    /// The checkout: the reference, and the commit.
    pub(super) source: (Option<RefName>, CommitId),
    /// The tip that the push replaces, if the branch existed.
    pub(super) old: Option<CommitId>,
    /// The new tip.
    pub(super) new: CommitId,
    /// The proposer's own commit, which is the tip or below it.
    pub(super) commit: CommitId,
    /// The message of the proposer's commit, or its beginning.
    pub(super) message: String,
    /// The time in the proposer's commit.
    pub(super) time: CommitTime,
    /// The refspec that is pushed with it and not yet updated.
    pub(super) refspec: Option<String>,
    /// True if the branch is known to be updated. Only the refspec is pending then.
    pub(super) is_branch_done: bool,
    /// True if a forge signed the proposer's commit, so that it cannot be made again.
    #[serde(default)]
    pub(super) is_signed_by_forge: bool,
    /// The proposer's note, for the baseline of the next run.
    #[serde(default)]
    pub(super) note: Option<String>,
    /// True if this very push was made before and may have arrived.
    #[serde(default)]
    pub(super) is_repeated: bool,
    /// True if the branch was listed without it after the push.
    ///
    /// It may still arrive.
    #[serde(default)]
    pub(super) was_missing: bool,
    /// An earlier push to the same tip whose result is unknown as well.
    ///
    /// Of all these, at most one arrives. Or one that has arrived and was not reported, at the end of the chain.
    #[serde(default)]
    pub(super) earlier: Option<Box<PendingPush>>,
}

impl PendingPush {
    /// The maximum length of the message, in bytes.
    /// The message is needed only if the answer to a push was lost.
    pub(super) const MAX_MESSAGE: usize = 4 * 1024;

    /// The maximum number of earlier pushes to the same tip that are kept.
    const MAX_EARLIER: usize = 4;

    /// Returns true if `earlier` is a push to the same tip, and may still arrive.
    fn may_arrive_as_well(&self, earlier: &Self) -> bool {
        !earlier.is_branch_done && (&earlier.reference, earlier.old) == (&self.reference, self.old)
    }

    /// Adds earlier pushes of which one may still arrive, or has arrived unreported.
    ///
    /// A batch with other members makes other commits, and the push of an earlier batch may still arrive.
    fn after(mut self, mut earlier: Option<Self>) -> Self {
        let mut open = Vec::new();
        let mut done = None;
        while let Some(mut push) = earlier {
            earlier = push.earlier.take().map(|push| *push);
            if push.is_branch_done && push.reference == self.reference {
                done = Some(push);
                break;
            }
            if !self.may_arrive_as_well(&push) {
                continue;
            }
            if push.new == self.new {
                self.is_repeated = true;
            } else {
                open.push(push);
            }
        }
        open.truncate(Self::MAX_EARLIER);
        open.extend(done);
        let chain = |later: Option<Box<Self>>, push: Self| Some(Box::new(Self { earlier: later, ..push }));
        self.earlier = open.into_iter().rev().fold(None, chain);
        self
    }

    /// Returns the earlier push that has arrived and was not reported.
    pub(super) fn done_before(&self) -> Option<&Self> {
        let earlier = self.earlier.as_deref()?;
        if earlier.is_branch_done { Some(earlier) } else { earlier.done_before() }
    }

    /// Returns true if the branch is done and the refspec is not.
    pub(super) fn is_refspec_pending(&self) -> bool {
        self.is_branch_done && self.refspec.is_some()
    }
}

/// A push of one of a proposer's own branches that was about to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PendingBranch {
    /// The branch.
    pub(super) reference: RefName,
    /// The tip that the push replaces, if the branch existed.
    pub(super) old: Option<CommitId>,
    /// The new tip.
    pub(super) new: CommitId,
    /// The proposer's own commit, which is the tip or below it.
    pub(super) commit: CommitId,
    /// The message of the proposer's commit, or its beginning.
    pub(super) message: String,
    /// The time in the proposer's commit.
    pub(super) time: CommitTime,
    /// True if a forge signed the proposer's commit, so that it cannot be made again.
    #[serde(default)]
    pub(super) is_signed_by_forge: bool,
    /// The commit that the status names once this push is reported.
    #[serde(default)]
    pub(super) reported_with: Option<CommitId>,
}

/// A tip that was pushed, or nearly, to a branch of proposers' own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OwnTip {
    /// The tip.
    pub(super) tip: CommitId,
    /// The commit of the base below the branch's own commits.
    pub(super) base: CommitId,
    /// The hash of the edits that the own commits make.
    pub(super) change: String,
    /// The hash of the edits of each proposer, by the proposer's name.
    #[serde(default)]
    pub(super) members: BTreeMap<String, String>,
    /// A later tip of the base that has this commit in its history.
    #[serde(default)]
    pub(super) verified: Option<CommitId>,
    /// The own commits, the lowest first.
    #[serde(default)]
    pub(super) commits: Vec<CommitId>,
}

/// The state of the remote that a run found or left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LastSeen {
    /// The commit of the checkout.
    pub(super) checkout: CommitId,
    /// The tip of the push branch, if it exists.
    pub(super) push: Option<CommitId>,
    /// The commit that was pushed to the refspec's destination, or is listed there.
    pub(super) destination: Option<CommitId>,
    /// The refspec, so that another one counts as a change.
    pub(super) refspec: Option<String>,
    /// The tips of the proposer's own branches; none for a branch that does not exist.
    #[serde(default)]
    pub(super) branches: BTreeMap<RefName, Option<CommitId>>,
    /// The branch with the baseline, and the proposer's own last commit.
    #[serde(default)]
    pub(super) own: Option<(RefName, Option<CommitId>)>,
    /// True if the files must be read again, even if nothing has moved.
    #[serde(default)]
    pub(super) must_read: bool,
}

impl LastSeen {
    /// Returns true if nothing on the remote has moved since `before`.
    /// A destination that is not listed does not count: servers such as Gerrit accept a push there and never list it.
    pub(super) fn is_like(&self, before: &Self) -> bool {
        let destination = self.destination.or(before.destination);
        Self { destination, own: before.own.clone(), ..self.clone() } == *before
    }
}

impl PushJournal {
    const FILE: &'static str = "push-journal.json";

    /// The maximum number of tips of one branch: pushes of which each may have arrived.
    const MAX_TIPS: usize = 4;

    /// The maximum size of the file, in bytes.
    /// It has room for thousands of pushes that are not reported yet.
    const MAX_BYTES: u64 = 16 * 1024 * 1024;

    /// Returns the commits that the mirror keeps.
    ///
    /// The next runs build on them, or they cannot be made again. `tip` is that of the current run.
    pub(super) fn retained_with(&self, tip: CommitId) -> Vec<CommitId> {
        let pending =
            self.pending.values().filter(|pending| pending.is_signed_by_forge && !pending.is_branch_done);
        let branches = self.pending_branches.values().flatten().filter(|pending| pending.is_signed_by_forge);
        let branches = branches.map(|pending| pending.commit);
        let seen = self.seen.values().flat_map(|seen| [Some(seen.checkout), seen.push]);
        seen.flatten().chain(pending.map(|pending| pending.commit)).chain(branches).chain([tip]).collect()
    }

    /// Deletes the entries of the proposers in `gone`, and returns the names that had one.
    ///
    /// # Errors
    ///
    /// If the file system refuses.
    pub(super) fn forget(folder: &Path, gone: &BTreeSet<String>) -> io::Result<Vec<String>> {
        let mut journal = Self::load(folder);
        let Self { pending, pending_branches, seen, waiting, .. } = &mut journal;
        let mut is_known = |name: &String| {
            pending.remove(name).is_some()
                | pending_branches.remove(name).is_some()
                | seen.remove(name).is_some()
                | waiting.remove(name).is_some()
        };
        let found: Vec<String> = gone.iter().filter(|name| is_known(name)).cloned().collect();
        if !found.is_empty() {
            journal.store(folder)?;
        }
        Ok(found)
    }

    /// Returns true if a waiting proposer has read the files of this state.
    pub(super) fn has_waited_in(&self, name: &str, now: &LastSeen) -> bool {
        self.waiting.get(name).is_some_and(|before| now.is_like(before))
    }

    /// Returns true if the refspec of the last push is still to be pushed.
    pub(super) fn owes_refspec(&self, name: &str) -> bool {
        self.pending.get(name).is_some_and(PendingPush::is_refspec_pending)
    }

    /// Records a push that is about to be made.
    pub(super) fn record(&mut self, name: &str, push: PendingPush) {
        let earlier = self.pending.remove(name);
        self.pending.insert(name.to_owned(), push.after(earlier));
    }

    /// Deletes the record of a push that has not arrived and never will.
    ///
    /// Earlier pushes may still arrive, and so may the same push that was made before.
    pub(super) fn withdraw(&mut self, name: &str) {
        let Some(push) = self.pending.remove(name) else { return };
        if push.is_repeated {
            self.pending.insert(name.to_owned(), push);
        } else if let Some(earlier) = push.earlier {
            self.pending.insert(name.to_owned(), *earlier);
        }
    }

    /// Returns the record of a tip of a branch, if it was pushed.
    pub(super) fn own_tip(&self, branch: &BranchName, tip: CommitId) -> Option<&OwnTip> {
        self.own_tips.get(&branch.reference())?.iter().find(|own| own.tip == tip)
    }

    /// Records that a tip of the base contains the commit under an own tip.
    pub(super) fn verify_own_tip(&mut self, branch: &BranchName, tip: CommitId, base: CommitId) {
        let tips = self.own_tips.get_mut(&branch.reference()).into_iter().flatten();
        tips.filter(|own| own.tip == tip).for_each(|own| own.verified = Some(base));
    }

    /// Returns the commit of the base under the last tip of a branch.
    pub(super) fn last_base(&self, branch: &BranchName) -> Option<CommitId> {
        self.own_tips.get(&branch.reference())?.last().map(|own| own.base)
    }

    /// Records a tip that is about to be pushed, or was found to be ours.
    pub(super) fn add_own_tip(&mut self, branch: &BranchName, tip: OwnTip) {
        let tips = self.own_tips.entry(branch.reference()).or_default();
        tips.retain(|known| known.tip != tip.tip);
        tips.push(tip);
        if tips.len() > Self::MAX_TIPS {
            tips.remove(0);
        }
    }

    /// Forgets the tips of branches that no proposer has any more; `used` are in use.
    pub(super) fn forget_unused_tips(&mut self, used: &BTreeSet<RefName>) {
        let Self { own_tips, seen, waiting, pending_branches, unreadable, .. } = self;
        let pending: BTreeSet<&RefName> =
            pending_branches.values().flatten().map(|pending| &pending.reference).collect();
        let is_used = |reference: &RefName| {
            used.contains(reference)
                || pending.contains(reference)
                || seen.values().chain(waiting.values()).any(|seen| seen.branches.contains_key(reference))
        };
        own_tips.retain(|reference, _| is_used(reference));
        unreadable.retain(is_used);
    }

    fn path(folder: &Path) -> PathBuf {
        folder.join(Self::FILE)
    }

    /// Reads the file; an unreadable or too large one counts as empty.
    pub(super) fn load(folder: &Path) -> Self {
        let mut content = Vec::new();
        let read = open(&Self::path(folder))
            .and_then(|file| file.take(Self::MAX_BYTES + 1).read_to_end(&mut content));
        match read {
            Ok(length) if length as u64 <= Self::MAX_BYTES => {
                serde_json::from_slice(&content).unwrap_or_default()
            }
            _ => Self::default(),
        }
    }

    /// Writes the file atomically.
    pub(super) fn store(&self, folder: &Path) -> io::Result<()> {
        let content = serde_json::to_vec_pretty(self).expect("the journal is plain JSON");
        let mut new = tempfile::Builder::new().prefix("tmp_").tempfile_in(folder)?;
        io::Write::write_all(&mut new, &content)?;
        new.as_file().sync_data()?;
        new.persist(Self::path(folder)).map_err(|error| error.error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run blocked for ever in opening a pipe without a writer.
    #[test]
    fn a_named_pipe_in_place_of_a_journal_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let made =
            std::process::Command::new("mkfifo").arg(PushJournal::path(folder.path())).status().unwrap();
        assert!(made.success());
        assert!(PushJournal::load(folder.path()).seen.is_empty());
    }

    fn push(new: char) -> PendingPush {
        let commit = |digit: char| digit.to_string().repeat(40).parse::<CommitId>().unwrap();
        PendingPush {
            reference: "refs/heads/main".parse().unwrap(),
            source: (None, commit('0')),
            old: Some(commit('0')),
            new: commit(new),
            commit: commit(new),
            message: String::new(),
            time: CommitTime::now(),
            refspec: None,
            is_branch_done: false,
            is_signed_by_forge: false,
            note: None,
            is_repeated: false,
            was_missing: false,
            earlier: None,
        }
    }

    /// Returns the pushes of which one may still arrive, the last one first.
    fn open(journal: &PushJournal) -> String {
        let mut push = journal.pending.get("app");
        let mut found = String::new();
        while let Some(one) = push {
            found.extend(one.new.to_string().chars().next());
            push = one.earlier.as_deref();
        }
        found
    }

    /// An arrived push was not reported.
    ///
    /// The same push was made again, and withdrawn because another one came first.
    #[test]
    fn a_push_that_was_made_before_is_not_withdrawn() {
        // Pushes to one tip in their order; `-` withdraws the last one.
        for (pushes, expected) in [
            ("1", "1"),
            ("1-", ""),
            ("12", "21"),
            ("12-", "1"),
            ("11-", "1"),
            ("121", "12"),
            ("121-", "12"),
            ("122-", "21"),
            ("1234567", "76543"),
        ] {
            let mut journal = PushJournal::default();
            for one in pushes.chars() {
                match one {
                    '-' => journal.withdraw("app"),
                    new => journal.record("app", push(new)),
                }
            }
            assert_eq!(open(&journal), expected, "{pushes}");
        }
        let mut journal = PushJournal::default();
        journal.record("app", PendingPush { is_branch_done: true, ..push('1') });
        journal.record("app", push('2'));
        assert_eq!(open(&journal), "21");
        assert!(journal.pending["app"].done_before().is_some_and(|push| push.is_branch_done));
        journal.withdraw("app");
        assert_eq!(open(&journal), "1");
    }

    #[test]
    fn a_journal_that_is_too_large_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = PushJournal { redirect: Some("elsewhere".to_owned()), ..PushJournal::default() };
        journal.store(folder.path()).unwrap();
        assert_eq!(PushJournal::load(folder.path()).redirect, journal.redirect);
        journal.redirect = Some("x".repeat(PushJournal::MAX_BYTES as usize));
        journal.store(folder.path()).unwrap();
        assert_eq!(PushJournal::load(folder.path()).redirect, None);
    }
}
