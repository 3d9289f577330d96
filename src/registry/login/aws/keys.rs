//! Our keys at AWS: of the environment, of a web identity, of a profile, of the container, or of the instance.
//!
//! The order is that of AWS's own libraries.

use futures::FutureExt;
use futures::future::BoxFuture;

use super::profile::{self, Source};
use super::registry::EcrRegistry;
use super::roles::{self, Proof, Role};
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
        let role = Role { arn, session: environment.text("AWS_ROLE_SESSION_NAME"), external_id: None };
        let token = environment::whole_text(&token);
        return roles::assume(registry, &role, Proof::Token(roles::OF_THE_ENVIRONMENT, &token), visit).await;
    }
    match profile::source(environment).await? {
        Some(source) => of_a_source(registry, &source, visit).await,
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

/// The keys that a profile leads to, perhaps by roles over roles.
fn of_a_source<'s>(
    registry: &'s EcrRegistry,
    source: &'s Source,
    visit: Visit<'s>,
) -> BoxFuture<'s, Result<Lasting<Keys>, LoginError>> {
    let missing = |what: &str, flaw: &str| LoginError::Setting {
        cloud: CLOUD,
        what: format!("credential_source = {what} of the profile"),
        flaw: flaw.to_owned(),
    };
    async move {
        match source {
            Source::Keys(keys) => Ok(Lasting { value: keys.clone(), ends: None }),
            Source::Token(role, file) => {
                let token = environment::whole_text(&token_file(CLOUD, file.clone()).await?);
                roles::assume(registry, role, Proof::Token(roles::OF_A_PROFILE, &token), visit).await
            }
            Source::Role(role, by) => {
                let keys = of_a_source(registry, by, visit).await?.value;
                roles::assume(registry, role, Proof::Keys(&keys), visit).await
            }
            Source::Environment => {
                let keys = given(&visit.clouds.options.environment);
                let keys = keys.ok_or_else(|| missing("Environment", "finds no keys in the environment"))?;
                Ok(Lasting { value: keys, ends: None })
            }
            Source::Container => {
                let url = metadata::container_url(visit)?;
                let url =
                    url.ok_or_else(|| missing("EcsContainer", "finds no container: no variable names it"))?;
                metadata::of_the_container(url, visit).await
            }
            Source::Instance => metadata::of_the_instance(visit).await,
        }
    }
    .boxed()
}
