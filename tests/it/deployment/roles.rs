//! The roles are generated from one table, and allow exactly its permissions.

use std::collections::BTreeSet;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tagboat::permissions::{
    self, ACCOUNT_TOKENS, AGENT, ELECTED, EVERYWHERE, NODES, NODES_CONTROLLER, NODES_LEASE, OWN_NAMESPACE,
    Permission, ROLLOUT, lease_name,
};

use super::folder;
use crate::support::api_server::{Cluster, apply, documents};
use crate::support::program::{run, tagboat};

#[test]
fn the_committed_roles_are_fresh() {
    for file in permissions::files(None) {
        let path = folder().join(file.path);
        if std::env::var_os("TAGBOAT_REGENERATE").is_some() {
            std::fs::write(&path, &file.text).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == file.text,
            "{} is stale; run: cargo run -q -- rbac --write deploy",
            path.display()
        );
    }
}

#[test]
fn the_program_prints_or_writes_the_roles() {
    let printed = run(tagboat().arg("rbac")).with_status(0).output;
    for path in ["rbac/cluster-role.yaml", "rbac/role.yaml", "rbac/account-tokens.yaml"] {
        assert!(printed.contains(&super::read(path)), "{printed}");
    }
    assert!(!printed.contains("{{"), "{printed}");
    let rollout = run(tagboat().args(["rbac", "--rollout"])).with_status(0).output;
    assert_eq!(rollout, super::read("rollout/cluster-role.yaml"));
    let nodes = run(tagboat().args(["rbac", "--nodes"])).with_status(0).output;
    let files = ["nodes/cluster-role.yaml", "nodes/role.yaml", "nodes/agent-role.yaml"];
    assert_eq!(nodes, files.map(super::read).join("---\n"));
    let directory = tempfile::tempdir().unwrap();
    // With a choice, only its files are written.
    run(tagboat().args(["rbac", "--nodes", "--write"]).arg(directory.path())).with_status(0);
    for path in files {
        assert_eq!(std::fs::read_to_string(directory.path().join(path)).unwrap(), super::read(path));
    }
    assert!(!directory.path().join("rbac").exists() && !directory.path().join("chart").exists());
    run(tagboat().args(["rbac", "--write"]).arg(directory.path())).with_status(0);
    for file in permissions::files(None) {
        assert_eq!(std::fs::read_to_string(directory.path().join(file.path)).unwrap(), file.text);
    }
}

/// Every verb that a controller might use.
const VERBS: [&str; 8] = ["get", "list", "watch", "create", "patch", "update", "delete", "deletecollection"];

