//! Changes of deployments and node pools as server-sent events.
//!
//! A new client first gets the event `reset`: it must read what it shows. Each change is an event `changed` or
//! `deleted`, or `nodepool` for a pool or its nodes, after that. A client that connects again sends the id of its last event, and gets only what it has
//! missed; if too much has changed meanwhile, it gets `reset` again.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, stream};
use schemars::JsonSchema;
use serde::Serialize;
use tagboat_api::deployment_status::State as DeploymentState;
use tokio::sync::OwnedSemaphorePermit;

use super::state::{Api, MAX_FOLLOWERS};
use crate::web::http::{Problem, Query, json};
use crate::web::store::{ChangeId, Changes, RecordedChange, StatusChange, Subscription};

/// The time after which a comment is sent if nothing has changed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The header with the id of the last event that a client has.
const LAST_EVENT_ID: &str = "last-event-id";

/// Data of the events `changed` and `deleted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChangedDeployment {
    /// Namespace of the deployment.
    namespace: String,
    /// Name of the deployment.
    name: String,
    /// Identity of the deployment: the uid of the image policy.
    deployment_id: String,
    /// State of the deployment; absent if it was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<DeploymentState>,
}

/// Data of the event `nodepool`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct ChangedNodePool {
    /// Name of the pool: it, or a node of it, has changed.
    name: String,
}

/// A client that follows changes.
struct Follower {
    subscription: Subscription,
    /// The events that the client gets next.
    next: VecDeque<Event>,
    /// The place of the client, which it frees at its end.
    _place: OwnedSemaphorePermit,
}

/// Responds with the changes, without end.
pub(super) async fn events(
    State(api): State<Api>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    Query::parse(&uri, &[])?;
    let place = api.followers.clone().try_acquire_owned();
    let place = place.map_err(|_| {
        Problem::unavailable(format!("{MAX_FOLLOWERS} clients follow the changes, which is the maximum"))
    })?;
    let last = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok()?.parse().ok());
    let (subscription, next) = begin(api.stores.deployments.changes(), last);
    let follower = Follower { subscription, next, _place: place };
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(follower.into_stream()).keep_alive(keep_alive).into_response())
}

/// Returns the subscription of a new client, and its first events.
fn begin(changes: &Changes, last: Option<ChangeId>) -> (Subscription, VecDeque<Event>) {
    if let Some(subscription) = last.and_then(|last| changes.follow(last).ok()) {
        return (subscription, VecDeque::new());
    }
    loop {
        let last = changes.last();
        // It is refused only if more changes than are kept have just come.
        if let Ok(subscription) = changes.follow(last) {
            return (
                subscription,
                VecDeque::from([event(&RecordedChange { id: last, change: StatusChange::Reset })]),
            );
        }
    }
}

impl Follower {
    /// Returns the events until the client is too slow.
    fn into_stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, async |mut follower| {
            loop {
                if let Some(event) = follower.next.pop_front() {
                    return Some((Ok(event), follower));
                }
                let changes: Vec<Arc<RecordedChange>> = follower.subscription.next().await.ok()?;
                follower.next.extend(changes.iter().map(|change| event(change)));
            }
        })
    }
}

fn event(change: &RecordedChange) -> Event {
    let (name, data) = match &change.change {
        StatusChange::Reset => ("reset", "{}".to_owned()),
        StatusChange::Changed { namespace, name, deployment_id, state } => {
            ("changed", data(namespace, name, deployment_id, Some(*state)))
        }
        StatusChange::Deleted { namespace, name, deployment_id } => {
            ("deleted", data(namespace, name, deployment_id, None))
        }
        StatusChange::NodePool { name } => ("nodepool", json(&ChangedNodePool { name: name.clone() })),
    };
    Event::default().id(change.id.to_string()).event(name).data(data)
}

fn data(namespace: &str, name: &str, deployment_id: &str, state: Option<DeploymentState>) -> String {
    json(&ChangedDeployment {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        deployment_id: deployment_id.to_owned(),
        state,
    })
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::web::store::Stores;

    #[tokio::test(start_paused = true)]
    async fn a_comment_is_sent_every_15_seconds_without_a_change() {
        let api = Api::new(Stores::new(""));
        let uri = "/api/v1/events".parse().unwrap();
        let response = events(State(api.clone()), HeaderMap::new(), uri).await.unwrap();
        let mut content = response.into_body().into_data_stream();
        let first = content.next().await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&first).contains("event: reset"), "{first:?}");
        for _ in 0..3 {
            let begin = Instant::now();
            let comment = content.next().await.unwrap().unwrap();
            assert_eq!((begin.elapsed().as_secs(), &*comment), (15, &b":\n\n"[..]));
        }
        let quiet = timeout(Duration::from_secs(14), content.next()).await;
        assert!(quiet.is_err(), "{quiet:?}");
        api.stores.deployments.changes().reset();
        let next = content.next().await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&next).contains("event: reset"), "{next:?}");
    }
}
