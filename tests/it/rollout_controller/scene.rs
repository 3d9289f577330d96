//! A namespace in which workloads run, with a fleet on a git server.
//! The program works on it.
//!
//! ```text
//! let scene = Scene::new(&[("podinfo", deployment("podinfo", 2))]).await;
//! let program = scene.start().await;                    // with exactly the roles of deploy/rbac and deploy/rollout
//! scene.apply_tree().await;                             // the objects of the branch, as Flux applies them
//! scene.until("podinfo", "installed", |status| status["state"] == "installed").await;
//! scene.choose("podinfo", "2.0.0").await;               // the policy's latest image
//! scene.lands("podinfo", "2.0.0").await;                // until the branch has it
//! ```

use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Event as ClusterEvent;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};
use tagboat_api::DeploymentStatus;
use tempfile::TempDir;

use crate::controller::pod::{Pod, PodSpec};
use crate::controller::scene::Kind;
use crate::support::api_server::{Cluster, apply, documents};
use crate::support::bare_repository::BareRepository;
use crate::support::content::{file, removed};
use crate::support::eventually::eventually;
use crate::support::git_host::{GitHost, Settings};
use crate::support::workloads::WorkloadCluster;

/// Timeout of any step; the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(90);

/// The roles of a program that reports rollouts.
pub(crate) const ROLES: [&str; 3] = ["rbac/cluster-role.yaml", "rbac/role.yaml", "rollout/cluster-role.yaml"];

/// The arguments of the program: no Lease, and no registries.
pub(super) const ARGUMENTS: [&str; 3] =
    ["--watch-all-namespaces=false", "--controllers=automation", "--log-level=info"];

/// A namespace with a policy for each member, and one automation for all of them.
pub(super) struct Scene {
    pub(super) workloads: WorkloadCluster,
    pub(super) repository: BareRepository,
    pub(super) host: GitHost,
    root: TempDir,
}

/// The image of a member.
pub(super) fn image(member: &str) -> String {
    format!("ghcr.io/org/{member}")
}

/// A Deployment whose image follows the policy of its name; `NAMESPACE` stands for the namespace.
pub(super) fn deployment(member: &str, replicas: u32) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {member}\nspec:\n  replicas: {replicas}\n  \
         selector: {{matchLabels: {{app: {member}}}}}\n  template:\n    metadata: {{labels: {{app: {member}}}}}\n    \
         spec:\n      containers:\n        - name: main\n          image: {}:1.0.0 \
         # {{\"$imagepolicy\": \"NAMESPACE:{member}\"}}\n",
        image(member)
    )
}

impl Scene {
    /// Creates a scene with a file `MEMBER.yaml` for each member.
    pub(super) async fn new(members: &[(&str, String)]) -> Self {
        Self::of(WorkloadCluster::new().await, members).await
    }

    pub(super) async fn of(workloads: WorkloadCluster, members: &[(&str, String)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("served")).unwrap();
        let namespace = workloads.cluster().namespace().to_owned();
        let files: Vec<_> = members
            .iter()
            .map(|(member, text)| file(format!("{member}.yaml"), text.replace("NAMESPACE", &namespace)))
            .collect();
        let repository = BareRepository::with_files(&root.path().join("served/fleet.git"), &files);
        let host = GitHost::start(&root.path().join("served"), Settings::default());
        let scene = Self { workloads, repository, host, root };
        let source = json!({"url": scene.host.url("fleet.git"), "interval": "1m", "ref": {"branch": "main"}});
        scene.create(Kind::Source, "fleet", &source).await;
        for (member, _) in members {
            scene.create_policy(member, "1.0.0").await;
        }
        scene.create_automation("fleet").await;
        scene
    }

    pub(super) fn cluster(&self) -> &Cluster {
        self.workloads.cluster()
    }

    /// Creates an automation for all policies.
    pub(super) async fn create_automation(&self, name: &str) {
        self.create_automation_of(name, "./").await;
    }

    /// Creates an automation for all policies, which writes into one directory.
    pub(super) async fn create_automation_of(&self, name: &str, path: &str) {
        let spec = json!({
            "interval": "10m",
            "sourceRef": {"kind": "GitRepository", "name": "fleet"},
            "git": {"commit": {"author": {"name": "bot", "email": "bot@example.com"}}, "push": {"branch": "main"}},
            "update": {"strategy": "Setters", "path": path},
        });
        self.create(Kind::Automation, name, &spec).await;
    }