/// Kinds that are not in the table, in addition to those of the table.
const OTHERS: [(&str, &str); 13] = [
    // A token of an account gives its identity.
    ("", "serviceaccounts/token"),
    ("image.toolkit.fluxcd.io", "imagepolicies/finalizers"),
    ("", "configmaps"),
    ("", "pods"),
    ("", "pods/exec"),
    ("", "nodes/status"),
    ("", "nodes/proxy"),
    ("", "secrets/status"),
    ("apps", "deployments"),
    ("source.toolkit.fluxcd.io", "gitrepositories/status"),
    ("source.toolkit.fluxcd.io", "ocirepositories"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
];

/// Returns whether a client may use a verb on all objects of a resource.
/// With `name`, it is about the one object with that name.
async fn may(
    client: &Client,
    verb: &str,
    (group, resource): (&str, &str),
    namespace: &str,
    name: Option<&str>,
) -> bool {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let attributes = ResourceAttributes {
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource: Some(subresource.to_owned()),
        verb: Some(verb.to_owned()),
        namespace: Some(namespace.to_owned()),
        name: name.map(str::to_owned),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..Default::default() };
    let answer = Api::all(client.clone()).create(&PostParams::default(), &review).await.unwrap();
    answer.status.expect("a review is answered").allowed
}

fn allows(permissions: &[Permission], verb: &str, (group, resource): (&str, &str)) -> bool {
    permissions.iter().any(|permission| {
        permission.group == group
            && permission.resources.contains(&resource)
            && permission.leases.is_empty()
            && permission.verbs.iter().any(|own| own.name() == verb)
    })
}

#[tokio::test]
async fn the_server_allows_exactly_the_permissions_of_the_table() {
    let cluster = Cluster::new().await;
    let token = cluster.token_with_the_roles().await;
    assert_allows(&cluster, &token, EVERYWHERE).await;
}

#[tokio::test]
async fn the_role_for_rollouts_adds_exactly_its_permissions() {
    let cluster = Cluster::new().await;
    let files = ["rbac/cluster-role.yaml", "rbac/role.yaml", "rollout/cluster-role.yaml"];
    let token = cluster.token_with_roles(&files).await;
    assert_allows(&cluster, &token, &[EVERYWHERE, ROLLOUT].concat()).await;
}

#[tokio::test]
async fn the_roles_for_nodes_add_exactly_their_permissions() {
    let cluster = Cluster::new().await;
    let files = ["rbac/cluster-role.yaml", "rbac/role.yaml", "nodes/cluster-role.yaml", "nodes/role.yaml"];
    let token = cluster.token_with_roles(&files).await;
    assert_allows(&cluster, &token, &[EVERYWHERE, NODES].concat()).await;
    let client = cluster.client_with(&token).await;
    let leases = ("coordination.k8s.io", "leases");
    let names = [lease_name(NODES_CONTROLLER, None), lease_name(NODES_CONTROLLER, Some("a=b"))];
    for (name, is_own) in names.iter().zip([true, false]) {
        for verb in ["get", "update", "delete"] {
            let seen = may(&client, verb, leases, cluster.namespace(), Some(name)).await;
            assert_eq!(seen, is_own && verb != "delete", "{verb} {name}");
        }
    }
}

/// Asserts that a token has exactly some permissions everywhere, and those of the own namespace.
async fn assert_allows(cluster: &Cluster, token: &str, permissions: &[Permission]) {
    let elsewhere = cluster.another_namespace().await;
    let client = cluster.client_with(token).await;
    let named = EVERYWHERE.iter().chain(OWN_NAMESPACE).chain(ROLLOUT).chain(NODES);
    let named =
        named.flat_map(|permission| permission.resources.iter().map(|name| (permission.group, *name)));
    let resources: BTreeSet<(&str, &str)> = named.chain(OTHERS).collect();
    for resource in resources {
        for verb in VERBS {
            let everywhere = allows(permissions, verb, resource);
            let here = everywhere || allows(OWN_NAMESPACE, verb, resource);
            let seen = (
                may(&client, verb, resource, cluster.namespace(), None).await,
                may(&client, verb, resource, &elsewhere, None).await,
            );
            assert_eq!(seen, (here, everywhere), "{verb} {resource:?}");
        }
    }
}

/// Leases of other controllers in the same namespace are out of reach.
#[tokio::test]
async fn only_the_own_leases_may_be_read_and_updated() {
    const SELECTOR: &str = "sharding.fluxcd.io/key=shard1";
    let cluster = Cluster::new().await;
    let namespace = cluster.namespace();
    let client = cluster.client_with(&cluster.token_with_the_roles().await).await;
    // The role of a shard, as the program prints it, for an account of its own.
    let role = run(tagboat().args(["rbac", "--watch-label-selector", SELECTOR])).with_status(0).output;
    let mut objects: Vec<Value> =
        documents(&role).into_iter().filter(|object| object["metadata"]["namespace"].is_string()).collect();
    let shard = cluster.client_with(&cluster.token("shard").await).await;
    for object in &mut objects {
        object["metadata"]["name"] = json!("shard");
        object["metadata"]["namespace"] = json!(namespace);
        if object["kind"] == "RoleBinding" {
            object["roleRef"]["name"] = json!("shard");
            object["subjects"] = json!([{"kind": "ServiceAccount", "name": "shard", "namespace": namespace}]);
        }
        apply(&cluster.client(), object, false).await.unwrap();
    }
    let leases = ("coordination.k8s.io", "leases");
    let names =
        ELECTED.map(|controller| [None, Some(SELECTOR)].map(|selector| lease_name(controller, selector)));
    let others = ["kustomize-controller-leader-election".to_owned(), format!("{}-0", names[0][0])];
    for (client, own) in [(&client, 0), (&shard, 1)] {
        for name in names.iter().flatten().chain(&others) {
            let is_own = names.iter().any(|names| names[own] == *name);
            for verb in VERBS {
                let expected = verb == "create" || (is_own && ["get", "update"].contains(&verb));
                let seen = may(client, verb, leases, namespace, Some(name)).await;
                assert_eq!(seen, expected, "{verb} {name}, {own}");
            }
        }
    }
}

#[test]
fn every_rule_has_a_reason() {
    let tables = [EVERYWHERE, OWN_NAMESPACE, ACCOUNT_TOKENS, ROLLOUT, NODES, NODES_LEASE, AGENT];
    for permission in tables.into_iter().flatten() {
        assert!(permission.reason.ends_with('.'), "{permission:?}");
        assert!(!permission.resources.is_empty() && !permission.verbs.is_empty(), "{permission:?}");
    }
}
