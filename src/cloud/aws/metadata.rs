//! Credentials from AWS metadata servers, of the container or of the instance.

use jiff::Timestamp;
use reqwest::header::HeaderName;
use serde::Deserialize;
use url::Url;

use super::region::CLOUD;
use super::signature::AwsCredentials;
use crate::cloud::LoginError;
use crate::cloud::cache::Expiring;
use crate::cloud::context::LoginContext;
use crate::cloud::network::{MAX_RESPONSE, RequestLabel};
use crate::net::Host;
use crate::net::http::Request;
use crate::net::http::Response;
use crate::net::http::secret_header;
use crate::secrets::Secret;

const CONTAINER: RequestLabel = RequestLabel { cloud: CLOUD, item: "the role of the container" };
const INSTANCE: RequestLabel = RequestLabel { cloud: CLOUD, item: "the role of the instance" };

/// The clause of the error when no source has credentials.
const MISSING: &str = "there is neither AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, nor AWS_ROLE_ARN with \
     AWS_WEB_IDENTITY_TOKEN_FILE, nor AWS_CONTAINER_CREDENTIALS_FULL_URI or AWS_CONTAINER_CREDENTIALS_RELATIVE_URI in the \
     environment, nor a profile with keys or a role in ~/.aws/config or ~/.aws/credentials";

/// The path of an instance's role.
const ROLES: &str = "latest/meta-data/iam/security-credentials/";

/// The address of the EKS pod identity agent.
///
/// It is the only address beyond local ones that may be used without TLS.
const CONTAINERS_V6: &str = "[fd00:ec2::23]";

/// The response of a metadata server.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct MetadataCredentials {
    access_key_id: String,
    secret_access_key: Secret,
    token: Secret,
    expiration: Timestamp,
}

/// Returns the credentials of the container if the environment names one, else of the instance.
pub(super) async fn from_metadata(context: LoginContext<'_>) -> Result<Expiring<AwsCredentials>, LoginError> {
    match container_url(context)? {
        Some(url) => container_credentials(url, context).await,
        None => instance_credentials(context).await,
    }
}

/// Returns the address of the container's credentials, if the environment names one.
fn container_url(context: LoginContext<'_>) -> Result<Option<Url>, LoginError> {
    let options = &context.options;
    if let Some(path) = options.environment.text("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
        let mut url = options.endpoints.aws_containers.clone();
        let (path, query) = path.split_once('?').map_or((path.as_str(), None), |(a, b)| (a, Some(b)));
        url.set_path(path);
        url.set_query(query);
        return Ok(Some(url));
    }
    let variable = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
    let Some(text) = options.environment.text(variable) else { return Ok(None) };
    let defect = "is neither an https address nor one of this machine or its network link".to_owned();
    let invalid = || LoginError::Variable { cloud: CLOUD, variable, defect };
    let Ok(url) = Url::parse(&text) else { return Err(invalid()) };
    let host = url.host_str().unwrap_or_default();
    let is_local = url.scheme() == "http" && (Host::read(host).is_local() || host == CONTAINERS_V6);
    if is_local || url.scheme() == "https" { Ok(Some(url)) } else { Err(invalid()) }
}

async fn container_credentials(
    url: Url,
    context: LoginContext<'_>,
) -> Result<Expiring<AwsCredentials>, LoginError> {
    let environment = &context.options.environment;
    let token = match environment.file(CLOUD, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").await? {
        Some(token) => Some(token),
        None => environment.secret("AWS_CONTAINER_AUTHORIZATION_TOKEN").cloned(),
    };
    let request = Request::get(url, MAX_RESPONSE).with_authorization(token.as_ref().and_then(secret_header));
    let response = context.metadata(request).await.map_err(|cause| CONTAINER.unreachable(cause))?;
    parse(CONTAINER, &CONTAINER.success(response)?)
}

/// Requests the instance's credentials (IMDSv2).
///
/// The token that is requested first protects the server against forged requests.
async fn instance_credentials(context: LoginContext<'_>) -> Result<Expiring<AwsCredentials>, LoginError> {
    let options = &context.options;
    if options.environment.is_true("AWS_EC2_METADATA_DISABLED") {
        return Err(LoginError::Variable {
            cloud: CLOUD,
            variable: "AWS_EC2_METADATA_DISABLED",
            defect: format!("disables the metadata service of the instance, and {MISSING}"),
        });
    }
    let at = |path: &str| {
        let url = options.endpoints.aws_metadata.join(path);
        url.map_err(|_| INSTANCE.malformed("names a malformed role"))
    };
    let request = Request::put(at("latest/api/token")?, MAX_RESPONSE)
        .with_header(HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds"), "300");
    let response = context.metadata(request).await.map_err(|cause| LoginError::NoCredentials {
        cloud: CLOUD,
        missing: MISSING,
        cause: Box::new(cause),
    })?;
    let token = Secret::new(INSTANCE.success(response)?.body.trim_ascii());
    let get = async |path: &str| {
        let name = HeaderName::from_static("x-aws-ec2-metadata-token");
        let request = Request::get(at(path)?, MAX_RESPONSE).with_secret(name, secret_header(&token));
        let response = context.metadata(request).await;
        INSTANCE.success(response.map_err(|cause| INSTANCE.unreachable(cause))?)
    };
    let roles = get(ROLES).await?;
    let roles = String::from_utf8_lossy(&roles.body).into_owned();
    let role = roles.lines().map(str::trim).find(|role| !role.is_empty());
    let role = role.ok_or_else(|| INSTANCE.malformed("names no role: the instance has no profile"))?;
    parse(INSTANCE, &get(&format!("{ROLES}{role}")).await?)
}

fn parse(label: RequestLabel, response: &Response) -> Result<Expiring<AwsCredentials>, LoginError> {
    let found: MetadataCredentials = label.json(response)?;
    let credentials = AwsCredentials {
        id: found.access_key_id,
        secret: found.secret_access_key,
        session: Some(found.token),
    };
    Ok(Expiring { value: credentials, expires_at: Some(found.expiration) })
}
