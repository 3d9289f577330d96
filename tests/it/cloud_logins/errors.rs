//! Errors of cloud logins: one message each, without a secret in it.

use tagboat::error::chain;
use tagboat::registry::{CloudIdentity, CloudProvider, Clouds, ProxyChoice, RegistryError};

use super::{ACR, ECR, GAR, KEYS, after, clouds, log_in, options};
use crate::support::recording::Recording;

/// The error message of a login that fails.
async fn sentence(names: &[&str], variables: &[(&str, &str)], image: &str) -> String {
    let recording = Recording::replay(names);
    let error = log_in(&clouds(&recording, variables), image, after(0)).await.unwrap_err();
    recording.finish();
    let error = RegistryError::from(error);
    let sentence = chain(&error);
    assert!(!sentence.contains("hunter") && !sentence.contains("jwt of the pod"), "{sentence}");
    sentence
}

#[tokio::test]
async fn a_refusal_of_a_cloud_is_quoted() {
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token").display().to_string();
    std::fs::write(&token, "jwt of the pod").unwrap();
    let role = [("AWS_ROLE_ARN", "arn:aws:iam::0:role/x"), ("AWS_WEB_IDENTITY_TOKEN_FILE", token.as_str())];
    let workload = [
        ("AZURE_CLIENT_ID", "client-1"),
        ("AZURE_TENANT_ID", "tenant-1"),
        ("AZURE_FEDERATED_TOKEN_FILE", token.as_str()),
    ];
    for (names, variables, image, words) in [
        (
            &["aws-role-refused"][..],
            &role[..],
            ECR,
            "cannot log in at AWS: the role of AWS_ROLE_ARN (AssumeRoleWithWebIdentity) is refused with status 403: \
             AccessDenied: Not authorized to perform sts:AssumeRoleWithWebIdentity",
        ),
        (
            &["aws-token-refused"],
            &KEYS,
            ECR,
            "cannot log in at AWS: a token of the registry (GetAuthorizationToken) is refused with status 400: \
             AccessDeniedException: User: arn:aws:iam::012345678901:user/x is not authorized to perform: \
             ecr:GetAuthorizationToken on resource: * because no identity-based policy allows it",
        ),
        (
            &["azure-refused"],
            &workload,
            ACR,
            "cannot log in at Azure: a token of Azure is refused with status 400: unauthorized_client: AADSTS700016: \
             Application with identifier 'client-1' was not found in the directory 'Org'.",
        ),
        (
            &["azure-workload", "azure-exchange-refused"],
            &workload,
            ACR,
            "cannot log in at Azure: a token of the registry is refused with status 401: UNAUTHORIZED: authentication \
             required, visit https://aka.ms/acr/authorization for more information.",
        ),
        (
            &["google-refused"],
            &[],
            GAR,
            "cannot log in at GCP: a token of the service account is refused with status 404: not_found: Unable to \
             generate access token; the service account default does not exist",
        ),
    ] {
        assert_eq!(sentence(names, variables, image).await, words);
    }
}

#[tokio::test]
async fn a_variable_that_leads_nowhere_is_named() {
    let missing = "/nonexistent/token";
    for (variables, image, words) in [
        (
            &[("AWS_ROLE_ARN", "x"), ("AWS_WEB_IDENTITY_TOKEN_FILE", missing)][..],
            ECR,
            "cannot log in at AWS: the environment variable AWS_WEB_IDENTITY_TOKEN_FILE names \
             /nonexistent/token, which cannot be read: No such file or directory (os error 2)",
        ),
        (
            &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.com/credentials")],
            ECR,
            "cannot log in at AWS: the environment variable AWS_CONTAINER_CREDENTIALS_FULL_URI is neither an https \
             address nor one of this machine or its network link",
        ),
        (
            &[("AZURE_CLIENT_ID", "x"), ("AZURE_TENANT_ID", "../x"), ("AZURE_CLIENT_SECRET", "hunter2")],
            ACR,
            "cannot log in at Azure: the environment variable AZURE_TENANT_ID is not a tenant: write its ID or its \
             name",
        ),
    ] {
        assert_eq!(sentence(&[], variables, image).await, words);
    }
    let disabled = sentence(&[], &[("AWS_EC2_METADATA_DISABLED", "true")], ECR).await;
    assert!(
        disabled.contains(
            "disables the metadata service of the instance, and there is neither AWS_ACCESS_KEY_ID"
        ),
        "{disabled}"
    );
}

#[tokio::test]
async fn without_an_identity_the_error_lists_the_sources() {
    let gone = Recording::replay(&[]);
    let mut options = options(&gone, &[]);
    drop(gone);
    // The port is free again, and is not reused at once.
    options.timeouts.connect = std::time::Duration::from_secs(5);
    let known = std::sync::Arc::new(Clouds::new(options.http(), options.clouds.clone()));
    for (image, words) in [
        (
            ECR,
            "cannot log in at AWS: there is neither AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, nor AWS_ROLE_ARN",
        ),
        (ACR, "cannot log in at Azure: there is neither AZURE_CLIENT_SECRET nor AZURE_FEDERATED_TOKEN_FILE"),
        (GAR, "cannot log in at GCP: there is no credentials file in GOOGLE_APPLICATION_CREDENTIALS"),
    ] {
        let sentence = chain(&log_in(&known, image, after(0)).await.unwrap_err());
        assert!(sentence.starts_with(words), "{sentence}");
        assert!(sentence.contains("the metadata server of the machine does not respond: "), "{sentence}");
    }
}

#[tokio::test]
async fn a_registry_of_another_namespace_is_refused_with_the_message_of_flux() {
    let recording = Recording::replay(&[]);
    let known = clouds(&recording, &KEYS);
    for (provider, cloud) in
        [(CloudProvider::Aws, "AWS"), (CloudProvider::Azure, "Azure"), (CloudProvider::Google, "GCP")]
    {
        let address = tagboat::reference::RepositoryAddress::parse("ghcr.io/org/web", false).unwrap();
        let login = known.login(provider, CloudIdentity::Process, ProxyChoice::Direct, "apps".to_owned());
        let error = login.credential(&address, after(0)).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("invalid {cloud} registry: 'ghcr.io'. must match ^")), "{error}");
    }
    recording.finish();
}

#[tokio::test]
async fn a_cloud_of_ones_own_has_registries_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("environment.json");
    std::fs::write(&file, r#"{"containerRegistryDNSSuffix": "azurecr.private"}"#).unwrap();
    let path = file.display().to_string();
    let variables = [("AZURE_ENVIRONMENT_FILEPATH", path.as_str()), ("AZURE_CLIENT_ID", "client-1")];
    let recording = Recording::replay(&["azure-machine", "azure-exchange"]);
    log_in(&clouds(&recording, &variables), ACR, after(0)).await.unwrap();
    recording.finish();
    let recording = Recording::replay(&[]);
    let login = clouds(&recording, &variables).login(
        CloudProvider::Azure,
        CloudIdentity::Process,
        ProxyChoice::Direct,
        "apps".to_owned(),
    );
    let address = tagboat::reference::RepositoryAddress::parse("ghcr.io/org/web", false).unwrap();
    let error = login.credential(&address, after(0)).await.unwrap_err().to_string();
    assert_eq!(error, "invalid Azure registry: 'ghcr.io'. must end with azurecr.private");
}
