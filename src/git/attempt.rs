//! One attempt at a transaction, from the listing to the push.

use std::time::Instant;

use git2::Repository;

use super::checkout::Revision;
use super::commit::write_commit;
use super::error::SyncError;
use super::ledger::{Ledger, PendingPush, Seen};
use super::listing::Listing;
use super::mirror::Mirror;
use super::name::{BranchName, CommitId, RefName};
use super::outcome::{Outcome, Push};
use super::push::{Condition, PushReply, PushRequest, PushUpdate};
use super::refspec::{Refspec, RefspecSource};
use super::remote::{Remote, RemoteError, Wanted};
use super::source::{self, Source};
use super::transaction::{Answer, Failure, Proposal, Proposer};
use super::tree::GitTree;
use crate::update::MarkerIndex;

/// The file beside a mirror that keeps its index.
const INDEX: &str = "index.json";

/// How an attempt ended.
pub(super) enum Ended {
    /// Every proposal has its answer.
    Done,
    /// Something was put right, and the next attempt may succeed.
    Mended,
    /// Somebody else pushed meanwhile.
    Overtaken,
    /// The remote does not take the commits.
    Refused(SyncError),
    /// Something else stood in the way.
    Failed(SyncError),
}

impl From<SyncError> for Ended {
    fn from(error: SyncError) -> Self {
        Self::Failed(error)
    }
}

/// The proposals of a transaction and how far they have come.
pub(super) struct Attempt<P: Proposer> {
    candidates: Vec<Candidate<P>>,
    branch: Option<BranchName>,
    is_rehearsal: bool,
    is_first: bool,
}

/// One proposal and how far it has come.
struct Candidate<P: Proposer> {
    proposal: Proposal<P>,
    /// What is checked out for it.
    source: Option<Source>,
    /// A push of an earlier run, or attempt, that has turned out to have arrived.
    earlier: Option<Push>,
    /// Its commit of this attempt, with the message.
    commit: Option<(CommitId, String)>,
    result: Option<Result<Outcome, Failure<P::Error>>>,
}

impl<P: Proposer> Candidate<P> {
    fn is_open(&self) -> bool {
        self.result.is_none()
    }
}

impl<P: Proposer> Attempt<P> {
    /// An attempt at proposals that go to the same branch.
    pub(super) fn new(proposals: Vec<Proposal<P>>, is_rehearsal: bool) -> Self {
        let branch = proposals.first().map(|proposal| proposal.target.push.clone());
        let candidate =
            |proposal| Candidate { proposal, source: None, earlier: None, commit: None, result: None };
        Self {
            candidates: proposals.into_iter().map(candidate).collect(),
            branch,
            is_rehearsal,
            is_first: true,
        }
    }

    /// How many commits the attempt made.
    pub(super) fn commits(&self) -> usize {
        self.candidates.iter().filter(|candidate| candidate.commit.is_some()).count()
    }

    /// The proposals, to be attempted otherwise.
    pub(super) fn into_proposals(self) -> Vec<Proposal<P>> {
        self.candidates.into_iter().map(|candidate| candidate.proposal).collect()
    }

    /// The answers, once all proposals have one.
    pub(super) fn answers(self) -> Vec<Answer<P>> {
        let answers = self.candidates.into_iter().map(|candidate| Answer {
            name: candidate.proposal.name,
            proposer: candidate.proposal.proposer,
            result: candidate.result.expect("an attempt that is done has settled every proposal"),
        });
        answers.collect()
    }

    /// The answers after an error that concerns all proposals that have none yet.
    pub(super) fn fail(mut self, error: SyncError) -> Vec<Answer<P>> {
        let error = std::sync::Arc::new(error);
        for candidate in self.candidates.iter_mut().filter(|candidate| candidate.is_open()) {
            candidate.result = Some(Err(Failure::Sync(error.clone())));
        }
        self.answers()
    }

