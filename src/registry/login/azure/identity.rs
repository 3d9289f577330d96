//! Who we are at Azure: an application with a secret, a pod with a workload identity, or a machine with one of its own.

use jiff::SignedDuration;
use reqwest::header::HeaderName;
use serde::{Deserialize, Deserializer};
use url::Url;
use zeroize::Zeroizing;

use super::{CLOUD, Part};
use crate::registry::call::Call;
use crate::registry::login::LoginError;
use crate::registry::login::cloud::Visit;
use crate::registry::login::kept::Lasting;
use crate::registry::login::network::{LARGEST, Matter, form};
use crate::secret::Secret;

const TOKEN: Matter = Matter { cloud: CLOUD, what: "a token of Azure" };

/// What a signed statement about somebody is called in a form.
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

const MISSING: &str = "there is neither AZURE_CLIENT_SECRET nor AZURE_FEDERATED_TOKEN_FILE with AZURE_CLIENT_ID and \
                       AZURE_TENANT_ID in the environment";

#[derive(Deserialize)]
struct Token {
    access_token: Secret,
    #[serde(deserialize_with = "seconds")]
    expires_in: i64,
}

/// A token of Azure for a part of it.
pub(super) async fn token(part: &Part, visit: Visit<'_>) -> Result<Lasting<Secret>, LoginError> {
    let environment = &visit.clouds.options.environment;
    let (tenant, client) = (environment.text("AZURE_TENANT_ID"), environment.text("AZURE_CLIENT_ID"));
    let answer = if let (Some(tenant), Some(client)) = (tenant, client) {
        let url = tenant_url(part, &tenant, visit)?;
        let text = |secret: &Secret| Zeroizing::new(String::from_utf8_lossy(secret.expose()).into_owned());
        let proof = if let Some(secret) = environment.secret("AZURE_CLIENT_SECRET") {
            vec![("client_secret", text(secret))]
        } else if let Some(assertion) = environment.file(CLOUD, "AZURE_FEDERATED_TOKEN_FILE").await? {
            let kind = Zeroizing::new(ASSERTION.to_owned());
            vec![("client_assertion_type", kind), ("client_assertion", text(&assertion))]
        } else {
            return of_the_machine(part, visit).await;
        };
        let scope = format!("{}/.default", part.audience);
        let who = [("grant_type", "client_credentials"), ("client_id", &client), ("scope", &scope)];
        let proof = proof.iter().map(|(name, value)| (*name, value.as_str()));
        let call = Call::post(url, form(who.into_iter().chain(proof)), LARGEST);
        visit.clouds.network.service(TOKEN, visit.proxy, call).await?
    } else {
        return of_the_machine(part, visit).await;
    };
    lasting(TOKEN.json(&answer)?, visit)
}

/// Where a tenant logs in.
fn tenant_url(part: &Part, tenant: &str, visit: Visit<'_>) -> Result<Url, LoginError> {
    let flawed =
        |variable, flaw: &str| LoginError::Variable { cloud: CLOUD, variable, flaw: flaw.to_owned() };
    if !tenant.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)) {
        return Err(flawed("AZURE_TENANT_ID", "is no tenant: write its number or its name"));
    }
    if let Some(endpoint) = &visit.clouds.options.endpoints.azure_authority {
        let url = endpoint.join(&format!("{tenant}/oauth2/v2.0/token"));
        return Ok(url.expect("a path can be joined to an address of a web server"));
    }
    let authority = visit.clouds.options.environment.text("AZURE_AUTHORITY_HOST");
    let authority = authority.unwrap_or_else(|| part.authority.clone());
    let url = Url::parse(&format!("{}/{tenant}/oauth2/v2.0/token", authority.trim_end_matches('/')));
    let url = url.ok().filter(|url| url.scheme() == "https");
    url.ok_or_else(|| flawed("AZURE_AUTHORITY_HOST", "is no address of a server: write https://HOST/"))
}

/// A token of the identity that the machine has.
async fn of_the_machine(part: &Part, visit: Visit<'_>) -> Result<Lasting<Secret>, LoginError> {
    let options = &visit.clouds.options;
    let url = options.endpoints.azure_metadata.join("metadata/identity/oauth2/token");
    let mut url = url.expect("a path can be joined to an address of a web server");
    {
        let mut pairs = url.query_pairs_mut();
        pairs.append_pair("api-version", "2018-02-01");
        pairs.append_pair("resource", &part.audience);
        pairs.extend_pairs(options.environment.text("AZURE_CLIENT_ID").map(|client| ("client_id", client)));
    }
    let call = Call::get(url, LARGEST).with(HeaderName::from_static("metadata"), "true");
    let answer = visit.clouds.network.metadata(call).await.map_err(|cause| LoginError::Nobody {
        cloud: CLOUD,
        missing: MISSING,
        cause: Box::new(cause),
    })?;
    lasting(TOKEN.json(&TOKEN.success(answer)?)?, visit)
}

fn lasting(token: Token, visit: Visit<'_>) -> Result<Lasting<Secret>, LoginError> {
    if token.access_token.expose().is_empty() {
        return Err(TOKEN.malformed("has an empty one"));
    }
    let ends = visit.now.checked_add(SignedDuration::from_secs(token.expires_in)).ok();
    Ok(Lasting { value: token.access_token, ends })
}

/// A number, which the metadata server writes as a text.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Seconds {
        Number(i64),
        Text(String),
    }
    match Seconds::deserialize(deserializer)? {
        Seconds::Number(number) => Ok(number),
        Seconds::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}
