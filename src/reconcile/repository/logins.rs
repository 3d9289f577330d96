//! The sources of logins for ImageRepositories.

use kube::ResourceExt;
use tagboat_api::ImageRepository;

use super::access_error::AccessError;
pub use crate::cloud::ServiceAccounts;
use crate::reference::RepositoryAddress;
use crate::registry::{CloudIdentity, CloudProvider, Credential, DockerConfig, LoginChoice};

/// The source of logins for objects.
#[derive(Clone, Debug)]
pub enum Logins {
    /// The secrets and cloud identities that the objects name.
    Named(Option<ServiceAccounts>),
    /// The same logins for all objects, in place of those that they name.
    Given(GivenLogins),
}

/// The secrets and cloud identities that the objects name, without service accounts.
impl Default for Logins {
    fn default() -> Self {
        Self::Named(None)
    }
}

/// Logins of the caller.
#[derive(Clone, Debug)]
pub struct GivenLogins {
    /// The logins.
    pub logins: DockerConfig,
    /// The place of the logins, for messages.
    pub origin: String,
    /// Advice that follows a sentence about a missing login.
    pub remark: String,
}

impl GivenLogins {
    /// Returns the login for a repository, with a warning if there is none.
    pub fn login(&self, address: &RepositoryAddress, notes: &mut Vec<String>) -> Credential {
        let login = self.logins.login(address);
        if matches!(login, Credential::Anonymous) {
            let Self { origin, remark, .. } = self;
            let canonical = address.canonical();
            notes.push(format!(
                "{origin} has no login for {canonical}{remark}; the registry is accessed anonymously"
            ));
        }
        login
    }
}

/// Returns the cloud identity of an object.
///
/// It is the service account that the object names, or else the default account, or else this process.
pub(super) async fn at_cloud(
    accounts: Option<&ServiceAccounts>,
    repository: &ImageRepository,
    provider: CloudProvider,
) -> Result<LoginChoice, AccessError> {
    let named = repository.spec.service_account_name.as_deref().filter(|name| !name.is_empty());
    let Some(accounts) = accounts else {
        return match named {
            Some(_) => Err(AccessError::Identity),
            None => Ok(LoginChoice::Cloud(provider, CloudIdentity::Process)),
        };
    };
    let namespace = repository.namespace().unwrap_or_default();
    Ok(LoginChoice::Cloud(provider, accounts.identity(&namespace, named).await?))
}
