//! Logins at Azure: an Entra token is exchanged for a registry token.
//!
//! The registry token is the password.

mod dev_ops;
mod entra;

pub(super) use dev_ops::DevOps;
pub use dev_ops::is_azure_dev_ops;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Deserialize;
use url::Url;
use zeroize::Zeroizing;

use super::cache::{CredentialCache, CredentialCacheOptions, Expiring};
use super::context::LoginContext;
use super::network::{MAX_RESPONSE, RequestLabel, form};
use super::pattern::HostPattern;
use super::{Credential, LoginError};
use crate::net::http::Request;
use crate::secrets::Secret;

const CLOUD: &str = "Azure";

/// The pattern of Azure's registry names.
const HOSTS: &str = r"^.+\.(azurecr\.io|azurecr\.cn|azurecr\.de|azurecr\.us)$";

/// The variable that names a file about a custom cloud, such as Azure Stack.
const CUSTOM_CLOUD: &str = "AZURE_ENVIRONMENT_FILEPATH";

/// The audience of tokens that are exchanged for registry tokens.
const AUDIENCE: &str = "https://containerregistry.azure.net";

/// The user of registry tokens.
const USER: &str = "00000000-0000-0000-0000-000000000000";

const EXCHANGE: RequestLabel = RequestLabel { cloud: CLOUD, item: "a token of the registry" };

/// Logins at Azure's registries.
#[derive(Debug)]
pub(super) struct Azure {
    hosts: HostPattern,
    /// Entra tokens.
    tokens: CredentialCache<Secret>,
    /// Registry tokens.
    credentials: CredentialCache<Credential>,
}

/// The endpoints of one of Azure's clouds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AzureCloud {
    /// The authority that issues tokens, unless a variable names another.
    authority: String,
    /// The audience of the token.
    audience: String,
}

/// The settings of a custom cloud.
#[derive(Deserialize)]
struct CustomCloud {
    #[serde(rename = "containerRegistryDNSSuffix", default)]
    suffix: Option<String>,
    #[serde(rename = "resourceManagerEndpoint", default)]
    resource_manager: Option<String>,
    #[serde(rename = "activeDirectoryEndpoint", default)]
    active_directory: Option<String>,
}

#[derive(Deserialize)]
struct ExchangeResponse {
    refresh_token: Secret,
}

#[derive(Deserialize)]
struct Claims {
    exp: i64,
}

impl Azure {
    pub(super) fn new(options: CredentialCacheOptions) -> Self {
        Self {
            hosts: HostPattern::new(CLOUD, HOSTS),
            tokens: CredentialCache::new(options),
            credentials: CredentialCache::new(options),
        }
    }

    pub(super) async fn credential(
        &self,
        host: &str,
        context: LoginContext<'_>,
    ) -> Result<Credential, LoginError> {
        let cloud = self.cloud(host, context).await?;
        // Tenants may name any number of registries.
        let own = context.of_tenant();
        let fetch = async {
            let key = context.key(["token", &cloud.authority, &cloud.audience]);
            let token = self
                .tokens
                .get(context.namespace, key, context.now, entra::token(&cloud, context))
                .await?
                .value;
            exchange(host, &token, own).await
        };
        Ok(self.credentials.get(own.namespace, own.key(["registry", host]), own.now, fetch).await?.value)
    }

    /// Returns the cloud of a registry.
    async fn cloud(&self, host: &str, context: LoginContext<'_>) -> Result<AzureCloud, LoginError> {
        let Some(own) = custom_cloud(context).await? else {
            self.hosts.captures(host)?;
            return Ok(AzureCloud::of(host));
        };
        let suffix = own.suffix.unwrap_or_default();
        if !self.hosts.is_match(host) && (suffix.is_empty() || !host.ends_with(&suffix)) {
            return Err(LoginError::Registry {
                cloud: CLOUD,
                host: host.to_owned(),
                must: format!("end with {suffix}"),
            });
        }
        let cloud = AzureCloud::of(host);
        Ok(AzureCloud {
            authority: own.active_directory.unwrap_or(cloud.authority),
            audience: own.resource_manager.unwrap_or(cloud.audience).trim_end_matches('/').to_owned(),
        })
    }
}

