//! Reconciles automations together, so that those of one repository and branch share a transaction.

use std::collections::BTreeMap;
use std::future::Future;

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::conclusion::Conclusion;
use super::proposal::UpdateProposal;
use super::transaction::{self, Prepared};
use crate::cancel::StopToken;
use crate::cloud::GitLoginEntry;
use crate::git::{Answer, Failure, FailureKind, Request, SyncError, Writer};

/// The maximum number of times that a job is prepared.
///
/// It is prepared again if others push faster than a transaction may try, or if a server refuses the login.
const ROUNDS: u32 = 16;

/// An automation that is reconciled in a batch, and the caller's part of that.
pub trait Job: Send {
    /// Prepares the request for the writer; a second time, if other pushes were faster.
    ///
    /// # Errors
    ///
    /// If the run ends before there is a request.
    fn prepare(&mut self, is_first: bool) -> impl Future<Output = Result<Prepared, Conclusion>> + Send;

    /// Reports the conclusion of the run, with the findings in the files.
    fn conclude(
        &mut self,
        conclusion: Conclusion,
        proposal: Option<Box<UpdateProposal>>,
    ) -> impl Future<Output = ()> + Send;
}

/// Reconciles jobs.
///
/// Each is concluded as soon as its answer arrives or its request is cancelled, independently of the others.
pub async fn reconcile<J: Job>(jobs: Vec<&mut J>, writer: &Writer<UpdateProposal>, stop: &StopToken) {
    let rounds = Rounds::new(writer, jobs.len());
    let runs = jobs.into_iter().enumerate().map(async |(index, job)| {
        let (conclusion, proposal) = run(job, index, &rounds, stop).await;
        rounds.leave(index);
        // Boxed, as the preparation: while git works, each job of a large batch takes the memory for its answer only.
        Box::pin(job.conclude(conclusion, proposal)).await;
    });
    join_all(runs).await;
}

/// Prepares a job and submits its request, until no other push is faster.
///
/// After a login that the server refuses, it is submitted once more with a new one.
async fn run<J: Job>(
    job: &mut J,
    index: usize,
    rounds: &Rounds<'_>,
    stop: &StopToken,
) -> (Conclusion, Option<Box<UpdateProposal>>) {
    let (mut round, mut has_new_login) = (1, false);
    loop {
        let request = match Box::pin(job.prepare(round == 1)).await {
            Ok(request) => request,
            Err(conclusion) => return (conclusion, None),
        };
        let cancellation = request.proposal.cancellation.clone();
        let submitted = rounds.submit(index, request);
        let answer = tokio::select! {
            // A push that arrived is reported, even if it was cancelled.
            biased;
            answer = async { submitted.await?.await } => answer,
            () = cancellation.finished() => return (Conclusion::cancelled(), None),
        };
        let Ok(answer) = answer else { return (Conclusion::internal_error(), None) };
        let is_refused = !has_new_login && refuse_login(&answer);
        has_new_login |= is_refused;
        let is_repeated = is_refused || is_overtaken(&answer);
        if !is_repeated || round == ROUNDS || stop.is_cancelled() {
            let (conclusion, proposal) = transaction::conclude(answer);
            return (conclusion, Some(proposal));
        }
        round += 1;
    }
}

/// Has the login of a provider made again if the git server refused it.
///
/// Returns true if there is such a login, or if the API that signs has refused its own.
fn refuse_login(answer: &Answer<UpdateProposal>) -> bool {
    let Err(Failure::Sync(error)) = &answer.result else { return false };
    let UpdateProposal { login, signing_login, .. } = answer.proposer.as_ref();
    let kind = error.failure_kind();
    let is_refused = |login: &&GitLoginEntry| match kind {
        Some(FailureKind::Authentication) => true,
        // A signature may have become too old while its request waited.
        Some(FailureKind::Forbidden) => login.is_signature(),
        _ => false,
    };
    login.iter().filter(is_refused).for_each(GitLoginEntry::refuse);
    login.iter().chain(signing_login).any(GitLoginEntry::is_refused)
}

fn is_overtaken(answer: &Answer<UpdateProposal>) -> bool {
    matches!(&answer.result, Err(Failure::Sync(error)) if matches!(**error, SyncError::LostRace { .. }))
}

/// Collects the requests of a batch and submits them together.
///
/// They are submitted once every job has added its own or left. The jobs of a round take part in the next one
/// until they leave.
struct Rounds<'w> {
    writer: &'w Writer<UpdateProposal>,
    state: Mutex<State>,
}

struct State {
    /// The number of jobs that are yet to add a request or leave.
    missing: usize,
    /// The requests of the round, by index of the job.
    requests: BTreeMap<usize, Queued>,
}

/// A request, and the channel on which its submitter learns where the answer arrives.
type Queued = (Request<UpdateProposal>, oneshot::Sender<AnswerReceiver>);

/// The channel on which the answer to a request arrives.
///
/// It is closed if the transaction ends without one.
type AnswerReceiver = oneshot::Receiver<Answer<UpdateProposal>>;

impl<'w> Rounds<'w> {
    fn new(writer: &'w Writer<UpdateProposal>, jobs: usize) -> Self {
        Self { writer, state: Mutex::new(State { missing: jobs, requests: BTreeMap::new() }) }
    }

    /// Adds the request of a job to the round.
    fn submit(&self, index: usize, request: Request<UpdateProposal>) -> oneshot::Receiver<AnswerReceiver> {
        let (sender, submitted) = oneshot::channel();
        let mut state = self.state.lock();
        state.missing -= 1;
        state.requests.insert(index, (request, sender));
        self.submit_if_complete(&mut state);
        submitted
    }

    /// Removes a job from the batch.
    ///
    /// Its request is removed as well, if it was not submitted yet.
    fn leave(&self, index: usize) {
        let mut state = self.state.lock();
        if state.requests.remove(&index).is_none() {
            state.missing -= 1;
        }
        self.submit_if_complete(&mut state);
    }

    fn submit_if_complete(&self, state: &mut State) {
        if state.missing > 0 {
            return;
        }
        let (requests, senders): (Vec<_>, Vec<_>) = std::mem::take(&mut state.requests).into_values().unzip();
        state.missing = requests.len();
        for (sender, answer) in senders.into_iter().zip(self.writer.submit(requests)) {
            // The receiver is there: a job that is cancelled leaves in the same step.
            let _ = sender.send(answer);
        }
    }
}
