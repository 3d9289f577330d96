//! Logins at Google: an access token is the password.
//!
//! For this process it comes from the credential [`file`], or else from the [`metadata`] server, which on GKE with
//! workload identity responds for the pod's service account. For a service account of a cluster ([`account`]) a token
//! of the cluster is exchanged for an access token ([`exchange`]).

mod account;
mod assertion;
mod exchange;
mod file;
mod metadata;

use super::account::CloudIdentity;
use super::cache::{CredentialCache, CredentialCacheOptions, Expiring};
use super::context::LoginContext;
use super::credential::Credential;
use super::error::LoginError;
use super::pattern::HostPattern;
use crate::secrets::Secret;
use exchange::CLOUD;

/// The pattern of Google's registry names.
const HOSTS: &str = r"^(((.+\.)?gcr\.io)|(.+-docker\.pkg\.dev)|(docker\.s3nsregistry\.fr))$";

/// The user of access tokens.
const USER: &str = "oauth2accesstoken";

/// Logins at Google's registries.
#[derive(Debug)]
pub(super) struct Google {
    hosts: HostPattern,
    tokens: CredentialCache<Secret>,
}

impl Google {
    pub(super) fn new(options: CredentialCacheOptions) -> Self {
        Self { hosts: HostPattern::new(CLOUD, HOSTS), tokens: CredentialCache::new(options) }
    }

    pub(super) async fn credential(
        &self,
        host: &str,
        context: LoginContext<'_>,
    ) -> Result<Credential, LoginError> {
        self.hosts.captures(host)?;
        let token = self
            .tokens
            .get(context.namespace, context.key(["token"]), context.now, token(context))
            .await?
            .value;
        Ok(Credential::Basic { user: Secret::new(USER), password: token })
    }
}

async fn token(context: LoginContext<'_>) -> Result<Expiring<Secret>, LoginError> {
    if let CloudIdentity::Account(account) = context.identity {
        return account::token(account, context).await;
    }
    match file::token(context).await? {
        Some(token) => Ok(token),
        None => metadata::token(context).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_of_google_is_known_by_its_name() {
        let hosts = HostPattern::new(CLOUD, HOSTS);
        for host in ["gcr.io", "a.gcr.io", "a-docker.pkg.dev", "docker.s3nsregistry.fr"] {
            assert!(hosts.is_match(host), "{host}");
        }
        for host in [
            ".gcr.io",
            "-docker.pkg.dev",
            "u-france-east1-docker.s3nsregistry.fr",
            "-docker.s3nsregistry.fr",
            "a.docker.s3nsregistry.fr",
            "gcr.io.example",
            "gcr.io:443",
        ] {
            let error = hosts.captures(host).unwrap_err();
            let message = format!(
                "invalid GCP registry: '{host}'. must match \
                 ^(((.+\\.)?gcr\\.io)|(.+-docker\\.pkg\\.dev)|(docker\\.s3nsregistry\\.fr))$"
            );
            assert_eq!(error.to_string(), message);
        }
    }
}