    /// Creates a policy with the label `app: NAME`, and its latest image.
    pub(super) async fn create_policy(&self, name: &str, tag: &str) {
        let spec = json!({"imageRepositoryRef": {"name": name}, "policy": {"semver": {"range": "*"}}});
        let mut object = DynamicObject::new(name, &Kind::Policy.resource()).data(json!({"spec": spec}));
        object.metadata.labels = Some([("app".to_owned(), name.to_owned())].into());
        self.api(Kind::Policy).create(&PostParams::default(), &object).await.unwrap();
        self.choose(name, tag).await;
    }

    /// Starts the program with exactly the roles of `deploy`.
    pub(super) async fn start(&self) -> Pod {
        self.start_with(&self.cluster().token_with_roles(&ROLES).await, &[])
    }

    /// Starts the program with a token and further arguments.
    pub(super) fn start_with(&self, token: &str, arguments: &[&str]) -> Pod {
        self.start_by(&self.cluster().kubeconfig(token), arguments)
    }

    /// Starts the program with a kubeconfig and further arguments.
    pub(super) fn start_by(&self, kubeconfig: &Path, arguments: &[&str]) -> Pod {
        self.spawn(kubeconfig, &[&ARGUMENTS, arguments].concat(), false)
    }

    /// Starts the program with exactly the roles of `deploy`, and with its REST API.
    pub(super) async fn start_serving(&self, arguments: &[&str]) -> Pod {
        let token = self.cluster().token_with_roles(&ROLES).await;
        self.spawn(&self.cluster().kubeconfig(&token), &[&ARGUMENTS, arguments].concat(), true)
    }

    /// Starts the program for all namespaces, in a cluster of the test's own.
    pub(super) fn start_in_all_namespaces(&self, kubeconfig: &Path, arguments: &[&str]) -> Pod {
        self.spawn(kubeconfig, &[&ARGUMENTS[1..], arguments].concat(), false)
    }

    /// Starts a replica with its REST API, which may run beside others.
    pub(super) fn start_replica(&self, kubeconfig: &Path) -> Pod {
        let directory = tempfile::tempdir_in(&self.root).unwrap().keep();
        let arguments = [&ARGUMENTS[..], &["--enable-leader-election"]].concat();
        Pod::spawn(PodSpec { directory: &directory, ..self.spec(kubeconfig, &arguments, true) })
    }

    fn spawn(&self, kubeconfig: &Path, arguments: &[&str], serves_status: bool) -> Pod {
        Pod::spawn(self.spec(kubeconfig, arguments, serves_status))
    }

