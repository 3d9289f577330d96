//! Who logs in for ImageRepositories.

use std::sync::Arc;

use kube::ResourceExt;
use tagboat_api::ImageRepository;

use super::access_error::AccessError;
use crate::reference::RepositoryAddress;
use crate::registry::{
    AccountError, Accounts, CloudAccount, CloudIdentity, CloudProvider, Credential, DockerConfig, LoginChoice,
};

/// Who logs in for objects.
#[derive(Clone, Debug)]
pub enum Logins {
    /// Whom they name: secrets, or somebody at a cloud.
    Named(Option<ServiceAccounts>),
    /// Somebody for all of them, whomever they name.
    Given(GivenLogins),
}

/// Whom they name, though none acts as a service account.
impl Default for Logins {
    fn default() -> Self {
        Self::Named(None)
    }
}

/// The service accounts as which objects act at clouds.
#[derive(Clone, Debug)]
pub struct ServiceAccounts {
    /// What vouches for them.
    pub accounts: Arc<dyn Accounts>,
    /// The name of the account for objects that name none; without it they act as this process.
    pub default: Option<String>,
}

/// Logins that somebody brings along.
#[derive(Clone, Debug)]
pub struct GivenLogins {
    /// The logins.
    pub logins: DockerConfig,
    /// Where they stand.
    pub origin: String,
    /// What else stands there, where a login is missed; it follows a sentence.
    pub remark: String,
}

impl GivenLogins {
    /// The login for a repository, with a word where there is none.
    pub fn login(&self, address: &RepositoryAddress, notes: &mut Vec<String>) -> Credential {
        let login = self.logins.login(address);
        if matches!(login, Credential::Anonymous) {
            let Self { origin, remark, .. } = self;
            let canonical = address.canonical();
            notes.push(format!(
                "{origin} has no login for {canonical}{remark}; the registry is asked without one"
            ));
        }
        login
    }
}

/// The login of an object at a cloud: as the service account that it names, or else as the one of all that name none, or
/// else as this process.
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
