//! Logins at AWS: signed requests for the tokens of a region's registries.
//!
//! [`registry`] parses a registry's name, [`code_commit`] the URL of a git repository; [`credentials`] finds credentials: in the files of a [`profile`], from a
//! [`metadata`] server, or with the web identity of [`roles`]; [`signature`] signs requests with them.

mod code_commit;
mod credentials;
mod metadata;
mod profile;
mod region;
mod registry;
mod signature;
mod sts;

use base64::Engine;
use jiff::Timestamp;
use reqwest::header::{AUTHORIZATION, HeaderName};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::cache::{CredentialCache, CredentialCacheOptions, Expiring};
use super::context::LoginContext;
use super::credential::Credential;
use super::error::LoginError;
use super::network::{MAX_RESPONSE, RequestLabel};
use super::pattern::HostPattern;
use crate::net::http::secret_header;
use crate::net::http::{Body, Request};
use crate::secrets::Secret;
pub(super) use code_commit::CodeCommit;
use region::{CLOUD, endpoint};
use registry::{EcrRegistry, HOSTS};
pub(super) use signature::AwsCredentials;
use signature::{JSON, Signable};

const TOKEN: RequestLabel =
    RequestLabel { cloud: CLOUD, item: "a token of the registry (GetAuthorizationToken)" };

/// Logins at AWS's registries.
#[derive(Debug)]
pub(super) struct Aws {
    hosts: HostPattern,
    aws_credentials: CredentialCache<AwsCredentials>,
    registry_credentials: CredentialCache<Credential>,
}

/// The token in the response.
/// It is in a list of one entry for private registries, else alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Data {
    List(Vec<Authorization>),
    One(Authorization),
}

#[derive(Deserialize)]
struct TokenResponse {
    #[serde(rename = "authorizationData")]
    data: Data,
}

#[derive(Deserialize)]
struct Authorization {
    #[serde(rename = "authorizationToken")]
    token: Secret,
    #[serde(rename = "expiresAt", default)]
    expires_at: Option<f64>,
}

impl Aws {
    pub(super) fn new(options: CredentialCacheOptions) -> Self {
        Self {
            hosts: HostPattern::new(CLOUD, HOSTS),
            aws_credentials: CredentialCache::new(options),
            registry_credentials: CredentialCache::new(options),
        }
    }

    pub(super) async fn credential(
        &self,
        host: &str,
        context: LoginContext<'_>,
    ) -> Result<Credential, LoginError> {
        let registry = EcrRegistry::parse(&self.hosts, host)?;
        // A token is valid for all registries of a region. Objects choose the region, so cache entries are charged to
        // their namespace, even if other namespaces use them too.
        let key =
            context.key(["registry", registry.service(), &registry.region.name, &registry.region.domain]);
        let fetch = async {
            let key = context.key(["keys", &registry.region.name, &registry.region.domain]);
            let aws_credentials = self
                .aws_credentials
                .get(context.tenant, key, context.now, credentials::find(&registry.region, context))
                .await?
                .value;
            credential(&registry, &aws_credentials, context).await
        };
        Ok(self.registry_credentials.get(context.tenant, key, context.now, fetch).await?.value)
    }
}

/// Requests a token, which contains user and password.
async fn credential(
    registry: &EcrRegistry,
    aws_credentials: &AwsCredentials,
    context: LoginContext<'_>,
) -> Result<Expiring<Credential>, LoginError> {
    let is_fips = context.options.environment.is_true("AWS_USE_FIPS_ENDPOINT");
    let url = endpoint(registry.api_host(is_fips), context)?;
    let signable = Signable {
        service: registry.service(),
        region: &registry.region.name,
        target: registry.target(),
        url: &url,
        body: b"{}",
    };
    let signed = signable.sign(aws_credentials, context.now);
    let mut request = Request::get(url.clone(), MAX_RESPONSE)
        .with_body(Body { kind: JSON, bytes: signable.body.into() })
        .with_header(HeaderName::from_static("x-amz-target"), registry.target())
        .with_header(HeaderName::from_static("x-amz-date"), &signed.date)
        .with_header(AUTHORIZATION, &signed.authorization);
    if let Some(session) = &aws_credentials.session {
        request =
            request.with_secret(HeaderName::from_static("x-amz-security-token"), secret_header(session));
    }
    let response = context.service(TOKEN, request).await?;
    let authorization = match TOKEN.json::<TokenResponse>(&response)?.data {
        Data::One(authorization) => Some(authorization),
        Data::List(list) => list.into_iter().next(),
    };
    let authorization = authorization.ok_or_else(|| TOKEN.malformed("has none"))?;
    let clear = base64::engine::general_purpose::STANDARD.decode(authorization.token.expose());
    let clear = Zeroizing::new(clear.map_err(|_| TOKEN.malformed("has a token that is not base64"))?);
    let colon = clear.iter().position(|byte| *byte == b':');
    let colon = colon.ok_or_else(|| TOKEN.malformed("has a token that is not of the form USER:PASSWORD"))?;
    let (user, password) = (Secret::new(&clear[..colon]), Secret::new(&clear[colon + 1..]));
    Ok(Expiring {
        value: Credential::Basic { user, password },
        expires_at: authorization.expires_at.and_then(whole_seconds),
    })
}

/// Converts a time in seconds, without the fraction.
fn whole_seconds(seconds: f64) -> Option<Timestamp> {
    let whole = format!("{:.0}", seconds.floor()).parse().ok()?;
    Timestamp::from_second(whole).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_may_have_a_fraction() {
        assert_eq!(whole_seconds(1_700_000_000.968).unwrap().as_second(), 1_700_000_000);
        assert_eq!(whole_seconds(f64::NAN), None);
        assert_eq!(whole_seconds(1e300), None);
    }
}
