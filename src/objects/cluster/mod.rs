//! The objects of a cluster.
//!
//! | files | contents |
//! |---|---|
//! | `watch`, `cache`, `list` | a watch and a cache for each kind, which a reconcile reads without a request; lists in pages |
//! | `list_schedule` | the times of repeated lists |
//! | `namespace` | a Namespace without what is not in use |
//! | `resource_scope` | requests for a kind in namespaces, or of the whole cluster |
//! | `writer`, `merge_patch` | merge patches of the difference, under Flux's field manager, on top of the state that they were made from |
//! | `recorder`, `notifier`, `announcer` | events, posts to Flux's notification controller, and both together |
//! | `event_limit`, `deliveries` | the rate limit of an object's events, and those in flight |
//! | `api_guard` | the requests to the API server, shared fairly by namespace |
//! | `availability` | requests that find out whether a cluster answers |
//! | `client` | the clients of clusters, which are made there only |
//! | `eviction` | evictions of pods, which respect disruption budgets |
//! | `accounts` | service accounts and their tokens |
//!
//! Secrets are requested one by one. Only the objects of one batch share them.

mod accounts;
mod announcer;
mod api_guard;
mod availability;
mod cache;
mod client;
mod deliveries;
mod error;
mod event_limit;
mod eviction;
mod list;
mod list_schedule;
mod merge_patch;
mod namespace;
mod notifier;
mod recorder;
mod resource_scope;
mod watch;
mod writer;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret as ClusterSecret;
use kube::{Api, Client};
use parking_lot::Mutex;
use tagboat_api::{GitRepository, ImagePolicy};
use tokio::sync::OnceCell;

use super::{ObjectName, Objects, ObjectsError};
use crate::secrets::{Secret, data_size};
use crate::tenancy::INLINE_BYTES;

pub use accounts::ClusterAccounts;
pub use announcer::{Announcement, Announcer, EventIdentity};
pub use api_guard::ApiGuard;
pub use availability::{CONFIRMATIONS, PROBE_INTERVAL, Silence, probe};
pub use cache::{Cache, Change};
pub use client::{ClientError, client, counting_client};
pub use error::ClusterError;
pub use eviction::{Eviction, EvictionTarget, evict};
pub use list::list;
pub use list_schedule::{ListLimiter, ListSchedule};
pub use namespace::NamespaceObject;
pub use notifier::{Notifier, NotifierError};
pub use resource_scope::ResourceScope;
pub use watch::{Observation, Scope, Watched, watch_closely, watch_events, watch_object, watch_objects};
pub use writer::ObjectWriter;

/// The field manager of Flux's automation controller.
///
/// It is the same, so that either controller can take over from the other.
pub const FIELD_MANAGER: &str = "image-automation-controller";

/// The field manager of Flux's reflector controller.
pub const REFLECTOR: &str = "image-reflector-controller";

/// The maximum number of keys of a Secret.
///
/// Kubernetes bounds the size of the values alone, and a hundred thousand empty ones would take 30 MiB here.
const MAX_SECRET_KEYS: usize = 1_024;

/// The objects of a cluster that a reconcile needs. Clones share their caches.
#[derive(Clone)]
pub struct ClusterObjects {
    client: Client,
    guard: ApiGuard,
    secrets: Option<SecretCache>,
    /// The namespace that requests for Secrets count for; without one, that of the Secret.
    tenant: Option<Arc<str>>,
    /// All policies.
    pub policies: Cache<ImagePolicy>,
    /// All git repositories.
    pub git_repositories: Cache<GitRepository>,
}

/// A cache of small secrets, each filled by its first request.
type SecretCache = Arc<Mutex<HashMap<ObjectName, Arc<OnceCell<BTreeMap<String, Secret>>>>>>;

impl ClusterObjects {
    /// Makes empty caches.
    pub fn new(client: Client) -> Self {
        Self::with_guard(client, ApiGuard::default())
    }

    /// Makes empty caches whose requests pass through a guard.
    pub fn with_guard(client: Client, guard: ApiGuard) -> Self {
        Self {
            client,
            guard,
            secrets: None,
            tenant: None,
            policies: Cache::default(),
            git_repositories: Cache::default(),
        }
    }

    /// Returns the client of the cluster.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the guard of requests to the API server.
    pub fn guard(&self) -> &ApiGuard {
        &self.guard
    }

    /// Returns the service accounts of the cluster.
    pub fn accounts(&self) -> ClusterAccounts {
        ClusterAccounts::new(self.client.clone(), self.guard.clone())
    }

