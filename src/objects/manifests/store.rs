//! Manifest files in the place of a cluster.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use kube::ResourceExt;
use tagboat_api::{GitRepository, ImagePolicy, ImageUpdateAutomation};

use super::Manifests;
use super::state::StateDirectory;
use crate::directory;
use crate::objects::{Objects, ObjectsError, StatusMaker};
use crate::secret::Secret;

/// Where a secret that is missing could have come from.
const ADVICE: &str = "; give it as a Secret among the manifests or as --secret NAMESPACE/NAME=DIR, or log in as \
                      yourself with --git-login user";

/// The same for a key that signs, for certificates and proxies: no login is in their place.
const ADVICE_FOR_SECRET: &str = "; give it as a Secret among the manifests or as --secret NAMESPACE/NAME=DIR";

/// The same for logins at registries.
const ADVICE_FOR_REGISTRY: &str = "; give it as a Secret among the manifests or as --secret NAMESPACE/NAME=DIR, or log \
                                   in as yourself with --registry-login user";

/// The same for SSH without the name of a secret.
const ADVICE_FOR_SSH: &str = "; name a Secret with the key in spec.secretRef of the GitRepository, or log in as \
                              yourself with --git-login user";

/// The objects of manifest files, secrets in directories, and a state directory for what is written.
#[derive(Clone, Debug)]
pub struct ManifestStore {
    /// The manifests.
    pub manifests: Arc<Manifests>,
    /// Secrets that are given as directories; they count more than those among the manifests.
    pub secrets: Vec<SecretDirectory>,
    /// Where statuses are kept, if anywhere.
    pub state: Option<StateDirectory>,
}

/// A secret with one file a key, as a volume of a pod has it.
#[derive(Clone, Debug)]
pub struct SecretDirectory {
    /// The namespace; `None`: any that asks.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The directory.
    pub directory: PathBuf,
}

impl SecretDirectory {
    /// Returns whether it stands for the secret of that name.
    pub fn is(&self, namespace: &str, name: &str) -> bool {
        self.name == name && self.namespace.as_deref().is_none_or(|own| own == namespace)
    }

    /// Reads the keys; names that begin with two dots are a volume's own.
    ///
    /// # Errors
    ///
    /// When a file cannot be read.
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
            advice: ADVICE,
        })
    }

    async fn pull_secrets(&self, namespace: &str, account: &str) -> Result<Vec<String>, ObjectsError> {
        let found = self.manifests.pull_secrets(namespace, account).map_err(ObjectsError::Manifest)?;
        found.map(<[String]>::to_vec).ok_or_else(|| ObjectsError::NoServiceAccount {
            namespace: namespace.to_owned(),
            name: account.to_owned(),
        })
    }

    fn advice_for_secret(&self) -> &'static str {
        ADVICE_FOR_SECRET
    }

    fn advice_for_registry(&self) -> &'static str {
        ADVICE_FOR_REGISTRY
    }

    fn advice_for_ssh(&self) -> &'static str {
        ADVICE_FOR_SSH
    }

    async fn update_status(
        &self,
        automation: &ImageUpdateAutomation,
        status: &StatusMaker<'_>,
    ) -> Result<Option<ImageUpdateAutomation>, ObjectsError> {
        let mut automation = automation.clone();
        if let Some(state) = &self.state {
            state.recall(&mut automation)?;
            let status = status(&automation);
            state.keep(&automation, &status)?;
            automation.status = Some(status);
        }
        Ok(Some(automation))
    }
}
