//! Tests of the exchange of cloud identities for user and password.
//! These are cached for everything that may share them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tagboat::reference::RepositoryAddress;
use tagboat::registry::{
    CloudEndpoints, CloudEnvironment, CloudIdentity, CloudOptions, CloudProvider, Clouds,
    CredentialCacheOptions, ProxyChoice, RegistryOptions,
};

use super::{ACR, ECR, GAR, KEYS, after, clouds, log_in};
use crate::support::http_front::{Front, Reply};
use crate::support::recording::Recording;

const ROLE: (&str, &str) = ("AWS_ROLE_ARN", "arn:aws:iam::012345678901:role/tagboat");
const AWS_USER: (&str, &str) = ("AWS", "hunter2");
const ACR_USER: (&str, &str) = (
    "00000000-0000-0000-0000-000000000000",
    "eyJhbGciOiJSUzI1NiJ9.eyJqdGkiOiIxIiwiZXhwIjoxNzY3MzMzODQ1fQ.signature",
);

/// A file as a cluster mounts it into a pod.
fn file(content: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    std::fs::write(&path, format!("{content}\n")).unwrap();
    let path = path.display().to_string();
    (directory, path)
}

/// Logs in at a registry, with a record that is replayed completely.
async fn succeeds(names: &[&str], variables: &[(&str, &str)], image: &str, user: (&str, &str)) {
    let recording = Recording::replay(names);
    let clouds = clouds(&recording, variables);
    let found = log_in(&clouds, image, after(0)).await;
    recording.replayed();
    let (name, password) = found.unwrap_or_else(|error| panic!("{names:?}: {error}"));
    assert_eq!((name.as_str(), password.as_str()), user, "{names:?}");
    recording.finish();
}

#[tokio::test]
async fn every_identity_of_aws_leads_to_a_password() {
    let (_directory, token) = file("jwt of the pod");
    let (_other, container) = file("token of the container");
    let role = [ROLE, ("AWS_WEB_IDENTITY_TOKEN_FILE", token.as_str())];
    succeeds(&["aws-token"], &KEYS, ECR, AWS_USER).await;
    succeeds(&["aws-public"], &KEYS, "public.ecr.aws/org/web", AWS_USER).await;
    succeeds(&["aws-role", "aws-token-with-session"], &role, ECR, AWS_USER).await;
    let relative = [
        ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v1/credentials"),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "token of the container"),
    ];
    succeeds(&["aws-container", "aws-token-with-session"], &relative, ECR, AWS_USER).await;
    let recording = Recording::replay(&["aws-container", "aws-token-with-session"]);
    let url = recording.front.url("/v1/credentials");
    let full = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", url.as_str()),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", container.as_str()),
    ];
    log_in(&clouds(&recording, &full), ECR, after(0)).await.unwrap();
    recording.finish();
    succeeds(&["aws-instance", "aws-token-with-session"], &[], ECR, AWS_USER).await;
    // Keys in the environment have precedence.
    let all: Vec<_> = KEYS.into_iter().chain(role).chain(relative).collect();
    succeeds(&["aws-token"], &all, ECR, AWS_USER).await;
}

#[tokio::test]
async fn every_identity_of_azure_leads_to_a_password() {
    let (_directory, token) = file("jwt of the pod");
    let who = [("AZURE_CLIENT_ID", "client-1"), ("AZURE_TENANT_ID", "tenant-1")];
    let with = |more: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
        who.iter().chain(more).map(|(name, value)| (*name, (*value).to_owned())).collect()
    };
    for (record, variables) in [
        ("azure-workload", with(&[("AZURE_FEDERATED_TOKEN_FILE", token.as_str())])),
        (
            "azure-secret",
            with(&[("AZURE_FEDERATED_TOKEN_FILE", token.as_str()), ("AZURE_CLIENT_SECRET", "hunter5")]),
        ),
        ("azure-machine", with(&[])),
    ] {
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        succeeds(&[record, "azure-exchange"], &variables, ACR, ACR_USER).await;
    }
}

#[tokio::test]
async fn the_metadata_server_of_google_gives_a_password() {
    succeeds(&["google-machine"], &[], GAR, ("oauth2accesstoken", "hunter2")).await;
    let recording = Recording::replay(&["google-machine"]);
    let address = recording.front.address();
    let nowhere = Recording::replay(&[]);
    let clouds = clouds(&nowhere, &[("GCE_METADATA_HOST", &address)]);
    log_in(&clouds, GAR, after(0)).await.unwrap();
    recording.finish();
    nowhere.finish();
}

