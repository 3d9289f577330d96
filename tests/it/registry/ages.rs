//! Tests of policies with a minimum age, on a real registry.
//! They cover requests for manifests, stored ages and selections.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tagboat::objects::manifests::{ManifestStore, Manifests};
use tagboat::objects::{ObjectName, SecretAdvice};
use tagboat::policy::DowngradeProtection;
use tagboat::policy::downgrade::Trigger;
use tagboat::polling::PollingInterval;
use tagboat::reconcile::action::Action;
use tagboat::reconcile::cross_namespace::CrossNamespace;
use tagboat::reconcile::policy::digest::FirstImage;
use tagboat::reconcile::policy::run::{PolicyInputs, PolicyOptions, Run};
use tagboat::reconcile::registries::AuthenticatedRegistries;
use tagboat::reconcile::repository::logins::Logins;
use tagboat::reconcile::repository::request::ObjectIdentity;
use tagboat::reconcile::tags::SharedTagStore;
use tagboat::reconcile::times::TimeBounds;
use tagboat::registry::store::{Scan, TagStore};
use tagboat::registry::{Registries, RegistryOptions};
use tagboat::tenancy::Capacity;
use tagboat_api::policy::ImagePolicyStatus;
use tagboat_api::{ImagePolicy, ImageRepository};
use tempfile::TempDir;

use crate::support::http_front::{Front, Reply};
use crate::support::registry::Registry;

/// The time of the first scan.
const BEGINNING: &str = "2026-11-01T00:00:00Z";

fn at(hours: i64) -> Timestamp {
    BEGINNING.parse::<Timestamp>().unwrap() + SignedDuration::from_hours(hours)
}

/// A repository that the test scans, and a policy with a minimum age.
/// The minimum age is three days.
struct Cooldown {
    front: Front,
    root: TempDir,
    tag_store: SharedTagStore,
    registry: AuthenticatedRegistries<ManifestStore>,
    policy: Value,
    /// The number of requests that were returned already.
    seen: AtomicUsize,
}

impl Cooldown {
    fn new(registry: &Registry, plan: fn(&str) -> Reply) -> Self {
        let front = Front::before(registry.port(), move |request| plan(&request.path));
        let root = tempfile::tempdir().unwrap();
        let tag_store = SharedTagStore::new(TagStore::new(Some(root.path().to_owned())), Capacity::default());
        let store = ManifestStore {
            manifests: Manifests::default().into(),
            secrets: Vec::new(),
            state: None,
            advice: SecretAdvice::default(),
        };
        let registries = Registries::new(RegistryOptions::default());
        let policy = json!({
            "metadata": {"namespace": "n", "name": "p", "generation": 1, "annotations": {"tagboat.dev/minimum-age": "3d"}},
            "spec": {"imageRepositoryRef": {"name": "r"}, "policy": {"semver": {"range": "*"}}},
        });
        let registry = AuthenticatedRegistries { objects: store, registries, logins: Logins::default() };
        Self { front, root, tag_store, registry, policy, seen: AtomicUsize::default() }
    }

    fn image(&self) -> String {
        format!("{}/app", self.front.address())
    }

    /// Drops everything that a restart loses.
    fn restart(&mut self) {
        self.tag_store =
            SharedTagStore::new(TagStore::new(Some(self.root.path().to_owned())), Capacity::default());
    }

    /// Stores these tags as found by a scan in that hour.
    async fn scan(&self, hour: i64, tags: impl IntoIterator<Item = String>) {
        let object = ObjectName { namespace: "n".to_owned(), name: "r".to_owned() };
        let scan =
            Scan { canonical: self.image(), scanned: at(hour), etag: None, tags: tags.into_iter().collect() };
        self.tag_store.keep(&object, scan).unwrap();
    }

    async fn scan_tags(&self, hour: i64, tags: &str) {
        self.scan(hour, tags.split_whitespace().map(str::to_owned)).await;
    }

    fn repository(&self, hour: i64) -> ImageRepository {
        serde_json::from_value(json!({
            "metadata": {"namespace": "n", "name": "r"},
            "spec": {"image": self.image(), "interval": "1m", "timeout": "20s"},
            "status": {"lastScanResult": {"tagCount": 1, "scanTime": at(hour).to_string()}},
        }))
        .unwrap()
    }

