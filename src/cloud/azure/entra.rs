//! Tokens of Entra ID for the identity that logs in at Azure.
//!
//! The identity is an application with a secret, a pod with a workload identity, a machine with a managed identity,
//! or a service account.

use reqwest::header::HeaderName;
use url::Url;

use super::{AzureCloud, CLOUD};
use crate::cloud::LoginError;
use crate::cloud::account::{CloudAccount, CloudIdentity};
use crate::cloud::cache::Expiring;
use crate::cloud::context::LoginContext;
use crate::cloud::environment::form_text;
use crate::cloud::network::{MAX_RESPONSE, RequestLabel, form, join};
use crate::net::http::Request;
use crate::secrets::Secret;

const TOKEN: RequestLabel = RequestLabel { cloud: CLOUD, item: "a token of Azure" };

/// The annotations with the identity of a service account.
const TENANT: &str = "azure.workload.identity/tenant-id";
const CLIENT: &str = "azure.workload.identity/client-id";

/// The audience of service account tokens for Azure.
const AUDIENCE: &str = "api://AzureADTokenExchange";

const NO_TENANT: &str = "is not a tenant: write its ID or its name";

/// The type of client assertions.
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

const MISSING: &str = "there is neither AZURE_CLIENT_SECRET nor AZURE_FEDERATED_TOKEN_FILE with AZURE_CLIENT_ID and \
                       AZURE_TENANT_ID in the environment";

/// Requests a token for one of Azure's clouds.
pub(super) async fn token(
    cloud: &AzureCloud,
    context: LoginContext<'_>,
) -> Result<Expiring<Secret>, LoginError> {
    if let CloudIdentity::Account(account) = context.identity {
        return account_token(cloud, account, context).await;
    }
    let environment = &context.options.environment;
    let (Some(tenant), Some(client)) =
        (environment.text("AZURE_TENANT_ID"), environment.text("AZURE_CLIENT_ID"))
    else {
        return managed_identity_token(cloud, context).await;
    };
    let url = tenant_url(cloud, &tenant, context)?.ok_or_else(|| LoginError::Variable {
        cloud: CLOUD,
        variable: "AZURE_TENANT_ID",
        defect: NO_TENANT.to_owned(),
    })?;
    let application = Application { url, client: &client };
    if let Some(secret) = environment.secret("AZURE_CLIENT_SECRET") {
        application.token(cloud, &[("client_secret", &form_text(secret))], context).await
    } else if let Some(assertion) = environment.file(CLOUD, "AZURE_FEDERATED_TOKEN_FILE").await? {
        application.token(cloud, &client_assertion(&form_text(&assertion)), context).await
    } else {
        managed_identity_token(cloud, context).await
    }
}

/// Requests a token for a service account, whose own token is the assertion.
async fn account_token(
    cloud: &AzureCloud,
    account: &CloudAccount,
    context: LoginContext<'_>,
) -> Result<Expiring<Secret>, LoginError> {
    let (tenant, client) = (account.required(CLOUD, TENANT)?, account.required(CLOUD, CLIENT)?);
    let url = tenant_url(cloud, tenant, context)?
        .ok_or_else(|| account.invalid_annotation(CLOUD, TENANT, NO_TENANT.to_owned()))?;
    let assertion = account.token(CLOUD, AUDIENCE).await?;
    Application { url, client }.token(cloud, &client_assertion(&assertion), context).await
}

/// An application that logs in at its tenant.
struct Application<'a> {
    url: Url,
    client: &'a str,
}

impl Application<'_> {
    async fn token(
        self,
        cloud: &AzureCloud,
        proof: &[(&str, &str)],
        context: LoginContext<'_>,
    ) -> Result<Expiring<Secret>, LoginError> {
        let scope = format!("{}/.default", cloud.audience);
        let identity = [("grant_type", "client_credentials"), ("client_id", self.client), ("scope", &scope)];
        let request =
            Request::post(self.url, form(identity.into_iter().chain(proof.iter().copied())), MAX_RESPONSE);
        let response = context.service(TOKEN, request).await?;
        TOKEN.access_token(&response, context.now)
    }
}

/// Returns the form fields of a client assertion.
fn client_assertion(assertion: &str) -> [(&str, &str); 2] {
    [("client_assertion_type", ASSERTION), ("client_assertion", assertion)]
}

/// Returns the token endpoint of a tenant; `None` if the tenant's name is invalid.
fn tenant_url(
    cloud: &AzureCloud,
    tenant: &str,
    context: LoginContext<'_>,
) -> Result<Option<Url>, LoginError> {
    if tenant.trim_matches('.').is_empty()
        || !tenant.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
    {
        return Ok(None);
    }
    if let Some(endpoint) = &context.options.endpoints.azure_authority {
        return Ok(Some(join(endpoint, &format!("{tenant}/oauth2/v2.0/token"))));
    }
    let authority = context.options.environment.text("AZURE_AUTHORITY_HOST");
    let authority = authority.unwrap_or_else(|| cloud.authority.clone());
    let url = Url::parse(&format!("{}/{tenant}/oauth2/v2.0/token", authority.trim_end_matches('/')));
    let url = url.ok().filter(|url| url.scheme() == "https");
    url.map(Some).ok_or_else(|| LoginError::Variable {
        cloud: CLOUD,
        variable: "AZURE_AUTHORITY_HOST",
        defect: "is not a server address: write https://HOST/".to_owned(),
    })
}

/// Requests a token for the managed identity of the machine.
async fn managed_identity_token(
    cloud: &AzureCloud,
    context: LoginContext<'_>,
) -> Result<Expiring<Secret>, LoginError> {
    let options = &context.options;
    let mut url = join(&options.endpoints.azure_metadata, "metadata/identity/oauth2/token");
    {
        let mut pairs = url.query_pairs_mut();
        pairs.append_pair("api-version", "2018-02-01");
        pairs.append_pair("resource", &cloud.audience);
        pairs.extend_pairs(options.environment.text("AZURE_CLIENT_ID").map(|client| ("client_id", client)));
    }
    let request = Request::get(url, MAX_RESPONSE).with_header(HeaderName::from_static("metadata"), "true");
    let response = context.metadata(request).await.map_err(|cause| LoginError::NoCredentials {
        cloud: CLOUD,
        missing: MISSING,
        cause: Box::new(cause),
    })?;
    TOKEN.access_token(&TOKEN.success(response)?, context.now)
}
