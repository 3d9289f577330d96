//! The AWS credential provider chain.
//!
//! Credentials come from the environment, a web identity, a profile, the container, or the instance, in the order of
//! AWS's own libraries.

use super::metadata;
use super::profile::{self, Source};
use super::registry::{CLOUD, EcrRegistry};
use super::roles::{self, Role};
use super::signature::Keys;
use crate::registry::login::account::CloudIdentity;
use crate::registry::login::context::LoginContext;
use crate::registry::login::environment::{CloudEnvironment, token_file};
use crate::registry::login::kept::Lasting;
use crate::registry::login::{LoginError, environment};

/// Finds the credentials of the identity that logs in, for the region of a registry.
pub(super) async fn find(
    registry: &EcrRegistry,
    context: LoginContext<'_>,
) -> Result<Lasting<Keys>, LoginError> {
    if let CloudIdentity::Account(account) = context.identity {
        return roles::of_an_account(registry, account, context).await;
    }
    let environment = &context.options.environment;
    if let Some(keys) = given(environment) {
        return Ok(Lasting { value: keys, ends: None });
    }
    if let Some(arn) = environment.text("AWS_ROLE_ARN")
        && let Some(token) = environment.file(CLOUD, "AWS_WEB_IDENTITY_TOKEN_FILE").await?
    {
        let role = Role { arn, session: environment.text("AWS_ROLE_SESSION_NAME") };
        let token = environment::whole_text(&token);
        return roles::assume(registry, &role, (roles::OF_THE_ENVIRONMENT, &token), context).await;
    }
    match profile::source(environment).await? {
        Some(Source::Keys(keys)) => Ok(Lasting { value: keys, ends: None }),
        Some(Source::Token(role, file)) => {
            let token = environment::whole_text(&token_file(CLOUD, file).await?);
            roles::assume(registry, &role, (roles::OF_A_PROFILE, &token), context).await
        }
        None => metadata::of_the_machine(context).await,
    }
}

/// Returns the credentials in the environment.
fn given(environment: &CloudEnvironment) -> Option<Keys> {
    Some(Keys {
        id: environment.text("AWS_ACCESS_KEY_ID")?,
        secret: environment.secret("AWS_SECRET_ACCESS_KEY")?.clone(),
        session: environment.secret("AWS_SESSION_TOKEN").cloned(),
    })
}
