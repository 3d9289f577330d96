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
        let prepared = join_all(open.iter_mut().map(|job| job.prepare(round == 1))).await;
        let (mut ended, mut waiting, mut requests) = (Vec::new(), Vec::new(), Vec::new());
        for (job, prepared) in open.into_iter().zip(prepared) {
            match prepared {
                Ok(Prepared { request, policies }) => {
                    waiting.push((job, policies, request.proposal.withdrawal.clone()));
                    requests.push(request);
                }
                Err(conclusion) => ended.push((job, conclusion)),
            }
        }
        let answers = writer.submit(requests);
        let may_go_on = || round < ROUNDS && !stop.is_given();
        let ended = ended.into_iter().map(|(job, conclusion)| job.conclude(conclusion, None));
        let waiting = waiting.into_iter().zip(answers).map(async |((job, policies, withdrawal), answer)| {
            let answer = tokio::select! {
                // What has been done is told, also where it is not wanted any more.
                biased;
                answer = answer => answer.map_err(|_| Conclusion::broken_off()),
                () = withdrawal.settled() => Err(Conclusion::withdrawn()),
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
            let (conclusion, proposal) = transaction::conclude(answer, policies);
            job.conclude(conclusion, Some(proposal)).await;
            drop(hold);
            None
        });
        let (_, overtaken) = futures::join!(join_all(ended), join_all(waiting));
        open = overtaken.into_iter().flatten().collect();
        if open.is_empty() {
            return;
        }
    }
}