    /// Waits until the first listing of all objects is complete.
    pub async fn wait_for_sync(&self) {
        tokio::join!(self.policies.wait_for_sync(), self.git_repositories.wait_for_sync());
    }

    /// Returns the same objects for a batch, with a cache of its secrets.
    ///
    /// A secret that several members of the batch need is requested once, and dropped with the batch. A large secret
    /// is shared by concurrent requests only, and is not cached.
    #[must_use]
    pub fn with_secret_cache(&self) -> Self {
        Self { secrets: Some(SecretCache::default()), ..self.clone() }
    }

    /// Returns the same objects for requests on behalf of a namespace.
    ///
    /// Its objects may reference Secrets elsewhere, and the requests for these count for it.
    #[must_use]
    pub fn on_behalf_of(&self, namespace: &str) -> Self {
        Self { tenant: Some(namespace.into()), ..self.clone() }
    }

    /// Returns a writer of automations.
    pub fn writer(&self) -> ObjectWriter {
        self.writer_as(FIELD_MANAGER)
    }

    /// Returns a writer with the field manager of another controller of Flux.
    pub fn writer_as(&self, manager: &'static str) -> ObjectWriter {
        ObjectWriter::new(self.client.clone(), self.guard.clone(), manager)
    }

    async fn request_secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<BTreeMap<String, Secret>, ObjectsError> {
        let missing =
            || ObjectsError::NoSecret { namespace: namespace.to_owned(), name: name.to_owned(), advice: "" };
        // The name becomes a part of a URL path, and `../` in it would lead to another namespace.
        if !is_object_name(name) {
            return Err(missing());
        }
        let api: Api<ClusterSecret> = Api::namespaced(self.client.clone(), namespace);
        let tenant = self.tenant.as_deref().unwrap_or(namespace);
        let found = self.guard.send(tenant, api.get_opt(name)).await?.ok_or_else(missing)?;
        let data = found.data.unwrap_or_default();
        if data.len() > MAX_SECRET_KEYS {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            return Err(ObjectsError::TooManyKeys {
                namespace,
                name,
                keys: data.len(),
                max: MAX_SECRET_KEYS,
            });
        }
        Ok(data.into_iter().map(|(key, value)| (key, Secret::new(value.0))).collect())
    }
}

/// Returns whether a name is a valid object name.
///
/// It has small letters, digits, dashes and dots, with a letter or digit at both ends.
pub fn is_object_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.iter().all(|&byte| is_plain(byte) || b"-.".contains(&byte))
        && bytes.first().is_some_and(|&byte| is_plain(byte))
        && bytes.last().is_some_and(|&byte| is_plain(byte))
}

impl Objects for ClusterObjects {
    async fn policies(&self, namespace: &str) -> Result<Vec<Arc<ImagePolicy>>, ObjectsError> {
        Ok(self.policies.in_namespace(namespace))
    }

    async fn git_repository(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<GitRepository>, ObjectsError> {
        let name = ObjectName { namespace: namespace.to_owned(), name: name.to_owned() };
        Ok(self.git_repositories.get(&name).map(Arc::unwrap_or_clone))
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<BTreeMap<String, Secret>, ObjectsError> {
        let Some(memo) = &self.secrets else { return self.request_secret(namespace, name).await };
        let key = ObjectName { namespace: namespace.to_owned(), name: name.to_owned() };
        let cell = memo.lock().entry(key.clone()).or_default().clone();
        let data = cell.get_or_try_init(|| self.request_secret(namespace, name)).await?;
        if data_size(data) >= INLINE_BYTES {
            memo.lock().remove(&key);
        }
        Ok(data.clone())
    }

    async fn pull_secrets(&self, namespace: &str, account: &str) -> Result<Vec<String>, ObjectsError> {
        let found = self.accounts().find(namespace, account).await?.ok_or_else(|| {
            ObjectsError::NoServiceAccount { namespace: namespace.to_owned(), name: account.to_owned() }
        })?;
        let references = found.image_pull_secrets.unwrap_or_default();
        Ok(references.into_iter().map(|reference| reference.name).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::is_object_name;

    #[test]
    fn a_name_is_one_part_of_a_path() {
        for (name, expected) in [
            ("login", true),
            ("a.b-c.1", true),
            ("1", true),
            ("", false),
            (".", false),
            ("..", false),
            ("../../theirs/secrets/login", false),
            ("a/b", false),
            ("a%2fb", false),
            ("a?x=y", false),
            ("Login", false),
            ("-a", false),
        ] {
            assert_eq!(is_object_name(name), expected, "{name}");
        }
    }
}