    /// Makes the attempt.
    pub(super) fn make(&mut self, mirror: &mut Mirror, remote: &Remote, ledger: &mut Ledger) -> Ended {
        let result = self.try_to_make(mirror, remote, ledger);
        self.is_first = false;
        result.unwrap_or_else(|ended| ended)
    }

    fn try_to_make(
        &mut self,
        mirror: &mut Mirror,
        remote: &Remote,
        ledger: &mut Ledger,
    ) -> Result<Ended, Ended> {
        let Some(branch) = self.branch.clone() else { return Ok(Ended::Done) };
        let branch = branch.reference();
        let deadline = Instant::now() + remote.timeout;
        let listing = remote.list(mirror, &self.wanted(), deadline).map_err(SyncError::from)?;
        let old = listing.commit(&branch);
        self.choose_sources(&listing, mirror, remote, deadline);
        self.skip_what_is_known(&listing, old, ledger);
        let Some(base) = self.base(old) else { return Ok(Ended::Done) };
        fetch_missing(mirror, remote, base, deadline)?;
        let base = mirror.peel(base).map_err(|cause| SyncError::NoCommit {
            url: remote.url.to_string(),
            name: base.to_string(),
            cause,
        })?;
        self.find_earlier_pushes(mirror.repository(), &listing, old, ledger)?;
        let tip = self.propose(mirror, base)?;
        if self.is_rehearsal {
            self.settle_rehearsal();
            return Ok(Ended::Done);
        }
        let request = self.push_request(old, tip, ledger, &listing);
        let mut arrivals = Arrivals::all();
        if !request.updates.is_empty() {
            self.note_pending(old, tip, ledger);
            store(ledger, mirror)?;
            self.fetch_checkouts(mirror, remote)?;
            let reply = remote.push(mirror, &request, Instant::now() + remote.timeout);
            arrivals = self.judge(&request, reply, remote, mirror)?;
        }
        let tip = if self.commits() > 0 { Some(tip) } else { old };
        let left = Left { remote, request: &request, arrivals, listing: &listing, tip };
        self.settle(&left, ledger);
        store(ledger, mirror)?;
        mirror.keep(&[tip.unwrap_or(base)]).map_err(SyncError::from)?;
        Ok(Ended::Done)
    }

