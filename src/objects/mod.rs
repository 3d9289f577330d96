//! Objects that a reconcile reads and writes, from a cluster or from manifest files.
//!
//! | file | contents |
//! |---|---|
//! | `cluster` | the objects of a cluster: watches, caches, writes, events |
//! | `manifests` | the objects of manifest files, with statuses in a state directory |
//! | `remote_clusters` | the clusters of kubeconfigs in a directory |
//! | `event` | an event, before it is sent |
//! | `small_file` | small regular files, such as those of a mounted Secret |

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use tagboat_api::{GitRepository, ImagePolicy};

use crate::error::ReconcileError;
use crate::secrets::Secret;

pub mod cluster;
mod event;
pub mod manifests;
pub mod remote_clusters;
mod small_file;

pub use event::{Event, EventType};
pub use small_file::{SmallFileError, read_small_file};
pub use tagboat_api::ObjectName;

/// A store of objects for a reconcile.
pub trait Objects: Sync {
    /// Returns the policies of a namespace.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    fn policies(
        &self,
        namespace: &str,
    ) -> impl Future<Output = Result<Vec<Arc<ImagePolicy>>, ObjectsError>> + Send;

    /// Returns a GitRepository, if it exists.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    fn git_repository(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<Option<GitRepository>, ObjectsError>> + Send;

    /// Returns the data of a secret.
    ///
    /// # Errors
    ///
    /// If it does not exist or cannot be read.
    fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<BTreeMap<String, Secret>, ObjectsError>> + Send;

    /// Returns the names of the pull secrets of a service account, in its order.
    ///
    /// # Errors
    ///
    /// If it does not exist or cannot be read.
    fn pull_secrets(
        &self,
        namespace: &str,
        account: &str,
    ) -> impl Future<Output = Result<Vec<String>, ObjectsError>> + Send;

    /// Returns advice for missing secrets; a cluster has none.
    fn advice(&self) -> SecretAdvice {
        SecretAdvice::default()
    }
}

/// Advice for missing secrets, which follows an error message.
#[derive(Clone, Copy, Debug, Default)]
pub struct SecretAdvice {
    /// For a signing key, certificate or proxy, which no local login replaces.
    pub secret: &'static str,
    /// For a login at a git server.
    pub git_login: &'static str,
    /// For a login at a registry.
    pub registry_login: &'static str,
    /// For SSH without the name of a secret.
    pub ssh_key: &'static str,
}

/// The error of reading or writing objects.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    /// The secret does not exist.
    #[error("secret '{namespace}/{name}' not found{advice}")]
    NoSecret {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
        /// Advice about the place for it, if there is any.
        advice: &'static str,
    },
    /// A secret has too many keys.
    #[error(
        "secret '{namespace}/{name}' has {keys} keys, and {max} are allowed: remove those that are not needed"
    )]
    TooManyKeys {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
        /// The number of its keys.
        keys: usize,
        /// The maximum number of keys.
        max: usize,
    },
    /// The service account does not exist.
    #[error("serviceaccount '{namespace}/{name}' not found")]
    NoServiceAccount {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
    /// A secret in a directory cannot be read.
    #[error("secret '{namespace}/{name}' cannot be read from {}", directory.display())]
    SecretDirectory {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
        /// The directory.
        directory: std::path::PathBuf,
        /// The cause.
        #[source]
        cause: std::io::Error,
    },
    /// A manifest cannot be used.
    #[error(transparent)]
    Manifest(manifests::ManifestError),
    /// The cluster rejected the request, or did not answer.
    #[error(transparent)]
    Cluster(#[from] cluster::ClusterError),
}

impl ObjectsError {
    /// Replaces the advice of the error, if it has any.
    #[must_use]
    pub fn with_advice(self, advice: &'static str) -> Self {
        match self {
            Self::NoSecret { namespace, name, .. } => Self::NoSecret { namespace, name, advice },
            other => other,
        }
    }
}

/// The object may be created, and the disk replaced, before a retry.
impl ReconcileError for ObjectsError {}
