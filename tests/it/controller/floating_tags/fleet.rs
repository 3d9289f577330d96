//! A fleet with policies that follow floating tags.
//! It has an automation that follows all of them, and a front of their registry.
//!
//! ```text
//! let fleet = Fleet::new().await;
//! let first = fleet.push("web", "2.4");
//! fleet.write("image: web # {}\n".replace("{}", &fleet.marker("web"))).await;
//! fleet.follow("web", TICK).await;          // a repository and a policy that polls every tick
//! fleet.automate().await;                   // an automation with an interval of an hour
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kube::api::PostParams;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use crate::controller::reflector::{chosen, until};
use crate::controller::scene::{Kind, Scene, condition};
use crate::support::bare_repository::LoggedCommit;
use crate::support::content::file;
use crate::support::eventually::eventually;
use crate::support::git_host::request::Request;
use crate::support::http_front::{Front, Reply};
use crate::support::registry::Registry;

/// The floating tag.
pub(super) const TAG: &str = "2.4";

/// The polling interval.
pub(super) const TICK: Duration = Duration::from_millis(500);

type Plan = Box<dyn Fn(&Request) -> Reply + Send>;

/// A front of a registry, which answers as a test wants.
/// It records the times at which digests were looked up.
pub(in crate::controller) struct RegistryFront {
    front: Front,
    plan: Arc<Mutex<Plan>>,
    lookups: Arc<Mutex<Vec<Instant>>>,
}

impl RegistryFront {
    pub(in crate::controller) fn before(port: u16) -> Self {
        Self::start(|plan| Front::before(port, plan))
    }

    /// Starts a front at an address that was not served so far.
    pub(in crate::controller) fn at(address: &str, port: u16) -> Self {
        Self::start(|plan| Front::at(address, port, plan))
    }

    fn start(front: impl FnOnce(Box<dyn Fn(&Request) -> Reply + Send + Sync>) -> Front) -> Self {
        let plan: Arc<Mutex<Plan>> = Arc::new(Mutex::new(Box::new(|_| Reply::Forward)));
        let lookups = Arc::<Mutex<Vec<Instant>>>::default();
        let (shared, seen) = (plan.clone(), lookups.clone());
        let front = front(Box::new(move |request| {
            if is_lookup(request) {
                seen.lock().unwrap().push(Instant::now());
            }
            let plan = shared.lock().unwrap();
            plan(request)
        }));
        Self { front, plan, lookups }
    }

    /// Sets the answers from now on.
    pub(in crate::controller) fn answer(&self, plan: impl Fn(&Request) -> Reply + Send + 'static) {
        *self.plan.lock().unwrap() = Box::new(plan);
    }

    /// Forwards all requests from now on.
    pub(in crate::controller) fn heal(&self) {
        self.answer(|_| Reply::Forward);
    }

    /// The times of the lookups of digests so far.
    pub(in crate::controller) fn lookups(&self) -> Vec<Instant> {
        self.lookups.lock().unwrap().clone()
    }

    pub(in crate::controller) fn requests(&self) -> Vec<Request> {
        self.front.requests()
    }

    pub(in crate::controller) fn address(&self) -> String {
        self.front.address()
    }

    /// Waits for this many further lookups, and returns the time that they took.
    pub(in crate::controller) async fn more_lookups(&self, count: usize) -> Duration {
        let (begin, before) = (Instant::now(), self.lookups().len());
        eventually("the digest is looked up", async || self.lookups().len() >= before + count).await;
        begin.elapsed()
    }
}

/// True if a request asks for the digest of a manifest only.
pub(super) fn is_lookup(request: &Request) -> bool {
    request.method == "HEAD" && request.path.contains("/manifests/")
}

/// The scene with a registry, its front and a controller's options.
pub(super) struct Fleet {
    pub(super) scene: Scene,
    pub(super) registry: Registry,
    pub(super) front: RegistryFront,
}

impl Fleet {
    pub(super) async fn new() -> Self {
        let (scene, registry) = (Scene::new(&[]).await, Registry::start());
        let front = RegistryFront::before(registry.port());
        Self { scene, registry, front }
    }

