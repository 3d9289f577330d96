//! The sources of logins for ImageRepositories.

use std::sync::Arc;

use kube::ResourceExt;
use tagboat_api::ImageRepository;

use super::access_error::AccessError;
use crate::reference::RepositoryAddress;
use crate::registry::{
    AccountError, Accounts, CloudAccount, CloudIdentity, CloudProvider, Credential, DockerConfig, LoginChoice,
};

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

/// The service accounts as which objects log in at clouds.
#[derive(Clone, Debug)]
pub struct ServiceAccounts {
    /// Issues tokens for service accounts.
    pub accounts: Arc<dyn Accounts>,
    /// The name of the service account for objects that name none.
    ///
    /// Without it, they log in as this process.
    pub default: Option<String>,
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
    let Some(ServiceAccounts { accounts, default }) = accounts else {
        return match named {
            Some(_) => Err(AccessError::Identity),
            None => Ok(LoginChoice::Cloud(provider, CloudIdentity::Process)),
        };
    };
    let Some(name) = named.or(default.as_deref()) else {
        return Ok(LoginChoice::Cloud(provider, CloudIdentity::Process));
    };
    let namespace = repository.namespace().unwrap_or_default();
    let annotations = accounts.annotations(&namespace, name).await.map_err(|cause| {
        let account = format!("{namespace}/{name}");
        match cause {
            AccountError::Missing { .. } if named.is_none() => AccessError::NoDefaultAccount { account },
            cause => AccessError::Account { account, cause },
        }
    })?;
    let (name, accounts) = (name.to_owned(), Arc::clone(accounts));
    let account = CloudAccount { namespace, name, annotations, accounts };
    Ok(LoginChoice::Cloud(provider, CloudIdentity::Account(account)))
}
