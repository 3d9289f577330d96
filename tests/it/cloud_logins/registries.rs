//! Cloud logins in use: from an object's settings to the listing of tags.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use tagboat::net::Proxy;
use tagboat::reference::RepositoryAddress;
use tagboat::registry::{
    CloudIdentity, Listed, LoginChoice, ProxyChoice, Registries, RegistryError, RepositoryAuth, Route, Tls,
};
use tagboat::secrets::{Secret, SecretData};

use super::{ECR, KEYS, options, provider};
use crate::support::certificates::Authority;
use crate::support::http_front::{Front, Reply};
use crate::support::proxy_host::ProxyHost;
use crate::support::recording::Recording;

/// `AWS:hunter2` as an `Authorization` header.
const SHOWN: &str = "Basic QVdTOmh1bnRlcjI=";

/// The answers of a registry of AWS, which wants a password.
fn plan(request: &crate::support::git_host::request::Request) -> Reply {
    match request.authorization() {
        Some(SHOWN) => Reply::body(200, r#"{"tags": ["1.0.0"]}"#),
        _ => Reply::status(401).with("WWW-Authenticate", "Basic realm=\"https://012345678901.dkr.ecr/\""),
    }
}

/// Access to an image through a proxy that connects to the registry of the test.
fn access(image: &str, proxy: &ProxyHost, authority: Option<&Authority>) -> RepositoryAuth {
    let data = BTreeMap::from([("address".to_owned(), Secret::new(proxy.url()))]);
    let proxy = Proxy::from_secret(SecretData { name: "apps/proxy", data: &data }).unwrap();
    let authority = authority.map(|authority| Secret::new(fs::read(authority.certificate_file()).unwrap()));
    RepositoryAuth {
        namespace: "apps".to_owned(),
        referred_from: None,
        address: RepositoryAddress::parse(image, authority.is_none()).unwrap(),
        login: LoginChoice::Cloud(provider(image), CloudIdentity::Process),
        route: Route { tls: Tls { authority, identity: None }, proxy: ProxyChoice::Given(proxy) },
        secrets: Vec::new(),
        timeout: Duration::from_secs(20),
    }
}

async fn list(registries: &Registries, access: RepositoryAuth) -> Result<Vec<String>, RegistryError> {
    match registries.list(access, None).await? {
        Listed::Tags(listing) => Ok(listing.tags.iter().map(str::to_owned).collect()),
        Listed::Unchanged => panic!("nothing was known before"),
    }
}

#[tokio::test]
async fn a_registry_of_a_cloud_is_listed_with_its_token() {
    let authority = Authority::new();
    let host = ECR.split('/').next().unwrap();
    let registry = Front::secured(None, authority.server_named(host, false), plan);
    let proxy = ProxyHost::start_knowing(&format!("{host}:443"), &registry.address());
    let recording = Recording::replay(&["aws-token-at-any-time"]);
    let registries = Registries::new(options(&recording, &KEYS));
    for _ in 0..2 {
        assert_eq!(list(&registries, access(ECR, &proxy, Some(&authority))).await.unwrap(), ["1.0.0"]);
    }
    // Another namespace acts as the same controller.
    let other = RepositoryAuth { namespace: "other".to_owned(), ..access(ECR, &proxy, Some(&authority)) };
    assert_eq!(list(&registries, other).await.unwrap(), ["1.0.0"]);
    recording.finish();
    // The services of the cloud are reached through the object's proxy, as with Flux.
    let lines = proxy.requests().into_iter().map(|request| request.line);
    assert_eq!(lines.filter(|line| line.starts_with("POST http://127.0.0.1:")).count(), 1);
}

#[tokio::test]
async fn the_login_of_a_cloud_is_not_shown_without_encryption() {
    let registry = Front::alone(plan);
    let host = ECR.split('/').next().unwrap();
    let proxy = ProxyHost::start_knowing(host, &registry.address());
    let recording = Recording::replay(&["aws-token-at-any-time"]);
    let registries = Registries::new(options(&recording, &KEYS));
    let error = list(&registries, access(ECR, &proxy, None)).await.unwrap_err();
    assert!(error.to_string().contains("without TLS: remove spec.insecure"), "{error}");
    assert!(registry.requests().iter().all(|request| request.authorization().is_none()));
    recording.finish();
}
