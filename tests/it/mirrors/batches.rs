//! Tests of the jobs of one batch.
//! A cancelled job is concluded at once, however long the others take.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::json;
use tagboat::cancel::{Cancellation, StopToken};
use tagboat::git::Request;
use tagboat::git::outcome::Outcome;
use tagboat::reconcile::automation::batch::{self, Job};
use tagboat::reconcile::automation::conclusion::Conclusion;
use tagboat::reconcile::automation::proposal::UpdateProposal;
use tagboat::reconcile::automation::reselection::Reselection;
use tagboat::reconcile::automation::transaction::Prepared;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::local_remote::{LocalRemote, proposer};
use crate::support::content::file;
use crate::support::fleet::tag_line;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A job that prepares a request of the test.
/// It sends its conclusion to the test.
struct TestJob<'t> {
    prepare: Box<dyn FnMut() -> BoxFuture<'t, Request<UpdateProposal>> + Send + 't>,
    concluded: Option<oneshot::Sender<Conclusion>>,
}

impl<'t> TestJob<'t> {
    fn new(
        prepare: impl FnMut() -> BoxFuture<'t, Request<UpdateProposal>> + Send + 't,
    ) -> (Self, oneshot::Receiver<Conclusion>) {
        let (sender, concluded) = oneshot::channel();
        (Self { prepare: Box::new(prepare), concluded: Some(sender) }, concluded)
    }
}

impl Job for TestJob<'_> {
    async fn prepare(&mut self, _is_first: bool) -> Result<Prepared, Conclusion> {
        Ok((self.prepare)().await)
    }

    async fn conclude(&mut self, conclusion: Conclusion, _proposal: Option<Box<UpdateProposal>>) {
        self.concluded.take().expect("a job is concluded once").send(conclusion).unwrap();
    }
}

fn local() -> LocalRemote {
    LocalRemote::new(&[file("app.yaml", tag_line("1.0.0"))])
}

fn is_pushed(conclusion: &Conclusion) -> bool {
    matches!(conclusion, Conclusion::Success { outcome: Outcome::Pushed(_), .. })
}

#[tokio::test]
async fn a_cancelled_job_waits_for_no_mate_that_is_still_being_prepared() {
    let local = local();
    let writer = local.writer(false);
    let (is_ready, mate_goes_on) = (Notify::new(), Notify::new());
    let cancellation = Cancellation::default();
    let request = |name| local.request(name, proposer("2.0.0"), TIMEOUT);
    let (mut ready, ready_concluded) = TestJob::new(|| {
        Box::pin(async {
            let mut request = request("default/ready");
            request.proposal.cancellation = cancellation.clone();
            is_ready.notify_one();
            request
        })
    });
    let (mut slow, slow_concluded) = TestJob::new(|| {
        Box::pin(async {
            mate_goes_on.notified().await;
            request("default/slow")
        })
    });
    let stop = StopToken::default();
    let mut batch = Box::pin(batch::reconcile(vec![&mut ready, &mut slow], &writer, &stop));
    let cancelled = async {
        is_ready.notified().await;
        cancellation.cancel();
        timeout(TIMEOUT, ready_concluded).await.expect("it is concluded at once").unwrap()
    };
    tokio::select! {
        () = &mut batch => panic!("the mate is not prepared yet"),
        conclusion = cancelled => assert_eq!(conclusion, Conclusion::cancelled()),
    }
    mate_goes_on.notify_one();
    batch.await;
    assert!(is_pushed(&slow_concluded.await.unwrap()));
    writer.finish().await;
}

/// Adds a reselection that runs a hook before each proposal.
/// It leaves the selection as it is.
fn with_hook(
    mut request: Request<UpdateProposal>,
    hook: impl Fn() + Send + Sync + 'static,
) -> Request<UpdateProposal> {
    let automation = json!({
        "metadata": {"namespace": "default", "name": "fleet"},
        "spec": {"interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "r"}},
    });
    let reader = move || {
        hook();
        Vec::new()
    };
    let automation = serde_json::from_value(automation).unwrap();
    request.proposal.proposer.reselection = Some(Reselection::new(automation, Arc::new(reader), Vec::new()));
    request
}

/// A cancelled job that was overtaken does not wait for the other job's answer.
///
/// Others push to `main` before each push of the first job. The second job, on another branch, plans until
/// the test lets it go on.
#[tokio::test]
async fn an_overtaken_job_that_is_cancelled_waits_for_no_answer_of_a_mate() {
    let local = &local();
    let writer = local.writer(false);
    let rounds = Arc::new(Notify::new());
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let may_go_on = Arc::new(Mutex::new(may_go_on));
    let cancellation = Cancellation::default();
    let mut is_first = true;
    let (mut overtaken, overtaken_concluded) = TestJob::new(|| {
        if !std::mem::take(&mut is_first) {
            rounds.notify_one();
        }
        let remote = crate::support::bare_repository::BareRepository::existing(local.remote.path());
        let request = local.request("default/overtaken", proposer("2.0.0"), TIMEOUT);
        let mut request = with_hook(request, move || {
            remote.commit_beside_others("main", "Another", &[file("other.yaml", "a: 1\n")]);
        });
        request.proposal.cancellation = cancellation.clone();
        Box::pin(async { request })
    });
    let (mut slow, slow_concluded) = TestJob::new(|| {
        let may_go_on = Arc::clone(&may_go_on);
        let request = local.request("default/slow", proposer("2.0.0"), TIMEOUT);
        let mut request = with_hook(request, move || {
            // An error means that the test has ended.
            let _ = may_go_on.lock().unwrap().recv();
        });
        request.proposal.target.push = "slow".parse().unwrap();
        Box::pin(async { request })
    });
    let stop = StopToken::default();
    let mut batch = Box::pin(batch::reconcile(vec![&mut overtaken, &mut slow], &writer, &stop));
    let cancelled = async {
        timeout(TIMEOUT, rounds.notified()).await.expect("it is overtaken");
        cancellation.cancel();
        timeout(TIMEOUT, overtaken_concluded).await.expect("it is concluded at once").unwrap()
    };
    tokio::select! {
        () = &mut batch => panic!("the mate has no answer yet"),
        conclusion = cancelled => assert_eq!(conclusion, Conclusion::cancelled()),
    }
    drop(go_on);
    batch.await;
    assert!(is_pushed(&slow_concluded.await.unwrap()));
    writer.finish().await;
}
