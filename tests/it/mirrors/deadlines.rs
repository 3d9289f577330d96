//! Planning has a deadline and can be cancelled, and its index is kept.

use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use tagboat::error::chain;
use tagboat::git::outcome::Outcome;
use tagboat::git::{CommitDraft, Failure, ProposalTrees, Proposer, SyncError};
use tagboat::reconcile::automation::proposal::UpdateProposal;
use tagboat::reconcile::automation::proposal_error::ProposalError;
use tagboat::update::{Checkpoint, MarkerIndex, Progress};

use super::local_remote::{LocalRemote, proposer};
use crate::support::content::file;
use crate::support::fleet::tag_line;

/// A proposer that plans an update, and then goes on without end.
struct EndlessProposer {
    update: UpdateProposal,
    is_endless: bool,
    begun: Sender<()>,
}

impl Proposer for EndlessProposer {
    type Error = ProposalError;

    fn memory(&self) -> u64 {
        self.update.memory()
    }

    fn propose(
        &mut self,
        trees: &ProposalTrees<'_>,
        index: &mut MarkerIndex,
        checkpoint: &mut Checkpoint<'_>,
    ) -> Result<Option<CommitDraft>, ProposalError> {
        let draft = self.update.propose(trees, index, checkpoint)?;
        let _ = self.begun.send(());
        if !self.is_endless {
            return Ok(draft);
        }
        loop {
            checkpoint(Progress::default()).map_err(|interrupt| ProposalError::Plan(interrupt.into()))?;
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn local() -> LocalRemote {
    LocalRemote::new(&[
        file("app.yaml", tag_line("1.0.0")),
        file("broken.yaml", format!("a: [ {}", tag_line("1"))),
    ])
}

#[test]
fn a_plan_that_takes_too_long_fails_alone_and_names_the_timeout() {
    let local = local();
    let (begun, _receiver) = channel();
    let timeout = Duration::from_secs(10);
    let request = |name: &str, is_endless| {
        let proposer = EndlessProposer { update: proposer("2.0.0"), is_endless, begun: begun.clone() };
        local.request(name, proposer, timeout)
    };
    let answers =
        local.transact(vec![request("default/endless", true), request("default/quick", false)], false);
    let [Err(Failure::Proposer(error)), Ok(Outcome::Pushed(_))] =
        answers.each_ref().map(|answer| &answer.result)
    else {
        panic!("{:?}", answers.map(|answer| answer.result))
    };
    assert_eq!(
        chain(error),
        "planning and committing took longer than the timeout of 10 s; set update.path to a smaller directory, or \
         raise spec.timeout of the GitRepository"
    );
}

#[test]
fn a_plan_is_cancelled_between_two_files_and_its_index_is_kept() {
    let local = local();
    let (begun, receiver) = channel();
    let proposer = EndlessProposer { update: proposer("2.0.0"), is_endless: true, begun };
    let request = local.request("default/endless", proposer, Duration::from_secs(600));
    let cancellation = request.proposal.cancellation.clone();
    let cancelling = std::thread::spawn(move || {
        receiver.recv().unwrap();
        cancellation.cancel();
    });
    let begin = Instant::now();
    let [answer] = local.transact(vec![request], false);
    cancelling.join().unwrap();
    assert!(
        matches!(&answer.result, Err(Failure::Sync(error)) if matches!(**error, SyncError::Cancelled)),
        "{:?}",
        answer.result
    );
    assert!(begin.elapsed() < Duration::from_secs(300), "it was ended by its deadline");
    let index = std::fs::read(local.mirror().with_file_name("index")).unwrap();
    let text = String::from_utf8_lossy(&index);
    // Both files are in the index, also the one that is no YAML.
    assert!(text.contains("default:podinfo:tag") && text.contains("unclosed bracket"), "{text}");
}
