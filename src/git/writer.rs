//! The one that works on a mirror.
//!
//! Runs of many objects may concern one repository. Each hands its proposal to the writer and awaits its own answer;
//! the writer has a thread for each mirror that has work, which takes all that is waiting, carries out one
//! transaction for each branch, and ends when there is nothing left to do.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;

use super::error::SyncError;
use super::mirror::{Mirror, MirrorKey};
use super::name::BranchName;
use super::remote::Remote;
use super::transaction::{Answer, Proposal, Proposer, transact};

/// Where and how a writer works.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// The directory of the mirrors.
    pub mirrors: PathBuf,
    /// Whether everything is done but the push.
    pub is_rehearsal: bool,
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

/// Takes proposals and carries them out.
pub struct Writer<P: Proposer> {
    options: WriterOptions,
    inboxes: Inboxes<P>,
}

impl<P: Proposer> Writer<P> {
    /// A writer without work.
    pub fn new(options: WriterOptions) -> Self {
        Self { options, inboxes: Arc::default() }
    }

    /// Hands in requests and gives, for each, where its answer will arrive.
    ///
    /// Those for one branch that are handed in together share a transaction.
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
        for key in idle {
            let (options, inboxes) = (self.options.clone(), self.inboxes.clone());
            std::thread::spawn(move || work(&options, &inboxes, &key));
        }
        receivers
    }
}

/// Works on a mirror until nothing is waiting for it.
fn work<P: Proposer>(options: &WriterOptions, inboxes: &Inboxes<P>, key: &MirrorKey) {
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
        for batch in by_branch(letters) {
            carry_out(options, key, batch);
        }
    }
}

/// What a transaction has in common.
type Destination = (BranchName, Vec<(String, String)>);

fn by_branch<P: Proposer>(letters: Vec<Letter<P>>) -> Vec<Vec<Letter<P>>> {
    let mut batches: Vec<(Destination, Vec<Letter<P>>)> = Vec::new();
    for letter in letters {
        let target = &letter.request.proposal.target;
        let destination = (target.push.clone(), target.options.clone());
        match batches.iter_mut().find(|(known, _)| *known == destination) {
            Some((_, batch)) => batch.push(letter),
            None => batches.push((destination, vec![letter])),
        }
    }
    batches.into_iter().map(|(_, batch)| batch).collect()
}

fn carry_out<P: Proposer>(options: &WriterOptions, key: &MirrorKey, batch: Vec<Letter<P>>) {
    let (mut replies, mut proposals, mut remote) = (Vec::new(), Vec::new(), None);
    for letter in batch {
        replies.push(letter.reply);
        proposals.push(letter.request.proposal);
        // The credentials that came last are the newest.
        remote = Some(letter.request.remote);
    }
    let Some(mut remote) = remote else { return };
    let answers = match Mirror::open(&options.mirrors, key, Instant::now() + remote.timeout) {
        Ok(mut mirror) => transact(&mut mirror, &mut remote, proposals, options.is_rehearsal),
        Err(error) => {
            let error = Arc::new(SyncError::from(error));
            let fail = |proposal: Proposal<P>| Answer {
                name: proposal.name,
                proposer: proposal.proposer,
                result: Err(super::transaction::Failure::Sync(error.clone())),
            };
            proposals.into_iter().map(fail).collect()
        }
    };
    // Its files hold secrets, and whoever has the last answer may end the process.
    drop(remote);
    for (reply, answer) in replies.into_iter().zip(answers) {
        // Who no longer waits has been told to stop.
        let _ = reply.send(answer);
    }
}
