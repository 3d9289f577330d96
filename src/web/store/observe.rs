//! The watches that fill the stores.

use std::fmt;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use kube::core::ApiResource;
use kube::{Client, Resource};
use tagboat_api::{DeploymentStatus, NodePool};
use tokio::sync::{Notify, oneshot};
use tokio::time::sleep;

use super::deployment_store::DeploymentStore;
use super::node_store::NodeStore;
use crate::controller::forbidden;
use crate::nodes::{NodeObject, keys};
use crate::objects::cluster::{
    CONFIRMATIONS, Cache, Change, ClusterError, Observation, Scope, Watched, watch_objects,
};

/// The time between two requests for a kind that is not served or not permitted.
const PROBE_INTERVAL: Duration = Duration::from_secs(60);

/// A store that a watch of a kind fills.
pub trait Observed<K> {
    /// Returns the cache that the watch fills; [`record`](Self::record) must get each change of it.
    fn cache(&self) -> &Cache<K>;

    /// Records a change of an object.
    fn record(&self, change: &Change<K>);

    /// Records that all objects have been listed.
    fn set_known(&self);
}

/// The reason for which a kind cannot be watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The cluster does not serve this kind.
    NotServed(String),
    /// Another reason, as a sentence.
    NotPermitted(String),
}

/// Formats the reason as a part of a sentence.
impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotServed(kind) => {
                write!(formatter, "the CustomResourceDefinition of {kind} is not installed")
            }
            Self::NotPermitted(reason) => formatter.write_str(reason),
        }
    }
}

/// The end of a watch.
struct Ended {
    missing: Missing,
    /// The objects were listed before.
    was_listed: bool,
}

/// Watches the deployments of a cluster until dropped.
///
/// While the cluster does not serve the kind, or the role does not permit it, it makes one request per minute and has
/// logged one line.
pub async fn observe(client: Client, scope: Scope, deployments: DeploymentStore) {
    let watch = || watch::<DeploymentStatus>(&client, &scope, &deployments, || ()).boxed();
    let set_missing = |missing: Missing| deployments.set_unlisted(missing.to_string());
    observe_again("the status of deployments is not served", watch, set_missing).await;
}

/// Watches the node pools of a cluster, and the nodes in them, until dropped.
///
/// Nodes are watched only while pools are.
pub async fn observe_nodes(client: Client, nodes: NodeStore) {
    // The controller labels each node of a pool, so other nodes are not read.
    let labeled = Scope { namespace: None, labels: Some(keys::STATE.to_owned()) };
    let watch = || watch_pools(&client, &labeled, &nodes).boxed();
    observe_again("node pools are not served", watch, |missing| nodes.set_missing(missing)).await;
}

/// Watches pools and, once they are listed, their nodes, until one of both is missing.
///
/// The role for nodes is often not applied. So the API server is asked for it first, and refuses no request.
async fn watch_pools(client: &Client, labeled: &Scope, nodes: &NodeStore) -> Ended {
    if let Some(reason) = lacking(client).await {
        return Ended { missing: Missing::NotPermitted(reason), was_listed: false };
    }
    let (listed, all) = (Notify::new(), Scope::default());
    let pools = watch::<NodePool>(client, &all, nodes, || listed.notify_one());
    let members = async {
        listed.notified().await;
        watch::<NodeObject>(client, labeled, nodes, || ()).await
    };
    tokio::select! {
        ended = pools => ended,
        ended = members => ended,
    }
}

/// Returns the permission to read pools and nodes that the role lacks, if it does.
async fn lacking(client: &Client) -> Option<String> {
    let kinds = [ApiResource::erase::<NodePool>(&()), ApiResource::erase::<NodeObject>(&())];
    let reviews = kinds.iter().flat_map(|kind| ["list", "watch"].map(|verb| (kind, verb)));
    let reviews = reviews.map(|(kind, verb)| forbidden(client, None, kind, verb, None));
    join_all(reviews).await.into_iter().flatten().next()
}

/// Repeats a watch that ends when its kind is missing.
///
/// `failure` begins the line of the log.
async fn observe_again<'w>(
    failure: &str,
    watch: impl Fn() -> BoxFuture<'w, Ended>,
    set_missing: impl Fn(Missing),
) {
    let mut logged = None;
    let mut unconfirmed = [].iter();
    loop {
        let Ended { missing, was_listed } = watch().await;
        if was_listed {
            logged = None;
            unconfirmed = CONFIRMATIONS.iter();
        }
        if let Some(pause) = unconfirmed.next() {
            sleep(*pause).await;
            continue;
        }
        if logged.as_ref() != Some(&missing) {
            tracing::info!("{failure}: {missing}");
            logged = Some(missing.clone());
        }
        set_missing(missing);
        sleep(PROBE_INTERVAL).await;
    }
}

/// Watches the objects of a kind until it is missing or forbidden.
///
/// `listed` is called after each listing.
async fn watch<K: Watched>(
    client: &Client,
    scope: &Scope,
    store: &impl Observed<K>,
    listed: impl Fn(),
) -> Ended {
    let (end, ended) = oneshot::channel();
    let mut end = Some(end);
    let (mut failure, mut was_listed) = (String::new(), false);
    let kind = <K as Resource>::kind(&());
    let watched = watch_objects(client.clone(), scope, store.cache(), |observation| match observation {
        Observation::Changed(change) => store.record(&change),
        Observation::Unreadable { metadata, message, change } => {
            tracing::error!(
                namespace = metadata.namespace,
                name = metadata.name,
                error = message,
                "a {kind} cannot be read and is not shown"
            );
            if let Some(change) = change {
                store.record(&change);
            }
        }
        Observation::Listing => {}
        Observation::Complete => {
            store.set_known();
            listed();
            was_listed = true;
            failure.clear();
        }
        Observation::WatchError(error) => match missing::<K>(&error) {
            Some(reason) => {
                if let Some(end) = end.take() {
                    // The watch is dropped by the receiver, which waits beside it.
                    let _ = end.send(reason);
                }
            }
            None => {
                let message = error.to_string();
                if message != failure {
                    tracing::warn!(error = message, "cannot watch {kind}, retrying");
                    failure = message;
                }
            }
        },
    });
    let missing = tokio::select! {
        () = watched => None,
        reason = ended => reason.ok(),
    };
    let missing = missing.unwrap_or_else(|| Missing::NotPermitted("the watch has ended".to_owned()));
    Ended { missing, was_listed }
}

/// Returns the reason for which the kind cannot be watched, unless the error is temporary.
fn missing<K: Resource<DynamicType = ()>>(error: &ClusterError) -> Option<Missing> {
    if error.is_not_found() {
        Some(Missing::NotServed(K::kind(&()).into_owned()))
    } else if error.is_forbidden() {
        Some(Missing::NotPermitted(format!("the role of the controller does not permit it: {error}")))
    } else {
        None
    }
}
