//! A cluster's namespace with a fleet on a git server.
//! Controllers work on it.
//!
//! ```text
//! let scene = Scene::new(&["app"]).await;        // a policy and an automation `app`, whose line is at 1.0.0
//! let controller = scene.controller().start();
//! scene.ready("app").await;                      // the status, once it is Ready and observed
//! scene.choose("app", "2.0.0").await;            // the policy's latest image
//! scene.lands("app", "2.0.0").await;             // until the branch has it
//! controller.end().await;
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Event, Secret};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use tagboat::backoff::Backoff;
use tagboat::cloud::{CloudOptions, Clouds};
use tagboat::controller::automation::{self, AutomationOptions, RunOptions};
use tagboat::controller::{ControllerError, ControllerOptions, Election, lease_name};
use tagboat::forge::{ForgeClientOptions, ForgeClients};
use tagboat::git::{Keyring, MirrorStore, PrivateFiles, ProcessEnv, SshAlgorithms};
use tagboat::metrics::Metrics;
use tagboat::net::LocalAddresses;
use tagboat::objects::cluster::{ApiGuard, FIELD_MANAGER, Notifier, Scope};
use tagboat::reconcile::automation::batch_logins::LargeLogins;
use tagboat::reconcile::automation::login::LoginOptions;
use tagboat::reconcile::automation::provider_login::GitClouds;
use tagboat::reconcile::cross_namespace::CrossNamespace;
use tagboat::reconcile::repository::request::ObjectIdentity;
use tagboat::reconcile::times::TimeBounds;
use tagboat::registry::RegistryOptions;
use tagboat::tenancy::Capacity;
use tempfile::TempDir;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::support::api_server::{ApiServer, Cluster};
use crate::support::bare_repository::{BareRepository, LoggedCommit};
use crate::support::content::file;
use crate::support::eventually::eventually;
use crate::support::git_host::{GitHost, Settings};

/// Timeout of any step; the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The image of every policy.
pub(super) const IMAGE: &str = "ghcr.io/org/app";

/// A namespace with objects, and the repository `fleet.git` that they refer to.
pub(super) struct Scene {
    pub(super) cluster: Cluster,
    pub(super) repository: BareRepository,
    pub(super) host: GitHost,
    root: TempDir,
}

/// The kinds that a scene has.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Automation,
    Policy,
    Repository,
    Source,
}

impl Kind {
    pub(crate) fn resource(self) -> ApiResource {
        let (group, kind, plural) = match self {
            Self::Automation => ("image", "ImageUpdateAutomation", "imageupdateautomations"),
            Self::Policy => ("image", "ImagePolicy", "imagepolicies"),
            Self::Repository => ("image", "ImageRepository", "imagerepositories"),
            Self::Source => ("source", "GitRepository", "gitrepositories"),
        };
        let kind = GroupVersionKind::gvk(&format!("{group}.toolkit.fluxcd.io"), "v1", kind);
        ApiResource::from_gvk_with_plural(&kind, plural)
    }
}

impl Scene {
    /// Creates a scene with these members.
    /// Each member has a policy, a line in `fleet.yaml`, and an automation that follows that policy alone.
    pub(super) async fn new(members: &[&str]) -> Self {
        Self::on(ApiServer::shared(), members).await
    }

    /// Creates the scene on a server of the test's own.
    pub(super) async fn on(server: Arc<ApiServer>, members: &[&str]) -> Self {
        Self::of(Cluster::on(server).await, Settings::default(), members).await
    }

    /// Creates the scene with settings of the git server.
    pub(super) async fn with_host(settings: Settings, members: &[&str]) -> Self {
        Self::of(Cluster::new().await, settings, members).await
    }

    async fn of(cluster: Cluster, settings: Settings, members: &[&str]) -> Self {
        let scene = Self::without_objects(cluster, settings, members);
        scene
            .create(
                Kind::Source,
                "fleet",
                &json!({"url": scene.host.url("fleet.git"), "interval": "1m", "ref": {"branch": "main"}}),
            )
            .await;
        for member in members {
            scene.create_policy(member, "1.0.0").await;
            scene.create(Kind::Automation, member, &Self::spec(member)).await;
        }
        scene
    }

