//! Google: the metadata server gives a token, which is the password.
//!
//! On GKE with workload identity the same server answers for the pod's service account.

use reqwest::header::HeaderName;
use serde::Deserialize;
use url::Url;

use super::cloud::Visit;
use super::kept::{KeepOptions, Kept, Lasting};
use super::network::{LARGEST, Matter};
use super::pattern::HostPattern;
use super::{Credential, LoginError};
use crate::registry::call::Call;
use crate::secret::Secret;

const CLOUD: &str = "GCP";

/// The names of Google's registries.
const HOSTS: &str = r"^(((.+\.)?gcr\.io)|(.+-docker\.pkg\.dev)|(docker\.s3nsregistry\.fr))$";

const TOKEN: &str = "computeMetadata/v1/instance/service-accounts/default/token";

/// What the token is to allow, as in Flux.
const SCOPES: &str =
    "https://www.googleapis.com/auth/cloud-platform,https://www.googleapis.com/auth/userinfo.email";

/// The user whose password is a token.
const USER: &str = "oauth2accesstoken";

const MATTER: Matter = Matter { cloud: CLOUD, what: "a token of the service account" };

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
        // No proxy stands before the metadata server, so all who ask get the same.
        let key = super::Fingerprint::of([&b"token"[..]]);
        let token = self.tokens.get(key, visit.now, token(visit)).await?.value;
        Ok(Credential::Basic { user: Secret::new(USER), password: token })
    }
}

async fn token(visit: Visit<'_>) -> Result<Lasting<Secret>, LoginError> {
    let options = &visit.clouds.options;
    let base = match options.environment.text("GCE_METADATA_HOST") {
        None => options.endpoints.google_metadata.clone(),
        Some(host) => Url::parse(&format!("http://{host}/")).map_err(|_| LoginError::Variable {
            cloud: CLOUD,
            variable: "GCE_METADATA_HOST",
            flaw: "is no host: write HOST or HOST:PORT".to_owned(),
        })?,
    };
    let mut url = base.join(TOKEN).expect("a path can be joined to an address of a web server");
    url.query_pairs_mut().append_pair("scopes", SCOPES);
    let call = Call::get(url, LARGEST).with(HeaderName::from_static("metadata-flavor"), "Google");
    let answer = visit.clouds.network.metadata(call).await.map_err(|cause| LoginError::Nobody {
        cloud: CLOUD,
        missing: "only machines of Google's, and pods of GKE, have a service account",
        cause: Box::new(cause),
    })?;
    let token: Token = MATTER.json(&MATTER.success(answer)?)?;
    if token.access_token.expose().is_empty() {
        return Err(MATTER.malformed("has an empty one"));
    }
    let ends = visit.now.checked_add(jiff::SignedDuration::from_secs(token.expires_in)).ok();
    Ok(Lasting { value: token.access_token, ends })
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
