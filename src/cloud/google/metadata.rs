//! Google's metadata server: access tokens and the name of the GKE cluster.

use reqwest::header::HeaderName;
use url::Url;

use super::exchange::{CLOUD, SCOPES};
use crate::cloud::LoginError;
use crate::cloud::cache::Expiring;
use crate::cloud::context::LoginContext;
use crate::cloud::network::{MAX_RESPONSE, RequestLabel, join};
use crate::net::http::Request;
use crate::net::http::Response;
use crate::secrets::Secret;

const TOKEN: RequestLabel = RequestLabel { cloud: CLOUD, item: "a token of the service account" };
const CLUSTER: RequestLabel = RequestLabel { cloud: CLOUD, item: "the name of the GKE cluster" };

/// The GKE cluster in which this process runs.
pub(super) struct Cluster {
    project: String,
    location: String,
    name: String,
}

impl Cluster {
    /// Returns the workload identity pool, the audience of the cluster's tokens.
    pub(super) fn pool(&self) -> String {
        format!("{}.svc.id.goog", self.project)
    }

    /// Returns the workload identity provider, which includes the cluster.
    pub(super) fn provider(&self) -> String {
        let Self { project, location, name } = self;
        format!(
            "identitynamespace:{}:https://container.googleapis.com/v1/projects/{project}/locations/{location}/clusters/{name}",
            self.pool()
        )
    }
}

/// Requests an access token for the machine or the pod.
pub(super) async fn token(context: LoginContext<'_>) -> Result<Expiring<Secret>, LoginError> {
    let mut url = address("instance/service-accounts/default/token", context)?;
    url.query_pairs_mut().append_pair("scopes", &SCOPES.join(","));
    let missing = "there is no credentials file in GOOGLE_APPLICATION_CREDENTIALS or ~/.config/gcloud (only machines of \
                   Google Cloud and pods of GKE need none)";
    TOKEN.access_token(&TOKEN.success(send(url, missing, context).await?)?, context.now)
}

/// Requests the name of the cluster.
pub(super) async fn cluster(context: LoginContext<'_>) -> Result<Cluster, LoginError> {
    let missing = "only GKE has a metadata server that knows the cluster; elsewhere the service account needs the annotation \
                   gcp.auth.fluxcd.io/workload-identity-provider";
    let text = async |path: &str| {
        let response = CLUSTER.success(send(address(path, context)?, missing, context).await?)?;
        match String::from_utf8_lossy(response.body.trim_ascii()) {
            text if text.is_empty() => Err(CLUSTER.malformed("is empty")),
            text => Ok(text.into_owned()),
        }
    };
    Ok(Cluster {
        project: text("project/project-id").await?,
        location: text("instance/attributes/cluster-location").await?,
        name: text("instance/attributes/cluster-name").await?,
    })
}

fn address(path: &str, context: LoginContext<'_>) -> Result<Url, LoginError> {
    let options = &context.options;
    let base = match options.environment.text("GCE_METADATA_HOST") {
        None => options.endpoints.google_metadata.clone(),
        Some(host) => Url::parse(&format!("http://{host}/")).map_err(|_| LoginError::Variable {
            cloud: CLOUD,
            variable: "GCE_METADATA_HOST",
            defect: "is not a host: write HOST or HOST:PORT".to_owned(),
        })?,
    };
    Ok(join(&base, &format!("computeMetadata/v1/{path}")))
}

async fn send(url: Url, missing: &'static str, context: LoginContext<'_>) -> Result<Response, LoginError> {
    let request =
        Request::get(url, MAX_RESPONSE).with_header(HeaderName::from_static("metadata-flavor"), "Google");
    let response = context.metadata(request).await;
    response.map_err(|cause| LoginError::NoCredentials { cloud: CLOUD, missing, cause: Box::new(cause) })
}
