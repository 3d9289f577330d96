//! Runs transactions on mirrors.
//!
//! Runs of many objects may concern one repository. Each submits its proposal to the writer and awaits its own answer.
//! The writer has a queue and a task for each mirror with work. The task takes the queued requests, waits for a slot,
//! runs one transaction for each branch on a blocking thread, and ends when the queue is empty.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, spawn_blocking};

use super::commit_signer::MAX_SIGNED_COMMITS;
use super::error::SyncError;
use super::mirror::Mirror;
use super::mirror_key::MirrorKey;
use super::options::WriterOptions;
use super::proposal::{Answer, Failure, Proposal, Proposer};
use super::push_journal::PushJournal;
use super::remote::RemotePlan;
use super::server_deadline::ServerDeadline;
use super::slots::Slot;
use super::transaction::transact;
use crate::cancel::Cancellation;
use crate::tenancy::FairCache;

/// The maximum number of deleted objects whose names are kept.
/// They are kept until mirrors drop their notes of them; notes of further ones are removed with their mirror.
const MAX_DELETED: usize = 1_000;

/// The maximum number of proposals in a transaction.
/// Each proposal keeps its answer until the transaction ends.
const MAX_BATCH: usize = 256;

/// A proposal to be submitted to the writer.
#[derive(Debug)]
pub struct Request<P> {
    /// The mirror that it concerns.
    pub mirror: MirrorKey,
    /// The mirror's remote.
    pub remote: RemotePlan,
    /// The proposal.
    pub proposal: Proposal<P>,
}

/// A request and the channel for its answer.
struct QueuedRequest<P: Proposer> {
    request: Request<P>,
    reply: oneshot::Sender<Answer<P>>,
}

/// Runs transactions for proposals.
pub struct Writer<P: Proposer> {
    shared: Arc<Shared<P>>,
    tasks: Mutex<JoinSet<()>>,
}

struct Shared<P: Proposer> {
    options: WriterOptions,
    /// Requests by mirror; a mirror in this map has a task.
    queues: Mutex<HashMap<MirrorKey, Vec<QueuedRequest<P>>>>,
    /// The names of deleted objects, of which mirrors may still have notes.
    deleted: Mutex<FairCache<String, ()>>,
}

/// Drops the queue of a mirror whose task panics.
/// Its requests then fail, and later ones get a new task.
struct QueueGuard<'s, P: Proposer> {
    shared: &'s Shared<P>,
    key: &'s MirrorKey,
}

impl<P: Proposer> Writer<P> {
    /// Creates a writer without work.
    pub fn new(options: WriterOptions) -> Self {
        let deleted = Mutex::new(FairCache::new(MAX_DELETED));
        let shared = Shared { options, queues: Mutex::default(), deleted };
        Self { shared: Arc::new(shared), tasks: Mutex::default() }
    }

    /// Submits requests and returns the channel of each answer.
    /// It must be called within a runtime.
    ///
    /// Requests of one namespace for one branch that are submitted together share a transaction, if they start from the
    /// same reference.
    pub fn submit(&self, requests: Vec<Request<P>>) -> Vec<oneshot::Receiver<Answer<P>>> {
        let mut receivers = Vec::new();
        let mut idle = Vec::new();
        let mut queues = self.shared.queues.lock();
        for request in requests {
            let (reply, receiver) = oneshot::channel();
            receivers.push(receiver);
            let key = request.mirror.clone();
            let queue = queues.entry(key.clone()).or_insert_with(|| {
                idle.push(key);
                Vec::new()
            });
            queue.push(QueuedRequest { request, reply });
        }
        drop(queues);
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        for key in idle {
            let shared = Arc::clone(&self.shared);
            tasks.spawn(async move { shared.work(&key).await });
        }
        receivers
    }

    /// Deletes the notes of mirrors about a deleted object.
    /// `name` is the name of the object's proposals. Each mirror drops its notes at its next transaction.
    pub fn forget(&self, namespace: &str, name: String) {
        self.shared.deleted.lock().insert(namespace, name, ());
    }

