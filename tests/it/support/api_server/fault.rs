//! Faults between a client and the API server, on demand.
//! Every request is recorded.

use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use kube::Client;
use kube::client::retry::RetryPolicy;
use serde_json::json;
use tokio::sync::oneshot;
use tower::Service;
use tower::retry::Retry;

use super::call::Call;

/// A fault of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// 401: the login is refused.
    Unauthorized,
    /// 403: the role does not permit the request.
    Forbidden,
    /// 409: another client changed the object.
    Conflict,
    /// 410: the requested resource version has expired.
    Gone,
    /// 429, with `Retry-After` in seconds. Clients of kube retry by themselves.
    Busy(u64),
    /// 500.
    Broken,
    /// There is never an answer, and the server does not get the request.
    Silence,
    /// The connection fails, and the server does not get the request.
    Unreachable,
    /// The server executes the request, but its answer is lost.
    LostAnswer,
    /// The server gets the request only when the faults are healed.
    Held,
    /// The answer comes late.
    Late(Duration),
}

/// The end of a watch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    /// The response ends, as the server ends each watch after some minutes.
    Clean,
    /// The connection is lost.
    Reset,
}

/// The faults and the record of one client or several. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Faults(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    rules: Vec<Rule>,
    watches: Vec<(Call, oneshot::Sender<Ending>)>,
}

struct Rule {
    left: usize,
    fault: Fault,
    applies: Box<dyn Fn(&Call) -> bool + Send>,
}

impl Faults {
    /// Adds a fault for the next `times` requests for which `applies` is true.
    /// The oldest rule that is not used up wins.
    pub(crate) fn next(&self, times: usize, fault: Fault, applies: impl Fn(&Call) -> bool + Send + 'static) {
        self.state().rules.push(Rule { left: times, fault, applies: Box::new(applies) });
    }

    /// Removes all faults.
    pub(crate) fn heal(&self) {
        self.state().rules.clear();
    }

    /// Ends the open watches for which `applies` is true, and returns their number.
    pub(crate) fn end_watches(&self, ending: Ending, applies: impl Fn(&Call) -> bool) -> usize {
        let mut state = self.state();
        let (ended, kept) =
            std::mem::take(&mut state.watches).into_iter().partition(|(call, _)| applies(call));
        state.watches = kept;
        let ended: Vec<(Call, oneshot::Sender<Ending>)> = ended;
        // The receiver of a watch that its client has closed is gone.
        ended.into_iter().filter_map(|(_, cut)| cut.send(ending).ok()).count()
    }

    /// Every request so far, also failed ones, in order.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// Clears the record of requests.
    pub(crate) fn forget_calls(&self) {
        self.state().calls.clear();
    }

    /// A client with these faults, and with the retries of every client of kube.
    pub(super) fn client(&self, server: Client, namespace: &str) -> Client {
        let service = Faulty { server, faults: self.clone() };
        Client::new(Retry::new(RetryPolicy::server_retry(), service), namespace)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Records a request, and returns its fault.
    fn meet(&self, call: &Call) -> Option<Fault> {
        let mut state = self.state();
        state.calls.push(call.clone());
        let rule = state.rules.iter_mut().find(|rule| rule.left > 0 && (rule.applies)(call))?;
        rule.left -= 1;
        Some(rule.fault)
    }
}

/// A client's service with the faults in front.
#[derive(Clone)]
struct Faulty {
    server: Client,
    faults: Faults,
}

type Failure = Box<dyn Error + Send + Sync>;

impl Service<Request<kube::client::Body>> for Faulty {
    type Response = Response<Body>;
    type Error = Failure;
    type Future = BoxFuture<'static, Result<Response<Body>, Failure>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        let Self { server, faults } = self.clone();
        async move {
            let call = Call::new(&request);
            let lost = || Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
            match faults.meet(&call) {
                Some(Fault::Unauthorized) => return Ok(refusal(401, "Unauthorized", None)),
                Some(Fault::Forbidden) => return Ok(refusal(403, "Forbidden", None)),
                Some(Fault::Conflict) => return Ok(refusal(409, "Conflict", None)),
                Some(Fault::Gone) => return Ok(refusal(410, "Expired", None)),
                Some(Fault::Busy(seconds)) => return Ok(refusal(429, "TooManyRequests", Some(seconds))),
                Some(Fault::Broken) => return Ok(refusal(500, "InternalError", None)),
                Some(Fault::Silence) => std::future::pending().await,
                Some(Fault::Held) => {
                    while !faults.state().rules.is_empty() {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                }
                Some(Fault::Unreachable) => return lost(),
                Some(Fault::LostAnswer) => {
                    let answer = server.send(request).await?;
                    // The server is finished when its whole answer has arrived.
                    answer.into_body().collect_bytes().await?;
                    return lost();
                }
                Some(Fault::Late(time)) => tokio::time::sleep(time).await,
                None => {}
            }
            let answer = server.send(request).await?.map(Body::new);
            Ok(if call.verb == "watch" { faults.watched(call, answer) } else { answer })
        }
        .boxed()
    }
}

impl Faults {
    /// The answer of a watch, which the test can end.
    fn watched(&self, call: Call, answer: Response<Body>) -> Response<Body> {
        let (sender, receiver) = oneshot::channel();
        self.state().watches.push((call, sender));
        // If the faults are dropped, at the end of a test, the watch goes on.
        let mut cut = receiver.map(Result::ok).fuse();
        answer.map(|body| {
            let mut events = body.into_data_stream();
            Body::from_stream(futures::stream::poll_fn(move |context| match cut.poll_unpin(context) {
                Poll::Ready(Some(Ending::Clean)) => Poll::Ready(None),
                Poll::Ready(Some(Ending::Reset)) => {
                    Poll::Ready(Some(Err(axum::Error::new(io::Error::from(io::ErrorKind::ConnectionReset)))))
                }
                Poll::Ready(None) | Poll::Pending => events.poll_next_unpin(context),
            }))
        })
    }
}

/// An error response as from the API server.
fn refusal(code: u16, reason: &str, retry_after: Option<u64>) -> Response<Body> {
    let mut status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": format!("a fault of the test: {reason}"), "reason": reason, "code": code,
    });
    let mut answer = Response::builder().status(code).header("Content-Type", "application/json");
    if let Some(seconds) = retry_after {
        answer = answer.header("Retry-After", seconds);
        status["details"] = json!({"retryAfterSeconds": seconds});
    }
    answer.body(Body::from(status.to_string())).unwrap()
}