impl AzureCloud {
    /// Returns the public cloud, or those of China or the United States government.
    fn of(host: &str) -> Self {
        let authority = if host.ends_with(".azurecr.cn") {
            "https://login.chinacloudapi.cn/"
        } else if host.ends_with(".azurecr.us") {
            "https://login.microsoftonline.us/"
        } else {
            "https://login.microsoftonline.com/"
        };
        Self { authority: authority.to_owned(), audience: AUDIENCE.to_owned() }
    }
}

async fn custom_cloud(context: LoginContext<'_>) -> Result<Option<CustomCloud>, LoginError> {
    let Some(file) = context.options.environment.file(CLOUD, CUSTOM_CLOUD).await? else { return Ok(None) };
    serde_json::from_slice(file.expose()).map(Some).map_err(|_| LoginError::Variable {
        cloud: CLOUD,
        variable: CUSTOM_CLOUD,
        defect: "names a file that is not JSON with the settings of a cloud".to_owned(),
    })
}

/// Exchanges an Entra token for a registry token.
async fn exchange(
    host: &str,
    token: &Secret,
    context: LoginContext<'_>,
) -> Result<Expiring<Credential>, LoginError> {
    let base = match &context.options.endpoints.azure_registry {
        Some(endpoint) => Ok(endpoint.clone()),
        None => Url::parse(&format!("https://{host}/")),
    };
    let url = base.and_then(|base| base.join("oauth2/exchange"));
    let url = url.map_err(|_| EXCHANGE.malformed("has no valid URL: the registry's host is malformed"))?;
    let token = Zeroizing::new(String::from_utf8_lossy(token.expose()).into_owned());
    let form = form([("grant_type", "access_token"), ("service", host), ("access_token", &token)]);
    let request = Request::post(url, form, MAX_RESPONSE);
    let response = context.service(EXCHANGE, request).await?;
    let password = EXCHANGE.not_empty(EXCHANGE.json::<ExchangeResponse>(&response)?.refresh_token)?;
    let expires_at = expiry(&password);
    Ok(Expiring { value: Credential::Basic { user: Secret::new(USER), password }, expires_at })
}

/// Returns the expiry in a token's claims; a token without one is used once.
fn expiry(token: &Secret) -> Option<Timestamp> {
    let claims = token.expose().split(|byte| *byte == b'.').nth(1)?;
    let claims = URL_SAFE_NO_PAD.decode(claims.trim_ascii_end()).ok()?;
    let claims: Claims = serde_json::from_slice(&claims).ok()?;
    Timestamp::from_second(claims.exp).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_of_azure_is_known_by_its_name() {
        let hosts = HostPattern::new(CLOUD, HOSTS);
        for (host, authority) in [
            ("foo.azurecr.io", "https://login.microsoftonline.com/"),
            ("foo.azurecr.cn", "https://login.chinacloudapi.cn/"),
            ("foo.azurecr.de", "https://login.microsoftonline.com/"),
            ("foo.azurecr.us", "https://login.microsoftonline.us/"),
        ] {
            assert!(hosts.is_match(host), "{host}");
            assert_eq!(AzureCloud::of(host).authority, authority);
        }
        for host in ["foo.azurecr.com", ".azurecr.io", "012345678901.dkr.ecr.us-east-1.amazonaws.com"] {
            let error = hosts.captures(host).unwrap_err().to_string();
            let begin = format!("invalid Azure registry: '{host}'. must match ^.+\\.(azurecr\\.io|");
            assert!(error.starts_with(&begin), "{error}");
        }
    }

    #[test]
    fn the_expiry_of_a_token_is_read_from_it() {
        let token = |claims: &str| Secret::new(format!("e30.{}.x", URL_SAFE_NO_PAD.encode(claims)));
        assert_eq!(expiry(&token(r#"{"exp": 1700000000, "iss": "x"}"#)).unwrap().as_second(), 1_700_000_000);
        for other in [token("{}"), token("[]"), Secret::new("opaque"), Secret::new("a.%.c")] {
            assert_eq!(expiry(&other), None);
        }
    }
}
