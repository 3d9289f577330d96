//! The loop that sends statuses for as long as this process is the leader.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::endpoint::Endpoint;
use super::queue::{MAX_PAUSE, Queue, Verdict};
use super::sender::{Outcome, StatusSender};
use super::significance::significance;
use super::token::TokenFile;
use crate::backoff::random_fraction;
use crate::net::HttpClientError;
use crate::objects::ObjectName;
use crate::secrets::Fingerprint;
use crate::web::form::Form;
use crate::web::store::{StatusChange, Stores, Subscription};

/// The maximum number of different causes that are logged before everything works again.
const MAX_LOGGED: usize = 16;

/// The options of the status push.
#[derive(Debug, Clone)]
pub struct PushOptions {
    /// The server that receives the statuses.
    pub endpoint: Endpoint,
    /// The form of the documents.
    pub form: Form,
    /// The file with the token, if the server wants one.
    pub token: Option<TokenFile>,
}

/// A request that has ended.
struct Sent {
    name: ObjectName,
    fingerprint: Fingerprint,
    outcome: Outcome,
}

/// The statuses to send, and the requests in flight.
struct Push {
    stores: Stores,
    form: Form,
    sender: StatusSender,
    queue: Queue,
    in_flight: FuturesUnordered<BoxFuture<'static, Sent>>,
    /// The causes of the logged failures, until nothing fails any more; at most [`MAX_LOGGED`].
    logged: HashSet<String>,
}

/// Sends each status once, and again when its state, its error or its target changes.
///
/// It waits until `is_leader` is true, and ends when that is false or its sender is gone.
///
/// # Errors
///
/// If the HTTP client cannot be made.
pub fn push(
    stores: Stores,
    options: PushOptions,
    mut is_leader: watch::Receiver<bool>,
) -> Result<impl Future<Output = ()>, HttpClientError> {
    let PushOptions { endpoint, form, token } = options;
    let sender = StatusSender::new(endpoint, token)?;
    let (queue, in_flight, logged) = (Queue::default(), FuturesUnordered::new(), HashSet::new());
    let push = Push { stores, form, sender, queue, in_flight, logged };
    Ok(async move {
        if is_leader.wait_for(|is_leader| *is_leader).await.is_err() {
            return;
        }
        tokio::select! {
            () = push.run() => {}
            _ = is_leader.wait_for(|is_leader| !*is_leader) => {}
        }
    })
}

impl Push {
    async fn run(mut self) {
        let mut subscription = self.observe_all();
        loop {
            self.start_due();
            let wake = self.queue.wake();
            tokio::select! {
                changes = subscription.next() => match changes {
                    Ok(changes) => {
                        for change in changes {
                            match &change.change {
                                StatusChange::Changed { namespace, name, .. } => self.observe(&object(namespace, name)),
                                StatusChange::Deleted { namespace, name, .. } => self.queue.forget(&object(namespace, name)),
                                StatusChange::Reset => self.observe_stored(),
                                StatusChange::NodePool { .. } => {}
                            }
                        }
                    }
                    Err(_) => subscription = self.observe_all(),
                },
                Some(sent) = self.in_flight.next() => self.finish(sent),
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
            }
        }
    }

    /// Records all statuses, and returns the changes after them.
    fn observe_all(&mut self) -> Subscription {
        loop {
            let changes = self.stores.deployments.changes();
            // It is refused only if more changes than are kept have just come.
            if let Ok(subscription) = changes.follow(changes.last()) {
                self.observe_stored();
                return subscription;
            }
        }
    }

    /// Records all statuses, unless they are not known.
    fn observe_stored(&mut self) {
        let Ok(snapshot) = self.stores.snapshot() else { return };
        let now = Instant::now();
        let mut names = HashSet::new();
        for object in snapshot.objects() {
            let name = ObjectName::of(&**object);
            self.queue.observe(&name, significance(&snapshot.shown(object)), now);
            names.insert(name);
        }
        self.queue.retain(|name| names.contains(name));
    }

    /// Records the status of a deployment.
    ///
    /// If the deployments are not known, all of them are recorded as soon as they are.
    fn observe(&mut self, name: &ObjectName) {
        let Ok(snapshot) = self.stores.snapshot_of(name) else { return };
        let current = snapshot.objects().first().and_then(|object| significance(&snapshot.shown(object)));
        self.queue.observe(name, current, Instant::now());
    }

    /// Sends the statuses that are due, as many as may be in flight.
    fn start_due(&mut self) {
        while let Some(name) = self.queue.next(Instant::now()) {
            let Some((id, fingerprint, document)) = self.request(&name) else {
                self.queue.observe(&name, None, Instant::now());
                continue;
            };
            self.queue.begin(&name, fingerprint);
            let sender = self.sender.clone();
            let request = async move {
                let outcome = sender.send(&id, document).await;
                Sent { name, fingerprint, outcome }
            };
            self.in_flight.push(request.boxed());
        }
    }

    /// Returns the id of a deployment, and the fingerprint and the document of its status.
    ///
    /// Returns `None` if the status is not sent, or not known now.
    fn request(&self, name: &ObjectName) -> Option<(String, Fingerprint, String)> {
        let snapshot = self.stores.snapshot_of(name).ok()?;
        let object = snapshot.shown(snapshot.objects().first()?);
        let fingerprint = significance(&object)?;
        let id = object.status.as_ref()?.deployment_id.clone();
        Some((id, fingerprint, self.form.document(&object, self.stores.clusters.given_name())))
    }

    /// Records and logs the outcome of a request.
    ///
    /// Failures of one cause are logged once, even if they concern many deployments.
    fn finish(&mut self, sent: Sent) {
        let Sent { name, fingerprint, outcome } = sent;
        let verdict = match &outcome {
            Outcome::Accepted | Outcome::Refused { .. } => Verdict::Settled,
            Outcome::Failed { retry_after, .. } => {
                Verdict::Failed { retry_after: *retry_after, jitter: random_fraction() }
            }
        };
        self.queue.finish(&name, fingerprint, verdict, Instant::now());
        let ObjectName { namespace, name } = name;
        let endpoint = self.sender.endpoint();
        match outcome {
            Outcome::Failed { cause, message, retry_after }
                if self.logged.len() < MAX_LOGGED && !self.logged.contains(&cause) =>
            {
                tracing::warn!(
                    endpoint = %endpoint,
                    namespace,
                    name,
                    error = message,
                    "cannot send the status of a deployment, retrying{}",
                    retry_after.map(after).unwrap_or_default()
                );
                self.logged.insert(cause);
            }
            Outcome::Failed { .. } => {}
            Outcome::Refused { message } => {
                let text = "the status endpoint refuses the status of a deployment, which is not sent again until it changes";
                tracing::error!(endpoint = %endpoint, namespace, name, error = message, "{text}");
            }
            Outcome::Accepted if !self.logged.is_empty() && !self.queue.is_failing() => {
                tracing::info!(endpoint = %endpoint, "the status endpoint accepts all statuses again");
                self.logged.clear();
            }
            Outcome::Accepted => {}
        }
    }
}

/// Returns the end of the log line for a pause that the server asks for.
///
/// The queue limits a pause, and jitter may lengthen it.
fn after(pause: Duration) -> String {
    format!(" in {} s, as the server asks", pause.min(MAX_PAUSE).as_secs())
}

fn object(namespace: &str, name: &str) -> ObjectName {
    ObjectName { namespace: namespace.to_owned(), name: name.to_owned() }
}
