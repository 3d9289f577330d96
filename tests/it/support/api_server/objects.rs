//! Manifests of any kind, applied as by kubectl.

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tagboat::permissions;

use super::cluster::Cluster;

/// The documents of a manifest.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

/// Applies a manifest, with `dry_run` as a dry run on the server.
/// The server's schema must have every field.
pub(crate) async fn apply(
    client: &Client,
    document: &Value,
    dry_run: bool,
) -> Result<DynamicObject, kube::Error> {
    let object: DynamicObject = serde_json::from_value(document.clone()).unwrap();
    let types = object.types.clone().expect("a manifest names its kind");
    let kind = GroupVersionKind::try_from(&types).unwrap();
    let (resource, capabilities) = pinned_kind(client, &kind).await?;
    let api: Api<DynamicObject> = match (capabilities.scope, object.namespace()) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
        (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), &namespace, &resource),
    };
    let parameters = PatchParams { dry_run, ..PatchParams::apply("tests").force() };
    api.patch(&object.name_any(), &parameters, &Patch::Apply(document)).await
}

impl Cluster {
    /// Returns the token of a service account with exactly the roles of `deploy/rbac`.
    /// The account is in the test's namespace, and has the roles there.
    pub(crate) async fn token_with_the_roles(&self) -> String {
        self.token_with_roles(&["rbac/cluster-role.yaml", "rbac/role.yaml"]).await
    }

    /// Returns the token of a service account with exactly some roles of `deploy`.
    pub(crate) async fn token_with_roles(&self, files: &[&str]) -> String {
        let namespace = self.namespace();
        let token = self.token("tagboat").await;
        let all = permissions::files(None);
        let chosen: Vec<_> = all.iter().filter(|file| files.contains(&file.path)).collect();
        assert_eq!(chosen.len(), files.len(), "{files:?}");
        for mut document in chosen.into_iter().flat_map(|file| documents(&file.text)) {
            // Cluster-scoped objects have a name of the test's own.
            let name = format!("{}-{namespace}", document["metadata"]["name"].as_str().unwrap());
            document["metadata"]["name"] = json!(name);
            if document["metadata"].get("namespace").is_some() {
                document["metadata"]["namespace"] = json!(namespace);
            }
            if document.get("roleRef").is_some() {
                document["roleRef"]["name"] = json!(name);
                document["subjects"][0]["namespace"] = json!(namespace);
            }
            apply(&self.client(), &document, false).await.unwrap();
        }
        self.until_the_roles_count(&token).await;
        token
    }

    /// Gives a service account of the test's namespace permissions there.
    pub(crate) async fn grant(&self, account: &str, rule: Value) {
        let namespace = self.namespace();
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": account, "namespace": namespace},
            "rules": [rule],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": account, "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        });
        for object in [role, binding] {
            apply(&self.client(), &object, false).await.unwrap();
        }
    }

    /// Waits until the roles are in force, which is a moment after they are created.
    async fn until_the_roles_count(&self, token: &str) {
        let begin = std::time::Instant::now();
        let accounts: Api<ServiceAccount> = Api::default_namespaced(self.client_with(token).await);
        while let Err(error) = accounts.get("tagboat").await {
            assert!(begin.elapsed().as_secs() < 60, "{error}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}
