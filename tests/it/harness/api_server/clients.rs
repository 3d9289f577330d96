//! Permissions of clients: RBAC is on.

use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use kube::api::{Api, ListParams, ObjectMeta, PostParams};

use super::{config_map, config_maps};
use crate::support::api_server::{Audited, Cluster};

fn code(error: kube::Error) -> u16 {
    let kube::Error::Api(status) = error else { panic!("no answer of the server: {error}") };
    status.code
}

#[tokio::test]
async fn a_user_without_a_role_may_do_nothing() {
    let cluster = Cluster::new().await;
    let error = config_maps(cluster.client_as("nobody")).list(&ListParams::default()).await.unwrap_err();
    assert!(error.to_string().contains(r#"User "nobody" cannot list resource "configmaps""#), "{error}");
    assert_eq!(code(error), 403);
    let error = config_maps(cluster.client_with("no-token").await).get("any").await.unwrap_err();
    assert_eq!(code(error), 401);
}

#[tokio::test]
async fn a_service_account_has_the_permissions_of_its_role() {
    let cluster = Cluster::new().await;
    let metadata = || ObjectMeta { name: Some("reader".to_owned()), ..ObjectMeta::default() };
    let rule = PolicyRule {
        api_groups: Some(vec![String::new()]),
        resources: Some(vec!["configmaps".to_owned()]),
        verbs: vec!["get".to_owned(), "list".to_owned()],
        ..PolicyRule::default()
    };
    let role = Role { metadata: metadata(), rules: Some(vec![rule]) };
    Api::<Role>::default_namespaced(cluster.client()).create(&PostParams::default(), &role).await.unwrap();
    let role_ref = RoleRef {
        api_group: "rbac.authorization.k8s.io".to_owned(),
        kind: "Role".to_owned(),
        name: "reader".to_owned(),
    };
    let subject = Subject {
        kind: "ServiceAccount".to_owned(),
        name: "bot".to_owned(),
        namespace: Some(cluster.namespace().to_owned()),
        ..Subject::default()
    };
    let binding = RoleBinding { metadata: metadata(), role_ref, subjects: Some(vec![subject]) };
    let bindings: Api<RoleBinding> = Api::default_namespaced(cluster.client());
    bindings.create(&PostParams::default(), &binding).await.unwrap();

    let token = cluster.token("bot").await;
    let impersonated = cluster.client_as(&format!("system:serviceaccount:{}:bot", cluster.namespace()));
    for client in [cluster.client_with(&token).await, impersonated] {
        // A binding is in force a moment after it is created.
        let begin = std::time::Instant::now();
        while let Err(error) = config_maps(client.clone()).list(&ListParams::default()).await {
            assert!(begin.elapsed().as_secs() < 60, "{error}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let made = config_maps(client).create(&PostParams::default(), &config_map("attempt")).await;
        assert_eq!(code(made.unwrap_err()), 403);
    }
}

#[tokio::test]
async fn a_kubeconfig_leads_to_the_namespace() {
    let cluster = Cluster::new().await;
    let file = cluster.kubeconfig(&cluster.token("bot").await);
    let kubeconfig = kube::config::Kubeconfig::read_from(&file).unwrap();
    let options = kube::config::KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    config.proxy_url = None;
    assert_eq!(config.default_namespace, cluster.namespace());
    let error =
        config_maps(kube::Client::try_from(config).unwrap()).list(&ListParams::default()).await.unwrap_err();
    let user = format!("system:serviceaccount:{}:bot", cluster.namespace());
    assert!(error.to_string().contains(&user), "{error}");
}

#[tokio::test]
async fn the_audit_log_has_users_and_requests() {
    let cluster = Cluster::new().await;
    let client = cluster.client_with(&cluster.token_with_the_roles().await).await;
    config_maps(client.clone()).create(&PostParams::default(), &config_map("attempt")).await.unwrap_err();
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::default_namespaced(client);
    secrets.get("none").await.unwrap_err();
    let seen = cluster.audit("tagboat");
    // The requests before these waited for the role to be in force.
    let [.., attempt, none] = seen.as_slice() else { panic!("{seen:?}") };
    let expected = |verb: &str, resource: &str, name: &str, code| Audited {
        user: format!("system:serviceaccount:{}:tagboat", cluster.namespace()),
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        namespace: cluster.namespace().to_owned(),
        name: name.to_owned(),
        code,
    };
    // The name of a new object is in the body, which is not in the log.
    assert_eq!(attempt, &expected("create", "configmaps", &attempt.name, 403));
    assert_eq!(none, &expected("get", "secrets", "none", 404));
    assert!(attempt.writes() && !none.writes());
    assert_eq!(cluster.audit("bot"), []);
}
