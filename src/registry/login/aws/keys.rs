//! Our keys at AWS: of the environment, of a web identity, of a profile, of the container, or of the instance.
//!
//! The order is that of AWS's own libraries.

use super::profile::{self, Source};
use super::registry::EcrRegistry;
use super::roles::{self, Role};
use super::{CLOUD, metadata};
use crate::registry::login::account::CloudIdentity;
use crate::registry::login::cloud::Visit;
use crate::registry::login::environment::{CloudEnvironment, token_file};
use crate::registry::login::kept::Lasting;
use crate::registry::login::{LoginError, environment};
use crate::secret::Secret;

pub(super) const MISSING: &str = "there is neither AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, nor AWS_ROLE_ARN with \
     AWS_WEB_IDENTITY_TOKEN_FILE, nor AWS_CONTAINER_CREDENTIALS_FULL_URI or AWS_CONTAINER_CREDENTIALS_RELATIVE_URI in the \
     environment, nor a profile with keys or a role in ~/.aws/config or ~/.aws/credentials";

/// Keys that sign requests.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    pub(super) id: String,
    pub(super) secret: Secret,
    /// What goes along with keys that end.
    pub(super) session: Option<Secret>,
}

/// Finds the keys of whoever logs in, for the region of a registry.
pub(super) async fn find(registry: &EcrRegistry, visit: Visit<'_>) -> Result<Lasting<Keys>, LoginError> {
    if let CloudIdentity::Account(account) = visit.identity {
        return roles::of_an_account(registry, account, visit).await;
    }
    let environment = &visit.clouds.options.environment;
    if let Some(keys) = given(environment) {
        return Ok(Lasting { value: keys, ends: None });
    }
    if let Some(arn) = environment.text("AWS_ROLE_ARN")
        && let Some(token) = environment.file(CLOUD, "AWS_WEB_IDENTITY_TOKEN_FILE").await?
    {
        let role = Role { arn, session: environment.text("AWS_ROLE_SESSION_NAME") };
        let token = environment::whole_text(&token);
        return roles::assume(registry, &role, (roles::OF_THE_ENVIRONMENT, &token), visit).await;
    }
    match profile::source(environment).await? {
        Some(Source::Keys(keys)) => Ok(Lasting { value: keys, ends: None }),
        Some(Source::Token(role, file)) => {
            let token = environment::whole_text(&token_file(CLOUD, file).await?);
            roles::assume(registry, &role, (roles::OF_A_PROFILE, &token), visit).await
        }
        None => metadata::of_the_machine(visit).await,
    }
}

/// Keys that stand in the environment.
fn given(environment: &CloudEnvironment) -> Option<Keys> {
    Some(Keys {
        id: environment.text("AWS_ACCESS_KEY_ID")?,
        secret: environment.secret("AWS_SECRET_ACCESS_KEY")?.clone(),
        session: environment.secret("AWS_SESSION_TOKEN").cloned(),
    })
}