    /// Waits until nothing is left to do, including the packing of mirrors.
    /// Requests are answered before that.
    pub async fn finish(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        while tasks.join_next().await.is_some() {}
    }
}

impl<P: Proposer> Shared<P> {
    /// Runs the transactions of a mirror until its queue is empty.
    async fn work(self: &Arc<Self>, key: &MirrorKey) {
        let _guard = QueueGuard { shared: self, key };
        while let Some(requests) = self.take_requests(key) {
            for batch in by_target(requests) {
                let Some(slot) = self.acquire_slot(&batch).await else { continue };
                let (shared, key) = (Arc::clone(self), key.clone());
                // A panic in one transaction must not end the mirror's task. Its requests notice it, because their
                // channels are closed.
                let _ = spawn_blocking(move || shared.transact(&key, slot, batch)).await;
            }
        }
    }

    /// Takes the queued requests of a mirror, at least one.
    /// Without any, it returns `None`, and the mirror no longer has a task.
    fn take_requests(&self, key: &MirrorKey) -> Option<Vec<QueuedRequest<P>>> {
        let mut queues = self.queues.lock();
        let requests = queues.get_mut(key).map(std::mem::take).unwrap_or_default();
        if requests.is_empty() {
            queues.remove(key);
            return None;
        }
        Some(requests)
    }

    /// Waits for a slot, unless all proposals are cancelled before.
    fn acquire_slot(&self, batch: &[QueuedRequest<P>]) -> impl Future<Output = Option<Slot>> + Send + use<P> {
        let cancellations: Vec<_> =
            batch.iter().map(|queued| queued.request.proposal.cancellation.clone()).collect();
        let first = batch.first().map(|queued| &queued.request);
        let owner = first.map(|first| (first.proposal.namespace.clone(), first.remote.route.clone()));
        let slots = self.options.slots.clone();
        async move {
            let (namespace, route) = owner?;
            tokio::select! {
                biased;
                _ = join_all(cancellations.iter().map(Cancellation::cancelled)) => None,
                slot = slots.acquire(&namespace, &route) => Some(slot),
            }
        }
    }

    fn transact(&self, key: &MirrorKey, slot: Slot, batch: Vec<QueuedRequest<P>>) {
        let (mut replies, mut proposals, mut remote) = (Vec::new(), Vec::new(), None);
        for QueuedRequest { request, reply } in batch {
            if request.proposal.cancellation.is_cancelled() {
                continue;
            }
            replies.push(reply);
            proposals.push(request.proposal);
            // The credentials that came last are the newest.
            remote = Some(request.remote);
        }
        let Some(remote) = remote else { return };
        // Another process may hold the mirror: listing, fetch, push and another listing take that long, and the rest of
        // a killed one takes no longer.
        let deadline = Instant::now() + 3 * remote.timeout;
        let cancellations: Vec<_> = proposals.iter().map(|proposal| proposal.cancellation.clone()).collect();
        let is_over = || {
            self.options.context.stop.is_cancelled() || cancellations.iter().all(Cancellation::is_cancelled)
        };
        let timeout = remote.timeout;
        let opened = Mirror::open(&self.options, key, slot, deadline, &is_over).map_err(SyncError::from);
        let (mut mirror, mut remote) = match opened.and_then(|mirror| Ok((mirror, remote.open()?))) {
            Ok(opened) => opened,
            Err(error) => {
                let error = Arc::new(error);
                for (reply, proposal) in replies.into_iter().zip(proposals) {
                    let (name, proposer) = (proposal.name, proposal.proposer);
                    let result = Err(Failure::Sync(error.clone()));
                    let _ = reply.send(Answer { name, proposer, result });
                }
                return;
            }
        };
        self.forget_deleted(&mirror);
        let answers = transact(&mut mirror, &mut remote, proposals, &self.options);
        // Its files hold secrets, and the process may end with the last answer.
        drop(remote);
        for (reply, answer) in replies.into_iter().zip(answers) {
            // A dropped receiver was cancelled or stopped.
            let _ = reply.send(answer);
        }
        // The work is done, and a mirror that cannot be opened is created anew.
        let _ = mirror.repack(&ServerDeadline::after(timeout));
    }

