//! Logins at clouds, with recorded exchanges.

mod aws_signatures;
mod cluster_tokens;
mod credential_files;
mod credentials;
mod errors;
mod git_servers;
mod registries;
mod service_accounts;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tagboat::reference::RepositoryAddress;
use tagboat::registry::{
    CloudEndpoints, CloudEnvironment, CloudIdentity, CloudOptions, CloudProvider, Clouds, Credential,
    CredentialCacheOptions, LoginError, ProxyChoice, RegistryOptions,
};

use crate::support::recording::Recording;

const ECR: &str = "012345678901.dkr.ecr.eu-west-1.amazonaws.com/app/web";
const ACR: &str = "org.azurecr.io/app/web";
const GAR: &str = "europe-docker.pkg.dev/project/app/web";

/// The environment variables of a process with its keys in the environment.
const KEYS: [(&str, &str); 2] = [
    ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
];

/// The time that is `seconds` after the start of the records.
fn after(seconds: i64) -> Timestamp {
    let begin: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    begin + SignedDuration::from_secs(seconds)
}

/// The clouds of a process with some environment variables; one server replays all of them.
fn clouds(recording: &Recording, variables: &[(&str, &str)]) -> Arc<Clouds> {
    let options = options(recording, variables);
    Arc::new(Clouds::new(options.http(), options.clouds.clone()))
}

fn options(recording: &Recording, variables: &[(&str, &str)]) -> RegistryOptions {
    let variables: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let url = || recording.front.url("/").parse().unwrap();
    let endpoints = CloudEndpoints {
        aws: Some(url()),
        aws_metadata: url(),
        aws_containers: url(),
        azure_authority: Some(url()),
        azure_metadata: url(),
        azure_registry: Some(url()),
        google_metadata: url(),
        google_exchange: url(),
        google_accounts: url(),
        google_tokens: url(),
    };
    let clouds = CloudOptions {
        environment: CloudEnvironment::of(|name| variables.get(name).cloned()),
        endpoints,
        credential_cache: CredentialCacheOptions {
            max_ttl: std::time::Duration::from_secs(24 * 60 * 60),
            ..CredentialCacheOptions::default()
        },
    };
    RegistryOptions { clouds, ..RegistryOptions::default() }
}

/// The provider of an image's registry.
fn provider(image: &str) -> CloudProvider {
    let host = image.split('/').next().unwrap_or_default();
    if host.ends_with(".azurecr.io") {
        CloudProvider::Azure
    } else if host.ends_with(".pkg.dev") {
        CloudProvider::Google
    } else {
        CloudProvider::Aws
    }
}

/// Logs in at the registry of an image and returns user and password.
async fn log_in(clouds: &Arc<Clouds>, image: &str, now: Timestamp) -> Result<(String, String), LoginError> {
    log_in_as(clouds, CloudIdentity::Process, image, now).await
}

/// Logs in with an identity.
async fn log_in_as(
    clouds: &Arc<Clouds>,
    identity: CloudIdentity,
    image: &str,
    now: Timestamp,
) -> Result<(String, String), LoginError> {
    let address = RepositoryAddress::parse(image, false).unwrap();
    let login = clouds.login(provider(image), identity, ProxyChoice::Direct, "apps".to_owned());
    let text = |secret: &tagboat::secrets::Secret| String::from_utf8(secret.expose().to_vec()).unwrap();
    match login.credential(&address, now).await? {
        Credential::Basic { user, password } => Ok((text(&user), text(&password))),
        other => panic!("{other:?}"),
    }
}