    /// The references that have to be listed.
    fn wanted(&self) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for candidate in &self.candidates {
            let target = &candidate.proposal.target;
            let references =
                [Some(target.push.reference()), target.refspec.as_ref().map(|spec| spec.destination.clone())];
            let references = references.into_iter().flatten().map(Wanted::Reference);
            for one in references.chain(source::wanted(&target.checkout)) {
                if !wanted.contains(&one) {
                    wanted.push(one);
                }
            }
        }
        wanted
    }

    /// Finds what is checked out for each proposal; one that finds nothing fails alone.
    fn choose_sources(&mut self, listing: &Listing, mirror: &Mirror, remote: &Remote, deadline: Instant) {
        for candidate in self.candidates.iter_mut().filter(|candidate| candidate.is_open()) {
            match source::choose(&candidate.proposal.target.checkout, listing, mirror, remote, deadline) {
                Ok(source) => candidate.source = Some(source),
                Err(error) => candidate.result = Some(Err(error.into())),
            }
        }
    }

    /// Settles those for whom nothing has changed, here or there.
    fn skip_what_is_known(&mut self, listing: &Listing, old: Option<CommitId>, ledger: &Ledger) {
        for candidate in self.candidates.iter_mut().filter(|candidate| candidate.result.is_none()) {
            let (Proposal { name, target, known, .. }, Some(source)) =
                (&candidate.proposal, &candidate.source)
            else {
                continue;
            };
            if !known.is_unchanged || ledger.pending.contains_key(name) {
                continue;
            }
            let now = seen(source.revision.commit, old, target.refspec.as_ref(), listing);
            // The status alone tells enough where the branch that is looked at is the one that is pushed to.
            let is_in_status = target.refspec.is_none()
                && target.checkout.branch().as_ref() == Some(&target.push)
                && known.revision.as_ref() == Some(&source.revision.to_string());
            if ledger.seen.get(name).is_some_and(|before| now.is_like(before)) || is_in_status {
                candidate.result = Some(Ok(Outcome::NothingNew));
            }
        }
    }

    /// The object to build on, if there is anything to build.
    fn base(&self, old: Option<CommitId>) -> Option<CommitId> {
        let first = self.candidates.iter().find(|candidate| candidate.is_open())?;
        old.or_else(|| first.source.as_ref().map(|source| source.object))
    }

    /// Finds out which pushes of earlier runs arrived, though nobody could say so at the time.
    fn find_earlier_pushes(
        &mut self,
        repository: &Repository,
        listing: &Listing,
        old: Option<CommitId>,
        ledger: &mut Ledger,
    ) -> Result<(), SyncError> {
        // What others put on top hides our tip, but not from those who look one step further.
        let below: Vec<CommitId> = match old {
            Some(tip) => repository.find_commit(tip.oid())?.parent_ids().map(CommitId::from).collect(),
            None => Vec::new(),
        };
        for candidate in self.candidates.iter_mut().filter(|candidate| candidate.is_open()) {
            let name = &candidate.proposal.name;
            let Some(pending) = ledger.pending.get_mut(name) else { continue };
            let target = &candidate.proposal.target;
            let is_there = old == Some(pending.new) || below.contains(&pending.new);
            if pending.reference != target.push.reference() || !(pending.has_arrived || is_there) {
                ledger.pending.remove(name);
                continue;
            }
            pending.has_arrived = true;
            let destination =
                target.refspec.as_ref().and_then(|refspec| listing.commit(&refspec.destination));
            if pending.refspec != target.refspec.as_ref().map(ToString::to_string)
                || destination.is_some_and(|at| at == pending.new)
            {
                pending.refspec = None;
            }
            candidate.earlier = Some(Push {
                source: Revision { reference: pending.source.0.clone(), commit: pending.source.1 },
                branch: target.push.clone(),
                commit: pending.commit,
                refspec: target.refspec.as_ref().map(ToString::to_string),
                message: pending.message.clone(),
                is_from_earlier_run: self.is_first,
            });
        }
        Ok(())
    }

    /// Makes each proposal's commit on the tree that the one before it left, and gives the tip.
    fn propose(&mut self, mirror: &Mirror, base: CommitId) -> Result<CommitId, SyncError> {
        let place = mirror.folder().join(INDEX);
        let mut index = MarkerIndex::from_bytes(&std::fs::read(&place).unwrap_or_default());
        let mut tip = base;
        for candidate in self.candidates.iter_mut().filter(|candidate| candidate.is_open()) {
            candidate.commit = None;
            let tree = GitTree::of(mirror.repository(), tip)?;
            let proposed = candidate.proposal.proposer.propose(&tree, &mut index);
            if tree.is_damaged() {
                return Err(SyncError::Damaged);
            }
            match proposed {
                Err(error) => candidate.result = Some(Err(Failure::Proposer(error))),
                Ok(None) => {}
                Ok(Some(draft)) => {
                    if let Some(commit) = write_commit(mirror.repository(), tip, &draft)? {
                        candidate.commit = Some((commit, draft.message));
                        tip = commit;
                    }
                }
            }
        }
        if index.has_news() {
            // It is made again where it cannot be kept.
            let _ = std::fs::write(&place, index.to_bytes());
        }
        Ok(tip)
    }

    /// What has to be pushed: the branch if it has new commits, and the refspecs of those who made them or owe them.
    fn push_request(
        &self,
        old: Option<CommitId>,
        tip: CommitId,
        ledger: &Ledger,
        listing: &Listing,
    ) -> PushRequest {
        let mut request = PushRequest::default();
        if let Some(branch) = self.branch.as_ref().filter(|_| self.commits() > 0) {
            let condition = Condition::PointsAt(old);
            request.updates.push(PushUpdate { reference: branch.reference(), new: tip, condition });
        }
        for candidate in self.candidates.iter().filter(|candidate| candidate.is_open()) {
            let Proposal { name, target, .. } = &candidate.proposal;
            request.options.clone_from(&target.options);
            let (Some(refspec), Some(source)) = (&target.refspec, &candidate.source) else { continue };
            let is_owed = ledger.pending.get(name).is_some_and(|pending| pending.refspec.is_some());
            let is_there = request.updates.iter().any(|update| update.reference == refspec.destination);
            if is_there || !(is_owed || candidate.commit.is_some()) {
                continue;
            }
            let new = match refspec.source {
                RefspecSource::PushBranch => tip,
                RefspecSource::Checkout => source.revision.commit,
            };
            let is_switched = target.checkout.branch().as_ref() != Some(&target.push);
            let condition = if refspec.is_forced || is_switched {
                Condition::PointsAt(listing.get(&refspec.destination).map(|listed| listed.object))
            } else {
                Condition::FastForward
            };
            request.updates.push(PushUpdate { reference: refspec.destination.clone(), new, condition });
        }
        request
    }

    /// Takes note of the push before it is made, so that a run that is killed leaves word of it.
    fn note_pending(&self, old: Option<CommitId>, tip: CommitId, ledger: &mut Ledger) {
        for candidate in &self.candidates {
            let (Some((commit, message)), Some(source)) = (&candidate.commit, &candidate.source) else {
                continue;
            };
            let pending = PendingPush {
                reference: candidate.proposal.target.push.reference(),
                source: (source.revision.reference.clone(), source.revision.commit),
                old,
                new: tip,
                commit: *commit,
                message: message.clone(),
                refspec: candidate.proposal.target.refspec.as_ref().map(ToString::to_string),
                has_arrived: false,
            };
            ledger.pending.insert(candidate.proposal.name.clone(), pending);
        }
    }

    /// Fetches the checkouts that refspecs push and that the mirror does not have.
    fn fetch_checkouts(&self, mirror: &Mirror, remote: &Remote) -> Result<(), SyncError> {
        for candidate in &self.candidates {
            let refspec = candidate.proposal.target.refspec.as_ref();
            if refspec.is_some_and(|refspec| refspec.source == RefspecSource::Checkout)
                && let Some(source) = &candidate.source
            {
                fetch_missing(mirror, remote, source.revision.commit, Instant::now() + remote.timeout)?;
            }
        }
        Ok(())
    }

    /// Finds out what a push came to: where the reply is not plainly good, the remote is listed again.
    fn judge(
        &mut self,
        request: &PushRequest,
        reply: Result<PushReply, RemoteError>,
        remote: &Remote,
        mirror: &Mirror,
    ) -> Result<Arrivals, Ended> {
        let is_good =
            |update: &PushUpdate| reply.as_ref().is_ok_and(|reply| reply.is_done(&update.reference));
        if request.updates.iter().all(is_good) {
            return Ok(Arrivals::all());
        }
        let deadline = Instant::now() + remote.timeout;
        let listing = remote.list(mirror, &self.wanted(), deadline).map_err(SyncError::from)?;
        let is_missing = |update: &PushUpdate| {
            !is_good(update) && listing.get(&update.reference).map(|listed| listed.object) != Some(update.new)
        };
        let missing: Vec<&PushUpdate> = request.updates.iter().filter(|update| is_missing(update)).collect();
        let branch = self.branch.as_ref().map(BranchName::reference);
        let of_branch = missing.iter().find(|update| Some(&update.reference) == branch.as_ref());
        if of_branch
            .is_some_and(|update| update.condition != Condition::PointsAt(listing.commit(&update.reference)))
        {
            return Err(Ended::Overtaken);
        }
        let (of_branch, missing) = (
            of_branch.map(|update| update.reference.clone()),
            missing.into_iter().map(|update| update.reference.clone()).collect(),
        );
        match (reply, of_branch) {
            (Err(error), _) => Err(Ended::Failed(error.into())),
            (Ok(reply), Some(branch)) => Err(Ended::Refused(refusal(remote, &reply, branch))),
            (Ok(reply), None) => Ok(Arrivals { missing, reply }),
        }
    }

    /// Gives every proposal its answer, and takes note of how the remote is left.
    fn settle(&mut self, left: &Left<'_>, ledger: &mut Ledger) {
        for candidate in self.candidates.iter_mut().filter(|candidate| candidate.is_open()) {
            let Proposal { name, target, .. } = &candidate.proposal;
            let Some(source) = candidate.source.take() else { continue };
            let refspec = target.refspec.as_ref();
            if let Some(pending) = ledger.pending.get_mut(name) {
                pending.has_arrived = true;
            }
            if let Some(refspec) =
                refspec.filter(|refspec| left.arrivals.missing.contains(&refspec.destination))
            {
                let error = refusal(left.remote, &left.arrivals.reply, refspec.destination.clone());
                candidate.result = Some(Err(error.into()));
                continue;
            }
            ledger.pending.remove(name);
            let is_same_branch = target.checkout.branch().as_ref() == Some(&target.push);
            let checkout = if is_same_branch {
                left.tip.unwrap_or(source.revision.commit)
            } else {
                source.revision.commit
            };
            let pushed = refspec.and_then(|refspec| left.request.commit_for(&refspec.destination));
            let mut now = seen(checkout, left.tip, refspec, left.listing);
            now.destination = pushed.or(now.destination);
            ledger.seen.insert(name.clone(), now);
            candidate.result = Some(Ok(match (candidate.commit.take(), candidate.earlier.take()) {
                (Some((commit, message)), _) => Outcome::Pushed(Push {
                    source: source.revision,
                    branch: target.push.clone(),
                    commit,
                    refspec: refspec.map(ToString::to_string),
                    message,
                    is_from_earlier_run: false,
                }),
                (None, Some(earlier)) => Outcome::Pushed(earlier),
                (None, None) => Outcome::NothingToCommit { source: source.revision },
            }));
        }
    }

    /// Gives every proposal its answer where nothing is to be pushed.
    fn settle_rehearsal(&mut self) {
        for candidate in self.candidates.iter_mut().filter(|candidate| candidate.is_open()) {
            let Some(source) = candidate.source.take() else { continue };
            let source = source.revision;
            let is_new = candidate.commit.take().is_some();
            let outcome =
                if is_new { Outcome::Rehearsed { source } } else { Outcome::NothingToCommit { source } };
            candidate.result = Some(Ok(outcome));
        }
    }
}

