//! The node of the agent: its watch and its patches.

use std::future::Future;

use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::watch;

use crate::error::chain;
use crate::nodes::{AGENT_FIELD_MANAGER, Node, NodeObject};
use crate::objects::cluster::{ApiGuard, ClusterError, watch_object};

/// The node on which the agent runs.
pub(super) struct OwnNode {
    name: String,
    api: Api<NodeObject>,
    guard: ApiGuard,
}

impl OwnNode {
    pub(super) fn new(client: Client, name: String) -> Self {
        Self { name, api: Api::all(client), guard: ApiGuard::default() }
    }

    /// Returns a future that watches the node until it is dropped, and its latest state.
    ///
    /// The state is also sent again when the API server can be reached again.
    pub(super) fn watch(&self) -> (impl Future<Output = ()> + use<>, watch::Receiver<Option<Node>>) {
        let (sender, receiver) = watch::channel(None);
        let (api, name) = (self.api.clone(), self.name.clone());
        let mut is_failing = false;
        let watching = async move {
            watch_object(api, &name, |seen| match seen {
                Ok(object) => {
                    if object.is_none() {
                        tracing::error!("the node {name} does not exist");
                    }
                    is_failing = false;
                    sender.send_replace(object.as_ref().map(Node::from));
                }
                Err(error) if is_failing => tracing::debug!("{}", chain(&error)),
                Err(error) => {
                    is_failing = true;
                    tracing::error!("the node {name} cannot be watched: {}", chain(&error));
                }
            })
            .await;
        };
        (watching, receiver)
    }

    /// Patches the node, and returns it as it is then.
    ///
    /// # Errors
    ///
    /// The node has changed meanwhile, or the API server refuses the patch or cannot be reached.
    pub(super) async fn patch(&self, patch: &Value) -> Result<Node, ClusterError> {
        let parameters =
            PatchParams { field_manager: Some(AGENT_FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(patch);
        let request = self.api.patch(&self.name, &parameters, &patch);
        Ok(Node::from(&self.guard.send("", request).await?))
    }
}
