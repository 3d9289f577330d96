//! Pool of API servers that the scenes use in turn.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex};

use futures::StreamExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::core::DynamicObject;
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::controller::scene::Kind;
use crate::support::api_server::ApiServer;

/// The number of scenes that exist at the same time.
/// Each has an API server and a CPU of its own.
const SCENES_AT_ONCE: usize = 2;

/// All kinds whose objects a scene may leave behind.
const KINDS: [Kind; 4] = [Kind::Automation, Kind::Policy, Kind::Repository, Kind::Source];

/// The free servers, by their number.
struct Pool {
    turns: Arc<Semaphore>,
    free: Mutex<Vec<(usize, Option<Arc<ApiServer>>)>>,
}

static POOL: LazyLock<Pool> = LazyLock::new(|| Pool {
    turns: Arc::new(Semaphore::new(SCENES_AT_ONCE)),
    free: Mutex::new((0..SCENES_AT_ONCE).map(|number| (number, None)).collect()),
});

/// An API server that one scene uses alone.
pub(super) struct OwnServer {
    pub(super) server: Arc<ApiServer>,
    /// The number of the server, which is also that of the CPU for the program.
    pub(super) number: usize,
    _turn: OwnedSemaphorePermit,
}

impl OwnServer {
    /// Waits for a server, and starts it if it was never used.
    pub(super) async fn take() -> Self {
        let turn = Arc::clone(&POOL.turns).acquire_owned().await.expect("the semaphore is never closed");
        let (number, server) = POOL.free.lock().unwrap().pop().expect("a turn means a free server");
        let server = match server {
            Some(server) => server,
            None => Arc::new(tokio::task::spawn_blocking(ApiServer::start).await.unwrap()),
        };
        Self { server, number, _turn: turn }
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        // The fields are dropped after this, so a server is free before its permit goes to another scene.
        POOL.free.lock().unwrap().push((self.number, Some(Arc::clone(&self.server))));
    }
}

/// Removes all objects of our kinds and their finalizers. No program may be running.
pub(super) async fn remove_all_objects(client: &Client) {
    for kind in KINDS {
        let resource = kind.resource();
        let all: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let objects = all.list_metadata(&ListParams::default()).await.unwrap().items;
        let in_namespace = |namespace: &str| -> Api<DynamicObject> {
            Api::namespaced_with(client.clone(), namespace, &resource)
        };
        let namespaces: BTreeSet<String> = objects.iter().filter_map(ResourceExt::namespace).collect();
        for namespace in &namespaces {
            let parameters = (DeleteParams::default(), ListParams::default());
            let _deleted =
                in_namespace(namespace).delete_collection(&parameters.0, &parameters.1).await.unwrap();
        }
        let kept = objects.iter().filter(|object| !object.finalizers().is_empty());
        let released = futures::stream::iter(kept).for_each_concurrent(16, async |object| {
            let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let api = in_namespace(&object.namespace().expect("our kinds are in namespaces"));
            // The object may be gone already.
            let _released = api.patch(&object.name_any(), &PatchParams::default(), &none).await;
        });
        released.await;
    }
}
