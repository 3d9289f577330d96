//! A fleet from its registry to its pods, and the program with all controllers.
//!
//! ```text
//! let mut fleet = Fleet::new(DEPLOYMENT).await;          // the tag 1.0.0 in the registry and in git
//! fleet.start(&[]).await;                                // with exactly the roles of deploy/rbac and deploy/rollout
//! fleet.flux().reconcile().await;                        // applies the branch
//! fleet.publish("2.0.0");                                // a tag that is scanned, chosen and committed
//! fleet.reports(&Step { state: "pending", .. }).await;   // until all views report it
//! ```

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;

use super::flux::Flux;
use crate::controller::pod::{Pod, PodSpec};
use crate::controller::scene::Kind;
use crate::rollout_controller::scene::ROLES;
use crate::support::api_server::Cluster;
use crate::support::bare_repository::BareRepository;
use crate::support::content::file;
use crate::support::eventually::eventually;
use crate::support::git_host::{GitHost, Settings};
use crate::support::registry::Registry;
use crate::support::workloads::{PodState, WorkloadCluster};

/// Creation time of all images.
const CREATED: &str = "2026-01-02T03:04:05Z";

/// A Deployment with a marker.
pub(super) const DEPLOYMENT: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: podinfo
spec:
  replicas: 2
  selector: {matchLabels: {app: podinfo}}
  template:
    metadata: {labels: {app: podinfo}}
    spec:
      containers:
        - name: podinfo
          image: IMAGE:1.0.0 # {"$imagepolicy": "NAMESPACE:podinfo"}
"#;

/// A HelmRelease with a marker in its values.
pub(super) const RELEASE: &str = r#"apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: podinfo
spec:
  interval: 1h
  chartRef: {kind: OCIRepository, name: podinfo}
  values:
    image:
      repository: IMAGE
      tag: 1.0.0 # {"$imagepolicy": "NAMESPACE:podinfo:tag"}
"#;

/// A namespace with the policy `podinfo`, whose image the automation `fleet` writes into one file.
pub(super) struct Fleet {
    pub(super) workloads: WorkloadCluster,
    pub(super) repository: BareRepository,
    pub(super) kubeconfig: PathBuf,
    host: GitHost,
    registry: Registry,
    root: TempDir,
    program: Option<Pod>,
}

impl Fleet {
    /// Creates the servers and the objects; `document` is the file `apps/podinfo.yaml`.
    pub(super) async fn new(document: &str) -> Self {
        Self::on(WorkloadCluster::new().await, document).await
    }

    /// Creates the fleet in a cluster.
    pub(super) async fn on(workloads: WorkloadCluster, document: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let served = root.path().join("served");
        std::fs::create_dir(&served).unwrap();
        let registry = Registry::start();
        let image = format!("{}/podinfo", registry.address());
        let document =
            document.replace("IMAGE", &image).replace("NAMESPACE", workloads.cluster().namespace());
        let repository =
            BareRepository::with_files(&served.join("fleet.git"), &[file("apps/podinfo.yaml", document)]);
        let host = GitHost::start(&served, Settings::default());
        let kubeconfig = workloads.cluster().administrators_kubeconfig();
        let fleet = Self { workloads, repository, kubeconfig, host, registry, root, program: None };
        fleet.publish("1.0.0");
        fleet.flux().install().await;
        fleet.create(Kind::Repository, "podinfo", &json!({"image": image, "interval": "2s"})).await;
        let policy = json!({"imageRepositoryRef": {"name": "podinfo"}, "policy": {"semver": {"range": "*"}}});
        fleet.create(Kind::Policy, "podinfo", &policy).await;
        let automation = json!({
            "interval": "10m",
            "sourceRef": {"kind": "GitRepository", "name": "fleet"},
            "git": {"commit": {"author": {"name": "bot", "email": "bot@example.com"}}, "push": {"branch": "main"}},
            "update": {"strategy": "Setters", "path": "./apps"},
        });
        fleet.create(Kind::Automation, "fleet", &automation).await;
        fleet
    }

    /// Starts the program with further arguments.
    pub(super) async fn start(&mut self, arguments: &[&str]) {
        self.start_with_roles(&ROLES, arguments).await;
    }

    /// Starts the program with roles of its own.
    pub(super) async fn start_with_roles(&mut self, roles: &[&str], arguments: &[&str]) {
        let token = self.cluster().token_with_roles(roles).await;
        self.program = Some(Pod::spawn(PodSpec {
            kubeconfig: &self.cluster().kubeconfig(&token),
            namespace: self.cluster().namespace(),
            directory: self.root.path(),
            environment: &[],
            arguments: &[&["controller", "--watch-all-namespaces=false"], arguments].concat(),
            cpu: None,
            serves_status: true,
        }));
        let address = &self.program().status;
        eventually("the status is served", async || TcpStream::connect(address).await.is_ok()).await;
    }

