//! Transactions while other namespaces hold the memory.

use std::time::{Duration, Instant};

use tagboat::git::outcome::Outcome;
use tagboat::reconcile::automation::proposal::{Detail, UpdateProposal};
use tagboat::tenancy::Capacity;

use super::local_remote::{LocalRemote, proposer};
use crate::support::content::file;
use crate::support::fleet::tag_line;

/// A transaction needs no memory that two other namespaces hold.
///
/// Formerly, each of its steps waited until one of the two released memory, for ten minutes at most, and
/// failed then.
#[test]
fn a_transaction_needs_no_memory_that_two_other_namespaces_hold() {
    let local = LocalRemote::new(&[file("app.yaml", tag_line("1.0.0"))]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let capacity = Capacity::default();
    let _all = ["a", "b"].map(|namespace| runtime.block_on(capacity.memory.reserve(namespace, u64::MAX)));
    // As in the controller.
    let proposer = UpdateProposal { detail: Detail::Warnings, ..proposer("2.0.0") };
    let request = local.request("default/fleet", proposer, Duration::from_secs(120));
    let writer = local.writer_within(capacity.clone());
    let begin = Instant::now();
    let answer = runtime.block_on(async {
        let answer = writer.submit(vec![request]).remove(0).await.expect("the writer answers");
        writer.finish().await;
        answer
    });
    assert!(matches!(answer.result, Ok(Outcome::Pushed(_))), "{:?}", answer.result);
    // The waits of listing, fetching, planning and pushing add up.
    assert!(begin.elapsed() < Capacity::MAX_WAIT / 2, "{:?}", begin.elapsed());
}
