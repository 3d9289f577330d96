//! Logins of Kubernetes service accounts at Google, by workload identity federation.
//!
//! The pool is that of GKE or another one.

use super::exchange::{CLOUD, Exchange, JWT};
use super::metadata;
use crate::cloud::LoginError;
use crate::cloud::account::CloudAccount;
use crate::cloud::cache::Expiring;
use crate::cloud::context::LoginContext;
use crate::cloud::network::join;
use crate::cloud::pattern::is_match;
use crate::secrets::Secret;

/// The annotation with the Google service account to impersonate.
const ACCOUNT: &str = "iam.gke.io/gcp-service-account";
const ADDRESS: &str = r"^[a-zA-Z0-9-]{1,100}@[a-zA-Z0-9.-]{1,200}\.gserviceaccount\.com$";

/// The annotation with the workload identity provider of a cluster outside of GKE.
const PROVIDER: &str = "gcp.auth.fluxcd.io/workload-identity-provider";
const PATH: &str =
    r"^projects/[0-9]{1,30}/locations/global/workloadIdentityPools/[^/]{1,100}/providers/[^/]{1,100}$";

/// Requests an access token for a service account.
pub(super) async fn token(
    account: &CloudAccount,
    context: LoginContext<'_>,
) -> Result<Expiring<Secret>, LoginError> {
    let checked = |annotation, pattern| match account.annotation(annotation) {
        Some(value) if !is_match(pattern, value) => Err(account.invalid_annotation(
            CLOUD,
            annotation,
            format!("is '{value}', and must match {pattern}"),
        )),
        value => Ok(value),
    };
    let (address, provider) = (checked(ACCOUNT, ADDRESS)?, checked(PROVIDER, PATH)?);
    let (audience, provider) = match provider {
        Some(provider) => {
            let provider = format!("//iam.googleapis.com/{provider}");
            (provider.clone(), provider)
        }
        None => {
            let cluster = metadata::cluster(context).await?;
            (cluster.pool(), cluster.provider())
        }
    };
    let token = account.token(CLOUD, &audience).await?;
    let endpoints = &context.options.endpoints;
    let impersonation_url = |address| {
        let path = format!("v1/projects/-/serviceAccounts/{address}:generateAccessToken");
        join(&endpoints.google_accounts, &path)
    };
    let exchange = Exchange {
        url: join(&endpoints.google_exchange, "v1/token"),
        audience: &provider,
        kind: JWT,
        token: &token,
        account: address.map(impersonation_url),
    };
    exchange.execute(context).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_must_have_the_format_of_google() {
        for (pattern, text, expected) in [
            (ADDRESS, "puller@project-1.iam.gserviceaccount.com", true),
            (ADDRESS, "puller@project.example.com.iam.gserviceaccount.com", true),
            (ADDRESS, "12-compute@developer.gserviceaccount.com", true),
            (ADDRESS, "puller@example.com", false),
            (ADDRESS, "a/../b@x.iam.gserviceaccount.com", false),
            (ADDRESS, "a?b@x.iam.gserviceaccount.com", false),
            (PATH, "projects/12/locations/global/workloadIdentityPools/pool/providers/cluster", true),
            (PATH, "projects/x/locations/global/workloadIdentityPools/pool/providers/cluster", false),
            (PATH, "projects/12/locations/global/workloadIdentityPools/pool", false),
        ] {
            assert_eq!(is_match(pattern, text), expected, "{text}");
        }
    }
}
