//! The controllers of Flux in one cluster, played by the tests.
//!
//! As kustomize-controller, they apply the tree of the branch with the labels of the Kustomization `apps`, and write
//! its status. As helm-controller, they make a Deployment from the values of the HelmRelease `podinfo`.

use jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use tagboat::rollout::objects::{HelmRelease, Kustomization};

use crate::support::api_server::{Cluster, apply, documents};
use crate::support::git_program::Person;

/// The Kustomization `apps` of a cluster, and its HelmRelease `podinfo`.
pub(super) struct Flux<'c> {
    cluster: &'c Cluster,
    url: String,
}

/// The condition `Ready`, as far as the tests choose it.
struct Ready<'t> {
    status: &'t str,
    reason: &'t str,
    message: &'t str,
}

impl<'c> Flux<'c> {
    pub(super) fn new(cluster: &'c Cluster, url: String) -> Self {
        Self { cluster, url }
    }

    /// Creates the Kustomization and its source.
    pub(super) async fn install(&self) {
        let source = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "fleet"},
            "spec": {"url": self.url, "interval": "1m", "ref": {"branch": "main"}},
        });
        let kustomization = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": "apps"},
            "spec": {
                "interval": "10m", "path": "./apps", "prune": true,
                "sourceRef": {"kind": "GitRepository", "name": "fleet"},
            },
        });
        for document in [source, kustomization] {
            apply(&self.cluster.client(), &document, false).await.unwrap();
        }
    }

    /// Suspends the Kustomization, or lets it go on.
    pub(super) async fn suspend(&self, is_suspended: bool) {
        let patch = Patch::Merge(json!({"spec": {"suspend": is_suspended}}));
        self.kustomizations().patch("apps", &PatchParams::default(), &patch).await.unwrap();
    }

    /// Applies the branch of the git server, unless the Kustomization is suspended.
    pub(super) async fn reconcile(&self) {
        let object = self.kustomizations().get("apps").await.unwrap();
        if object.data["spec"]["suspend"] == true {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let clone = Person::anonymous().clone_bare(&self.url, &directory.path().join("clone"));
        let revision = format!("main@sha1:{}", clone.id("main").unwrap());
        let begun = Ready { status: "Unknown", reason: "Progressing", message: "Reconciliation in progress" };
        self.report(&self.kustomizations(), "apps", &begun, json!({})).await;
        for path in clone.tree("main").keys().filter(|path| path.starts_with(b"apps/")) {
            let text = clone.file("main", std::str::from_utf8(path).unwrap());
            for mut document in documents(std::str::from_utf8(&text).unwrap()) {
                document["metadata"]["labels"] = json!({
                    "kustomize.toolkit.fluxcd.io/name": "apps",
                    "kustomize.toolkit.fluxcd.io/namespace": self.cluster.namespace(),
                });
                apply(&self.cluster.client(), &document, false).await.unwrap();
            }
        }
        let message = format!("Applied revision: {revision}");
        let done = Ready { status: "True", reason: "ReconciliationSucceeded", message: &message };
        let applied = json!({"lastAppliedRevision": revision, "lastAttemptedRevision": revision});
        self.report(&self.kustomizations(), "apps", &done, applied).await;
    }

    /// Installs or upgrades the release.
    pub(super) async fn upgrade(&self) {
        let image = self.release().await.data["spec"]["values"]["image"].clone();
        let image = format!("{}:{}", image["repository"].as_str().unwrap(), image["tag"].as_str().unwrap());
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "podinfo", "labels": {
                "helm.toolkit.fluxcd.io/name": "podinfo",
                "helm.toolkit.fluxcd.io/namespace": self.cluster.namespace(),
            }},
            "spec": {
                "replicas": 2, "selector": {"matchLabels": {"app": "podinfo"}},
                "template": {
                    "metadata": {"labels": {"app": "podinfo"}},
                    "spec": {"containers": [{"name": "podinfo", "image": image}]},
                },
            },
        });
        apply(&self.cluster.client(), &deployment, false).await.unwrap();
        let done = Ready { status: "True", reason: "UpgradeSucceeded", message: "Helm upgrade succeeded" };
        let history =
            json!({"history": [{"chartName": "podinfo", "chartVersion": "0.1.0", "status": "deployed"}]});
        self.report(&self.releases(), "podinfo", &done, history).await;
    }

    /// Fails to upgrade the release, whose Deployment stays as it is.
    pub(super) async fn fail_to_upgrade(&self, message: &str) {
        let failed = Ready { status: "False", reason: "UpgradeFailed", message };
        self.report(&self.releases(), "podinfo", &failed, json!({})).await;
    }

    /// Returns the HelmRelease.
    async fn release(&self) -> DynamicObject {
        self.releases().get("podinfo").await.unwrap()
    }

    /// Writes the status of an applier: further fields, and the condition Ready of its generation.
    async fn report(&self, api: &Api<DynamicObject>, name: &str, ready: &Ready<'_>, fields: Value) {
        let generation = api.get(name).await.unwrap().metadata.generation;
        let Ready { status, reason, message } = ready;
        let mut fields = fields;
        fields["observedGeneration"] = json!(generation);
        fields["conditions"] = json!([{
            "type": "Ready", "status": status, "reason": reason, "message": message,
            "observedGeneration": generation, "lastTransitionTime": Timestamp::now().strftime("%FT%TZ").to_string(),
        }]);
        let patch = Patch::Merge(json!({"status": fields}));
        api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    fn kustomizations(&self) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<Kustomization>(&());
        Api::default_namespaced_with(self.cluster.client(), &resource)
    }

    fn releases(&self) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<HelmRelease>(&());
        Api::default_namespaced_with(self.cluster.client(), &resource)
    }
}