    fn without_objects(cluster: Cluster, settings: Settings, members: &[&str]) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("served")).unwrap();
        let lines: String = members.iter().map(|member| line(cluster.namespace(), member, "1.0.0")).collect();
        let repository =
            BareRepository::with_files(&root.path().join("served/fleet.git"), &[file("fleet.yaml", lines)]);
        let host = GitHost::start(&root.path().join("served"), settings);
        Self { cluster, repository, host, root }
    }

    /// The spec of a member's automation.
    pub(super) fn spec(member: &str) -> Value {
        json!({
            "interval": "10m",
            "sourceRef": {"kind": "GitRepository", "name": "fleet"},
            "git": {"commit": {"author": {"name": member, "email": "bot@example.com"}}, "push": {"branch": "main"}},
            "update": {"strategy": "Setters", "path": "./"},
            "policySelector": {"matchLabels": {"app": member}},
        })
    }

    /// Builder of a [`Controller`].
    pub(super) fn controller(&self) -> ControllerBuilder {
        ControllerBuilder::new(self)
    }

    pub(super) fn api(&self, kind: Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.cluster.client(), self.cluster.namespace(), &kind.resource())
    }

    pub(super) async fn create(&self, kind: Kind, name: &str, spec: &Value) -> DynamicObject {
        let object = DynamicObject::new(name, &kind.resource()).data(json!({"spec": spec}));
        self.api(kind).create(&PostParams::default(), &object).await.unwrap()
    }

    /// A policy with the label `app: NAME`, and its latest image.
    pub(super) async fn create_policy(&self, name: &str, tag: &str) {
        let spec = json!({"imageRepositoryRef": {"name": name}, "policy": {"semver": {"range": "*"}}});
        let mut object = DynamicObject::new(name, &Kind::Policy.resource()).data(json!({"spec": spec}));
        object.metadata.labels = Some([("app".to_owned(), name.to_owned())].into());
        self.api(Kind::Policy).create(&PostParams::default(), &object).await.unwrap();
        self.choose(name, tag).await;
    }

    /// Sets the latest image of a policy.
    pub(super) async fn choose(&self, policy: &str, tag: &str) {
        let status = json!({"status": {"latestRef": {"name": IMAGE, "tag": tag}}});
        let api = self.api(Kind::Policy);
        api.patch_status(policy, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    /// Merges a patch into an object, as a person does.
    pub(super) async fn patch(&self, kind: Kind, name: &str, patch: &Value) -> DynamicObject {
        self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    /// Writes an automation's status as another field manager.
    pub(super) async fn patch_status(&self, name: &str, manager: &str, status: &Value) {
        let parameters = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({"status": status}));
        self.api(Kind::Automation).patch_status(name, &parameters, &patch).await.unwrap();
    }

    /// Requests a reconcile.
    pub(super) async fn request(&self, automation: &str, token: &str) {
        let annotations = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": token}}});
        self.patch(Kind::Automation, automation, &annotations).await;
    }

    /// A secret, in the scene's namespace or another one.
    pub(super) async fn create_secret(&self, namespace: &str, name: &str, data: &[(&str, &str)]) {
        let object = json!({
            "metadata": {"name": name},
            "stringData": data.iter().copied().collect::<std::collections::BTreeMap<_, _>>(),
        });
        let api: Api<Secret> = Api::namespaced(self.cluster.client(), namespace);
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    /// Creates an automation that works on a git repository of its own.
    /// The repository has its name. The automation follows no policy.
    pub(super) async fn create_with_source(&self, name: &str, source: &Value) {
        let mut whole = json!({"interval": "1m", "ref": {"branch": "main"}});
        whole.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        self.create(Kind::Source, name, &whole).await;
        let mut spec = Self::spec(name);
        spec["sourceRef"]["name"] = json!(name);
        self.create(Kind::Automation, name, &spec).await;
    }

    pub(super) async fn delete(&self, kind: Kind, name: &str) {
        self.api(kind).delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(super) async fn get(&self, name: &str) -> Option<DynamicObject> {
        self.api(Kind::Automation).get_opt(name).await.unwrap()
    }

    /// The status of an automation.
    pub(super) async fn status(&self, name: &str) -> Value {
        self.get(name).await.expect("the automation is there").data["status"].clone()
    }

    /// Waits until an automation fulfils a condition, and gives it.
    pub(super) async fn until(&self, name: &str, what: &str, is: impl Fn(&DynamicObject) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let object = self.get(name).await.expect("the automation is there");
            if is(&object) {
                return object.data["status"].clone();
            }
            assert!(begin.elapsed() < TIMEOUT, "{name} is not {what}: {:#}", object.data["status"]);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until an automation is Ready in its present generation, and returns its status.
    pub(super) async fn ready(&self, name: &str) -> Value {
        self.until(name, "ready", |object| kstatus(object) == "Current").await
    }

    /// Waits until an automation has failed or stalled for a reason, and returns its status.
    pub(super) async fn not_ready(&self, name: &str, reason: &str) -> Value {
        let is = |object: &DynamicObject| {
            condition(&object.data["status"], "Ready")
                .is_some_and(|ready| ready["status"] == "False" && ready["reason"] == reason)
        };
        self.until(name, reason, is).await
    }

    /// Waits until the branch has a version in a member's line.
    pub(super) async fn lands(&self, member: &str, tag: &str) {
        let wanted = line(self.cluster.namespace(), member, tag);
        let has = || String::from_utf8(self.repository.file("main", "fleet.yaml")).unwrap().contains(&wanted);
        eventually(&format!("{member} at {tag} on the branch"), async || has()).await;
    }

    /// The commits that automations made, the newest first.
    pub(super) fn commits(&self) -> Vec<LoggedCommit> {
        Self::commits_of(&self.repository)
    }

    /// The commits that automations made in a repository, the newest first.
    pub(super) fn commits_of(repository: &BareRepository) -> Vec<LoggedCommit> {
        let mut commits = repository.log("main");
        commits.retain(|commit| commit.author.ends_with("<bot@example.com>"));
        commits
    }

    /// Returns the events about an automation, as `TYPE REASON: MESSAGE`.
    /// They are in the order in which they began.
    pub(super) async fn events(&self, name: &str) -> Vec<String> {
        let api: Api<Event> = Api::namespaced(self.cluster.client(), self.cluster.namespace());
        let mut found = api.list(&ListParams::default()).await.unwrap().items;
        found.retain(|event| event.involved_object.name.as_deref() == Some(name));
        found.sort_by_key(|event| {
            event.metadata.resource_version.as_ref().map(|version| version.parse::<u64>().unwrap())
        });
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        found
            .iter()
            .map(|event| format!("{} {}: {}", text(&event.type_), text(&event.reason), text(&event.message)))
            .collect()
    }
}

/// The line of `fleet.yaml` that a member's policy stands on.
pub(crate) fn line(namespace: &str, member: &str, tag: &str) -> String {
    format!("{member}: {tag} # {{\"$imagepolicy\": \"{namespace}:{member}:tag\"}}\n")
}

/// A condition of a status.
pub(crate) fn condition<'s>(status: &'s Value, type_: &str) -> Option<&'s Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == type_)
}

/// Returns the state of an object by the rules of kstatus.
/// Tools that wait for objects compute it in the same way.
pub(crate) fn kstatus(object: &DynamicObject) -> &'static str {
    let status = &object.data["status"];
    let is = |type_, value| condition(status, type_).is_some_and(|condition| condition["status"] == value);
    if object.metadata.deletion_timestamp.is_some() {
        "Terminating"
    } else if object.metadata.generation != status["observedGeneration"].as_i64() || is("Reconciling", "True")
    {
        "InProgress"
    } else if is("Stalled", "True") {
        "Failed"
    } else if is("Ready", "True") {
        "Current"
    } else {
        "InProgress"
    }
}

/// Builder of a [`Controller`].
pub(super) struct ControllerBuilder {
    pub(super) client: Client,
    pub(super) options: AutomationOptions,
    pub(super) metrics: Metrics,
}

/// A controller that runs in this process.
pub(super) struct Controller {
    end: oneshot::Sender<()>,
    task: JoinHandle<Result<(), ControllerError>>,
}

impl ControllerBuilder {
    fn new(scene: &Scene) -> Self {
        let namespace = scene.cluster.namespace().to_owned();
        let (capacity, metrics) = (Capacity::default(), Metrics::default());
        let login = LoginOptions {
            local_paths: None,
            local_addresses: LocalAddresses::Allowed,
            is_of_the_user: false,
            process_env: ProcessEnv::default(),
            ssh_algorithms: SshAlgorithms::default(),
            mirror_size: 1 << 30,
            files: PrivateFiles::default(),
            capacity: capacity.clone(),
            git: GitClouds {
                clouds: Arc::new(Clouds::new(RegistryOptions::default().http(), CloudOptions::default())),
                identity: ObjectIdentity::Off,
                accounts: None,
            },
            forges: ForgeClients::new(ForgeClientOptions {
                metrics: metrics.clone(),
                ..ForgeClientOptions::default()
            }),
            large: Some(LargeLogins::default()),
        };
        let controller = ControllerOptions {
            name: FIELD_MANAGER,
            scope: Scope { namespace: Some(namespace.clone()), labels: None },
            backoff: Backoff { first: Duration::from_millis(750), longest: Duration::from_secs(900) },
            election: None,
            guard: ApiGuard::default(),
            notifier: None,
            instance: "tests".to_owned(),
            process_id: "0b5f60e2-93d5-4d7c-8a52-3f1de25a70cc".to_owned(),
            is_dry_run: false,
            is_leader: watch::Sender::default(),
        };
        let options = AutomationOptions {
            controller,
            namespace,
            concurrent: 4,
            run: RunOptions {
                cross_namespace: CrossNamespace::Allowed,
                login,
                keyring: Keyring::new(capacity.clone()),
                warns_of_markers: false,
                references: tagboat::reconcile::branch_references::BranchReferences::default(),
                times: TimeBounds::default(),
            },
            mirrors: MirrorStore::new(scene.mirrors(), 1 << 40),
            capacity,
            places: None,
            remote_clusters: None,
        };
        Self { client: scene.cluster.client(), options, metrics }
    }

    /// Sets the client.
    pub(super) fn through(self, client: Client) -> Self {
        Self { client, ..self }
    }

    /// Turns leader election on, with this identity; the Lease expires after three seconds.
    pub(super) fn standing_as(mut self, identity: &str) -> Self {
        self.options.controller.election = Some(Election {
            namespace: self.options.controller.scope.namespace.clone().unwrap(),
            name: lease_name(FIELD_MANAGER, None),
            identity: identity.to_owned(),
            duration: Duration::from_secs(3),
            renew_deadline: Duration::from_secs(2),
            retry_period: Duration::from_millis(200),
            is_released: true,
        });
        self
    }

    /// Sets the address of the receiver of notifications.
    pub(super) fn notifying(mut self, address: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        self.options.controller.notifier = Some(Notifier::new(address).unwrap());
        self
    }

    pub(super) fn start(self) -> Controller {
        let (end, ended) = oneshot::channel();
        let Self { client, options, metrics } = self;
        let end_of_test = async move {
            // A test that drops its controller ends it, too.
            let _ = ended.await;
        };
        let task = tokio::spawn(automation::run(client, options, metrics, end_of_test));
        Controller { end, task }
    }
}

impl Controller {
    /// Shuts it down.
    pub(super) async fn end(self) {
        let _ = self.end.send(());
        self.task.await.unwrap().unwrap();
    }

    /// Ends it as a kill does: all of its tasks stop at once.
    pub(super) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// Waits until it ends by itself, and returns the error.
    pub(super) async fn ended(self) -> ControllerError {
        let ended = tokio::time::timeout(TIMEOUT, self.task).await.expect("it ends in time").unwrap();
        drop(self.end);
        ended.unwrap_err()
    }
}

impl Scene {
    /// The directory of the mirrors.
    pub(super) fn mirrors(&self) -> PathBuf {
        self.root.path().join("state/mirrors")
    }

    /// Everything that the controller keeps on the disk.
    pub(super) fn root(&self) -> &std::path::Path {
        self.root.path()
    }
}