#[tokio::test]
async fn a_login_is_kept_until_shortly_before_its_end() {
    // The token expires at 15:04:05, twelve hours after the start of the record.
    let recording = Recording::replay(&["aws-token"]);
    let known = clouds(&recording, &KEYS);
    for seconds in [0, 3600, 12 * 3600 - 301] {
        log_in(&known, ECR, after(seconds)).await.unwrap();
    }
    // All registries of a region have one token.
    log_in(&known, "999999999999.dkr.ecr.eu-west-1.amazonaws.com/other", after(60)).await.unwrap();
    assert_eq!(recording.replayed(), 1);
    let error = log_in(&known, ECR, after(12 * 3600 - 299)).await.unwrap_err();
    assert!(error.to_string().contains("GetAuthorizationToken"), "{error}");
    assert!(recording.front.requests().len() > 1);
}

#[tokio::test]
async fn tokens_of_azure_are_shared_and_tokens_of_registries_are_not() {
    let recording = Recording::replay(&["azure-machine", "azure-exchange", "azure-exchange-of-another"]);
    let known = clouds(&recording, &[("AZURE_CLIENT_ID", "client-1")]);
    log_in(&known, ACR, after(0)).await.unwrap();
    // Another repository of the registry, and another registry: the token of Azure is cached already.
    log_in(&known, "org.azurecr.io/other", after(10)).await.unwrap();
    assert_eq!(recording.replayed(), 2);
    log_in(&known, "second.azurecr.io/other", after(10)).await.unwrap();
    recording.finish();
}

#[tokio::test]
async fn concurrent_logins_are_one_request_to_the_cloud() {
    let recording = Recording::replay(&["google-machine"]);
    let known = clouds(&recording, &[]);
    let all = (0..20).map(|_| log_in(&known, GAR, after(0)));
    for found in futures::future::join_all(all).await {
        assert_eq!(found.unwrap().1, "hunter2");
    }
    recording.finish();
}

#[tokio::test]
async fn another_proxy_gets_another_token() {
    let recording = Recording::replay(&["aws-token", "aws-token"]);
    let known = clouds(&recording, &KEYS);
    log_in(&known, ECR, after(0)).await.unwrap();
    let address = tagboat::reference::RepositoryAddress::parse(ECR, false).unwrap();
    let proxy = crate::support::proxy_host::ProxyHost::start();
    let data = std::collections::BTreeMap::from([(
        "address".to_owned(),
        tagboat::secrets::Secret::new(proxy.url()),
    )]);
    let given =
        tagboat::net::Proxy::from_secret(tagboat::secrets::SecretData { name: "apps/proxy", data: &data });
    let given = tagboat::registry::ProxyChoice::Given(given.unwrap());
    let login = known.login(
        tagboat::registry::CloudProvider::Aws,
        tagboat::registry::CloudIdentity::Process,
        given,
        "apps".to_owned(),
    );
    login.credential(&address, after(0)).await.unwrap();
    assert_eq!(proxy.requests().len(), 1);
    recording.finish();
}

/// The regions of one namespace displace no login of another.
/// Objects choose the region of a login. Formerly, all logins of this process were counted for one namespace.
#[tokio::test]
async fn the_regions_of_one_namespace_displace_no_login_of_another() {
    let front = Front::alone(|_| {
        let token = r#"{"authorizationToken": "QVdTOmh1bnRlcjI=", "expiresAt": 4102444800}"#;
        Reply::body(200, format!("{{\"authorizationData\": [{token}]}}"))
    });
    let variables: BTreeMap<&str, String> =
        KEYS.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let options = CloudOptions {
        environment: CloudEnvironment::of(|name| variables.get(name).cloned()),
        endpoints: CloudEndpoints { aws: Some(front.url("/").parse().unwrap()), ..CloudEndpoints::default() },
        credential_cache: CredentialCacheOptions { max_entries: 4, ..CredentialCacheOptions::default() },
    };
    let clouds = Arc::new(Clouds::new(RegistryOptions::default().http(), options));
    let log_in = async |namespace: &str, region: &str| {
        let image = format!("012345678901.dkr.ecr.{region}.amazonaws.com/web");
        let address = RepositoryAddress::parse(&image, false).unwrap();
        let (provider, identity) = (CloudProvider::Aws, CloudIdentity::Process);
        let login = clouds.login(provider, identity, ProxyChoice::Direct, namespace.to_owned());
        login.credential(&address, after(0)).await.unwrap();
    };
    log_in("victim", "us-east-1").await;
    for number in 1..=8 {
        log_in("attacker", &format!("eu-west-{number}")).await;
    }
    let asked = front.requests().len();
    assert_eq!(asked, 9);
    log_in("victim", "us-east-1").await;
    assert_eq!(front.requests().len(), asked, "the victim's login is still known");
}
