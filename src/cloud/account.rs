//! Kubernetes service accounts that log in at a cloud.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::environment::form_text;
use super::error::{AccountError, LoginError};
use crate::secrets::{Fingerprint, Secret};

/// Access to the service accounts of a cluster: their annotations and tokens.
pub trait Accounts: std::fmt::Debug + Send + Sync {
    /// Returns the annotations of a service account.
    fn annotations<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<BTreeMap<String, String>, AccountError>>;

    /// Requests a token of a service account for one audience.
    fn token<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        audience: &'a str,
    ) -> BoxFuture<'a, Result<Secret, AccountError>>;
}

/// A service account with its annotations.
#[derive(Debug, Clone)]
pub struct CloudAccount {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// Its annotations, which name its identity at a cloud.
    pub annotations: BTreeMap<String, String>,
    /// The source of its tokens.
    pub accounts: Arc<dyn Accounts>,
}

/// The identity that logs in at a cloud.
#[derive(Debug, Clone)]
pub enum CloudIdentity {
    /// This process.
    Process,
    /// A service account of a cluster.
    Account(CloudAccount),
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

/// The error of a service account that cannot log in.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The service account cannot be read.
    #[error("cannot log in as the service account '{account}'")]
    Account {
        /// Namespace and name of the account.
        account: String,
        /// The cause.
        #[source]
        cause: AccountError,
    },
    /// The default service account does not exist; the end of the sentence is Flux's.
    #[error(
        "cannot log in as '{account}': the specified default service account does not exist in the object namespace. your \
         cluster is subject to multi-tenant workload identity lockdown, reach out to your cluster administrator for help"
    )]
    NoDefaultAccount {
        /// Namespace and name of the account.
        account: String,
    },
}

impl ServiceAccounts {
    /// Returns the identity of an object that may name a service account of its namespace.
    ///
    /// # Errors
    ///
    /// If the account cannot be read.
    pub async fn identity(
        &self,
        namespace: &str,
        named: Option<&str>,
    ) -> Result<CloudIdentity, IdentityError> {
        let Self { accounts, default } = self;
        let Some(name) = named.or(default.as_deref()) else { return Ok(CloudIdentity::Process) };
        let annotations = accounts.annotations(namespace, name).await.map_err(|cause| {
            let account = format!("{namespace}/{name}");
            match cause {
                AccountError::Missing { .. } if named.is_none() => {
                    IdentityError::NoDefaultAccount { account }
                }
                cause => IdentityError::Account { account, cause },
            }
        })?;
        Ok(CloudIdentity::Account(CloudAccount {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            annotations,
            accounts: Arc::clone(accounts),
        }))
    }
}

impl CloudIdentity {
    /// Returns a fingerprint that is equal for identities that are the same for every cloud.
    pub fn fingerprint(&self) -> Fingerprint {
        let Self::Account(account) = self else { return Fingerprint::of([&b"process"[..]]) };
        let named = [account.namespace.as_bytes(), account.name.as_bytes()];
        let annotations = account.annotations.iter().flat_map(|(key, value)| [key, value]);
        Fingerprint::of(named.into_iter().chain(annotations.map(String::as_bytes)))
    }
}

impl CloudAccount {
    /// Returns an annotation that is not empty.
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns an annotation that a cloud requires.
    ///
    /// # Errors
    ///
    /// If it is missing.
    pub(super) fn required(&self, cloud: &'static str, key: &'static str) -> Result<&str, LoginError> {
        self.annotation(key).ok_or_else(|| self.invalid_annotation(cloud, key, "is missing".to_owned()))
    }

    /// Returns the error of a malformed annotation.
    pub(super) fn invalid_annotation(
        &self,
        cloud: &'static str,
        annotation: &'static str,
        defect: String,
    ) -> LoginError {
        LoginError::Annotation { cloud, account: self.full_name(), annotation, defect }
    }

    /// Requests a token for an audience, as text for a form.
    pub(super) async fn token(
        &self,
        cloud: &'static str,
        audience: &str,
    ) -> Result<zeroize::Zeroizing<String>, LoginError> {
        let token = self.accounts.token(&self.namespace, &self.name, audience).await;
        let token = token.map_err(|cause| LoginError::NoToken { cloud, account: self.full_name(), cause })?;
        Ok(form_text(&token))
    }

    fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[derive(Debug)]
    struct FakeAccounts;

    impl Accounts for FakeAccounts {
        fn annotations<'a>(
            &'a self,
            _: &'a str,
            _: &'a str,
        ) -> BoxFuture<'a, Result<BTreeMap<String, String>, AccountError>> {
            futures::future::ready(Ok(BTreeMap::new())).boxed()
        }

        fn token<'a>(
            &'a self,
            _: &'a str,
            _: &'a str,
            _: &'a str,
        ) -> BoxFuture<'a, Result<Secret, AccountError>> {
            futures::future::ready(Ok(Secret::new("hunter2"))).boxed()
        }
    }

    #[test]
    fn accounts_differ_by_namespace_name_and_annotations() {
        let account = |namespace: &str, name: &str, annotations: &[(&str, &str)]| {
            let annotations =
                annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            CloudIdentity::Account(CloudAccount {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                annotations,
                accounts: Arc::new(FakeAccounts),
            })
        };
        let all = [
            CloudIdentity::Process,
            account("a", "b", &[]),
            account("b", "a", &[]),
            account("ab", "", &[]),
            account("a", "b", &[("role", "x")]),
            account("a", "b", &[("role", "y")]),
            account("a", "b", &[("rol", "ex")]),
        ];
        for (index, one) in all.iter().enumerate() {
            let same: Vec<usize> =
                (0..all.len()).filter(|other| all[*other].fingerprint() == one.fingerprint()).collect();
            assert_eq!(same, [index]);
        }
    }
}
