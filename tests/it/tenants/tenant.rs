//! A namespace with a git host of its own.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::measures::TIMEOUT;
use crate::controller::scene::{Kind, condition};
use crate::support::bare_repository::BareRepository;
use crate::support::content::Change;
use crate::support::git_host::{GitHost, Settings};

/// A tenant of the cluster.
pub(super) struct Tenant {
    client: Client,
    namespace: String,
    served: PathBuf,
    pub(super) host: GitHost,
}

impl Tenant {
    /// A tenant whose git host serves the repositories below `served`.
    pub(super) fn new(client: Client, namespace: String, served: PathBuf) -> Self {
        std::fs::create_dir_all(&served).unwrap();
        let host = GitHost::start(&served, Settings::default());
        Self { client, namespace, served, host }
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn api(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &kind.resource())
    }

    /// Makes a repository `NAME.git` with one commit on `main`.
    pub(super) fn repository(&self, name: &str, files: &[Change]) -> BareRepository {
        BareRepository::with_files(&self.served.join(format!("{name}.git")), files)
    }

    /// The URL of a repository of the tenant's.
    pub(super) fn git_url(&self, name: &str) -> String {
        self.host.url(&format!("{name}.git"))
    }

    /// Creates an object with a label `app: NAME`.
    /// By this label the automation of that name selects a policy.
    pub(super) async fn create(&self, kind: Kind, name: &str, spec: &Value) {
        self.create_with(kind, name, &json!({}), spec).await;
    }

    /// Creates an object with annotations.
    pub(super) async fn create_with(&self, kind: Kind, name: &str, annotations: &Value, spec: &Value) {
        let mut object = DynamicObject::new(name, &kind.resource()).data(json!({"spec": spec}));
        object.metadata.labels = Some([("app".to_owned(), name.to_owned())].into());
        object.metadata.annotations = Some(serde_json::from_value(annotations.clone()).unwrap());
        self.api(kind).create(&PostParams::default(), &object).await.unwrap();
    }

    /// Creates a Secret with `data`, a map of texts.
    pub(super) async fn create_secret(&self, name: &str, data: &Value) {
        let object = json!({"metadata": {"name": name}, "stringData": data});
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    /// Replaces the data of a Secret.
    pub(super) async fn change_secret(&self, name: &str, data: &Value) {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let patch = Patch::Merge(json!({"stringData": data}));
        api.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Deletes all Secrets of the tenant.
    pub(super) async fn delete_secrets(&self) {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        api.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    }

    /// Creates a GitRepository of the tenant's own repository `NAME.git`; `more` is merged into its spec.
    pub(super) async fn create_source(&self, name: &str, more: &Value) {
        let spec = json!({"url": self.git_url(name), "interval": "1m", "ref": {"branch": "main"}});
        self.create(Kind::Source, name, &merged(spec, more)).await;
    }

    /// Creates an automation that works on the GitRepository of its name.
    /// It follows the policies that have the label `app: NAME`; `more` is merged into its spec.
    pub(super) async fn create_automation(&self, name: &str, more: &Value) {
        let spec = json!({
            "interval": "10m",
            "sourceRef": {"kind": "GitRepository", "name": name},
            "git": {"commit": {"author": {"name": name, "email": "bot@example.com"}}, "push": {"branch": "main"}},
            "update": {"strategy": "Setters", "path": "./"},
            "policySelector": {"matchLabels": {"app": name}},
        });
        self.create(Kind::Automation, name, &merged(spec, more)).await;
    }

    /// Creates an ImageRepository of `image`, and an ImagePolicy that takes the highest version.
    pub(super) async fn create_images(&self, name: &str, image: &str) {
        self.create(Kind::Repository, name, &json!({"image": image, "interval": "10m"})).await;
        let spec = json!({"imageRepositoryRef": {"name": name}, "policy": {"semver": {"range": "*"}}});
        self.create(Kind::Policy, name, &spec).await;
    }

    /// Merges a patch into an object, as `kubectl patch` does.
    pub(super) async fn patch(&self, kind: Kind, name: &str, patch: &Value) {
        self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Requests a reconcile by `reconcile.fluxcd.io/requestedAt`.
    pub(super) async fn request(&self, kind: Kind, name: &str, token: &str) {
        let annotations = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": token}}});
        self.patch(kind, name, &annotations).await;
    }

    /// Deletes an object, and waits until it has no finalizer any more.
    /// Returns the time that this took.
    pub(super) async fn delete(&self, kind: Kind, name: &str) -> Duration {
        let begin = Instant::now();
        let api = self.api(kind);
        api.delete(name, &DeleteParams::default()).await.unwrap();
        while api.get_metadata_opt(name).await.unwrap().is_some() {
            assert!(begin.elapsed() < TIMEOUT, "{name} is not gone after {TIMEOUT:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        begin.elapsed()
    }

    pub(super) async fn status(&self, kind: Kind, name: &str) -> Value {
        self.api(kind).get(name).await.unwrap().data["status"].clone()
    }

    /// Waits until an object fulfils a condition, and returns its status.
    pub(super) async fn until(
        &self,
        kind: Kind,
        name: &str,
        what: &str,
        is: impl Fn(&DynamicObject) -> bool,
    ) -> Value {
        let begin = Instant::now();
        loop {
            let object = self.api(kind).get(name).await.unwrap();
            if is(&object) {
                return object.data["status"].clone();
            }
            assert!(begin.elapsed() < TIMEOUT, "{name} is not {what}: {:#}", object.data["status"]);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the first reconcile of an object has ended.
    /// Returns the message of its condition Ready.
    pub(super) async fn ready_message(&self, kind: Kind, name: &str) -> String {
        let has_ended = |object: &DynamicObject| {
            condition(&object.data["status"], "Ready").is_some_and(|ready| ready["status"] != "Unknown")
        };
        let status = self.until(kind, name, "reconciled", has_ended).await;
        condition(&status, "Ready").unwrap()["message"].as_str().unwrap_or_default().to_owned()
    }
}

/// A spec with the members of another, which have precedence.
fn merged(mut spec: Value, more: &Value) -> Value {
    let members = more.as_object().expect("a spec is an object").clone();
    spec.as_object_mut().expect("a spec is an object").extend(members);
    spec
}
