//! The victim: a tenant with one automation that follows a registry of its own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::measures::TIMEOUT;
use super::tenant::Tenant;
use crate::controller::scene::{Kind, kstatus, line};
use crate::support::bare_repository::BareRepository;
use crate::support::content::file;
use crate::support::registry::Registry;
use serde_json::json;

/// The name of each of the victim's objects.
pub(super) const NAME: &str = "app";

/// Creation time of all images.
const CREATED: &str = "2026-01-02T03:04:05Z";

/// A tenant that does nothing unusual.
pub(super) struct Victim {
    pub(super) tenant: Tenant,
    pub(super) repository: BareRepository,
    pub(super) registry: Registry,
    /// The newest image is `1.N.0`.
    newest: AtomicU32,
}

impl Victim {
    /// Creates the victim's objects. The repository has the version 0.0.0, the registry 1.0.0.
    pub(super) async fn create(tenant: Tenant) -> Self {
        let begin = file("fleet.yaml", line(tenant.namespace(), NAME, "0.0.0"));
        let repository = tenant.repository(NAME, &[begin]);
        let registry = tokio::task::spawn_blocking(Registry::start).await.unwrap();
        registry.push(NAME, "1.0.0", CREATED);
        tenant.create_images(NAME, &format!("{}/{NAME}", registry.address())).await;
        tenant.create_source(NAME, &json!({})).await;
        tenant.create_automation(NAME, &json!({})).await;
        Self { tenant, repository, registry, newest: AtomicU32::new(0) }
    }

    /// Waits until the first commit is pushed and the automation is Ready.
    pub(super) async fn is_ready(&self) {
        self.has_landed("1.0.0").await;
        let is_current = |object: &_| kstatus(object) == "Current";
        self.tenant.until(Kind::Automation, NAME, "Ready", is_current).await;
    }

    /// Pushes a new image, and requests a scan.
    /// Returns the time until a commit with the image is pushed.
    pub(super) async fn is_reconciled(&self) -> Duration {
        self.newest.fetch_add(1, Ordering::Relaxed);
        let tag = self.newest_tag();
        self.registry.push(NAME, &tag, CREATED);
        let begin = Instant::now();
        self.tenant.request(Kind::Repository, NAME, &tag).await;
        self.has_landed(&tag).await;
        begin.elapsed()
    }

    /// The newest image in the registry.
    pub(super) fn newest_image(&self) -> String {
        format!("{}/{NAME}:{}", self.registry.address(), self.newest_tag())
    }

    fn newest_tag(&self) -> String {
        format!("1.{}.0", self.newest.load(Ordering::Relaxed))
    }

    /// Waits until the branch has a version.
    async fn has_landed(&self, tag: &str) {
        let wanted = line(self.tenant.namespace(), NAME, tag);
        let reference = self.repository.path().join("refs/heads/main");
        let (begin, mut seen) = (Instant::now(), String::new());
        loop {
            // A git process is started only if the branch has moved.
            let tip = std::fs::read_to_string(&reference).unwrap_or_default();
            if tip != seen {
                let text = self.repository.file("main", "fleet.yaml");
                if text == wanted.as_bytes() {
                    return;
                }
                seen = tip;
            }
            if begin.elapsed() > TIMEOUT {
                let mut statuses = Vec::new();
                for kind in [Kind::Repository, Kind::Policy, Kind::Automation] {
                    statuses.push(self.tenant.status(kind, NAME).await);
                }
                panic!("the victim does not get {tag} within {TIMEOUT:?}: {statuses:#?}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