/// How a push left the remote.
struct Left<'a> {
    remote: &'a Remote,
    request: &'a PushRequest,
    arrivals: Arrivals,
    listing: &'a Listing,
    /// The tip of the push branch.
    tip: Option<CommitId>,
}

/// Which references of a push arrived: all but these.
#[derive(Default)]
struct Arrivals {
    missing: Vec<RefName>,
    reply: PushReply,
}

impl Arrivals {
    fn all() -> Self {
        Self::default()
    }
}

fn refusal(remote: &Remote, reply: &PushReply, reference: RefName) -> SyncError {
    let words = reply.refusal(&reference);
    SyncError::Refused { url: remote.url.to_string(), reference, words }
}

fn seen(checkout: CommitId, push: Option<CommitId>, refspec: Option<&Refspec>, listing: &Listing) -> Seen {
    let destination = refspec.and_then(|refspec| listing.commit(&refspec.destination));
    Seen { checkout, push, destination, refspec: refspec.map(ToString::to_string) }
}

fn fetch_missing(
    mirror: &Mirror,
    remote: &Remote,
    object: CommitId,
    deadline: Instant,
) -> Result<(), SyncError> {
    let is_there = mirror.peel(object).is_ok_and(|commit| mirror.has(commit));
    if is_there { Ok(()) } else { Ok(remote.fetch(mirror, &[object], deadline)?) }
}

fn store(ledger: &Ledger, mirror: &Mirror) -> Result<(), SyncError> {
    ledger.store(mirror.folder()).map_err(SyncError::Ledger)
}
