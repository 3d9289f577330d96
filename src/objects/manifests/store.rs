//! A store of objects from manifest files, in place of a cluster.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use kube::ResourceExt;
use tagboat_api::{GitRepository, ImagePolicy};

use super::Manifests;
use super::state::StateDirectory;
use crate::directory;
use crate::objects::{Objects, ObjectsError, SecretAdvice};
use crate::secrets::Secret;

/// The objects of manifest files, secrets in directories, and a state directory for writes.
#[derive(Clone, Debug)]
pub struct ManifestStore {
    /// The manifests.
    pub manifests: Arc<Manifests>,
    /// Secrets from directories; they take precedence over those of the manifests.
    pub secrets: Vec<SecretDirectory>,
    /// The directory of statuses, if there is one.
    pub state: Option<StateDirectory>,
    /// Advice for missing secrets.
    pub advice: SecretAdvice,
}

/// A secret with one file per key, like a volume of a pod.
#[derive(Clone, Debug)]
pub struct SecretDirectory {
    /// The namespace; `None`: any.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The directory.
    pub directory: PathBuf,
}

impl SecretDirectory {
    /// Returns whether it provides the secret of a name.
    pub fn is(&self, namespace: &str, name: &str) -> bool {
        self.name == name && self.namespace.as_deref().is_none_or(|own| own == namespace)
    }

    /// Reads the keys; names that begin with two dots belong to the volume itself.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn read(&self) -> io::Result<BTreeMap<String, Secret>> {
        let mut data = BTreeMap::new();
        for item in fs::read_dir(&self.directory)? {
            let item = item?;
            let Ok(key) = item.file_name().into_string() else { continue };
            if !key.starts_with("..") && fs::metadata(item.path())?.is_file() {
                data.insert(key, Secret::new(directory::read(&item.path())?));
            }
        }
        Ok(data)
    }
}

impl Objects for ManifestStore {
    async fn policies(&self, namespace: &str) -> Result<Vec<Arc<ImagePolicy>>, ObjectsError> {
        let own = self.manifests.policies().filter(|policy| policy.namespace().as_deref() == Some(namespace));
        Ok(own.cloned().map(Arc::new).collect())
    }

    async fn git_repository(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<GitRepository>, ObjectsError> {
        Ok(self.manifests.git_repository(namespace, name).cloned())
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<BTreeMap<String, Secret>, ObjectsError> {
        if let Some(directory) = self.secrets.iter().find(|directory| directory.is(namespace, name)) {
            return directory.read().map_err(|cause| ObjectsError::SecretDirectory {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                directory: directory.directory.clone(),
                cause,
            });
        }
        let found = self.manifests.secret(namespace, name).map_err(ObjectsError::Manifest)?;
        found.cloned().ok_or_else(|| ObjectsError::NoSecret {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            advice: self.advice.secret,
        })
    }

    async fn pull_secrets(&self, namespace: &str, account: &str) -> Result<Vec<String>, ObjectsError> {
        let found = self.manifests.pull_secrets(namespace, account).map_err(ObjectsError::Manifest)?;
        found.map(<[String]>::to_vec).ok_or_else(|| ObjectsError::NoServiceAccount {
            namespace: namespace.to_owned(),
            name: account.to_owned(),
        })
    }

    fn advice(&self) -> SecretAdvice {
        self.advice
    }
}