    fn spec<'a>(
        &'a self,
        kubeconfig: &'a Path,
        arguments: &'a [&'a str],
        serves_status: bool,
    ) -> PodSpec<'a> {
        PodSpec {
            kubeconfig,
            namespace: self.cluster().namespace(),
            directory: self.root.path(),
            environment: &[],
            arguments,
            cpu: None,
            serves_status,
        }
    }

    pub(super) fn api(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.cluster().client(), self.cluster().namespace(), &kind.resource())
    }

    pub(super) async fn create(&self, kind: Kind, name: &str, spec: &Value) {
        let object = DynamicObject::new(name, &kind.resource()).data(json!({"spec": spec}));
        self.api(kind).create(&PostParams::default(), &object).await.unwrap();
    }

    pub(super) async fn patch(&self, kind: Kind, name: &str, patch: &Value) {
        self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(super) async fn delete(&self, kind: Kind, name: &str) {
        self.api(kind).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Sets the latest image of a policy.
    pub(super) async fn choose(&self, policy: &str, tag: &str) {
        let status = json!({"status": {"latestRef": {"name": image(policy), "tag": tag}}});
        let api = self.api(Kind::Policy);
        api.patch_status(policy, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    /// Has the automation read its files again, which another person has changed.
    pub(super) async fn rescan(&self, token: &str) {
        let request = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": token}}});
        self.patch(Kind::Automation, "fleet", &request).await;
    }

    /// Replaces a file of the branch; none removes it.
    pub(super) fn commit(&self, path: &str, content: Option<&str>) {
        let namespace = self.cluster().namespace();
        let change = match content {
            Some(content) => file(path, content.replace("NAMESPACE", namespace)),
            None => removed(path),
        };
        self.repository.commit("main", "by hand", &[change]);
    }

    /// Waits until the branch has a version of a member.
    pub(super) async fn lands(&self, member: &str, tag: &str) {
        let wanted = format!("image: {}:{tag} ", image(member));
        let file = format!("{member}.yaml");
        let has = || String::from_utf8(self.repository.file("main", &file)).unwrap().contains(&wanted);
        eventually(&format!("{member} at {tag} on the branch"), async || has()).await;
    }

    /// Applies all objects of the branch, as Flux does.
    pub(super) async fn apply_tree(&self) {
        self.apply_tree_to(self.cluster()).await;
    }

    /// Applies all objects of the branch to a cluster.
    pub(super) async fn apply_tree_to(&self, cluster: &Cluster) {
        for path in self.repository.tree("main").keys() {
            let text = self.repository.file("main", std::str::from_utf8(path).unwrap());
            for document in documents(std::str::from_utf8(&text).unwrap()) {
                apply(&cluster.client(), &document, false).await.unwrap();
            }
        }
    }

    /// Returns the events of a policy in their order, as `TYPE REASON MESSAGE`.
    pub(super) async fn events(&self, policy: &str) -> Vec<String> {
        let api: Api<ClusterEvent> = Api::namespaced(self.cluster().client(), self.cluster().namespace());
        let fields = format!("involvedObject.kind=ImagePolicy,involvedObject.name={policy}");
        let mut events = api.list(&ListParams::default().fields(&fields)).await.unwrap().items;
        events.sort_by_key(|event| {
            event.metadata.resource_version.clone().map(|version| version.parse::<u64>().unwrap())
        });
        let text = |text: Option<String>| text.unwrap_or_default();
        let line = |event: ClusterEvent| {
            format!("{} {} {}", text(event.type_), text(event.reason), text(event.message))
        };
        events.into_iter().map(line).collect()
    }

    /// The requests for DeploymentStatus objects.
    pub(super) fn statuses(&self) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<DeploymentStatus>(&());
        Api::namespaced_with(self.cluster().client(), self.cluster().namespace(), &resource)
    }

    /// Returns the object of a policy, if there is one.
    pub(super) async fn object(&self, policy: &str) -> Option<DynamicObject> {
        self.statuses().get_opt(policy).await.unwrap()
    }

    /// Waits until the status of a policy's object fulfils a condition, and returns it.
    pub(super) async fn until(&self, policy: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let object = self.object(policy).await;
            let status = object.map(|object| object.data["status"].clone()).unwrap_or_default();
            if is(&status) {
                return status;
            }
            assert!(begin.elapsed() < TIMEOUT, "{policy} is not {what}: {status:#}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a policy has a state with this tag, and a component.
    ///
    /// A program that finds an object without a status reports `pending` without components until its first scan.
    pub(super) async fn state(&self, policy: &str, tag: &str, state: &str) -> Value {
        let is = |status: &Value| {
            status["state"] == state
                && status["target"]["tag"] == tag
                && status["components"].as_array().is_some_and(|components| !components.is_empty())
        };
        self.until(policy, &format!("{state} with {tag}"), is).await
    }

    /// Waits until a policy has no object.
    pub(super) async fn gone(&self, policy: &str) {
        eventually("the object is gone", async || self.object(policy).await.is_none()).await;
    }

    /// Patches a workload of the cluster.
    pub(super) async fn patch_workload<K>(&self, name: &str, patch: &Value)
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + serde::de::DeserializeOwned
            + std::fmt::Debug,
    {
        let api: Api<K> = Api::default_namespaced(self.cluster().client());
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
}

/// The only component of a status.
pub(super) fn component(status: &Value) -> &Value {
    let components = status["components"].as_array().map_or(&[][..], Vec::as_slice);
    assert_eq!(components.len(), 1, "{status:#}");
    &components[0]
}

/// The resource version of an object.
pub(super) fn version(object: &DynamicObject) -> String {
    object.resource_version().unwrap()
}
