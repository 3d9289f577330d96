//! Google: a token of somebody is the password.
//!
//! For this process it comes by the [`file`] of its credentials, or else from the [`metadata`] server, which on GKE with
//! workload identity answers for the pod's service account. For a service account of a cluster ([`account`]) a token of
//! the cluster becomes one of Google ([`exchange`]).

mod account;
mod assertion;
mod exchange;
mod file;
mod metadata;

use serde::Deserialize;
use url::Url;

use super::account::CloudIdentity;
use super::cloud::Visit;
use super::kept::{KeepOptions, Kept, Lasting};
use super::network::Matter;
use super::pattern::HostPattern;
use super::{Credential, LoginError};
use crate::address::Host;
use crate::registry::answer::Answer;
use crate::secret::Secret;

const CLOUD: &str = "GCP";

/// The names of Google's registries.
const HOSTS: &str = r"^(((.+\.)?gcr\.io)|(.+-docker\.pkg\.dev)|(docker\.s3nsregistry\.fr))$";

/// What the token is to allow, as in Flux.
const SCOPES: [&str; 2] =
    ["https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/userinfo.email"];

/// The user whose password is a token.
const USER: &str = "oauth2accesstoken";

/// Logins at Google's registries.
#[derive(Debug)]
pub(super) struct Google {
    hosts: HostPattern,
    tokens: Kept<Secret>,
}

#[derive(Deserialize)]
struct Token {
    access_token: Secret,
    expires_in: i64,
}

impl Google {
    pub(super) fn new(kept: KeepOptions) -> Self {
        Self { hosts: HostPattern::new(CLOUD, HOSTS), tokens: Kept::new(kept) }
    }

    pub(super) async fn credential(&self, host: &str, visit: Visit<'_>) -> Result<Credential, LoginError> {
        self.hosts.read(host)?;
        let token =
            self.tokens.get(visit.namespace, visit.key(["token"]), visit.now, token(visit)).await?.value;
        Ok(Credential::Basic { user: Secret::new(USER), password: token })
    }
}

async fn token(visit: Visit<'_>) -> Result<Lasting<Secret>, LoginError> {
    if let CloudIdentity::Account(account) = visit.identity {
        return account::token(account, visit).await;
    }
    match file::token(visit).await? {
        Some(token) => Ok(token),
        None => metadata::token(visit).await,
    }
}

/// The token of an answer.
fn read(matter: Matter, answer: &Answer, visit: Visit<'_>) -> Result<Lasting<Secret>, LoginError> {
    let token: Token = matter.json(answer)?;
    if token.access_token.expose().is_empty() {
        return Err(matter.malformed("has an empty one"));
    }
    let ends = visit.now.checked_add(jiff::SignedDuration::from_secs(token.expires_in)).ok();
    Ok(Lasting { value: token.access_token, ends })
}

/// An address to which secrets may go: with TLS, or of this machine.
fn guarded(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_near = url.scheme() == "http" && Host::read(url.host_str()?).is_local();
    (url.scheme() == "https" || is_near).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_of_google_is_known_by_its_name() {
        let hosts = HostPattern::new(CLOUD, HOSTS);
        for host in ["gcr.io", "a.gcr.io", "a-docker.pkg.dev", "docker.s3nsregistry.fr"] {
            assert!(hosts.fits(host), "{host}");
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
            let error = hosts.read(host).unwrap_err();
            let words = format!(
                "invalid GCP registry: '{host}'. must match \
                 ^(((.+\\.)?gcr\\.io)|(.+-docker\\.pkg\\.dev)|(docker\\.s3nsregistry\\.fr))$"
            );
            assert_eq!(error.to_string(), words);
        }
    }
}
