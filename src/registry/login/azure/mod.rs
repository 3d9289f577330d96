//! Logins at Azure: an Entra token is exchanged for a registry token.
//!
//! The registry token is the password.

mod identity;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Deserialize;
use url::Url;
use zeroize::Zeroizing;

use super::context::LoginContext;
use super::kept::{KeepOptions, Kept, Lasting};
use super::network::{LARGEST, Matter, form};
use super::pattern::HostPattern;
use super::{Credential, LoginError};
use crate::registry::request::Request;
use crate::secrets::Secret;

const CLOUD: &str = "Azure";

/// The pattern of Azure's registry names.
const HOSTS: &str = r"^.+\.(azurecr\.io|azurecr\.cn|azurecr\.de|azurecr\.us)$";

/// The variable that names a file about a custom cloud, such as Azure Stack.
const OWN_CLOUD: &str = "AZURE_ENVIRONMENT_FILEPATH";

/// The audience of tokens that are exchanged for registry tokens.
const AUDIENCE: &str = "https://containerregistry.azure.net";

/// The user of registry tokens.
const USER: &str = "00000000-0000-0000-0000-000000000000";

const EXCHANGE: Matter = Matter { cloud: CLOUD, what: "a token of the registry" };

/// Logins at Azure's registries.
#[derive(Debug)]
pub(super) struct Azure {
    hosts: HostPattern,
    /// Entra tokens.
    tokens: Kept<Secret>,
    /// Registry tokens.
    credentials: Kept<Credential>,
}

/// The endpoints of one of Azure's clouds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    /// The authority that issues tokens, unless a variable names another.
    authority: String,
    /// The audience of the token.
    audience: String,
}

/// The settings of a custom cloud.
#[derive(Deserialize)]
struct OwnCloud {
    #[serde(rename = "containerRegistryDNSSuffix", default)]
    suffix: Option<String>,
    #[serde(rename = "resourceManagerEndpoint", default)]
    resource_manager: Option<String>,
    #[serde(rename = "activeDirectoryEndpoint", default)]
    active_directory: Option<String>,
}

#[derive(Deserialize)]
struct Exchanged {
    refresh_token: Secret,
}

#[derive(Deserialize)]
struct Claims {
    exp: i64,
}

impl Azure {
    pub(super) fn new(kept: KeepOptions) -> Self {
        Self { hosts: HostPattern::new(CLOUD, HOSTS), tokens: Kept::new(kept), credentials: Kept::new(kept) }
    }

    pub(super) async fn credential(
        &self,
        host: &str,
        context: LoginContext<'_>,
    ) -> Result<Credential, LoginError> {
        let part = self.part(host, context).await?;
        // Tenants may name any number of registries.
        let own = context.of_tenant();
        let fetch = async {
            let key = context.key(["token", &part.authority, &part.audience]);
            let token = self
                .tokens
                .get(context.namespace, key, context.now, identity::token(&part, context))
                .await?
                .value;
            exchange(host, &token, own).await
        };
        Ok(self.credentials.get(own.namespace, own.key(["registry", host]), own.now, fetch).await?.value)
    }

    /// Returns the cloud of a registry.
    async fn part(&self, host: &str, context: LoginContext<'_>) -> Result<Part, LoginError> {
        let Some(own) = own_cloud(context).await? else {
            self.hosts.read(host)?;
            return Ok(Part::of(host));
        };
        let suffix = own.suffix.unwrap_or_default();
        if !self.hosts.fits(host) && (suffix.is_empty() || !host.ends_with(&suffix)) {
            return Err(LoginError::Registry {
                cloud: CLOUD,
                host: host.to_owned(),
                must: format!("end with {suffix}"),
            });
        }
        let part = Part::of(host);
        Ok(Part {
            authority: own.active_directory.unwrap_or(part.authority),
            audience: own.resource_manager.unwrap_or(part.audience).trim_end_matches('/').to_owned(),
        })
    }
}

impl Part {
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

async fn own_cloud(context: LoginContext<'_>) -> Result<Option<OwnCloud>, LoginError> {
    let Some(file) = context.options.environment.file(CLOUD, OWN_CLOUD).await? else { return Ok(None) };
    serde_json::from_slice(file.expose()).map(Some).map_err(|_| LoginError::Variable {
        cloud: CLOUD,
        variable: OWN_CLOUD,
        defect: "names a file that is no JSON about a cloud".to_owned(),
    })
}

/// Exchanges an Entra token for a registry token.
async fn exchange(
    host: &str,
    token: &Secret,
    context: LoginContext<'_>,
) -> Result<Lasting<Credential>, LoginError> {
    let base = match &context.options.endpoints.azure_registry {
        Some(endpoint) => Ok(endpoint.clone()),
        None => Url::parse(&format!("https://{host}/")),
    };
    let url = base.and_then(|base| base.join("oauth2/exchange"));
    let url = url.map_err(|_| EXCHANGE.malformed("has no address: the registry's name is none"))?;
    let token = Zeroizing::new(String::from_utf8_lossy(token.expose()).into_owned());
    let form = form([("grant_type", "access_token"), ("service", host), ("access_token", &token)]);
    let request = Request::post(url, form, LARGEST);
    let response = context.service(EXCHANGE, request).await?;
    let password = EXCHANGE.json::<Exchanged>(&response)?.refresh_token;
    if password.expose().is_empty() {
        return Err(EXCHANGE.malformed("has an empty one"));
    }
    let ends = end(&password);
    Ok(Lasting { value: Credential::Basic { user: Secret::new(USER), password }, ends })
}

/// Returns the expiry in a token's claims; a token without one is used once.
fn end(token: &Secret) -> Option<Timestamp> {
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
            assert!(hosts.fits(host), "{host}");
            assert_eq!(Part::of(host).authority, authority);
        }
        for host in ["foo.azurecr.com", ".azurecr.io", "012345678901.dkr.ecr.us-east-1.amazonaws.com"] {
            let error = hosts.read(host).unwrap_err().to_string();
            let begin = format!("invalid Azure registry: '{host}'. must match ^.+\\.(azurecr\\.io|");
            assert!(error.starts_with(&begin), "{error}");
        }
    }

    #[test]
    fn a_token_says_when_it_ends() {
        let token = |claims: &str| Secret::new(format!("e30.{}.x", URL_SAFE_NO_PAD.encode(claims)));
        assert_eq!(end(&token(r#"{"exp": 1700000000, "iss": "x"}"#)).unwrap().as_second(), 1_700_000_000);
        for other in [token("{}"), token("[]"), Secret::new("opaque"), Secret::new("a.%.c")] {
            assert_eq!(end(&other), None);
        }
    }
}