    /// Reconciles in that hour, from the previous status.
    /// Returns the new status, and the action with the time of the next reconcile.
    async fn run(
        &self,
        hour: i64,
        trigger: Trigger,
        previous: &ImagePolicyStatus,
    ) -> (ImagePolicyStatus, Action) {
        let mut policy: ImagePolicy = serde_json::from_value(self.policy.clone()).unwrap();
        policy.status = Some(previous.clone());
        let run = Run::of(Arc::new(policy), at(hour));
        let options = PolicyOptions {
            cross_namespace: CrossNamespace::Allowed,
            identity: ObjectIdentity::Off,
            requeue_dependency: Duration::from_secs(30),
            downgrade_protection: DowngradeProtection::default(),
            polling: PollingInterval::Disabled,
            first_image: FirstImage::Counts,
            times: TimeBounds::default(),
            capacity: Capacity::default(),
        };
        let scene = PolicyInputs {
            repository: Some(Arc::new(self.repository(hour))),
            labels: Arc::new(Ok(BTreeMap::new())),
            trigger,
            polled: &|_| None,
            scan_failure: None,
            group: None,
        };
        let ended = run.reconcile(&options, scene, &self.tag_store, &self.registry).await;
        let report = run.report(previous, &ended.conclusion, at(hour));
        (report.status, report.action)
    }

    /// The tags whose manifests were requested since the last call, each with the method.
    fn asked(&self) -> Vec<String> {
        let requests = self.front.requests();
        let seen = self.seen.swap(requests.len(), Ordering::Relaxed);
        let asked = requests[seen..].iter().filter_map(|request| {
            let tag = request.path.split("/manifests/").nth(1)?;
            Some(format!("{} {tag}", request.method))
        });
        asked.collect()
    }
}

fn tag(status: &ImagePolicyStatus) -> &str {
    status.latest_ref.as_ref().map_or("none", |latest| latest.tag.as_str())
}

fn condition<'s>(status: &'s ImagePolicyStatus, type_: &str) -> Option<&'s str> {
    let found = status.conditions.iter().find(|condition| condition.type_ == type_)?;
    Some(found.message.as_str())
}

fn push(registry: &Registry, images: &[(&str, i64)]) {
    for (tag, hours) in images {
        registry.push("app", tag, &at(-hours).to_string());
    }
}