    /// Ends the program, which must not have been refused anything.
    pub(super) fn end(mut self) {
        let mut program = self.program.take().expect("the program runs");
        assert_eq!(program.terminate().0, Some(0));
        let mut requests = self.cluster().audit("tagboat");
        requests.retain(|request| matches!(request.code, 401 | 403));
        assert!(requests.is_empty(), "{requests:#?}");
    }

    pub(super) fn program(&self) -> &Pod {
        self.program.as_ref().expect("the program runs")
    }

    pub(super) fn cluster(&self) -> &Cluster {
        self.workloads.cluster()
    }

    pub(super) fn namespace(&self) -> &str {
        self.cluster().namespace()
    }

    /// A directory for files of the test.
    pub(super) fn directory(&self) -> &Path {
        self.root.path()
    }

    /// The Flux of the fleet's own cluster.
    pub(super) fn flux(&self) -> Flux<'_> {
        self.flux_of(self.cluster())
    }

    /// The Flux of another cluster, which applies the same branch.
    pub(super) fn flux_of<'c>(&self, cluster: &'c Cluster) -> Flux<'c> {
        Flux::new(cluster, self.url())
    }

    /// The address of the git repository.
    pub(super) fn url(&self) -> String {
        self.host.url("fleet.git")
    }

    /// The image with a tag.
    pub(super) fn image(&self, tag: &str) -> String {
        format!("{}/podinfo:{tag}", self.registry.address())
    }

    /// Pushes a tag to the registry.
    pub(super) fn publish(&self, tag: &str) {
        self.publish_created(tag, CREATED);
    }

    /// Pushes a tag with a creation time, which makes the digest, and returns the digest.
    pub(super) fn publish_created(&self, tag: &str, created: &str) -> String {
        self.registry.push("podinfo", tag, created)
    }

    /// Sets the state of all pods with a tag, now and later.
    pub(super) fn set_pods(&self, tag: &str, state: PodState) {
        self.workloads.kubelet().set_image(&self.image(tag), state);
    }

    /// Suspends the automation, or lets it go on.
    pub(super) async fn suspend_automation(&self, is_suspended: bool) {
        self.patch_automation(&json!({"spec": {"suspend": is_suspended}})).await;
    }

    /// Patches the automation.
    pub(super) async fn patch_automation(&self, patch: &Value) {
        let api = self.api(Kind::Automation);
        api.patch("fleet", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Waits until the branch `main` has a tag.
    pub(super) async fn lands(&self, tag: &str) {
        let wanted = format!("{} ", self.image(tag));
        let text = || String::from_utf8(self.repository.file("main", "apps/podinfo.yaml")).unwrap();
        eventually("the tag is on the branch", async || text().contains(&wanted)).await;
    }

    /// Merges a branch into `main`, with a merge commit as a forge makes it.
    pub(super) fn merge(&self, branch: &str) {
        let tree = format!("{branch}^{{tree}}");
        let merge = self.repository.git(["commit-tree", &tree, "-p", "main", "-p", branch, "-m", "Merge"]);
        self.repository.move_branch("main", std::str::from_utf8(&merge).unwrap().trim());
    }

    /// Waits until exactly these outcomes of rollouts are announced, as `REASON TAG` in their order.
    pub(super) async fn announces(&self, expected: &[impl AsRef<str>]) {
        let expected: Vec<&str> = expected.iter().map(AsRef::as_ref).collect();
        let what = format!("the events are {expected:?}");
        eventually(&what, async || self.announced().await == expected).await;
    }

    /// Returns the outcomes of rollouts that were announced, as `REASON TAG` in their order.
    pub(super) async fn announced(&self) -> Vec<String> {
        let api: Api<Event> = Api::default_namespaced(self.cluster().client());
        let mut events = api.list(&ListParams::default()).await.unwrap().items;
        events.retain(|event| event.reason.as_deref().is_some_and(|reason| reason.starts_with("Rollout")));
        events.sort_by_key(|event| {
            event.metadata.resource_version.clone().map(|version| version.parse::<u64>().unwrap())
        });
        let line = |event: Event| {
            let message = event.message.unwrap_or_default();
            let image = message.split(' ').next().unwrap_or_default();
            let tag = image.rsplit(':').next().unwrap_or_default();
            format!("{} {tag}", event.reason.unwrap_or_default())
        };
        events.into_iter().map(line).collect()
    }

    async fn create(&self, kind: Kind, name: &str, spec: &Value) {
        let object = DynamicObject::new(name, &kind.resource()).data(json!({"spec": spec}));
        self.api(kind).create(&PostParams::default(), &object).await.unwrap();
    }

    fn api(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.cluster().client(), self.namespace(), &kind.resource())
    }
}
