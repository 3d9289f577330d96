//! The AWS credential provider chain.
//!
//! Credentials come from the environment, a web identity, a profile, the container, or the instance, in the order of
//! AWS's own libraries.

use super::metadata;
use super::profile::{self, Source};
use super::region::{AwsRegion, CLOUD};
use super::signature::AwsCredentials;
use super::sts::{self, Role};
use crate::cloud::account::CloudIdentity;
use crate::cloud::cache::Expiring;
use crate::cloud::context::LoginContext;
use crate::cloud::environment::{CloudEnvironment, token_file};
use crate::cloud::{LoginError, environment};

/// Finds the credentials of the identity that logs in, for a region.
pub(super) async fn find(
    region: &AwsRegion,
    context: LoginContext<'_>,
) -> Result<Expiring<AwsCredentials>, LoginError> {
    if let CloudIdentity::Account(account) = context.identity {
        return sts::for_account(region, account, context).await;
    }
    let environment = &context.options.environment;
    if let Some(credentials) = from_environment(environment) {
        return Ok(Expiring { value: credentials, expires_at: None });
    }
    if let Some(arn) = environment.text("AWS_ROLE_ARN")
        && let Some(token) = environment.file(CLOUD, "AWS_WEB_IDENTITY_TOKEN_FILE").await?
    {
        let role = Role { arn, session: environment.text("AWS_ROLE_SESSION_NAME") };
        let token = environment::form_text(&token);
        return sts::assume(region, &role, (sts::ENVIRONMENT_ROLE, &token), context).await;
    }
    match profile::source(environment).await? {
        Some(Source::Credentials(credentials)) => Ok(Expiring { value: credentials, expires_at: None }),
        Some(Source::WebIdentity(role, file)) => {
            let token = environment::form_text(&token_file(CLOUD, file).await?);
            sts::assume(region, &role, (sts::PROFILE_ROLE, &token), context).await
        }
        None => metadata::from_metadata(context).await,
    }
}

/// Returns the credentials in the environment.
fn from_environment(environment: &CloudEnvironment) -> Option<AwsCredentials> {
    Some(AwsCredentials {
        id: environment.text("AWS_ACCESS_KEY_ID")?,
        secret: environment.secret("AWS_SECRET_ACCESS_KEY")?.clone(),
        session: environment.secret("AWS_SESSION_TOKEN").cloned(),
    })
}