    /// Drops the notes of a mirror about deleted objects.
    fn forget_deleted(&self, mirror: &Mirror) {
        let names = self.deleted.lock().iter().map(|(name, ())| name.clone()).collect();
        // Notes that cannot be dropped now are dropped by the next transaction.
        let found = PushJournal::forget(&mirror.folder, &names).unwrap_or_default();
        let mut deleted = self.deleted.lock();
        for name in &found {
            deleted.remove(name);
        }
    }
}

impl<P: Proposer> Drop for QueueGuard<'_, P> {
    fn drop(&mut self) {
        // After a normal end there is none, or that of another task.
        if std::thread::panicking() {
            self.shared.queues.lock().remove(self.key);
        }
    }
}

/// Divides requests into batches that can each share a transaction.
///
/// The requests of a batch are of one namespace, start from the same reference, and go to the same branch
/// with the same options. A full batch ends, and the rest is the next one. Those that a forge must sign come first.
fn by_target<P: Proposer>(requests: Vec<QueuedRequest<P>>) -> Vec<Vec<QueuedRequest<P>>> {
    let mut batches: Vec<Vec<QueuedRequest<P>>> = Vec::new();
    for queued in requests {
        let proposal = &queued.request.proposal;
        let is_alike = |batch: &&mut Vec<QueuedRequest<P>>| {
            batch.first().is_some_and(|first| {
                let first = &first.request.proposal;
                first.namespace == proposal.namespace && first.target.shares_transaction(&proposal.target)
            })
        };
        // Branches of proposals' own are put off one by one, so that those that share a branch stay together.
        let is_signed = |queued: &QueuedRequest<P>| {
            let Proposal { signing, target, .. } = &queued.request.proposal;
            signing.is_some() && target.own_branches.is_none()
        };
        let has_room = |batch: &&mut Vec<QueuedRequest<P>>| {
            let signed = batch.iter().filter(|queued| is_signed(queued)).count();
            batch.len() < MAX_BATCH && (!is_signed(&queued) || signed < MAX_SIGNED_COMMITS)
        };
        match batches.iter_mut().filter(has_room).find(is_alike) {
            Some(batch) => batch.push(queued),
            None => batches.push(vec![queued]),
        }
    }
    for batch in &mut batches {
        // A forge signs no commit on top of one that it does not have.
        batch.sort_by_key(|queued| {
            queued.request.proposal.signing.as_ref().map_or(2, |signing| u8::from(!signing.is_required))
        });
    }
    batches
}

