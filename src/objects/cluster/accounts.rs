//! Service accounts of a cluster, and tokens for them.

use std::collections::BTreeMap;
use std::fmt;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client};

use super::{ApiGuard, ClusterError, is_object_name};
use crate::error::chain;
use crate::registry::{AccountError, Accounts};
use crate::secrets::Secret;

/// The advice for missing RBAC rights; it follows an error message.
const ADVICE: &str =
    "the controller needs the right to create serviceaccounts/token, see deploy/rbac/account-tokens.yaml";

/// Reads the service accounts of a cluster and requests their tokens.
#[derive(Clone)]
pub struct ClusterAccounts {
    client: Client,
    guard: ApiGuard,
}

impl fmt::Debug for ClusterAccounts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ClusterAccounts")
    }
}

impl ClusterAccounts {
    /// Makes a reader of the accounts that a client can access.
    pub fn new(client: Client, guard: ApiGuard) -> Self {
        Self { client, guard }
    }

    /// Returns an account, if it exists.
    pub(super) async fn find(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<ServiceAccount>, ClusterError> {
        // The name becomes a part of a URL path, and `../` in it would lead to another namespace.
        if !is_object_name(name) {
            return Ok(None);
        }
        self.guard.send(namespace, self.api(namespace).get_opt(name)).await
    }

    async fn create_token(
        &self,
        namespace: &str,
        name: &str,
        audience: &str,
    ) -> Result<Secret, AccountError> {
        if !is_object_name(name) {
            return Err(missing(namespace, name));
        }
        let spec = TokenRequestSpec { audiences: vec![audience.to_owned()], ..TokenRequestSpec::default() };
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let api = self.api(namespace);
        let parameters = PostParams::default();
        let create = api.create_token_request(name, &parameters, &request);
        let answer = self.guard.send(namespace, create).await;
        let status = answer.map_err(|error| match error {
            error if error.is_forbidden() => {
                AccountError::Cluster { message: format!("{}; {ADVICE}", chain(&error)) }
            }
            error => failed(&error),
        })?;
        let token = status.status.map(|status| status.token).filter(|token| !token.is_empty());
        token
            .map(Secret::new)
            .ok_or_else(|| AccountError::Cluster { message: "the response contains no token".to_owned() })
    }

    fn api(&self, namespace: &str) -> Api<ServiceAccount> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

impl Accounts for ClusterAccounts {
    fn annotations<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<BTreeMap<String, String>, AccountError>> {
        async move {
            let found = self.find(namespace, name).await.map_err(|error| failed(&error))?;
            let account = found.ok_or_else(|| missing(namespace, name))?;
            Ok(account.metadata.annotations.unwrap_or_default())
        }
        .boxed()
    }

    fn token<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        audience: &'a str,
    ) -> BoxFuture<'a, Result<Secret, AccountError>> {
        self.create_token(namespace, name, audience).boxed()
    }
}

fn missing(namespace: &str, name: &str) -> AccountError {
    AccountError::Missing { namespace: namespace.to_owned(), name: name.to_owned() }
}

fn failed(error: &ClusterError) -> AccountError {
    AccountError::Cluster { message: chain(error) }
}
