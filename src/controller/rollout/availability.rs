//! The availability of the feature.
//!
//! It is available if the CRD is served, and the role permits the use of its objects.

use std::time::Duration;

use kube::api::{Api, ListParams};
use kube::core::ApiResource;
use tagboat_api::DeploymentStatus;

use super::cluster::Connection;
use crate::controller::engine::forbidden;
use crate::objects::cluster::CONFIRMATIONS;

/// The time between two checks, of which each is one request.
const INTERVAL: Duration = Duration::from_secs(60);

/// The verbs that the role must permit, with the parts of the object.
const VERBS: [(&str, Option<&str>); 6] = [
    ("list", None),
    ("watch", None),
    ("create", None),
    ("patch", None),
    ("delete", None),
    ("patch", Some("status")),
];

/// Waits until the feature is available.
///
/// It calls `missing` with the reason why the feature is not available, again for each other reason. As long as one
/// check fails, only that is repeated: one request per minute.
pub(super) async fn wait_until_available(connection: &Connection, mut missing: impl FnMut(&str)) {
    let resource = ApiResource::erase::<DeploymentStatus>(&());
    let mut last = None;
    let mut report = |obstacle: String| {
        if last.as_ref() != Some(&obstacle) {
            missing(&obstacle);
            last = Some(obstacle);
        }
    };
    for (verb, part) in VERBS {
        while let Some(obstacle) = permission_obstacle(connection, &resource, verb, part).await {
            report(obstacle);
            tokio::time::sleep(INTERVAL).await;
        }
    }
    while let Some(obstacle) = list_obstacle(connection).await {
        report(obstacle);
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Waits until the feature is not available any more, and returns the reason.
///
/// It takes one request per minute, and two more that confirm a refusal.
pub(super) async fn wait_until_unavailable(connection: &Connection) -> String {
    loop {
        tokio::time::sleep(INTERVAL).await;
        if let Some(obstacle) = confirmed_obstacle(connection).await {
            return obstacle;
        }
    }
}

/// Returns the reason for which objects cannot be listed, if it lasts.
async fn confirmed_obstacle(connection: &Connection) -> Option<String> {
    let mut obstacle = list_obstacle(connection).await?;
    for pause in CONFIRMATIONS {
        tokio::time::sleep(pause).await;
        obstacle = list_obstacle(connection).await?;
    }
    Some(obstacle)
}

async fn permission_obstacle(
    connection: &Connection,
    resource: &ApiResource,
    verb: &str,
    part: Option<&str>,
) -> Option<String> {
    forbidden(&connection.client, connection.namespace.as_deref(), resource, verb, part).await
}

/// Returns the reason for which objects cannot be listed.
///
/// An outage of the API server is none.
async fn list_obstacle(connection: &Connection) -> Option<String> {
    let api: Api<DeploymentStatus> = connection.api();
    let error = connection.guard.send("", api.list_metadata(&ListParams::default().limit(1))).await.err()?;
    if error.is_not_found() {
        Some("the CustomResourceDefinition of DeploymentStatus is not installed".to_owned())
    } else if error.is_forbidden() {
        Some(error.to_string())
    } else {
        None
    }
}
