//! The one that works on a mirror.
//!
//! Runs of many objects may concern one repository. Each hands its proposal to the writer and awaits its own answer;
//! the writer has a thread for each mirror that has work, which takes all that is waiting, carries out one
//! transaction for each branch, and ends when there is nothing left to do.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::sync::oneshot;

use super::error::SyncError;
use super::ledger::Ledger;
use super::mirror::{Mirror, MirrorKey};
use super::oversight::Oversight;
use super::places::Places;
use super::remote::Remote;
use super::transaction::{Answer, Failure, Proposal, Proposer, transact};

/// Where and how a writer works.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// The directory of the mirrors.
    pub mirrors: PathBuf,
    /// Whether everything is done but the push.
    pub is_rehearsal: bool,
    /// The word to stop, and who counts.
    pub oversight: Oversight,
    /// How many transactions may be under way at once; those that wait for a server for long do not count.
    pub places: Places,
}

/// A proposal on its way to the writer.
#[derive(Debug)]
pub struct Request<P> {
    /// The mirror that it concerns.
    pub mirror: MirrorKey,
    /// The mirror's remote.
    pub remote: Remote,
    /// The proposal.
    pub proposal: Proposal<P>,
}

/// A request and where its answer goes.
struct Letter<P: Proposer> {
    request: Request<P>,
    reply: oneshot::Sender<Answer<P>>,
}

/// What waits, by mirror; a mirror that is in here has a thread.
type Inboxes<P> = Arc<Mutex<HashMap<MirrorKey, Vec<Letter<P>>>>>;

/// The names of objects that have gone, of which a mirror may still know something.
type Gone = Arc<Mutex<BTreeSet<String>>>;

/// Takes proposals and carries them out.
pub struct Writer<P: Proposer> {
    options: WriterOptions,
    inboxes: Inboxes<P>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    gone: Gone,
}

impl<P: Proposer> Writer<P> {
    /// A writer without work.
    pub fn new(options: WriterOptions) -> Self {
        Self { options, inboxes: Arc::default(), threads: Mutex::default(), gone: Gone::default() }
    }

    /// Hands in requests and gives, for each, where its answer will arrive.
    ///
    /// Those for one branch that are handed in together share a transaction, if they start from the same.
    pub fn submit(&self, requests: Vec<Request<P>>) -> Vec<oneshot::Receiver<Answer<P>>> {
        let mut receivers = Vec::new();
        let mut idle = Vec::new();
        let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        for request in requests {
            let (reply, receiver) = oneshot::channel();
            receivers.push(receiver);
            let key = request.mirror.clone();
            let inbox = inboxes.entry(key.clone()).or_insert_with(|| {
                idle.push(key);
                Vec::new()
            });
            inbox.push(Letter { request, reply });
        }
        drop(inboxes);
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        for key in idle {
            let (options, inboxes, gone) = (self.options.clone(), self.inboxes.clone(), self.gone.clone());
            threads.push(std::thread::spawn(move || work(&options, &inboxes, &gone, &key)));
        }
        receivers
    }

    /// Forgets what is known of an object that has gone, by the name of its proposals. Whoever works on its mirror next
    /// does so, and a mirror on which nobody works is removed some day.
    pub fn forget(&self, name: String) {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
    }

    /// Waits until nothing is left to do, mirrors to be tidied included. What was asked for has its answer before.
    pub fn finish(&self) {
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // One that panicked has nothing left to do either.
            let _ = thread.join();
        }
    }
}

/// Works on a mirror until nothing is waiting for it.
fn work<P: Proposer>(options: &WriterOptions, inboxes: &Inboxes<P>, gone: &Gone, key: &MirrorKey) {
    loop {
        let letters = {
            let mut inboxes = inboxes.lock().unwrap_or_else(PoisonError::into_inner);
            let letters = inboxes.get_mut(key).map(std::mem::take).unwrap_or_default();
            if letters.is_empty() {
                inboxes.remove(key);
                return;
            }
            letters
        };
        for batch in by_target(letters) {
            // A fault of ours in one transaction must not leave the mirror without anybody who works on it. Those who
            // wait are told, for the other end of their channel is gone.
            let _ = catch_unwind(AssertUnwindSafe(|| carry_out(options, gone, key, batch)));
        }
    }
}

/// Parts letters into those that can share a transaction: they start from the same, and go to the same branch with the
/// same options.
fn by_target<P: Proposer>(letters: Vec<Letter<P>>) -> Vec<Vec<Letter<P>>> {
    let mut batches: Vec<Vec<Letter<P>>> = Vec::new();
    for letter in letters {
        let target = &letter.request.proposal.target;
        let is_alike = |batch: &&mut Vec<Letter<P>>| {
            batch.first().is_some_and(|first| first.request.proposal.target.shares_transaction(target))
        };
        match batches.iter_mut().find(is_alike) {
            Some(batch) => batch.push(letter),
            None => batches.push(vec![letter]),
        }
    }
    batches
}

fn carry_out<P: Proposer>(options: &WriterOptions, gone: &Gone, key: &MirrorKey, batch: Vec<Letter<P>>) {
    let Some(first) = batch.first() else { return };
    let place = options.places.take(&first.request.remote.url.to_origin().unwrap_or_default());
    let (mut replies, mut proposals, mut remote) = (Vec::new(), Vec::new(), None);
    for Letter { request, reply } in batch {
        // Whoever did not want to wait any longer has gone.
        let Some(work) = request.proposal.withdrawal.begin() else { continue };
        replies.push((reply, work));
        proposals.push(request.proposal);
        // The credentials that came last are the newest.
        remote = Some(request.remote);
    }
    let Some(mut remote) = remote else { return };
    // Another process may hold the mirror: one that lists and fetches, pushes, and lists again takes that long, and
    // what is left of one that was killed takes no longer.
    let deadline = Instant::now() + 3 * remote.timeout;
    let mut mirror = match Mirror::open(options, key, place, deadline) {
        Ok(mirror) => mirror,
        Err(error) => {
            let error = Arc::new(SyncError::from(error));
            for ((reply, _work), proposal) in replies.into_iter().zip(proposals) {
                let (name, proposer) = (proposal.name, proposal.proposer);
                let result = Err(Failure::Sync(error.clone()));
                let _ = reply.send(Answer { name, proposer, result, hold: None });
            }
            return;
        }
    };
    forget(gone, &mirror);
    let answers = transact(&mut mirror, &mut remote, proposals, options);
    let timeout = remote.timeout;
    // Its files hold secrets, and whoever has the last answer may end the process.
    drop(remote);
    for ((reply, _work), answer) in replies.into_iter().zip(answers) {
        let answer = Answer { hold: Some(mirror.hold()), ..answer };
        // Who no longer waits has been told to stop, or does not want it any more.
        let _ = reply.send(answer);
    }
    // The work is done, and a mirror that cannot be opened again is begun anew.
    let _ = mirror.tidy(Instant::now() + timeout);
}

/// Forgets what a mirror knows of objects that have gone.
fn forget(gone: &Gone, mirror: &Mirror) {
    let names = gone.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if names.is_empty() {
        return;
    }
    // What cannot be forgotten now is tried again by the next transaction.
    let found = Ledger::forget(mirror.folder(), &names).unwrap_or_default();
    gone.lock().unwrap_or_else(PoisonError::into_inner).retain(|name| !found.contains(name));
}
