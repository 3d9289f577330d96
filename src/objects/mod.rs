//! What is read and written besides git: the objects of a cluster, or manifest files in its place.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use tagboat_api::automation::ImageUpdateAutomationStatus;
use tagboat_api::{GitRepository, ImagePolicy, ImageUpdateAutomation, Reason};

use crate::failing::Failing;
use crate::secret::Secret;

pub mod cluster;
mod event;
pub mod manifests;
mod name;

pub use event::{Event, EventType};
pub use name::ObjectName;

/// The objects that a reconcile reads and writes, wherever they are kept.
pub trait Objects: Sync {
    /// The policies of a namespace.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    fn policies(
        &self,
        namespace: &str,
    ) -> impl Future<Output = Result<Vec<Arc<ImagePolicy>>, ObjectsError>> + Send;

    /// A GitRepository, if it exists.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    fn git_repository(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<Option<GitRepository>, ObjectsError>> + Send;

    /// The data of a secret.
    ///
    /// # Errors
    ///
    /// When it does not exist or cannot be read.
    fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Future<Output = Result<BTreeMap<String, Secret>, ObjectsError>> + Send;

    /// The names of the pull secrets of a service account, in its order.
    ///
    /// # Errors
    ///
    /// When it does not exist or cannot be read.
    fn pull_secrets(
        &self,
        namespace: &str,
        account: &str,
    ) -> impl Future<Output = Result<Vec<String>, ObjectsError>> + Send;

    /// What to do where a secret is missing that no login of the caller's can stand for, if that is not plain; it follows a
    /// sentence.
    fn advice_for_secret(&self) -> &'static str {
        ""
    }

    /// What to do where a secret with logins for registries is missing, if that is not plain; it follows a sentence.
    fn advice_for_registry(&self) -> &'static str {
        ""
    }

    /// What to do where SSH is to be used and no secret is named, if that is not plain; it follows a sentence.
    fn advice_for_ssh(&self) -> &'static str {
        ""
    }

    /// Brings the status of an automation up to date and gives the object as it then is, unless it has gone.
    ///
    /// `status` makes the new status from the object as it stands at the time. It is called again where somebody else
    /// was faster.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    fn update_status(
        &self,
        automation: &ImageUpdateAutomation,
        status: &StatusMaker<'_>,
    ) -> impl Future<Output = Result<Option<ImageUpdateAutomation>, ObjectsError>> + Send;
}

/// Makes the status of an automation from the object as it stands.
pub type StatusMaker<'a> = dyn Fn(&ImageUpdateAutomation) -> ImageUpdateAutomationStatus + Sync + 'a;

/// Why objects could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ObjectsError {
    /// There is no such secret.
    #[error("secret '{namespace}/{name}' not found{advice}")]
    NoSecret {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
        /// Where to put it, where that is not plain.
        advice: &'static str,
    },
    /// A secret has too many keys.
    #[error(
        "secret '{namespace}/{name}' has {keys} keys, and {most} are allowed: take out those that are not needed"
    )]
    TooManyKeys {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
        /// The number of its keys.
        keys: usize,
        /// The number of keys that it may have.
        most: usize,
    },
    /// There is no such service account.
    #[error("serviceaccount '{namespace}/{name}' not found")]
    NoServiceAccount {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
    },
    /// A secret that is given as a directory cannot be read.
    #[error("secret '{namespace}/{name}' cannot be read from {}", directory.display())]
    SecretDirectory {
        /// The namespace.
        namespace: String,
        /// The name.
        name: String,
        /// The directory.
        directory: std::path::PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// A manifest cannot be used.
    #[error(transparent)]
    Manifest(manifests::ManifestError),
    /// The cluster does not do what it is asked.
    #[error(transparent)]
    Cluster(#[from] cluster::ClusterError),
    /// The state could not be read or kept.
    #[error(transparent)]
    State(#[from] manifests::StateError),
}

impl ObjectsError {
    /// The same error with other advice, where it gives any.
    #[must_use]
    pub fn with_advice(self, advice: &'static str) -> Self {
        match self {
            Self::NoSecret { namespace, name, .. } => Self::NoSecret { namespace, name, advice },
            other => other,
        }
    }
}

impl Failing for ObjectsError {
    fn reason(&self) -> Reason {
        Reason::Failed
    }

    /// Another object may come, and another disk.
    fn is_retryable(&self) -> bool {
        true
    }
}
