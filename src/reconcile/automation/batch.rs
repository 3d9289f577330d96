//! Carrying out automations together, so that those of one repository and branch share a transaction.

use std::future::Future;

use futures::future::join_all;

use super::conclusion::Conclusion;
use super::proposal::UpdateProposal;
use super::transaction::{self, Prepared};
use crate::git::{Failure, StopSignal, SyncError, Writer};

/// How often a job is begun anew when others push faster than a transaction may try.
const ROUNDS: u32 = 16;

/// An automation that is to be carried out, on behalf of somebody who wants to know how it ends.
pub trait Job: Send {
    /// Whether no other process may work on the mirror before the job is concluded, because it would take what came of it
    /// for nobody's.
    const HOLDS_MIRROR: bool = false;

    /// Gets as far as the writer's request; a second time, if others were faster.
    ///
    /// # Errors
    ///
    /// When the run ends before there is anything to ask for.
    fn prepare(&mut self, is_first: bool) -> impl Future<Output = Result<Prepared, Conclusion>> + Send;

    /// Takes note of how the run ended, and of what was found in the files.
    fn conclude(
        &mut self,
        conclusion: Conclusion,
        proposal: Option<UpdateProposal>,
    ) -> impl Future<Output = ()> + Send;
}

/// Carries out jobs. Each is concluded as soon as it has its answer.
pub async fn carry_out<J: Job>(jobs: Vec<&mut J>, writer: &Writer<UpdateProposal>, stop: &StopSignal) {
    let mut open = jobs;
    for round in 1..=ROUNDS {
        let prepared = open.into_iter().map(async |job| match job.prepare(round == 1).await {
            Ok(Prepared { request }) => Some((job, request)),
            Err(conclusion) => {
                // Others may still take long to prepare.
                job.conclude(conclusion, None).await;
                None
            }
        });
        let (mut waiting, mut requests) = (Vec::new(), Vec::new());
        for (job, request) in join_all(prepared).await.into_iter().flatten() {
            waiting.push((job, request.proposal.cancellation.clone()));
            requests.push(request);
        }
        let answers = writer.submit(requests);
        let may_go_on = || round < ROUNDS && !stop.is_given();
        let waiting = waiting.into_iter().zip(answers).map(async |((job, cancellation), answer)| {
            let answer = tokio::select! {
                // What has been done is told, also where it is not wanted any more.
                biased;
                answer = answer => answer.map_err(|_| Conclusion::broken_off()),
                () = cancellation.finished() => Err(Conclusion::cancelled()),
            };
            let mut answer = match answer {
                Ok(answer) => answer,
                Err(conclusion) => {
                    job.conclude(conclusion, None).await;
                    return None;
                }
            };
            let is_overtaken = matches!(&answer.result,
                Err(Failure::Sync(error)) if matches!(**error, SyncError::Overtaken { .. }));
            if is_overtaken && may_go_on() {
                return Some(job);
            }
            let hold = answer.hold.take().filter(|_| J::HOLDS_MIRROR);
            let (conclusion, proposal) = transaction::conclude(answer);
            job.conclude(conclusion, Some(proposal)).await;
            drop(hold);
            None
        });
        open = join_all(waiting).await.into_iter().flatten().collect();
        if open.is_empty() {
            return;
        }
    }
}
