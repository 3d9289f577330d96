//! The watch of DeploymentStatus that fills the store.

use std::time::Duration;

use kube::Client;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::deployment_store::DeploymentStore;
use crate::objects::cluster::{CONFIRMATIONS, ClusterError, Observation, Scope, watch_objects};

/// The time between two requests for a kind that is not served or not permitted.
const PROBE_INTERVAL: Duration = Duration::from_secs(60);

/// Watches the deployments of a cluster until dropped.
///
/// While the cluster does not serve the kind, or the role does not permit it, it makes one request per minute and has
/// logged one line.
pub async fn observe(client: Client, scope: Scope, deployments: DeploymentStore) {
    let mut logged = String::new();
    let mut unconfirmed = [].iter();
    loop {
        let (reason, was_listed) = watch(client.clone(), &scope, &deployments).await;
        if was_listed {
            logged.clear();
            unconfirmed = CONFIRMATIONS.iter();
        }
        if let Some(pause) = unconfirmed.next() {
            sleep(*pause).await;
            continue;
        }
        if reason != logged {
            tracing::info!("the status of deployments is not served: {reason}");
            logged.clone_from(&reason);
        }
        deployments.set_unlisted(reason);
        sleep(PROBE_INTERVAL).await;
    }
}

/// Watches the deployments until the kind is missing or forbidden.
///
/// Returns the reason, and true if they were listed before.
async fn watch(client: Client, scope: &Scope, deployments: &DeploymentStore) -> (String, bool) {
    let (end, ended) = oneshot::channel();
    let mut end = Some(end);
    let (mut failure, mut was_listed) = (String::new(), false);
    let watched = watch_objects(client, scope, deployments.cache(), |observation| match observation {
        Observation::Changed(change) => deployments.record(&change),
        Observation::Unreadable { metadata, message, change } => {
            tracing::error!(
                namespace = metadata.namespace,
                name = metadata.name,
                error = message,
                "a DeploymentStatus cannot be read and is not shown"
            );
            if let Some(change) = change {
                deployments.record(&change);
            }
        }
        Observation::Listing => {}
        Observation::Complete => {
            deployments.set_known();
            was_listed = true;
            failure.clear();
        }
        Observation::WatchError(error) => match missing(&error) {
            Some(reason) => {
                if let Some(end) = end.take() {
                    // The watch is dropped by the receiver, which waits beside it.
                    let _ = end.send(reason);
                }
            }
            None => {
                let message = error.to_string();
                if message != failure {
                    tracing::warn!(error = message, "cannot watch the status of deployments, retrying");
                    failure = message;
                }
            }
        },
    });
    let reason = tokio::select! {
        () = watched => "the watch has ended".to_owned(),
        reason = ended => reason.unwrap_or_default(),
    };
    (reason, was_listed)
}

/// Returns the reason for which the kind cannot be watched, unless the error is temporary.
fn missing(error: &ClusterError) -> Option<String> {
    if error.is_not_found() {
        Some("the CustomResourceDefinition of DeploymentStatus is not installed".to_owned())
    } else if error.is_forbidden() {
        Some(format!("the role of the controller does not permit it: {error}"))
    } else {
        None
    }
}