fn forward(_: &str) -> Reply {
    Reply::Forward
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_creation_time_counts_until_the_tag_has_been_known_long_enough() {
    let registry = Registry::start();
    push(&registry, &[("1.3.0", 1), ("1.2.0", 50), ("1.1.0", 100), ("1.0.0", 1000)]);
    let mut cooldown = Cooldown::new(&registry, forward);
    cooldown.scan_tags(0, "1.0.0 1.1.0 1.2.0 1.3.0").await;
    let (first, action) = cooldown.run(0, Trigger::TagList, &ImagePolicyStatus::default()).await;
    assert_eq!(tag(&first), "1.1.0");
    // 1.2.0 is the next. One manifest is requested, then two at a time.
    assert_eq!(action, Action::RequeueAfter(Duration::from_secs(22 * 3600)));
    let mut asked = cooldown.asked();
    asked[1..3].sort();
    assert_eq!(asked, ["GET 1.3.0", "GET 1.1.0", "GET 1.2.0"]);

    // A known age is not requested again, not even after a restart.
    for _ in 0..2 {
        let (again, _) = cooldown.run(1, Trigger::TagList, &first).await;
        assert_eq!((tag(&again), cooldown.asked()), ("1.1.0", vec![]));
        cooldown.restart();
    }

    // The age of a tag that appears between two scans is counted from the later one, even if its image is old.
    push(&registry, &[("2.0.0", 1000)]);
    cooldown.scan_tags(10, "1.0.0 1.1.0 1.2.0 1.3.0 2.0.0").await;
    let (second, _) = cooldown.run(10, Trigger::TagList, &first).await;
    assert_eq!((tag(&second), cooldown.asked()), ("1.1.0", vec![]));
    // The others become old enough by time alone; one request verifies that they are still the same.
    let (third, _) = cooldown.run(23, Trigger::TagList, &second).await;
    assert_eq!(
        (tag(&third), cooldown.asked()),
        ("1.2.0", vec!["HEAD 1.2.0".to_owned(), "HEAD 1.2.0".to_owned()])
    );
    let (last, _) = cooldown.run(82, Trigger::TagList, &third).await;
    assert_eq!((tag(&last), cooldown.asked()), ("2.0.0", vec!["HEAD 2.0.0".to_owned()]));
}

/// No tags are held during requests to the registry.
///
/// Formerly, policies that waited for a slow registry each held a list of up to 32 MiB, and all its tags once
/// more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_tags_are_held_during_requests_to_the_registry() {
    let registry = Registry::start();
    push(&registry, &[("1.0.0", 1000)]);
    let cooldown = Cooldown::new(&registry, |path| match path.contains("/manifests/") {
        true => Reply::Late(Duration::from_secs(2)),
        false => Reply::Forward,
    });
    cooldown.scan_tags(0, "1.0.0").await;
    let watched = async {
        while cooldown.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let object = ObjectName { namespace: "n".to_owned(), name: "r".to_owned() };
        let open = cooldown.tag_store.open("n", &object, &cooldown.image(), |_| 0).await.unwrap();
        Arc::strong_count(&open.stored)
    };
    let previous = ImagePolicyStatus::default();
    let ((status, _), holders) = tokio::join!(cooldown.run(0, Trigger::TagList, &previous), watched);
    assert_eq!((tag(&status), holders), ("1.0.0", 2), "the store and the test");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_current_tag_missing_from_one_listing_stays_the_current_one() {
    let registry = Registry::start();
    push(&registry, &[("1.1.0", 100), ("1.0.0", 1000)]);
    let cooldown = Cooldown::new(&registry, forward);
    cooldown.scan_tags(0, "1.0.0 1.1.0").await;
    let (first, _) = cooldown.run(0, Trigger::TagList, &ImagePolicyStatus::default()).await;
    assert_eq!(tag(&first), "1.1.0");
    cooldown.scan_tags(1, "1.0.0").await;
    let (second, _) = cooldown.run(1, Trigger::TagList, &first).await;
    assert!(condition(&second, "RegressionHeld").is_some());
    // It is new to us now, but it is the current image, and no lower tag is held any more.
    cooldown.scan_tags(2, "1.0.0 1.1.0").await;
    for hour in [2, 3, 4] {
        let (status, _) = cooldown.run(hour, Trigger::TagList, &second).await;
        assert_eq!((tag(&status), condition(&status, "RegressionHeld")), ("1.1.0", None));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuilt_image_has_the_age_of_its_new_creation_time() {
    let registry = Registry::start();
    push(&registry, &[("1.1.0", 60), ("1.0.0", 1000)]);
    let cooldown = Cooldown::new(&registry, forward);
    cooldown.scan_tags(0, "1.0.0 1.1.0").await;
    let (first, _) = cooldown.run(0, Trigger::TagList, &ImagePolicyStatus::default()).await;
    assert_eq!(tag(&first), "1.0.0");
    registry.push("app", "1.1.0", &at(12).to_string());
    let (second, action) = cooldown.run(13, Trigger::TagList, &first).await;
    assert_eq!(tag(&second), "1.0.0");
    // Until the tag has been known for three days, which is earlier than its image has that age.
    assert_eq!(action, Action::RequeueAfter(Duration::from_secs((72 - 13) * 3600)));
    let (third, _) = cooldown.run(72, Trigger::TagList, &second).await;
    assert_eq!(tag(&third), "1.1.0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_without_a_creation_time_waits_from_its_first_scan_or_is_accepted_by_a_user() {
    let registry = Registry::start();
    registry.push("app", "1.0.0", "1970-01-01T00:00:00Z");
    let mut cooldown = Cooldown::new(&registry, forward);
    cooldown.scan_tags(0, "1.0.0").await;
    let (first, action) = cooldown.run(0, Trigger::TagList, &ImagePolicyStatus::default()).await;
    let words = "version list argument cannot be empty: 1 tag is too new";
    assert_eq!((tag(&first), condition(&first, "Ready")), ("none", Some(words)));
    assert_eq!(action, Action::RequeueAfter(Duration::from_secs(72 * 3600)));
    cooldown.asked();
    let (second, _) = cooldown.run(1, Trigger::TagList, &first).await;
    assert_eq!((tag(&second), cooldown.asked()), ("none", vec![]));
    // A user may know more than we do.
    cooldown.run(1, Trigger::User, &first).await;
    assert_eq!(cooldown.asked(), ["GET 1.0.0"]);
    let (third, _) = cooldown.run(72, Trigger::TagList, &second).await;
    assert_eq!(tag(&third), "1.0.0");
    cooldown.policy["metadata"]["annotations"]["tagboat.dev/unknown-age"] = json!("accept");
    let (open, _) = cooldown.run(1, Trigger::User, &first).await;
    assert_eq!(tag(&open), "1.0.0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_without_ages_removes_nothing() {
    let registry = Registry::start();
    push(&registry, &[("1.1.0", 100), ("1.0.0", 1000)]);
    let cooldown = Cooldown::new(&registry, |path| {
        if path.contains("/manifests/") { Reply::status(403) } else { Reply::Forward }
    });
    cooldown.scan_tags(0, "1.0.0 1.1.0").await;
    let latest = json!({"latestRef": {"name": cooldown.image(), "tag": "1.1.0"}});
    let before: ImagePolicyStatus = serde_json::from_value(latest).unwrap();
    // The age of the current image is not requested, unless by a user.
    let (status, action) = cooldown.run(0, Trigger::TagList, &before).await;
    assert_eq!((tag(&status), action, cooldown.asked()), ("1.1.0", Action::AwaitChange, vec![]));
    let (status, action) = cooldown.run(0, Trigger::User, &before).await;
    assert_eq!((tag(&status), action), ("1.1.0", Action::Retry));
    assert_eq!(condition(&status, "RegressionHeld"), None);
    let stale = condition(&status, "Stale").unwrap();
    let words = format!("the manifest of {}:1.1.0 cannot be accessed: ", cooldown.image());
    assert!(stale.starts_with(&words), "{stale}");
    assert!(condition(&status, "Ready").unwrap().contains("resolved to 1.1.0"));
    // Without a current image there is none to keep.
    let (status, _) = cooldown.run(0, Trigger::TagList, &ImagePolicyStatus::default()).await;
    assert!(condition(&status, "Ready").unwrap().ends_with("2 tags are too new"), "{status:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_downgrade_behind_a_higher_winner_stays_while_ages_are_missing() {
    let registry = Registry::start();
    push(&registry, &[("1.1.0", 100), ("1.0.0", 1000)]);
    let cooldown = Cooldown::new(&registry, |path| {
        if path.contains("/manifests/1.1.0") { Reply::status(403) } else { Reply::Forward }
    });
    cooldown.scan_tags(0, "1.0.0 1.1.0").await;
    let message = "1.0.0 is lower than 1.2.0 and waits: 2 of 3 complete scans in a row have shown a lower winner, from \
                   2026-10-31T00:00:00Z to 2026-10-31T00:10:00Z, and it counts at 2026-10-31T00:15:00Z at the earliest; set \
                   the annotation reconcile.fluxcd.io/requestedAt of the policy to a new value to accept it at once";
    let before: ImagePolicyStatus = serde_json::from_value(json!({
        "latestRef": {"name": cooldown.image(), "tag": "1.2.0"},
        "conditions": [{
            "type": "RegressionHeld", "status": "True", "reason": "LowerWinner", "message": message,
            "lastTransitionTime": "2026-10-31T00:00:00Z",
        }],
    }))
    .unwrap();
    let (status, _) = cooldown.run(0, Trigger::TagList, &before).await;
    assert_eq!((tag(&status), condition(&status, "RegressionHeld")), ("1.2.0", Some(message)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ages_of_very_many_young_images_are_looked_up_in_parts() {
    let registry = Registry::start();
    push(&registry, &[("1.0.50", 1), ("1.0.0", 1000)]);
    registry.tag("app", "1.0.50", (1..50).map(|patch| format!("1.0.{patch}")));
    let cooldown = Cooldown::new(&registry, forward);
    cooldown.scan(0, (0..=50).map(|patch| format!("1.0.{patch}"))).await;
    let (first, action) = cooldown.run(0, Trigger::TagList, &ImagePolicyStatus::default()).await;
    let words = "the ages of the best images are still being looked up, because many of them are too new";
    assert_eq!((tag(&first), condition(&first, "Ready")), ("none", Some(words)));
    assert_eq!((cooldown.asked().len(), action), (32, Action::RequeueAfter(Duration::from_secs(300))));
    let (second, _) = cooldown.run(0, Trigger::TagList, &first).await;
    assert_eq!(tag(&second), "1.0.0");
    let asked = cooldown.asked();
    assert_eq!(asked.len(), 19, "{asked:?}");

    // A current image stays meanwhile.
    let other = Cooldown::new(&registry, forward);
    other.scan(0, (0..=50).map(|patch| format!("1.0.{patch}"))).await;
    let latest = json!({"latestRef": {"name": other.image(), "tag": "1.0.20"}});
    let before: ImagePolicyStatus = serde_json::from_value(latest).unwrap();
    let (status, action) = other.run(0, Trigger::User, &before).await;
    assert_eq!((tag(&status), action), ("1.0.20", Action::RequeueAfter(Duration::from_secs(300))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tag_that_is_no_number_is_ignored_until_it_is_old_enough() {
    let registry = Registry::start();
    push(&registry, &[("x", 1), ("7", 100), ("8", 2)]);
    let mut cooldown = Cooldown::new(&registry, forward);
    cooldown.policy["spec"]["policy"] = json!({"numerical": {}});
    cooldown.scan_tags(0, "x 7 8").await;
    let (first, _) = cooldown.run(0, Trigger::TagList, &ImagePolicyStatus::default()).await;
    assert_eq!(tag(&first), "7");
    let (second, _) = cooldown.run(72, Trigger::TagList, &first).await;
    assert_eq!(condition(&second, "Ready"), Some("failed to parse invalid numeric value 'x'"));
}
