//! The registry client, with the real registry and with faults in front of it.

mod ages;
mod coalescing;
mod credential_scope;
mod fairness;
mod faults;
mod list_memory;
mod listings;
mod local_addresses;
mod logins;
mod manifests;
mod response_limits;

use std::time::Duration;

use tagboat::reference::RepositoryAddress;
use tagboat::registry::{
    Credential, Listed, LoginChoice, ProxyChoice, RateLimitOptions, Registries, RegistryError,
    RegistryOptions, RepositoryAuth, Route, Timeouts,
};
use tagboat::secrets::Secret;

use crate::support::registry::{PASSWORD, USER};

/// Anonymous access to a repository, without a proxy.
fn anonymous(server: &str, repository: &str) -> RepositoryAuth {
    RepositoryAuth {
        namespace: "apps".to_owned(),
        referred_from: None,
        address: RepositoryAddress::parse(&format!("{server}/{repository}"), false).unwrap(),
        login: LoginChoice::default(),
        route: Route { proxy: ProxyChoice::Direct, ..Route::default() },
        secrets: Vec::new(),
        timeout: Duration::from_secs(20),
    }
}

/// Access with the login of registries that want a password.
fn user(server: &str, repository: &str) -> RepositoryAuth {
    let credential = Credential::Basic { user: Secret::new(USER), password: Secret::new(PASSWORD) };
    RepositoryAuth { login: credential.into(), ..anonymous(server, repository) }
}

fn registries() -> Registries {
    Registries::new(RegistryOptions::default())
}

/// Registries with short timeouts and a low rate limit.
fn with_short_timeouts() -> Registries {
    let limit = Duration::from_millis(500);
    Registries::new(RegistryOptions {
        rate_limits: RateLimitOptions { concurrency: 2, per_second: 100, burst: 20 },
        timeouts: Timeouts { connect: limit, first_byte: limit, between_bytes: limit, ..Timeouts::default() },
        ..RegistryOptions::default()
    })
}

/// The tags of a listing.
async fn tags(access: RepositoryAuth) -> Result<Vec<String>, RegistryError> {
    tags_by(&registries(), access).await
}

async fn tags_by(registries: &Registries, access: RepositoryAuth) -> Result<Vec<String>, RegistryError> {
    match registries.list(access, None).await? {
        Listed::Tags(listing) => Ok(listing.tags.iter().map(str::to_owned).collect()),
        Listed::Unchanged => panic!("nothing was known before"),
    }
}