    /// Pushes an image that differs from every other one, and returns its digest.
    pub(super) fn push(&self, repository: &str, tag: &str) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let second = i64::try_from(NEXT.fetch_add(1, Ordering::Relaxed)).unwrap();
        let created = jiff::Timestamp::from_second(1_795_000_000 + second).unwrap();
        self.registry.push(repository, tag, &created.to_string())
    }

    /// An image as its repository names it.
    pub(super) fn image(&self, repository: &str) -> String {
        format!("{}/{repository}", self.front.address())
    }

    /// Returns a comment that marks the value before it for a policy.
    /// The parameter `what` is `web`, `web:digest` and so on.
    pub(super) fn marker(&self, what: &str) -> String {
        format!("# {{\"$imagepolicy\": \"{}:{what}\"}}", self.scene.cluster.namespace())
    }

    /// Commits a file as a person.
    pub(super) fn write(&self, text: &str) {
        self.scene.repository.commit("main", "A person's", &[file("web.yaml", text)]);
    }

    /// Writes the file with one line for each policy.
    /// The image of a policy has the tag and no digest.
    pub(super) fn write_images(&self, policies: &[&str]) {
        let line = |name: &&str| format!("{name}: {}:{TAG} {}\n", self.image(name), self.marker(name));
        self.write(&policies.iter().map(line).collect::<String>());
    }

    pub(super) fn file(&self) -> String {
        String::from_utf8(self.scene.repository.file("main", "web.yaml")).unwrap()
    }

    /// Creates a repository and a policy that polls at this interval.
    /// Both have the image's name.
    pub(super) async fn follow(&self, name: &str, every: Duration) {
        self.scan(name).await;
        self.follow_as(name, name, &json!({"tagboat.dev/poll-interval": format!("{}ms", every.as_millis())}))
            .await;
    }

    /// Creates a repository that is scanned on request only.
    pub(super) async fn scan(&self, name: &str) {
        let spec = json!({"image": self.image(name), "interval": "1h"});
        self.scene.create(Kind::Repository, name, &spec).await;
    }

    /// Creates a policy that follows the floating tag of a repository.
    pub(super) async fn follow_as(&self, policy: &str, repository: &str, annotations: &Value) {
        let spec = json!({
            "imageRepositoryRef": {"name": repository},
            "filterTags": {"pattern": r"^2\.4$"},
            "policy": {"alphabetical": {}},
            "digestReflectionPolicy": "Always",
            "interval": "1h",
        });
        self.create_policy(policy, &spec, annotations).await;
    }

    pub(super) async fn create_policy(&self, name: &str, spec: &Value, annotations: &Value) {
        let resource = Kind::Policy.resource();
        let mut object = DynamicObject::new(name, &resource).data(json!({"spec": spec}));
        object.metadata.annotations = serde_json::from_value(annotations.clone()).unwrap();
        self.scene.api(Kind::Policy).create(&PostParams::default(), &object).await.unwrap();
    }

    /// Creates an automation that follows all policies, with an interval of an hour.
    pub(super) async fn automate(&self) {
        let mut spec = Scene::spec("bot");
        spec["interval"] = json!("1h");
        spec.as_object_mut().unwrap().remove("policySelector");
        spec["git"]["commit"]["messageTemplate"] =
            json!("{{ range .Changed.Changes }}{{ .OldValue }} -> {{ .NewValue }}\n{{ end }}");
        self.scene.create(Kind::Automation, "all", &spec).await;
    }

    /// Waits until a policy has a digest, and returns its status.
    pub(super) async fn has(&self, policy: &str, digest: &str) -> Value {
        let image = json!({"name": self.image(policy), "tag": TAG, "digest": digest});
        chosen(&self.scene, policy, &image).await
    }

    /// Waits until a policy is stale for a reason, and returns its status.
    pub(super) async fn stale(&self, policy: &str, reason: &str) -> Value {
        let is = |object: &DynamicObject| {
            condition(&object.data["status"], "Stale")
                .is_some_and(|stale| stale["status"] == "True" && stale["reason"] == reason)
        };
        until(&self.scene, Kind::Policy, policy, is).await
    }

    /// Waits until the file on the branch has a text.
    pub(super) async fn lands(&self, text: &str) {
        eventually(&format!("{text} on the branch"), async || self.file().contains(text)).await;
    }

    pub(super) async fn policy(&self, name: &str) -> DynamicObject {
        self.scene.api(Kind::Policy).get(name).await.unwrap()
    }

    pub(super) fn commits(&self) -> Vec<LoggedCommit> {
        self.scene.commits()
    }

    /// The lines that a commit removed and added.
    pub(super) fn diff(&self, commit: &LoggedCommit) -> Vec<String> {
        let printed = self.scene.repository.git(["show", "--format=", "--unified=0", &commit.id, "--"]);
        let text = String::from_utf8(printed).unwrap();
        let is_line = |line: &&str| {
            line.starts_with(['-', '+']) && !line.starts_with("---") && !line.starts_with("+++")
        };
        text.lines().filter(is_line).map(str::to_owned).collect()
    }
}
