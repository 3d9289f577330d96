//! Tests of tokens of a real cluster.
//! They are created with the generated roles, for one audience, in the namespaces that allow it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use serde_json::{Value, json};
use tagboat::error::chain;
use tagboat::objects::cluster::ClusterObjects;
use tagboat::permissions;
use tagboat::reconcile::repository::access::{NamespacePool, access};
use tagboat::reconcile::repository::access_error::AccessError;
use tagboat::reconcile::repository::logins::{Logins, ServiceAccounts};
use tagboat::registry::{CloudIdentity, LoginChoice};
use tagboat::tenancy::BlockingPool;
use tagboat_api::ImageRepository;

use super::{ECR, after, clouds, log_in_as};
use crate::support::api_server::{Cluster, apply, documents};
use crate::support::recording::Recording;

async fn account(cluster: &Cluster, namespace: &str, name: &str) {
    let role = json!({"eks.amazonaws.com/role-arn": "arn:aws:iam::012345678901:role/web"});
    let object = json!({"metadata": {"name": name, "annotations": role}});
    let api: Api<ServiceAccount> = Api::namespaced(cluster.client(), namespace);
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// Allows the controller to create tokens in the test's namespace.
async fn allow_tokens(cluster: &Cluster) {
    let files = permissions::files(None);
    let file = files.iter().find(|file| file.path == "rbac/account-tokens.yaml").unwrap();
    let name = format!("tagboat-account-tokens-{}", cluster.namespace());
    for mut document in documents(&file.text) {
        assert_eq!(document["kind"], "ClusterRole");
        document["metadata"]["name"] = json!(name);
        apply(&cluster.client(), &document, false).await.unwrap();
    }
    let subject = Subject {
        kind: "ServiceAccount".to_owned(),
        name: "tagboat".to_owned(),
        namespace: Some(cluster.namespace().to_owned()),
        ..Subject::default()
    };
    let binding = RoleBinding {
        metadata: ObjectMeta { name: Some("account-tokens".to_owned()), ..ObjectMeta::default() },
        role_ref: RoleRef {
            api_group: "rbac.authorization.k8s.io".to_owned(),
            kind: "ClusterRole".to_owned(),
            name,
        },
        subjects: Some(vec![subject]),
    };
    let bindings: Api<RoleBinding> = Api::default_namespaced(cluster.client());
    bindings.create(&PostParams::default(), &binding).await.unwrap();
}

fn repository(namespace: &str, account: Option<&str>) -> ImageRepository {
    let mut spec = json!({"image": ECR, "interval": "1m", "provider": "aws"});
    if let Some(account) = account {
        spec["serviceAccountName"] = json!(account);
    }
    serde_json::from_value(json!({"metadata": {"namespace": namespace, "name": "web"}, "spec": spec}))
        .unwrap()
}

/// The cloud identity of an object.
async fn identity(
    objects: &ClusterObjects,
    repository: &ImageRepository,
    default: Option<&str>,
) -> Result<CloudIdentity, AccessError> {
    let accounts =
        ServiceAccounts { accounts: Arc::new(objects.accounts()), default: default.map(str::to_owned) };
    let pool = BlockingPool::for_this_machine();
    let namespace_pool = NamespacePool { pool: &pool, namespace: "apps" };
    let found = access(objects, repository, &Logins::Named(Some(accounts)), namespace_pool).await?;
    match found.access.login {
        LoginChoice::Cloud(_, identity) => Ok(identity),
        LoginChoice::Given(_) => panic!("a cloud is asked"),
    }
}

#[tokio::test]
async fn a_token_of_a_cluster_is_for_one_account_and_one_audience() {
    let cluster = Cluster::new().await;
    let elsewhere = cluster.another_namespace().await;
    let here = cluster.namespace();
    for namespace in [here, &elsewhere] {
        account(&cluster, namespace, "puller").await;
    }
    let objects = ClusterObjects::new(cluster.client_with(&cluster.token_with_the_roles().await).await);
    // The default roles do not allow tokens.
    let puller = identity(&objects, &repository(here, Some("puller")), None).await.unwrap();
    let nothing = Recording::replay(&[]);
    let error = log_in_as(&clouds(&nothing, &[]), puller.clone(), ECR, after(0)).await.unwrap_err();
    let words = chain(&error);
    assert!(words.contains(r#"cannot create resource "serviceaccounts/token""#), "{words}");
    assert!(words.ends_with("serviceaccounts/token, see deploy/rbac/account-tokens.yaml"), "{words}");

    allow_tokens(&cluster).await;
    let begin = Instant::now();
    let requests = loop {
        // A binding is in force a moment after it is created.
        let recording = Recording::replay(&["aws-account-of-a-cluster", "aws-token-with-session"]);
        match log_in_as(&clouds(&recording, &[]), puller.clone(), ECR, after(0)).await {
            Ok((_, password)) => {
                assert_eq!(password, "hunter2");
                break recording.finish();
            }
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(60), "{}", chain(&error)),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let form: std::collections::BTreeMap<String, String> =
        url::form_urlencoded::parse(&requests[0].body).into_owned().collect();
    // AWS accepts at most 64 characters, and names of tests are long.
    let session = format!("puller.{here}.eu-west-1.fluxcd.io");
    assert_eq!(form["RoleSessionName"], session[..session.len().min(64)]);
    let claims = form["WebIdentityToken"].split('.').nth(1).unwrap();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    assert_eq!(claims["aud"], json!(["sts.amazonaws.com"]));
    assert_eq!(claims["sub"], format!("system:serviceaccount:{here}:puller"));
    assert_eq!(claims["kubernetes.io"]["namespace"], here);

    // The binding is for one namespace.
    let other = identity(&objects, &repository(&elsewhere, Some("puller")), None).await.unwrap();
    assert_ne!(other.fingerprint(), puller.fingerprint());
    let error = log_in_as(&clouds(&nothing, &[]), other, ECR, after(0)).await.unwrap_err();
    assert!(chain(&error).contains("cannot create resource"), "{}", chain(&error));
    nothing.finish();
}

#[tokio::test]
async fn the_account_of_the_object_has_precedence_over_the_default() {
    let cluster = Cluster::new().await;
    let here = cluster.namespace();
    account(&cluster, here, "puller").await;
    account(&cluster, here, "tenant").await;
    let objects = ClusterObjects::new(cluster.client());
    let name = |identity: CloudIdentity| match identity {
        CloudIdentity::Account(account) => {
            assert_eq!(account.namespace, here);
            Some(account.name)
        }
        CloudIdentity::Process => None,
    };
    for (named, default, expected) in [
        (None, None, None),
        (Some("puller"), None, Some("puller")),
        (Some("puller"), Some("tenant"), Some("puller")),
        (None, Some("tenant"), Some("tenant")),
        (Some(""), Some("tenant"), Some("tenant")),
    ] {
        let found = identity(&objects, &repository(here, named), default).await.unwrap();
        assert_eq!(name(found).as_deref(), expected);
    }
    // Flux reports it when the registry wants a login, so it is an error of the scan.
    for (named, default, expected) in [
        (
            Some("nobody"),
            Some("tenant"),
            format!(
                "cannot log in as the service account '{here}/nobody': serviceaccount '{here}/nobody' not found"
            ),
        ),
        (
            None,
            Some("nobody"),
            format!(
                "cannot log in as '{here}/nobody': the specified default service account does not exist in the object \
                 namespace. your cluster is subject to multi-tenant workload identity lockdown, reach out to your cluster \
                 administrator for help"
            ),
        ),
    ] {
        let error = identity(&objects, &repository(here, named), default).await.unwrap_err();
        assert_eq!(chain(&error), expected);
        assert!(error.is_late());
    }
    let pool = BlockingPool::for_this_machine();
    let namespace_pool = NamespacePool { pool: &pool, namespace: "apps" };
    let named = repository(here, Some("puller"));
    let error = access(&objects, &named, &Logins::default(), namespace_pool).await.unwrap_err();
    assert!(matches!(error, AccessError::Identity), "{error}");
}