#[cfg(test)]
pub(in crate::git) mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use futures::future::LocalBoxFuture;

    use super::*;
    use crate::git::checkout::CheckoutReference;
    use crate::git::outcome::Target;
    use crate::git::{
        AccessOptions, AccessPlan, BranchName, CommitDraft, CommitSigner, ForgeCommit, ForgeSigning, Known,
        LocalPaths, Login, MirrorStore, ProposalTrees, Refresh, RemoteUrl, RouteKey, SignerError,
        TransactionSlots, UnsignedCommit, WriterContext,
    };
    use crate::metrics::Metrics;
    use crate::update::{Checkpoint, MarkerIndex};

    /// Proposes nothing.
    pub(in crate::git) struct Nothing;

    impl Proposer for Nothing {
        type Error = Infallible;

        fn memory(&self) -> u64 {
            0
        }

        fn propose(
            &mut self,
            _trees: &ProposalTrees<'_>,
            _index: &mut MarkerIndex,
            _checkpoint: &mut Checkpoint<'_>,
        ) -> Result<Option<CommitDraft>, Infallible> {
            Ok(None)
        }
    }

    fn queued(number: usize) -> QueuedRequest<Nothing> {
        let url = RemoteUrl::parse("https://git.example/fleet.git", LocalPaths::Refused).unwrap();
        let login = Login::OfUser;
        let branch = |name: &str| name.parse::<BranchName>().unwrap();
        let remote = RemotePlan {
            access: AccessPlan::new(&url, login, AccessOptions::default()).unwrap(),
            url,
            timeout: Duration::from_secs(60),
            route: RouteKey::default(),
            size_limit: 0,
            large: None,
        };
        let push = branch(if number.is_multiple_of(10) { "other" } else { "main" });
        let checkout = CheckoutReference::Branch(branch("main"));
        let proposal = Proposal {
            name: number.to_string(),
            namespace: "n".to_owned(),
            target: Target { checkout, push, refspec: None, own_branches: None, options: Vec::new() },
            known: Known::default(),
            signing: None,
            cancellation: Cancellation::default(),
            proposer: Box::new(Nothing),
        };
        let mirror = MirrorKey { namespace: "n".into(), name: "fleet".into(), url: remote.url.to_string() };
        QueuedRequest { request: Request { mirror, remote, proposal }, reply: oneshot::channel().0 }
    }

    /// A batch of any size held all texts of each proposal.
    #[test]
    fn a_transaction_has_a_bounded_number_of_proposals() {
        let batches = by_target((0..3 * MAX_BATCH).map(queued).collect());
        let (mut mains, mut others) = (Vec::new(), Vec::new());
        for queued in batches.iter().flatten() {
            let proposal = &queued.request.proposal;
            let name: usize = proposal.name.parse().unwrap();
            if name.is_multiple_of(10) { &mut others } else { &mut mains }.push(name);
        }
        let count = (mains.len(), others.len());
        assert!(count.0 + count.1 == 3 * MAX_BATCH && mains.is_sorted() && others.is_sorted());
        let mut sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [count.1, count.0 - 2 * MAX_BATCH, MAX_BATCH, MAX_BATCH]);
    }

    #[derive(Debug)]
    struct NoSigner;

    impl CommitSigner for NoSigner {
        fn sign<'a>(
            &'a self,
            _commit: &'a UnsignedCommit<'a>,
        ) -> LocalBoxFuture<'a, Result<ForgeCommit, SignerError>> {
            unreachable!("nothing is signed")
        }

        fn author(&self) -> LocalBoxFuture<'_, Result<String, SignerError>> {
            unreachable!("no branch is read")
        }
    }

    /// Automations of two transactions each dropped the commit of the other from a shared branch.
    #[test]
    fn the_commits_that_a_forge_signs_for_a_push_divide_no_automations_with_branches_of_their_own() {
        for (own_branches, expected) in
            [(None, vec![MAX_SIGNED_COMMITS, 5]), (Some(Refresh::WhenNeeded), vec![MAX_SIGNED_COMMITS + 5])]
        {
            let signed = |_| {
                let mut queued = queued(1);
                let proposal = &mut queued.request.proposal;
                proposal.signing = Some(ForgeSigning { signer: Arc::new(NoSigner), is_required: true });
                proposal.target.own_branches = own_branches;
                queued
            };
            let batches = by_target((0..MAX_SIGNED_COMMITS + 5).map(signed).collect());
            assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_flood_of_deleted_objects_displaces_no_name_of_another_namespace() {
        let writer: Writer<Nothing> = Writer::new(WriterOptions {
            mirrors: MirrorStore::new("nowhere".into(), 0),
            is_dry_run: false,
            context: WriterContext::default(),
            slots: TransactionSlots::limited(1, &Metrics::default()),
        });
        writer.forget("victim", "victim/app 1".to_owned());
        for number in 0..2 * MAX_DELETED {
            writer.forget("attacker", format!("attacker/app {number}"));
        }
        let mut deleted = writer.shared.deleted.lock();
        assert_eq!(deleted.len(), MAX_DELETED);
        assert!(deleted.get("victim/app 1").is_some());
        assert!(deleted.get("attacker/app 0").is_none());
    }
}
